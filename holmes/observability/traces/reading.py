"""The parts that all sources of traces share: possible times, and the place of the message of an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LATEST_US: Final = 253_402_300_799_000_000
"""The last microsecond that a calendar of four-digit years has."""
_EVENT_KEYS: Final = ("exception.message", "message", "error.message", "event", "error.object", "stack")
_SPAN_KEYS: Final = ("otel.status_description", "error.message", "exception.message", "grpc.message", "error.type")
_STATUS_KEYS: Final = ("http.response.status_code", "http.status_code", "rpc.grpc.status_code")


def is_time(microseconds: int) -> bool:
    return 0 <= microseconds <= _LATEST_US


def error_message(attributes: Mapping[str, str], events: Sequence[Mapping[str, str]]) -> str:
    """Return why a span failed: the message of its status, of its last exception, or its HTTP status."""
    if own := next((attributes[key] for key in _SPAN_KEYS if attributes.get(key)), ""):
        return own
    for event in reversed(events):
        message = next((event[key] for key in _EVENT_KEYS if event.get(key)), "")
        if message and message not in {"exception", "error"}:
            kind = event.get("exception.type") or event.get("error.kind") or ""
            return f"{kind}: {message}" if kind else message
    status = next(((key, attributes[key]) for key in _STATUS_KEYS if attributes.get(key)), None)
    return "" if status is None else f"{status[0]} {status[1]}"
