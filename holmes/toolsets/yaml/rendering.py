"""Renders a bash script from a command template and arguments, so that no argument becomes code or an option.

Each value must follow these rules, in order:

1. It must not contain NUL, and it must match the author's `pattern`. 2. It must not begin with `-` where it could
become an option: at the beginning of a word (also in quotes, also after `NAME=`) of a command without a preceding `--`.
A value after `--option=` may begin with `-`. Numbers are never options. `allow_leading_dash: true` removes this rule
for a parameter. 3. In arithmetic and `${…}` it must consist of digits, because bash evaluates any other text there. 4.
If the script runs another interpreter (awk, sed, sh -c, python …), a value in quotes or a heredoc must be plain words.
If the script is parsed twice (eval, ssh), a value must consist of harmless characters. 5. A value of harmless
characters becomes part of the script. Any other value is stored in the environment variable `HOLMES_ARGUMENT_n`, and
the script refers to the variable, so bash never parses the value as code.

A rejected value raises `ToolError` with a message that tells the model what to change.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jinja2 import TemplateError

from holmes.toolsets.yaml.shell import Mark, locate_marks, replace_marks
from holmes.toolsets.yaml.templates import VALUES, ArgumentText, PlacedValue, ValueList, VariableText, compile_command
from holmes.values.errors import ToolError
from holmes.values.expressions import expression
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from holmes.toolsets.yaml.definition import ParameterRule, YamlTool
    from holmes.values.environment import Environment
    from holmes.values.json_types import JsonObject, JsonValue

_ARGUMENT_PREFIX = "HOLMES_ARGUMENT_"

# bash and the kernel accept at most 128 KiB in one variable.
_LONGEST_VALUE_BYTES = 100_000

_HARMLESS = expression(r"[A-Za-z0-9_@%+=:,./-]+")
_DIGITS = expression(r"-?[0-9]{1,18}")
_NUMBER = expression(r"-[0-9]+(\.[0-9]+)?")
_NOT_PLAIN = expression(r"['\"`$\\(){};|&<>\x00-\x1f]")
_PLAIN_FOR_SED = expression(r"[\w. -]*")

_SED = expression(r"\b(sed|perl)\b")
_INTERPRETER = expression(
    r"\b(sed|perl|[gm]?awk|python[0-9.]*|ruby|node|php|psql|mysql|sqlite3|mongo(sh)?|[a-z]*sh\s+(-\S+\s+)*-\w*c|su\s.*-c)\b"
    r"|\b(ba|z|k|da)?sh\s+(-s\s*)?<<"
)
_READS_TWICE = expression(r"(^|[\s;&|(])(eval|ssh|watch|parallel)\s")
_EVALUATES_NUMBERS = expression(r"\(\(|\s-(eq|ne|lt|le|gt|ge)\s|\b(let|declare|typeset|local)\s|\[\[")
_LOOKS_EVALUATED = expression(r"\[.*[$`]", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedCommand:
    """A bash script, its environment variables, and the same command in a form that users can paste."""

    script: str
    variables: tuple[tuple[str, str], ...]
    invocation: str


def render_command(
    tool: YamlTool, arguments: JsonObject, *, config: Mapping[str, JsonValue], environment: Environment
) -> RenderedCommand:
    """Render the command of `tool`. Raises `ToolError` for a rejected value or a failing template."""
    return _spliced(*_rendered(tool, tool.template, arguments, config=config, environment=environment))


def render_text(
    tool: YamlTool, template: str, arguments: JsonObject, *, config: Mapping[str, JsonValue], environment: Environment
) -> str:
    """Render a text of `tool` that is not a command.

    Raises `ToolError` for a value that a command would reject at the same position.
    """
    text, values = _rendered(tool, template, arguments, config=config, environment=environment)
    marks = locate_marks(text)
    for number, value in enumerate(values):
        _refuse_if_unsafe(value, marks.get(number), text)
    return replace_marks(text, {number: value.text for number, value in enumerate(values)}).strip()


def _rendered(
    tool: YamlTool, template: str, arguments: JsonObject, *, config: Mapping[str, JsonValue], environment: Environment
) -> tuple[str, Sequence[PlacedValue]]:
    """Return the rendered template with a mark for each value, and the values."""
    values = ValueList()
    names: dict[str, object] = {
        VALUES: values,
        "config": config,
        "request_context": {},
        "env": {name: VariableText.of(name, value) for name, value in environment.variables},
    }
    rules = {rule.name: rule for rule in tool.rules}
    for name, value in arguments.items():
        if name not in names and not _is_missing(value, rules.get(name)):
            names[name] = _checked(name, value, rules.get(name))
    try:
        script = compile_command(template).render(names)
    except TemplateError as error:
        raise ToolError(f"the command of {tool.tool.name!r} cannot be rendered: {error.message or error}") from error
    except (TypeError, ValueError, AttributeError, ArithmeticError, LookupError) as error:
        raise ToolError(
            f"the command of {tool.tool.name!r} cannot be rendered with these arguments: {error}"
        ) from error
    return script, values.values


def render_description(template: str, arguments: JsonObject) -> str:
    """Render a `user_description` as one line for the user. Values are not quoted, because the line never runs."""
    values = ValueList()
    names = {VALUES: values, **{name: value for name, value in arguments.items() if value is not None}}
    try:
        text = compile_command(template).render(names)
    except (TemplateError, TypeError, ValueError, AttributeError, LookupError):
        return template
    return replace_marks(text, {number: value.text for number, value in enumerate(values.values)})


def _is_missing(value: JsonValue, rule: ParameterRule | None) -> bool:
    """Return whether to treat the argument as missing.

    Models often pass an empty string, which only required parameters accept.
    """
    return value is None or (value == "" and not (rule is not None and rule.required))


def _checked(name: str, value: JsonValue, rule: ParameterRule | None) -> object:
    """Mark the texts in `value` as arguments. Raises `ToolError` if the author's pattern does not match."""
    if isinstance(value, str):
        _check_text(name, value, rule)
        dashes = rule is not None and rule.allow_leading_dash
        return ArgumentText.of(value, parameter=name, allow_leading_dash=dashes)
    if isinstance(value, Mapping):
        return {key: _checked(name, item, rule) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [_checked(name, item, rule) for item in value]
    return value


def _check_text(name: str, text: str, rule: ParameterRule | None) -> None:
    if "\x00" in text:
        raise ToolError(f"the parameter {name!r} contains the character NUL, which no command accepts; remove it")
    try:
        size_bytes = len(text.encode())
    except UnicodeEncodeError as error:
        raise ToolError(f"the parameter {name!r} is not valid Unicode: {error.reason}") from error
    if size_bytes > _LONGEST_VALUE_BYTES:
        raise ToolError(f"the parameter {name!r} has {size_bytes} bytes; the maximum is {_LONGEST_VALUE_BYTES}")
    if _ARGUMENT_PREFIX in text:
        raise ToolError(f"the parameter {name!r} cannot contain {_ARGUMENT_PREFIX!r}")
    if rule is not None and rule.pattern is not None and re.fullmatch(rule.pattern, text) is None:
        value = shortened(text, 80)
        raise ToolError(f"the parameter {name!r} cannot be {value!r}: it must match the pattern {rule.pattern}")


def _spliced(script: str, values: Sequence[PlacedValue]) -> RenderedCommand:
    marks = locate_marks(script)
    code: dict[int, str] = {}
    shown: dict[int, str] = {}
    variables: dict[str, str] = {}
    for number, value in enumerate(values):
        mark = marks.get(number)
        if value.variable is not None:
            code[number] = shown[number] = _reference(value.variable, mark)
            continue
        _refuse_if_unsafe(value, mark, script)
        shown[number] = _as_written(value.text, mark)
        if _HARMLESS.fullmatch(value.text) or value.text == "" or _stands_literally(mark):
            code[number] = value.text or shown[number]
        else:
            name = f"{_ARGUMENT_PREFIX}{number}"
            variables[name] = value.text
            code[number] = _reference(name, mark)
    return RenderedCommand(
        script=replace_marks(script, code),
        variables=tuple(variables.items()),
        invocation=replace_marks(_tidied(script), shown).rstrip(),
    )


def _tidied(script: str) -> str:
    """Remove the spaces and empty lines that false conditions leave behind.

    Users can then read and paste the script.
    """
    lines = (re.sub(r"(?<=\S)[ \t]{2,}", " ", line.rstrip()) for line in script.splitlines())
    return "\n".join(line for line in lines if line)


def _refuse_if_unsafe(value: PlacedValue, mark: Mark | None, script: str) -> None:
    reason = _objection_to_place(value, mark) or _objection_to_script(value.text, mark, script)
    if reason is not None:
        name = f"the parameter {value.parameter!r}" if value.parameter is not None else "a value"
        raise ToolError(f"{name} cannot be {shortened(value.text, 80)!r}: {reason}")


def _objection_to_place(value: PlacedValue, mark: Mark | None) -> str | None:
    """Return why the value is not allowed at the position of the mark, or None."""
    if mark is None or _stands_literally(mark):
        if _NOT_PLAIN.search(value.text):
            return "only plain words, without quotes or symbols, are accepted here"
    elif mark.place == "arithmetic":
        if _DIGITS.fullmatch(value.text) is None:
            return "it must be a whole number"
    elif mark.may_become_option and value.text.startswith("-") and not value.allow_leading_dash:
        return None if _NUMBER.fullmatch(value.text) else "a value that begins with '-' would be read as an option"
    return None


def _objection_to_script(text: str, mark: Mark | None, script: str) -> str | None:
    """Return why the value is not safe for the programs in the script, or None."""
    if mark is not None and mark.place == "comment":
        return None
    if _READS_TWICE.search(script) and text and _HARMLESS.fullmatch(text) is None:
        return "this command accepts only letters, digits and _@%+=:,./-"
    if (mark is None or mark.place != "word") and _INTERPRETER.search(script):
        plain = _PLAIN_FOR_SED.fullmatch(text) if _SED.search(script) else not _NOT_PLAIN.search(text)
        if not plain:
            return "this command accepts only plain words, without quotes or symbols"
    if _LOOKS_EVALUATED.search(text) and _EVALUATES_NUMBERS.search(script):
        return "this command does not accept brackets with '$' or '`'"
    return None


def _stands_literally(mark: Mark | None) -> bool:
    return mark is None or mark.place in {"ansi", "literal_heredoc"}


def _reference(name: str, mark: Mark | None) -> str:
    """Return a reference to a variable for this position, so that its value is one word and never code."""
    place = mark.place if mark is not None else "word"
    match place:
        case "word":
            return f'"${{{name}}}"'
        case "single":
            return f"'\"${{{name}}}\"'"
        case "ansi":
            return f"'\"${{{name}}}\"$'"
        case "double" | "arithmetic" | "comment" | "heredoc" | "literal_heredoc":
            return f"${{{name}}}"


def _as_written(text: str, mark: Mark | None) -> str:
    """Quote the value for this position as a user would. Only an empty value is inserted into the script in this form.

    Other values are quoted only for display.
    """
    place = mark.place if mark is not None else "word"
    match place:
        case "word":
            return shlex.quote(text)
        case "single":
            return text.replace("'", "'\\''")
        case "double":
            return re.sub(r'(["\\$`])', r"\\\1", text)
        case "comment":
            return text.replace("\n", " ")
        case "ansi" | "arithmetic" | "heredoc" | "literal_heredoc":
            return text
