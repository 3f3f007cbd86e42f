"""Compares two results of the same call, in bounded time.

Lines that differ only in clock values are treated as equal. Clock values are ages in tables, ages such as `(5m ago)`,
and heartbeat times. A value is an age only in positions where kubectl writes ages, so `timeout: 30s` does not contain
an age. A lower age is treated as a change, because the object was created again. Results of ordinary size are compared
as sequences of lines, and the diff has context lines. Larger results are compared as sets of lines, and the diff has
line numbers.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from holmes.values.durations import UNIT_SECONDS
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_AGE = r"\d+[ydhms](?:\d+[dhms]){0,2}"
_AGE_HERE = expression(rf"{_AGE}(?![\w.-])")
_AGO = expression(rf"(?<=\()(?P<ago>{_AGE})(?= ago\))|(?<=\bover )(?P<over>{_AGE})(?=\))")
_AGE_HEADING = expression(r"(?:(?<=^)|(?<=\s\s))(?:AGE|LAST SEEN|FIRST SEEN|LAST SCHEDULE)(?=\s|$)")
_EVENTS_OF_DESCRIBE = expression(r"\s*Type\s+Reason\s+(?P<age>Age)\s+From\s+Message\s*")
_HEARTBEAT = expression(
    r'(?P<key>"?\b(?:lastHeartbeatTime|lastProbeTime|renewTime|RenewTime)"?:\s*"?)(?P<time>[\w,:.+ -]{10,40})'
)
_WIDTH = expression(r"(?<=\S) {2,}")
_MAX_LINE_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedLine:
    """A line, prepared for a comparison without its clock values.

    `key` is the line without clock values. `ages_seconds` are the ages in the line, in order. `has_time` is true if the
    line contains a heartbeat time.
    """

    key: str
    ages_seconds: tuple[int, ...] = ()
    has_time: bool = False

    def is_later(self, earlier: ComparedLine) -> bool:
        """Return whether both lines can describe the same unchanged object: the keys are equal and no age is lower."""
        return self.key == earlier.key and all(
            new >= old for new, old in zip(self.ages_seconds, earlier.ages_seconds, strict=True)
        )


def _compared_lines(lines: Iterable[str]) -> list[ComparedLine]:
    """Prepare the lines of a result for a comparison."""
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
    return sum(int(number) * int(UNIT_SECONDS[unit]) for number, unit in re.findall(r"(\d+)([ydhms])", age))


_MAX_COMPARED_CHARACTERS = 1_000_000
_CONTEXT_LINES = 2
_MAX_PAIRS = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputChange:
    """The difference between two results.

    `diff` is empty if the results have no relevant difference. `changed_lines` is the number of removed lines or of
    added lines, whichever is larger. `left_out` lists the kinds of differences that the diff omits: `ages`, `heartbeat
    times` or `spacing`.
    """

    diff: str
    changed_lines: int
    left_out: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Output:
    """The original and the prepared lines of one result."""

    lines: list[str]
    compared: list[ComparedLine]

    @classmethod
    def of(cls, text: str) -> _Output:
        lines = text.split("\n")
        return cls(lines=lines, compared=_compared_lines(lines))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hunk:
    """A changed range of lines: `new[new_start:new_end]` replaces `old[old_start:old_end]`."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def output_change(old_text: str, new_text: str) -> OutputChange | None:
    """Return the difference between `old_text` and `new_text`, or None if the comparison would take too long."""
    if len(old_text) + len(new_text) > _MAX_COMPARED_CHARACTERS:
        return None
    old, new = _Output.of(old_text), _Output.of(new_text)
    head, tail = _common_ends(old.compared, new.compared)
    old_middle, new_middle = old.compared[head : len(old.lines) - tail], new.compared[head : len(new.lines) - tail]
    if not old_middle and not new_middle:
        return OutputChange(diff="", changed_lines=0, left_out=_left_out(old, new) or "ages")
    if _pairs(old_middle, new_middle) > _MAX_PAIRS:
        return _compared_as_sets(old, new, head, tail)
    hunks = [_shifted(hunk, head) for hunk in _hunks(old_middle, new_middle)]
    removed = sum(hunk.old_end - hunk.old_start for hunk in hunks)
    added = sum(hunk.new_end - hunk.new_start for hunk in hunks)
    diff = "\n".join(_rendered(old, new, hunks))
    return OutputChange(diff=diff, changed_lines=max(removed, added), left_out=_left_out(old, new))


