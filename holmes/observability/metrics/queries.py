"""Checks queries of PromQL before they are sent: their size, their time ranges and their metrics.

The parser needs time that grows fast with nested brackets and operators, so both are limited first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from holmes.values.durations import UNIT_SECONDS
from holmes.values.errors import ToolError
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LONGEST_RANGE_SECONDS: Final = 31 * 86_400.0
_MOST_CHARACTERS: Final = 2_000
_MOST_NESTED: Final = 50
_MOST_OPERATORS: Final = 200
_STRINGS: Final = expression(r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`""")
_OPERATORS: Final = expression(r"[-+*/%^<>=!]|\b(?:and|or|unless)\b", re.IGNORECASE)
_RANGES: Final = expression(r"\[([^\]\[:]*)(?::([^\]\[]*))?\]")
_DURATION: Final = expression(r"(\d+(?:\.\d+)?)(ms|[smhdwy])")
_VARIABLE: Final = expression(r"\$(?:\{[^}]*\}|\w+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedQuery:
    """A query within the limits.

    `metrics` are the names in its selectors. `problem` is what the parser says about it. A product with functions of
    its own may still run such a query.
    """

    text: str
    metrics: tuple[str, ...] = ()
    problem: str | None = None


def check_query(written: str) -> CheckedQuery:
    """Check the limits of a query, and parse it. Raises `ToolError` for a query that must not be sent."""
    text = written.strip()
    plain = _STRINGS.sub('""', text)
    if not text:
        raise ToolError("query is empty; expected PromQL, for example up == 0")
    if variable := _VARIABLE.search(plain):
        raise ToolError(
            f"query contains the variable {variable[0]!r} of a dashboard; replace it with a value, for example 5m"
        )
    _refuse_large(text, plain)
    for match in _RANGES.finditer(plain):
        _refuse_long_range(match[1].strip())
    return _parsed(text)


def nearest_metrics(names: Iterable[str], known: Sequence[str]) -> str:
    """Return a hint for metrics that the source does not have, or an empty string if it has all of them."""
    existing, hints = set(known), list[str]()
    for name in names:
        if name not in existing:
            near = get_close_matches(name, known, n=3, cutoff=0.6) or _sharing_words(name, known)
            hints.append(
                f"metric {name!r} does not exist"
                + (f"; did you mean {', '.join(near)}?" if near else "; find_metrics searches by words")
            )
    return " ".join(hints)


def _sharing_words(name: str, known: Sequence[str]) -> list[str]:
    """Return the names that share most words with `name`, at least half of its words."""
    words = set(name.lower().split("_"))
    scored = sorted(((len(words & set(each.lower().split("_"))), each) for each in known), reverse=True)
    return [each for shared, each in scored[:3] if 2 * shared >= len(words)]


def _refuse_large(text: str, plain: str) -> None:
    depth = deepest = 0
    for character in plain:
        depth += (character in "([{") - (character in ")]}")
        deepest = max(deepest, depth)
    if len(text) > _MOST_CHARACTERS or deepest > _MOST_NESTED or len(_OPERATORS.findall(plain)) > _MOST_OPERATORS:
        raise ToolError(
            f"query is too large; at most {_MOST_CHARACTERS:,} characters, {_MOST_OPERATORS} operators and "
            f"{_MOST_NESTED} nested brackets are allowed"
        )


def _refuse_long_range(written: str) -> None:
    seconds = promql_seconds(written)
    if seconds is not None and seconds > LONGEST_RANGE_SECONDS:
        days = LONGEST_RANGE_SECONDS / 86_400
        raise ToolError(f"range [{written}] is too long; use at most {days:g}d")


def promql_seconds(written: str) -> float | None:
    """Parse a duration such as `1h30m`. Return None for other text."""
    seconds, position = 0.0, 0
    for part in _DURATION.finditer(written):
        if part.start() != position:
            return None
        seconds, position = seconds + float(part[1]) * UNIT_SECONDS[part[2]], part.end()
    return seconds if position == len(written) > 0 else None


def _parsed(text: str) -> CheckedQuery:
    import promql_parser

    try:
        tree = promql_parser.parse(text)
    except ValueError as error:
        return CheckedQuery(text=text, problem=str(error))
    names = dict[str, None]()

    def note(node: Any) -> bool:  # noqa: ANN401  the parser has no types
        if isinstance(node, promql_parser.VectorSelector):
            named = node.name or next(
                (each.value for each in node.matchers.matchers if each.name == "__name__" and str(each.op) == "="), ""
            )
            names.update({named: None} if named else {})
        return True

    promql_parser.walk(tree, note)
    return CheckedQuery(text=text, metrics=tuple(names))
