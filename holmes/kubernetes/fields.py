"""Reads fields, times and selectors of Kubernetes objects. Fields that are missing or have another type are empty.

Objects are dicts, as parsed from JSON: a check for any mapping takes five times as long, and a scan makes a million.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.values.json_types import JsonObject, JsonValue


def at(value: JsonValue, *path: str) -> JsonValue:
    """The value at `path`, or None."""
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def text(value: JsonValue, *path: str) -> str:
    """The string at `path`, or an empty string."""
    found = at(value, *path)
    return found if isinstance(found, str) else ""


def integer(value: JsonValue, *path: str) -> int:
    """The integer at `path`, or 0."""
    found = at(value, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def boolean(value: JsonValue, *path: str) -> bool:
    """Whether the value at `path` is true."""
    return at(value, *path) is True


def child(value: JsonValue, *path: str) -> JsonObject:
    """The object at `path`, or an empty object."""
    found = at(value, *path)
    return found if isinstance(found, dict) else {}


def children(value: JsonValue, *path: str) -> tuple[JsonObject, ...]:
    """The objects of the list at `path`."""
    found = at(value, *path)
    return tuple(item for item in found if isinstance(item, dict)) if isinstance(found, list) else ()


def texts(value: JsonValue, *path: str) -> tuple[str, ...]:
    """The strings of the list at `path`."""
    found = at(value, *path)
    return tuple(item for item in found if isinstance(item, str)) if isinstance(found, list) else ()


def text_map(value: JsonValue, *path: str) -> dict[str, str]:
    """The strings of the object at `path`, by key."""
    return {key: item for key, item in child(value, *path).items() if isinstance(item, str)}


def moment(written: str) -> float | None:
    """Seconds since the epoch of an RFC 3339 time; None for other text."""
    if not written:
        return None
    try:
        parsed = datetime.fromisoformat(written)
    except ValueError:
        return None
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()


def written(seconds: float) -> str:
    """RFC 3339 in UTC, without fractions of a second."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def duration(seconds: float) -> str:
    """A duration in the format of kubectl ages: `45s`, `12m`, `3h`, `5d`."""
    whole = max(0, int(seconds))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if whole >= 2 * size:
            return f"{whole // size}{unit}"
    return f"{whole}s"


def matches_map(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether the selector of a Service matches. An empty selector matches nothing."""
    return bool(selector) and all(labels.get(key) == value for key, value in selector.items())


def matches_selector(selector: JsonObject, labels: Mapping[str, str]) -> bool:
    """A selector with `matchLabels` and `matchExpressions`. An empty one matches everything."""
    if any(labels.get(key) != value for key, value in text_map(selector, "matchLabels").items()):
        return False
    return all(_holds(expression, labels) for expression in children(selector, "matchExpressions"))


def _holds(expression: JsonObject, labels: Mapping[str, str]) -> bool:
    key, values = text(expression, "key"), texts(expression, "values")
    match text(expression, "operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            return False


_RFC_3339 = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")


def instant(text: str) -> datetime | None:
    """The time of RFC 3339 `text`, to the microsecond; None for other text."""
    found = _RFC_3339.fullmatch(text)
    if found is None:
        return None
    base, fraction, zone = found.groups()
    try:
        return datetime.fromisoformat(f"{base}.{(fraction or '0')[:6].ljust(6, '0')}{zone}").astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def nanoseconds(text: str) -> int | None:
    """Nanoseconds since the epoch of RFC 3339 `text`: log lines can differ by less than a microsecond."""
    found = _RFC_3339.fullmatch(text)
    whole = instant(f"{found[1]}{found[3]}") if found else None
    if found is None or whole is None:
        return None
    return int(whole.timestamp()) * 1_000_000_000 + int((found[2] or "0").ljust(9, "0"))


def timestamp(value: datetime) -> str:
    """`value` in RFC 3339, in UTC and without fractions of a second."""
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