def _common_ends(old: Sequence[ComparedLine], new: Sequence[ComparedLine]) -> tuple[int, int]:
    """Return the number of equal lines at the beginning, and the number of equal lines at the end of the rest."""
    shorter = min(len(old), len(new))
    head = next((index for index in range(shorter) if not new[index].is_later(old[index])), shorter)
    rest = shorter - head
    tail = next((index for index in range(rest) if not new[-1 - index].is_later(old[-1 - index])), rest)
    return head, tail


def _pairs(old: Sequence[ComparedLine], new: Sequence[ComparedLine]) -> int:
    """Estimate the cost of comparing sequences of lines: the number of equal line pairs plus the number of lines."""
    counts = Counter(line.key for line in old)
    return len(old) + len(new) + sum(counts[line.key] for line in new)


def _hunks(old: Sequence[ComparedLine], new: Sequence[ComparedLine]) -> Iterator[_Hunk]:
    matcher = SequenceMatcher(None, [line.key for line in old], [line.key for line in new], autojunk=False)
    for tag, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if tag != "equal":
            yield _Hunk(old_start=old_start, old_end=old_end, new_start=new_start, new_end=new_end)
            continue
        for offset in range(old_end - old_start):
            if not new[new_start + offset].is_later(old[old_start + offset]):
                at_old, at_new = old_start + offset, new_start + offset
                yield _Hunk(old_start=at_old, old_end=at_old + 1, new_start=at_new, new_end=at_new + 1)


def _shifted(hunk: _Hunk, lines: int) -> _Hunk:
    return _Hunk(
        old_start=hunk.old_start + lines,
        old_end=hunk.old_end + lines,
        new_start=hunk.new_start + lines,
        new_end=hunk.new_end + lines,
    )


def _rendered(old: _Output, new: _Output, hunks: Sequence[_Hunk]) -> Iterator[str]:
    """Render `hunks` as a unified diff with two lines of context. Line numbers are those of the new result."""
    shown = 0
    for index, hunk in enumerate(hunks):
        start = max(shown, hunk.new_start - _CONTEXT_LINES)
        if index == 0 or start > shown:
            yield f"@@ line {start + 1} @@"
        yield from (f" {line}" for line in new.lines[start : hunk.new_start])
        yield from (f"-{line}" for line in old.lines[hunk.old_start : hunk.old_end])
        yield from (f"+{line}" for line in new.lines[hunk.new_start : hunk.new_end])
        following = hunks[index + 1].new_start if index + 1 < len(hunks) else len(new.lines)
        shown = min(hunk.new_end + _CONTEXT_LINES, following)
        yield from (f" {line}" for line in new.lines[hunk.new_end : shown])


def _compared_as_sets(old: _Output, new: _Output, head: int, tail: int) -> OutputChange | None:
    """Compare the results as sets of lines, with line numbers. Returns None if only the order differs."""
    waiting: dict[str, deque[int]] = defaultdict(deque)
    for index in range(head, len(old.lines) - tail):
        waiting[old.compared[index].key].append(index)
    added: list[int] = []
    for index in range(head, len(new.lines) - tail):
        same = waiting.get(new.compared[index].key)
        if same and new.compared[index].is_later(old.compared[same[0]]):
            same.popleft()
        else:
            added.append(index)
    removed = sorted(index for indexes in waiting.values() for index in indexes)
    if not added and not removed:
        return None
    lines = [f"-{index + 1}: {old.lines[index]}" for index in removed]
    lines += [f"+{index + 1}: {new.lines[index]}" for index in added]
    changed = max(len(added), len(removed))
    return OutputChange(diff="\n".join(lines), changed_lines=changed, left_out=_left_out(old, new))


def _left_out(old: _Output, new: _Output) -> str:
    """Return the kinds of ignored differences, or an empty string if no differences were ignored."""
    before = set(old.lines)
    now = {line.key for text, line in zip(new.lines, new.compared, strict=True) if text not in before}
    quiet = [line for line in old.compared if line.key in now]
    if any(line.ages_seconds for line in quiet):
        return "ages and heartbeat times" if any(line.has_time for line in quiet) else "ages"
    if any(line.has_time for line in quiet):
        return "heartbeat times"
    return "spacing" if quiet else ""
