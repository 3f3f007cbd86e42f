"""Previews Kubernetes events: groups them by message, and shows warnings and rare events first.

Reads the tables of `kubectl get events` and `kubectl events`, and events in JSON and YAML.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holmes.previews.budget import Block, Layout, StructuredPreview, compose
from holmes.previews.excerpts import clip_around
from holmes.previews.log_lines import mask
from holmes.previews.severity import number_of, severe_position, word_severity
from holmes.previews.tables import read_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.tokens import TokenCounter
    from holmes.values.json_types import JsonValue

_MAX_GROUPS = 3_000
_MAX_SHAPES = 20_000
_MAX_BLOCKS = 100
_DROPPED = b"0123456789abcdefABCDEF"
_MAX_OBJECTS = 3
_HEADINGS = ("Warnings and rare events (count, reason, last seen, objects: first message):", "Usual:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A Kubernetes event. `where` is its line number or its path, and `count` is the number of occurrences."""

    kind: str
    reason: str
    subject: str
    message: str
    seen: str
    where: str
    count: int = 1


@dataclass(slots=True)
class _Group:
    first: Event
    events: int = 0
    count: int = 0
    seen: str = ""
    objects: dict[str, None] = field(default_factory=dict)


def _table_events(text: str) -> Iterator[Event]:
    """Yield the events of a table. Columns are identified by name."""
    for rows in read_rows(text):
        columns = dict(zip(rows.header.names, rows.columns(), strict=True))
        empty = [""] * len(rows.lines)
        kinds, names, spaces = (columns.get(name, empty) for name in ("KIND", "NAME", "NAMESPACE"))
        objects = columns.get("OBJECT") or [
            f"{kind}/{name}".strip("/") for kind, name in zip(kinds, names, strict=True)
        ]
        wanted = ("TYPE", "REASON", "MESSAGE", "LAST SEEN", "COUNT")
        cells = zip(rows.numbers, spaces, objects, *(columns.get(name, empty) for name in wanted), strict=True)
        for number, space, subject, kind, reason, message, seen, repeated in cells:
            yield Event(
                kind=kind,
                reason=reason,
                subject=f"{space}/{subject}" if space else subject,
                message=message,
                seen=seen,
                where=str(number),
                count=int(repeated) if repeated.isdigit() else 1,
            )


class EventGroups:
    """Groups events with the same type, reason and message, across all objects.

    When the limit on groups is reached, further messages share one group for each reason.
    """

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str, str], _Group] = {}
        self._shapes: dict[tuple[str, str, bytes], _Group] = {}
        self.total = 0
        self.warnings = 0

    def add(self, event: Event) -> None:
        """Add `event` to its group."""
        self.total += 1
        self.warnings += event.kind != "Normal"
        said = _said(event)
        shape = (event.kind, event.reason, said.encode("utf-8", "surrogatepass").translate(None, _DROPPED))
        group = self._shapes.get(shape)
        if group is None:
            key = (event.kind, event.reason, mask(said)[:160])
            if key not in self._groups and len(self._groups) >= _MAX_GROUPS:
                key = (event.kind, event.reason, "")
            group = self._groups.setdefault(key, _Group(first=event))
            if len(self._shapes) < _MAX_SHAPES:
                self._shapes[shape] = group
        group.events += 1
        group.count += event.count
        group.seen = _latest(group.seen, event.seen)
        if len(group.objects) <= _MAX_OBJECTS:
            group.objects[event.subject] = None

    def preview(self, cap_tokens: int, counter: TokenCounter, *, places: str) -> StructuredPreview:
        """Preview the groups. `places` is the word before `Event.where` in the preview: `line` or `at`."""
        groups = list(self._groups.values())
        blocks = _blocks(groups, cap_tokens, places)

        def closing(taken: tuple[Block, ...]) -> str:
            hidden = f"{len(groups) - len(taken):,} of {len(groups):,} groups"
            return f"Not shown: {hidden}, and the individual objects and times."

        opening = f"Kubernetes events: {self.total:,} ({self.warnings:,} warnings) in {len(groups):,} groups."
        composed = compose(Layout(opening=opening, headings=_HEADINGS, closing=closing), blocks, cap_tokens, counter)
        shown = f"{len(composed.taken):,} of {len(groups):,} groups of {self.total:,} events"
        return StructuredPreview(kind="events", text=composed.text, shown=shown)


