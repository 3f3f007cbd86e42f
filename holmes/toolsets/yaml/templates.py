"""Compiles command templates and lists their parameters. The output of every expression becomes a mark.

Jinja2 runs in its sandbox. A value never becomes script text. `{{ x }}`, `{{ "-n " ~ x }}` and `{{ x if x else "" }}`
are rewritten. Literals of the author are kept, and every other value passes through `place`. `place` writes a mark into
the script and collects the value. The renderer later decides how to pass the value to the script. A string that the
rewriting misses is treated as a value, so a mistake quotes too much, never too little. Statements that could undo this
are rejected: macros, call blocks, filter blocks, includes, imports and inheritance.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from jinja2 import TemplateSyntaxError, Undefined, meta, nodes, pass_context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from holmes.toolsets.yaml.shell import mark_of
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jinja2 import Template
    from jinja2.runtime import Context

# Key of the `ValueList` in a template's context. Templates cannot access it, because it is not an identifier.
VALUES = "holmes values"
# Names with a fixed meaning, which are never parameters.
_RESERVED_NAMES = frozenset({"env", "request_context", "config"})
# Filters of compiled templates. Templates cannot use them, because their names are not identifiers.
_PLACE = "holmes place"
_LITERAL = "holmes literal"
_JOIN = "holmes join"
_REFUSED_STATEMENTS: tuple[type[nodes.Node], ...] = (
    nodes.Macro,
    nodes.CallBlock,
    nodes.FilterBlock,
    nodes.Include,
    nodes.Import,
    nodes.FromImport,
    nodes.Extends,
    nodes.Block,
)
_Guards: TypeAlias = frozenset[str]


class ShellText(str):
    """Text for the script: either the author's own text, or marks."""

    __slots__ = ()


class ArgumentText(str):
    """The unchanged text of an argument, with the `allow_leading_dash` setting of its parameter."""

    __slots__ = ("allow_leading_dash", "parameter")

    parameter: str
    allow_leading_dash: bool

    @classmethod
    def of(cls, text: str, *, parameter: str, allow_leading_dash: bool) -> ArgumentText:
        made = cls(text)
        made.parameter = parameter
        made.allow_leading_dash = allow_leading_dash
        return made


class VariableText(str):
    """The value of an environment variable. The script refers to it by `name` and never contains the value."""

    __slots__ = ("name",)

    name: str

    @classmethod
    def of(cls, name: str, value: str) -> VariableText:
        made = cls(value)
        made.name = name
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedValue:
    """A value that a mark in the script represents. `variable` is its environment variable, if any."""

    text: str
    parameter: str | None = None
    allow_leading_dash: bool = False
    variable: str | None = None


class ValueList:
    """Collects the values of one rendering, in the order of their marks."""

    def __init__(self) -> None:
        self.values: list[PlacedValue] = []

    def add(self, text: str) -> ShellText:
        """Add a value and return its mark."""
        if isinstance(text, VariableText):
            placed = PlacedValue(text=str(text), variable=text.name)
        elif isinstance(text, ArgumentText):
            placed = PlacedValue(text=str(text), parameter=text.parameter, allow_leading_dash=text.allow_leading_dash)
        else:
            placed = PlacedValue(text=str(text))
        self.values.append(placed)
        return ShellText(mark_of(len(self.values) - 1))


@pass_context
def place(context: Context, value: object) -> ShellText:
    """Template filter that replaces the value of an expression with marks."""
    return _marked(value, context[VALUES])


@pass_context
def literal(_context: Context, value: object) -> ShellText:
    """Template filter for the author's own text.

    The context parameter prevents evaluation when Jinja2 compiles the template.
    """
    return ShellText(str(value))


@pass_context
def join(_context: Context, parts: Sequence[str]) -> ShellText:
    """Template filter that joins texts into one script text."""
    return ShellText("".join(parts))


def _marked(value: object, values: ValueList) -> ShellText:
    match value:
        case ShellText():
            placed = value
        case None | Undefined():
            placed = ShellText("")
        case bool():
            placed = ShellText("true" if value else "false")
        case int() | float():
            placed = ShellText(str(value))
        case str():
            placed = values.add(value)
        case Mapping():
            placed = values.add(json.dumps(value, ensure_ascii=False, default=str))
        case Sequence() | set() | frozenset():
            placed = ShellText(" ".join(_marked(item, values) for item in value))
        case _:
            placed = values.add(str(value))
    return placed


