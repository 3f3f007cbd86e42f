"""What changed between two outputs of the same call. Pure CPU work, bounded; called by `repeated_calls` in a thread.

Lines that differ only in what a clock changes are the same. Texts of ordinary size are compared in order, with context;
where that would take too long, lines are compared as sets, with their numbers.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from holmes.core.tools_utils.volatile import compared_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.core.tools_utils.volatile import ComparedLine

MAX_COMPARED_CHARACTERS = 1_000_000
_CONTEXT_LINES = 2
_MAX_PAIRS = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputChange:
    """`diff` is empty when nothing worth telling differs. `changed_lines` is the larger of removed and added lines.

    `left_out` names what differs and is not in the diff: `ages`, `heartbeat times`, `spacing`; empty when nothing is.
    """

    diff: str
    changed_lines: int
    left_out: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Output:
    """The lines of one output, as they are and as they are compared."""

    lines: list[str]
    compared: list[ComparedLine]

    @classmethod
    def of(cls, text: str) -> _Output:
        lines = text.split("\n")
        return cls(lines=lines, compared=compared_lines(lines))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hunk:
    """Lines `old[old_start:old_end]` became `new[new_start:new_end]`."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def output_change(old_text: str, new_text: str) -> OutputChange | None:
    """What a reader of `old_text` must know to know `new_text`; None when that cannot be said in bounded time."""
    if len(old_text) + len(new_text) > MAX_COMPARED_CHARACTERS:
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
    """How many lines are the same at the beginning and, of the rest, at the end."""
    shorter = min(len(old), len(new))
    head = next((index for index in range(shorter) if not new[index].is_later(old[index])), shorter)
    rest = shorter - head
    tail = next((index for index in range(rest) if not new[-1 - index].is_later(old[-1 - index])), rest)
    return head, tail


def _pairs(old: Sequence[ComparedLine], new: Sequence[ComparedLine]) -> int:
    """How much work the comparison in order is: pairs of equal lines, and the lines themselves."""
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
    """The hunks as a unified diff with two lines of context, headed by the line numbers of the new output."""
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
    """Lines that only one of the outputs has, with their numbers there; None when only their order differs."""
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
    """What the comparison does not look at, of what differs between lines that only one output has."""
    before = set(old.lines)
    now = {line.key for text, line in zip(new.lines, new.compared, strict=True) if text not in before}
    quiet = [line for line in old.compared if line.key in now]
    if any(line.ages_seconds for line in quiet):
        return "ages and heartbeat times" if any(line.has_time for line in quiet) else "ages"
    if any(line.has_time for line in quiet):
        return "heartbeat times"
    return "spacing" if quiet else ""