def event_preview(text: str, cap_tokens: int, counter: TokenCounter) -> StructuredPreview | None:
    """Preview a table of events. Returns None if the table has no rows."""
    groups = EventGroups()
    for event in _table_events(text):
        groups.add(event)
    return groups.preview(cap_tokens, counter, places="line") if groups.total else None


def object_event(value: JsonValue, where: str) -> Event | None:
    """Convert `value` to an event. Returns None if it is not an event."""
    if not isinstance(value, dict) or value.get("kind") != "Event" or not isinstance(value.get("reason"), str):
        return None
    subject = value.get("involvedObject") or value.get("regarding")
    subject = subject if isinstance(subject, dict) else {}
    seen = next((value[key] for key in ("lastTimestamp", "eventTime", "firstTimestamp") if value.get(key)), "")
    count = value.get("count")
    parts = (subject.get("namespace"), str(subject.get("kind", "")).lower(), subject.get("name"))
    return Event(
        kind=str(value.get("type", "")),
        reason=str(value["reason"]),
        subject="/".join(str(part) for part in parts if part),
        message=str(value.get("message") or value.get("note") or ""),
        seen=str(seen),
        where=where,
        count=count if isinstance(count, int) and count > 0 else 1,
    )


def _blocks(groups: list[_Group], cap_tokens: int, places: str) -> list[Block]:
    width = max(130, min(300, cap_tokens // 2))
    of_reason: Counter[tuple[str, str]] = Counter()
    for group in groups:
        of_reason[(group.first.kind, group.first.reason)] += group.events
    values = [_value(group, of_reason) for group in groups]
    ranked = sorted(range(len(groups)), key=lambda place: (-values[place], place))
    per_reason: Counter[tuple[str, str]] = Counter()
    blocks = []
    for order, place in enumerate(ranked[:_MAX_BLOCKS]):
        value, group = values[place], groups[place]
        first = group.first
        per_reason[(first.kind, first.reason)] += 1
        seen = per_reason[(first.kind, first.reason)]
        text, instead = _line(group, width, places), _line(group, 90, places)
        blocks.append(
            Block(
                section=0 if first.kind != "Normal" or value > 8 else 1,
                order=order,
                value=value / (1 + 0.6 * (seen - 1)),
                text=text,
                units=1,
                instead=instead if len(instead) < len(text) else "",
            )
        )
    return blocks


def _line(group: _Group, width: int, places: str) -> str:
    first = group.first
    objects = ", ".join(list(group.objects)[:_MAX_OBJECTS]) + (", ..." if len(group.objects) > _MAX_OBJECTS else "")
    times = f"{group.events:,}x" + (f" (repeated {group.count:,} times)" if group.count > group.events else "")
    seen = f", last seen {group.seen}" if group.seen else ""
    message = clip_around(first.message, width, severe_position(first.message))
    return f"{times} {first.kind} {first.reason}{seen}, {objects}, {places} {first.where}: {message}"


def _value(group: _Group, of_reason: Counter[tuple[str, str]]) -> float:
    words = word_severity(f"{group.first.reason} {group.first.message}")
    warning = group.first.kind != "Normal"
    severity = 3.0 + 0.4 * words if warning else 0.5 * words
    usual = (group.events * of_reason[(group.first.kind, group.first.reason)]) ** 0.5
    rarity = 1 / (1 + math.log10(max(1, usual)))
    return 12 * severity * (0.2 + 0.8 * rarity) + (4 * rarity**2) + 1


def _said(event: Event) -> str:
    """Return the message without object names, so that the same error in many pods forms one group."""
    message, name = event.message[:400], event.subject.rsplit("/", 1)[-1]
    if len(name) > 3:
        message = message.replace(name, "*")
        owner = name.rsplit("-", 2)[0]
        if len(owner) > 2:
            message = message.replace(owner, "*")
    return message


def _latest(left: str, right: str) -> str:
    """Return the later of two times, or the smaller of two ages."""
    if not left or not right:
        return left or right
    ages = number_of(left.split(" ", maxsplit=1)[0]), number_of(right.split(" ", maxsplit=1)[0])
    if "-" not in left and ages[0] is not None and ages[1] is not None:
        return left if ages[0] <= ages[1] else right
    return max(left, right)
