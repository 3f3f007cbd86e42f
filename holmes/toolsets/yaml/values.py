"""What an expression of a command template gives, collected beside the script instead of inside it.

Used by the compiled templates: `place` puts a mark into the script for every value that is not the author's own text,
and the renderer decides later, knowing where each mark stands, how the value gets there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jinja2 import Undefined, pass_context

from holmes.toolsets.yaml.shell import mark_of

if TYPE_CHECKING:
    from jinja2.runtime import Context

# The key of the `ValueList` in a template's context; no identifier, so no template can reach it.
VALUES = "holmes values"


class ShellText(str):
    """Text that is ready for the script: written by the author, or marks."""

    __slots__ = ()


class ArgumentText(str):
    """The text of an argument, as long as no filter made another text of it. Knows the author's word about dashes."""

    __slots__ = ("allow_leading_dash", "parameter")

    parameter: str
    allow_leading_dash: bool

    @classmethod
    def of(cls, text: str, *, parameter: str, allow_leading_dash: bool) -> ArgumentText:
        """The text with where it came from."""
        made = cls(text)
        made.parameter = parameter
        made.allow_leading_dash = allow_leading_dash
        return made


class VariableText(str):
    """The value of a variable of the environment; the script refers to it by `name` and never shows the value."""

    __slots__ = ("name",)

    name: str

    @classmethod
    def of(cls, name: str, value: str) -> VariableText:
        """The value with the variable's name."""
        made = cls(value)
        made.name = name
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedValue:
    """A value that has a mark. `variable` is set when it is a variable of the environment."""

    text: str
    parameter: str | None = None
    allow_leading_dash: bool = False
    variable: str | None = None


class ValueList:
    """The values of one rendering, in order of their marks."""

    def __init__(self) -> None:
        self.values: list[PlacedValue] = []

    def add(self, text: str) -> ShellText:
        """A mark for `text`."""
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
    """The filter around everything that a template puts into the script."""
    return _placed(value, context[VALUES])


@pass_context
def literal(_context: Context, value: object) -> ShellText:
    """The filter around the author's own text. Takes the context so that Jinja2 does not fold it away."""
    return ShellText(str(value))


@pass_context
def join(_context: Context, parts: Sequence[str]) -> ShellText:
    """Texts that are ready already, one behind the other."""
    return ShellText("".join(parts))


def _placed(value: object, values: ValueList) -> ShellText:
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
            placed = ShellText(" ".join(_placed(item, values) for item in value))
        case _:
            placed = values.add(str(value))
    return placed
