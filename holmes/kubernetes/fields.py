"""Reads fields of Kubernetes objects without trusting their shape: what is missing or of another type is empty.

Objects are dicts, as JSON is read: asking for any mapping takes five times as long, and a scan asks a million times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holmes.values.json_types import JsonObject, JsonValue


def at(value: JsonValue, *path: str) -> JsonValue:
    """What lies under `path`, or None."""
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def text(value: JsonValue, *path: str) -> str:
    """The string under `path`, or an empty one."""
    found = at(value, *path)
    return found if isinstance(found, str) else ""


def integer(value: JsonValue, *path: str) -> int:
    """The integer under `path`, or 0."""
    found = at(value, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def boolean(value: JsonValue, *path: str) -> bool:
    """Whether `true` is under `path`."""
    return at(value, *path) is True


def child(value: JsonValue, *path: str) -> JsonObject:
    """The object under `path`, or an empty one."""
    found = at(value, *path)
    return found if isinstance(found, dict) else {}


def children(value: JsonValue, *path: str) -> tuple[JsonObject, ...]:
    """The objects of the list under `path`."""
    found = at(value, *path)
    return tuple(item for item in found if isinstance(item, dict)) if isinstance(found, list) else ()


def texts(value: JsonValue, *path: str) -> tuple[str, ...]:
    """The strings of the list under `path`."""
    found = at(value, *path)
    return tuple(item for item in found if isinstance(item, str)) if isinstance(found, list) else ()


def text_map(value: JsonValue, *path: str) -> dict[str, str]:
    """The strings of the object under `path`, by key."""
    return {key: item for key, item in child(value, *path).items() if isinstance(item, str)}
