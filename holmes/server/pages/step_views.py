"""Converts the events of an investigation to the steps of its timeline.

Reads events that any version of Holmes stored, so missing and unknown fields are ignored. All text is untrusted and
therefore escaped or rendered by `render_answer`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.evidence import Marker
from holmes.server.pages.markdown_html import render_answer
from holmes.server.pages.page_rendering import clock_offset, count, duration, money, one_line, without_citations
from holmes.values.messages import ResultId

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from markupsafe import Markup

    from holmes.investigations.records.values import StoredEvent
    from holmes.values.events import CitationOutcome

StepKind: TypeAlias = Literal["tool", "thought", "note", "trouble"]
JsonMap: TypeAlias = Mapping[str, object]

_TITLE_CHARACTERS = 240
_ALT_CHARACTERS = 1_500
PICTURE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_OUTCOMES: Final[Mapping[str, CitationOutcome]] = {"cited": "cited", "not_found": "not_found"}
_LARGEST_NUMBER = 1e9
_TROUBLE: Final = frozenset({"approval_required", "compaction_failed", "context_overflowed", "prompt_shortened"})
_STATUS_WORDS: Final[Mapping[str, str]] = {
    "running": "running",
    "success": "done",
    "no_data": "no data",
    "error": "failed",
    "approval_required": "waiting for approval",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """One step of the timeline.

    `key` is the HTML id of the step; a later event of the same tool call replaces the step. `event_id` is the id of its
    newest event. `has_output` is true if this event has a tool result.
    """

    key: str
    event_id: int
    kind: StepKind
    title: str
    at: datetime
    offset: str
    status: str = ""
    status_word: str = ""
    tool: str = ""
    took: str = ""
    detail: str = ""
    html: Markup | None = None
    has_output: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """Use of the context window and the budget. `cost` is in US dollars, or None if unknown."""

    tokens: int
    max_tokens: int
    cost: float | None
    tokens_text: str
    cost_text: str | None


@dataclass(slots=True, kw_only=True)
class Timeline:
    """The steps and the state after all events.

    `sources` maps the id of a stored result to the title of its tool call, and `claims` maps a citation to its claim.
    """

    steps: dict[str, StepView] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    claims: dict[Marker, str] = field(default_factory=dict)
    gauges: Gauges | None = None
    last_event_id: int = 0


def timeline_of(events: Iterable[StoredEvent], started_at: datetime) -> Timeline:
    """Convert `events` to steps, in order. Offsets are relative to `started_at`."""
    timeline = Timeline()
    for event in events:
        timeline.last_event_id = max(timeline.last_event_id, event.id)
        reader = _READERS.get(event.name)
        if reader is not None:
            reader(timeline, _Event(event, started_at))
    return timeline


class _Event:
    """A parsed event."""

    def __init__(self, event: StoredEvent, started_at: datetime) -> None:
        self.id = event.id
        self.at = event.at
        self.data = json_map(event.data)
        self._started_at = started_at

    def step(self, key: str, kind: StepKind, title: str, *, before_seconds: float = 0.0) -> StepView:
        """Create a step that started `before_seconds` before the event."""
        seconds = (self.at - self._started_at).total_seconds() - before_seconds
        shown = one_line(title, _TITLE_CHARACTERS)
        return StepView(key=key, event_id=self.id, kind=kind, title=shown, at=self.at, offset=clock_offset(seconds))


def json_map(text: str) -> JsonMap:
    """Parse a JSON object. Returns an empty mapping if `text` is not a JSON object."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _map_in(data: JsonMap, name: str) -> JsonMap:
    """Return the object in the field `name`, or an empty mapping."""
    value = data.get(name)
    return value if isinstance(value, dict) else {}


def text_in(data: JsonMap, *names: str) -> str:
    """Return the first non-empty string in the fields `names`, or an empty string."""
    for name in names:
        value = data.get(name)
        if isinstance(value, str) and value.strip():
            return value
    return ""


def _number_in(data: JsonMap, *names: str) -> float | None:
    """Return the first number from 0 to a billion in the fields `names`, or None if no field contains one."""
    for name in names:
        value = data.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _LARGEST_NUMBER:
            return float(value)
    return None


def result_of(data: JsonMap) -> JsonMap:
    """Return the result in a `tool_calling_result` event. A result that is only a string becomes the field `data`."""
    result = data.get("result")
    if isinstance(result, dict):
        return result
    return {"data": result} if isinstance(result, str) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureView:
    """A stored image with a text for people who cannot see it."""

    id: str
    alt: str


def stored_ids(data: JsonMap) -> tuple[str, ...]:
    """Return the ids of a tool call's stored results, with text before images."""
    entries = sorted(_stored(data), key=lambda entry: text_in(entry, "media_type").startswith("image/"))
    return tuple(found for entry in entries if (found := text_in(entry, "id")))


def pictures_of(data: JsonMap, title: str) -> tuple[PictureView, ...]:
    """Return the images of a tool call's result. The alternative text describes the chart or repeats `title`."""
    alt = text_in(result_of(data), "chart") or f"Image: {title}"
    return tuple(
        PictureView(id=text_in(entry, "id"), alt=one_line(alt, _ALT_CHARACTERS))
        for entry in _stored(data)
        if text_in(entry, "media_type") in PICTURE_TYPES and text_in(entry, "id")
    )


def _stored(data: JsonMap) -> list[JsonMap]:
    stored = data.get("stored") or result_of(data).get("stored")
    return [each for each in stored if isinstance(each, dict)] if isinstance(stored, list) else []


