"""What `holmes snapshot` says about a recording. Called by `snapshot_command`; pure. Safe for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.cli.render.sanitize import sanitized
from holmes.snapshot.times import timestamp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.snapshot.recorder import RecordSummary
    from holmes.snapshot.recording import Recording, Unread

_SHOWN_NOTES = 20


def summary_lines(summary: RecordSummary) -> str:
    """What was recorded just now."""
    size = f"{summary.size_bytes / 1_000_000:.1f} MB"
    lines = [
        f"recorded at {timestamp(summary.recorded_at)} into {summary.folder}, {size}",
        *_counts(summary.objects, summary.logs),
        *_notes(summary.unread),
        f"look at it with: holmes snapshot serve {summary.folder}",
    ]
    return _shown(lines)


def contents_lines(recording: Recording) -> str:
    """What is in a recording."""
    counts = [(recorded.type.qualified, len(recorded.items)) for recorded in recording.objects.values()]
    scope = ", ".join(recording.namespaces) or "all namespaces"
    lines = [
        f"recorded at {timestamp(recording.recorded_at)}, context {recording.context or 'unknown'}, {scope}",
        *_counts(sorted((name, count) for name, count in counts if count), len(recording.logs)),
        *_notes(recording.unread),
    ]
    return _shown(lines)


def _shown(lines: Sequence[str]) -> str:
    """A recording from somebody else may hold anything, but no line of its own making and no terminal sequence."""
    return "\n".join(sanitized(" ".join(line.split("\n"))) for line in lines)


def _counts(objects: Sequence[tuple[str, int]], logs: int) -> list[str]:
    total = sum(count for _, count in objects)
    listed = ", ".join(f"{count} {name}" for name, count in objects)
    return [f"{_number(total, 'object')} of {_number(len(objects), 'kind')}: {listed}", _number(logs, "log")]


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _notes(unread: Sequence[Unread]) -> list[str]:
    if not unread:
        return ["nothing was left out"]
    shown = [f"  {_note(each)}" for each in unread[:_SHOWN_NOTES]]
    more = [f"  and {len(unread) - _SHOWN_NOTES} more, see recording.json"] if len(unread) > _SHOWN_NOTES else []
    return ["not recorded:", *shown, *more]


def _note(unread: Unread) -> str:
    where = f" in {unread.namespace}" if unread.namespace else ""
    why = "forbidden: " if unread.forbidden else ""
    return f"{unread.resource}{where}: {why}{unread.reason}"
