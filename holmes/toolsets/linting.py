"""What is questionable in a toolset's commands: works, and should be written otherwise.

Called by the YAML loader, which keeps the warnings on the definition; shown by `holmes toolset list`. Never a reason
to refuse a toolset.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from holmes.toolsets.yaml.shell import locate_marks, mark_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_EXPRESSION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_STATEMENT = re.compile(r"\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_EVAL = re.compile(r"(^|[\s;&|(])eval\s")


@dataclass(frozen=True, slots=True, kw_only=True)
class LintWarning:
    """`place` is `file:line`, `tool` the tool's name."""

    place: str
    tool: str
    message: str


def lint_command(
    template: str, *, tool: str, place: str, declared: Collection[str], used: Collection[str]
) -> tuple[LintWarning, ...]:
    """The warnings for one command; `declared` are its parameters, `used` the names that it mentions."""
    messages = [*_quoted_expressions(template)]
    if _EVAL.search(template):
        messages.append("'eval' reads its text twice, so only letters, digits and _@%+=:,./- are accepted as values")
    messages += [f"the parameter {name!r} is declared and never used" for name in declared if name not in used]
    return tuple(LintWarning(place=place, tool=tool, message=message) for message in messages)


def _quoted_expressions(template: str) -> Iterator[str]:
    expressions: dict[int, str] = {}
    numbers = count()

    def remember(found: re.Match[str]) -> str:
        number = next(numbers)
        expressions[number] = found.group(1)
        return mark_of(number)

    script = _EXPRESSION.sub(remember, _STATEMENT.sub("", template))
    for number, mark in locate_marks(script).items():
        if mark.place in {"double", "single", "ansi"} and not expressions[number].startswith("env."):
            yield (
                f"{{{{ {expressions[number]} }}}} stands inside quotes: take the quotes away, "
                "values are quoted for the shell already"
            )
