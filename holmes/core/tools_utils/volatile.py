"""Lines that say the same although a clock went on: ages in tables, `(5m ago)`, heartbeat times. Pure.

Called by the comparison of repeated calls. Careful on purpose: only what stands where kubectl writes an age is one, and
an age that went down is news, because the thing was made anew. A `timeout: 30s` is no age.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_AGE = r"\d+[ydhms](?:\d+[dhms]){0,2}"
_AGE_HERE = re.compile(rf"{_AGE}(?![\w.-])")
_AGO = re.compile(rf"(?<=\()(?P<ago>{_AGE})(?= ago\))|(?<=\bover )(?P<over>{_AGE})(?=\))")
_AGE_HEADING = re.compile(r"(?:(?<=^)|(?<=\s\s))(?:AGE|LAST SEEN|FIRST SEEN|LAST SCHEDULE)(?=\s|$)")
_EVENTS_OF_DESCRIBE = re.compile(r"\s*Type\s+Reason\s+(?P<age>Age)\s+From\s+Message\s*")
_HEARTBEAT = re.compile(
    r'(?P<key>"?\b(?:lastHeartbeatTime|lastProbeTime|renewTime|RenewTime)"?:\s*"?)(?P<time>[\w,:.+ -]{10,40})'
)
_WIDTH = re.compile(r"(?<=\S) {2,}")
_UNIT_SECONDS = {"y": 31_536_000, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_MAX_LINE_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedLine:
    """`key` is the line without what a clock changes: `ages_seconds`, in order, and a heartbeat if `has_time`."""

    key: str
    ages_seconds: tuple[int, ...] = ()
    has_time: bool = False

    def is_later(self, earlier: ComparedLine) -> bool:
        """Whether this may be `earlier` some time later: the same line, and no age went down."""
        return self.key == earlier.key and all(
            new >= old for new, old in zip(self.ages_seconds, earlier.ages_seconds, strict=True)
        )


def compared_lines(lines: Iterable[str]) -> list[ComparedLine]:
    """`lines` of one output, ready to be compared with those of another."""
    columns: tuple[int, ...] = ()
    compared: list[ComparedLine] = []
    for line in lines:
        if len(line) > _MAX_LINE_CHARACTERS:
            compared.append(ComparedLine(key=line))
            continue
        if not line.strip():
            columns = ()
        elif line.isupper():
            columns = tuple(match.start() for match in _AGE_HEADING.finditer(line))
        elif events := _EVENTS_OF_DESCRIBE.fullmatch(line):
            columns = (events.start("age"),)
        compared.append(_compared(line, columns))
    return compared


def _compared(line: str, columns: tuple[int, ...]) -> ComparedLine:
    spans = [
        match.span() for column in columns if (match := _AGE_HERE.match(line, column)) and _starts_cell(line, column)
    ]
    spans += [match.span() for match in _AGO.finditer(line)]
    pieces: list[str] = []
    ages: list[int] = []
    position = 0
    for start, end in sorted(spans):
        if start >= position:
            pieces += (line[position:start], "<age>")
            ages.append(_seconds(line[start:end]))
            position = end
    key = "".join((*pieces, line[position:]))
    key, times = _HEARTBEAT.subn(r"\g<key><time>", key)
    return ComparedLine(key=_WIDTH.sub("  ", key.rstrip()), ages_seconds=tuple(ages), has_time=times > 0)


def _starts_cell(line: str, column: int) -> bool:
    return column == 0 or line[column - 1].isspace()


def _seconds(age: str) -> int:
    return sum(int(number) * _UNIT_SECONDS[unit] for number, unit in re.findall(r"(\d+)([ydhms])", age))
