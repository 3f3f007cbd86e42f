"""Events in the words of `events.k8s.io/v1`, made from those of the core API, which alone are recorded.

Called by the server: both APIs show the same events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from holmes.snapshot.discovery import ResourceType
    from holmes.values.json_types import JsonObject

CORE_EVENTS: Final = ("", "events")
NEW_EVENTS: Final = ("events.k8s.io", "events")
_RENAMED: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}


def is_new_event(kind: ResourceType) -> bool:
    """Whether `kind` is the event of `events.k8s.io`."""
    return (kind.group, kind.plural) == NEW_EVENTS


def new_event(event: JsonObject) -> JsonObject:
    """A core event as `events.k8s.io/v1` writes it."""
    return {_RENAMED.get(key, key): value for key, value in event.items()}
