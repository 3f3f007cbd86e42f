"""Writes what the built-in rules see in log lines, for all tools that show logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.diagnosis.facts.log_groups import story_of
from holmes.diagnosis.facts.log_numbers import risen_numbers
from holmes.diagnosis.facts.logs import quoted
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holmes.diagnosis.facts.line_groups import LogGroup
    from holmes.diagnosis.facts.log_groups import LogStory

_MOST_TROUBLES = 5
_TIMESTAMP = expression(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})\d*(?=Z|[+-]\d\d:\d\d)")
_CONTROL = expression(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")


def troubles(logs: Iterable[tuple[str, Sequence[str]]]) -> Iterator[str]:
    """Yield the groups of lines that report trouble, the strongest first. Each log has a title, and its lines."""
    found = [(title, story, group) for title, lines in logs for story, group in _groups(lines)]
    found.sort(key=lambda each: each[2].rank)
    if found:
        shown = f", {_MOST_TROUBLES} of {len(found)} groups" if len(found) > _MOST_TROUBLES else ""
        yield f"Trouble in the last lines of these logs, found by the built-in rules{shown}:"
    for title, story, group in found[:_MOST_TROUBLES]:
        detail = f"{group.detail}: " if group.detail else f"{group.kind}: " if group.kind else ""
        begins = "not before" if group.sudden else "from the beginning"
        before = story.line_before(group) if group.sudden else ""
        after = f"; just before the first: {quoted(before)}" if before else ""
        yield f"- {title}, {group.span}, {begins}: {detail}{quoted(group.record)}{after}"


def _groups(lines: Sequence[str]) -> Iterator[tuple[LogStory, LogGroup]]:
    story = story_of("\n".join(lines))
    ended = story.time_of(story.last_number)
    for group in (*story.groups, *risen_numbers(story)):
        if group.is_evidence(ended):
            yield story, group


def readable(line: bytes | str) -> str:
    """Decode a line.

    Invalid bytes are replaced, terminal codes are removed, and timestamps are shortened to milliseconds.
    """
    text = _CONTROL.sub("", line if isinstance(line, str) else line.decode("utf-8", "replace"))
    return _TIMESTAMP.sub(r"\1", text, count=1) if text[10:11] == "T" else text