def _call_key(data: JsonMap, *names: str) -> str:
    """Create an HTML id for a tool call, because provider ids may contain any characters."""
    return f"call-{hashlib.sha256(text_in(data, *names).encode('utf-8', 'replace')).hexdigest()[:16]}"


def _tool_started(timeline: Timeline, event: _Event) -> None:
    name = text_in(event.data, "tool_name", "name")
    step = event.step(_call_key(event.data, "id", "tool_call_id"), "tool", text_in(event.data, "description") or name)
    timeline.steps[step.key] = replace(
        step, status="running", status_word=_STATUS_WORDS["running"], tool=one_line(name, 80)
    )


def _tool_finished(timeline: Timeline, event: _Event) -> None:
    result = result_of(event.data)
    name = text_in(event.data, "name", "tool_name")
    title = text_in(event.data, "description") or text_in(result, "invocation") or name
    seconds = _number_in(result, "elapsed_seconds")
    key = _call_key(event.data, "tool_call_id", "id")
    step = event.step(key, "tool", title, before_seconds=seconds or 0.0)
    status = text_in(result, "status")
    status = status if status in _STATUS_WORDS else "success"
    timeline.steps[key] = replace(
        step,
        status=status,
        status_word=_STATUS_WORDS[status],
        tool=one_line(name, 80),
        took="" if seconds is None else duration(seconds),
        detail=one_line(text_in(result, "error"), 300) if status == "error" else "",
        has_output=True,
    )
    for identity in stored_ids(event.data):
        timeline.sources.setdefault(identity, step.title)


def _thought(timeline: Timeline, event: _Event) -> None:
    """Add a step for the text or reasoning of a reply with tool calls."""
    content, reasoning = text_in(event.data, "content"), text_in(event.data, "reasoning")
    if not content and not reasoning:
        return
    step = event.step(f"event-{event.id}", "thought", without_citations(content or reasoning))
    timeline.steps[step.key] = replace(step, html=render_answer(content or reasoning).html)


def _tokens(timeline: Timeline, event: _Event) -> None:
    metadata = _map_in(event.data, "metadata")
    held, window = _number_in(_map_in(metadata, "tokens"), "total_tokens"), _number_in(metadata, "max_tokens")
    cost = _number_in(_map_in(metadata, "costs"), "total_cost")
    timeline.gauges = Gauges(
        tokens=int(held or 0),
        max_tokens=int(window or 0),
        cost=cost,
        tokens_text=f"{count(held or 0)} of {count(window or 0)} tokens",
        cost_text=None if cost is None else money(cost),
    )


def _answered(timeline: Timeline, event: _Event) -> None:
    citations = _map_in(event.data, "metadata").get("citations")
    for each in citations if isinstance(citations, list) else ():
        fields = each if isinstance(each, dict) else {}
        missing = fields.get("missing")
        first, last = _number_in(fields, "first_line"), _number_in(fields, "last_line")
        if first and last:
            marker = Marker(
                result_id=ResultId(text_in(fields, "result_id")),
                first_line=int(first),
                last_line=int(last),
                outcome=_OUTCOMES.get(text_in(fields, "outcome"), "checked"),
                missing=tuple(each for each in missing if isinstance(each, str)) if isinstance(missing, list) else (),
            )
            timeline.claims[marker] = one_line(without_citations(text_in(fields, "claim")), _TITLE_CHARACTERS)


def _line(kind: StepKind, words: Callable[[JsonMap], str]) -> Callable[[Timeline, _Event], None]:
    """Create a reader that converts an event to a step with one line of text."""

    def read(timeline: Timeline, event: _Event) -> None:
        text = words(event.data)
        if text:
            step = event.step(f"event-{event.id}", kind, text)
            timeline.steps[step.key] = step

    return read


def _compacted(data: JsonMap) -> str:
    metadata = _map_in(data, "metadata")
    before, after = _number_in(metadata, "tokens_before"), _number_in(metadata, "tokens_after")
    if before and after:
        return f"Conversation compacted from {count(before)} to {count(after)} tokens"
    return text_in(data, "content") or "Conversation compacted"


def _switched(data: JsonMap) -> str:
    models = f"{text_in(data, 'from_model') or 'a model'} → {text_in(data, 'to_model') or 'the next'}"
    reason = text_in(data, "reason")
    return f"Model switched: {models}" + (f" ({reason})" if reason else "")


def _approvals(data: JsonMap) -> str:
    pending = data.get("pending_approvals")
    calls = [each for each in pending if isinstance(each, dict)] if isinstance(pending, list) else []
    return f"Waiting for approval: {', '.join(text_in(each, 'description', 'tool_name') for each in calls)}"


def _notice(timeline: Timeline, event: _Event) -> None:
    kind: StepKind = "trouble" if text_in(event.data, "kind") in _TROUBLE else "note"
    _line(kind, lambda data: text_in(data, "text"))(timeline, event)


_READERS: Final[Mapping[str, Callable[[Timeline, _Event], None]]] = {
    "start_tool_calling": _tool_started,
    "tool_calling_result": _tool_finished,
    "ai_message": _thought,
    "token_count": _tokens,
    "conversation_history_compacted": _line("note", _compacted),
    "approval_required": _line("trouble", _approvals),
    "model_switched": _line("trouble", _switched),
    "notice": _notice,
    "ai_answer_end": _answered,
    "error": _line("trouble", lambda data: text_in(data, "description", "msg") or "The investigation failed."),
}