class MissingValue(Undefined):
    """A missing argument. It renders as an empty string, is false, and is equal to the empty string and to `none`."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return other is None or other == "" or isinstance(other, Undefined)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash("")


class _CommandEnvironment(ImmutableSandboxedEnvironment):
    def __init__(self) -> None:
        super().__init__(undefined=MissingValue, autoescape=False, keep_trailing_newline=True)
        # `namespace` is a common parameter. A missing value must not resolve to Jinja2's function of the same name.
        self.globals = {"range": self.globals["range"]}
        self.filters |= {_PLACE: place, _LITERAL: literal, _JOIN: join}


@cache
def _environment() -> _CommandEnvironment:
    return _CommandEnvironment()


@cache
def compile_command(template: str) -> Template:
    """Compile a command. Raises `ConfigError` with the line in the template."""
    environment = _environment()
    tree = _parse(template)
    for node in tree.find_all(_REFUSED_STATEMENTS):
        statement = type(node).__name__.lower()
        raise ConfigError(f"line {node.lineno} of the command: the Jinja statement {statement!r} is not supported")
    _rewrite(tree)
    try:
        return environment.from_string(tree)
    except TemplateSyntaxError as error:  # unknown filters and tests fail here
        raise ConfigError(f"line {error.lineno} of the command: {error.message}") from error


def inferred_parameters(template: str) -> tuple[tuple[str, bool], ...]:
    """Return the variables of a command in order of appearance, and whether each one is required.

    Shell comments are ignored. A variable is optional if every use has a `default` or is in an `if` that checks it.
    """
    without_comments = "\n".join(line for line in template.splitlines() if not line.lstrip().startswith("#"))
    try:
        tree = _parse(without_comments)
    except ConfigError:
        tree = _parse(template)
    undeclared = meta.find_undeclared_variables(tree) - _RESERVED_NAMES - _environment().globals.keys()
    uses: dict[str, bool] = {}
    for name, required in _uses(tree, frozenset()):
        if name in undeclared:
            uses[name] = uses.get(name, False) or required
    return tuple(uses.items())


def _parse(template: str) -> nodes.Template:
    if "\x00" in template:
        raise ConfigError("a command cannot contain the character NUL")
    if "{% raw" not in template:
        # In bash, `${#` is the length of a variable, but in Jinja2, `{#` begins a comment.
        template = template.replace("${#", '{{ "${#" }}')
    try:
        return _environment().parse(template)
    except TemplateSyntaxError as error:
        raise ConfigError(f"line {error.lineno} of the command: {error.message}") from error


def _uses(node: nodes.Node, guards: _Guards) -> Iterator[tuple[str, bool]]:
    if isinstance(node, nodes.Name):
        if node.ctx == "load":
            yield node.name, node.name not in guards
        return
    if isinstance(node, (nodes.If, nodes.CondExpr)):
        guards |= _asked(node.test)
    if isinstance(node, nodes.Or):
        guards |= _asked(node.left)
    if isinstance(node, nodes.Filter) and node.name in {"default", "d"} and isinstance(node.node, nodes.Name):
        guards |= {node.node.name}
    for child in node.iter_child_nodes():
        yield from _uses(child, guards)


def _asked(test: nodes.Node) -> _Guards:
    """Return the variables that a condition checks."""
    match test:
        case nodes.Name():
            return frozenset({test.name})
        case nodes.Not() | nodes.Test():
            return _asked(test.node)
        case nodes.And() | nodes.Or():
            return _asked(test.left) | _asked(test.right)
        case _:
            return frozenset()


def _rewrite(tree: nodes.Template) -> None:
    for output in tree.find_all(nodes.Output):
        output.nodes = [child if isinstance(child, nodes.TemplateData) else _placed(child) for child in output.nodes]
    for assignment in tree.find_all(nodes.Assign):
        if isinstance(assignment.node, (nodes.Const, nodes.Concat, nodes.Add, nodes.CondExpr)):
            assignment.node = _placed(assignment.node)
    for block in tree.find_all(nodes.AssignBlock):
        if block.filter is None:
            block.filter = nodes.Filter(None, _LITERAL, [], [], None, None, lineno=block.lineno)
    tree.set_environment(_environment())


def _placed(node: nodes.Expr) -> nodes.Expr:
    match node:
        case nodes.Const():
            placed = _applied(_LITERAL, node)
        case nodes.CondExpr():
            other = _placed(node.expr2) if node.expr2 is not None else None
            placed = nodes.CondExpr(node.test, _placed(node.expr1), other, lineno=node.lineno)
        case nodes.Or():
            placed = nodes.CondExpr(node.left, _placed(node.left), _placed(node.right), lineno=node.lineno)
        case nodes.And():
            placed = nodes.CondExpr(node.left, _placed(node.right), _placed(node.left), lineno=node.lineno)
        case nodes.Concat():
            placed = _joined([_placed(part) for part in node.nodes], node.lineno)
        case nodes.Add() if _has_text(node):
            placed = _joined([_placed(node.left), _placed(node.right)], node.lineno)
        case nodes.Filter(node=nodes.Expr() as base, name="default" | "d") if node.args:
            fallback = [_placed(node.args[0]), *node.args[1:]]
            inner = nodes.Filter(base, node.name, fallback, node.kwargs, None, None, lineno=node.lineno)
            placed = _applied(_PLACE, inner)
        case _:
            placed = _applied(_PLACE, node)
    return placed


def _has_text(node: nodes.Add) -> bool:
    """Return whether an addition contains a string literal, and thus joins texts. Any other addition is arithmetic."""
    return any(
        isinstance(side.value, str)
        if isinstance(side, nodes.Const)
        else isinstance(side, nodes.Add) and _has_text(side)
        for side in (node.left, node.right)
    )


def _applied(name: str, node: nodes.Expr) -> nodes.Expr:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


def _joined(parts: list[nodes.Expr], line: int) -> nodes.Expr:
    return nodes.Filter(nodes.List(parts, lineno=line), _JOIN, [], [], None, None, lineno=line)
