"""Reads the records of a log: a line with its stack and details, and the cause in them that decides.

Records with the same first line and different causes are different records.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import moment
from holmes.previews.log_lines import parse_line
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.previews.log_patterns import Pattern

_MOST_LINES: Final = 60
_MOST_CHARACTERS: Final = 8_000
_MOST_CAUSES: Final = 40
"""If the records of a pattern have more causes, the causes contain names and do not tell the records apart."""
_HEADING: Final = expression(r"(?:trce|dbug|info|warn|fail|crit): [\w.`+<>]+\[\d+\]\s*$")
"""A first line without a message, as .NET writes it. The message is the second line."""
_INNER: Final = expression(r"(?:Caused by: |---> |\[cause\]: )")
_NUMBERED: Final = expression(r"^\d{1,2}: \S")
_WRAPPED: Final = expression(r"The above exception was the direct cause|During handling of the above exception")
_DETAIL: Final = expression(r"\b(?:DETAIL:? .*|Query_time: .*)")
_NO_DIGITS: Final = str.maketrans("", "", "0123456789")
_LABEL_CHARACTERS: Final = 160


_FRAMES: Final = ("at ", "File ", "...", "#")


def detail_of(line: str) -> str:
    """Return an indented line, which can name the host of the line before, or nothing for a line of a stack trace."""
    return line if line[:1].isspace() and not line.lstrip().startswith(_FRAMES) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLines:
    """The lines of a log without their times, the times, and the numbers of the lines that begin a record.

    Numbers start at 1.
    """

    lines: tuple[str, ...]
    stamps: tuple[str, ...] = field(repr=False)
    heads: array[int] = field(repr=False)

    @property
    def last_number(self) -> int:
        return len(self.lines)

    def time_of(self, number: int) -> float:
        """Return the time of a line in seconds since the epoch, or 0 if the line has none."""
        return moment(self.stamps[number - 1]) or 0.0 if 0 < number <= len(self.stamps) else 0.0

    def record_at(self, number: int) -> str:
        """Return a line with all lines that continue it, at most 60 lines and 8,000 characters."""
        following = bisect_right(self.heads, number)
        end = self.heads[following] - 1 if following < len(self.heads) else len(self.lines)
        return "\n".join(self.lines[number - 1 : min(end, number + _MOST_LINES)])[:_MOST_CHARACTERS]


def told(record: str) -> str:
    """Return the first line of a record, followed by the innermost error or the detail below it."""
    first, *rest = (line.strip() for line in record.split("\n"))
    rest = [line for line in rest if line]
    below = _innermost(rest) or next((match[0] for line in rest if (match := _DETAIL.search(line))), "")
    if not below and rest and _HEADING.match(first):
        below = rest[0]
    return f"{first} … {below}" if below else first


def _innermost(lines: Sequence[str]) -> str:
    """Return the line that states the innermost error of a trace, or an empty string."""
    inner = [index for index, line in enumerate(lines) if _INNER.match(line)]
    if inner:
        return lines[inner[-1]]
    if "Caused by:" in lines:
        numbered = [line for line in lines[lines.index("Caused by:") :] if _NUMBERED.match(line)]
        return numbered[-1] if numbered else ""
    parsed = [(line, parse_line(line, usual_start=True)) for line in lines]
    causes = [line for line, each in parsed if each.is_cause or each.may_be_cause]
    if not causes:
        return ""
    return causes[0] if any(map(_WRAPPED.match, lines)) else causes[-1]


def by_cause(patterns: Sequence[Pattern], log: LogLines) -> Iterator[Pattern]:
    """Yield the patterns of first lines. Those whose records have different causes are split."""
    heads = log.heads
    causes: dict[int, str] = {}
    for cause in patterns:
        for number in cause.numbers if cause.is_cause else ():
            index = bisect_right(heads, number) - 1
            if index >= 0:
                causes[heads[index]] = cause.text
    for pattern in patterns:
        if pattern.is_cause or not pattern.numbers:
            continue
        yield from _split(pattern, log.lines, causes) if pattern.count > 1 else (pattern,)


def _split(pattern: Pattern, lines: Sequence[str], causes: dict[int, str]) -> Iterator[Pattern]:
    heading = _HEADING.match(pattern.first_line) is not None
    if not heading and not causes:
        yield pattern
        return
    found: dict[str, array[int]] = defaultdict(lambda: array("L"))
    for number in pattern.numbers:
        label = _second_line(lines, number) if heading else causes.get(number, "")
        found[label].append(number)
    if len(found) == 1 or len(found) > _MOST_CAUSES:
        yield pattern
        return
    for label, numbers in found.items():
        yield replace(
            pattern,
            text=f"{pattern.text}|{label}",
            numbers=numbers,
            first_number=numbers[0],
            first_line=lines[numbers[0] - 1],
            last_line=lines[numbers[-1] - 1],
        )


def _second_line(lines: Sequence[str], number: int) -> str:
    return lines[number].strip()[:_LABEL_CHARACTERS].translate(_NO_DIGITS) if number < len(lines) else ""
