"""Reads fields, times and selectors of Kubernetes objects.

A field that is missing or has another type is treated as empty.

Objects must be dicts, as parsed from JSON. A check for the abstract type `Mapping` would take five times as long, and a
scan makes a million checks.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.values.json_types import JsonObject, JsonValue

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
DEFAULT_STORAGE_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
SERVICE_NAME: Final = "kubernetes.io/service-name"
REVISION_LABEL: Final = "controller-revision-hash"


def at(value: JsonValue, *path: str) -> JsonValue:
    """Return the value at `path`, or None if it is missing."""
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def text(value: JsonValue, *path: str) -> str:
    """Return the string at `path`, or an empty string."""
    found = at(value, *path)
    return found if isinstance(found, str) else ""


def integer(value: JsonValue, *path: str) -> int:
    """Return the integer at `path`, or 0."""
    found = at(value, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def boolean(value: JsonValue, *path: str) -> bool:
    return at(value, *path) is True


def child(value: JsonValue, *path: str) -> JsonObject:
    """Return the object at `path`, or an empty object."""
    found = at(value, *path)
    return found if isinstance(found, dict) else {}


def children(value: JsonValue, *path: str) -> tuple[JsonObject, ...]:
    """Return the objects in the list at `path`."""
    found = at(value, *path)
    return tuple(item for item in found if isinstance(item, dict)) if isinstance(found, list) else ()


def texts(value: JsonValue, *path: str) -> tuple[str, ...]:
    """Return the strings in the list at `path`."""
    found = at(value, *path)
    return tuple(item for item in found if isinstance(item, str)) if isinstance(found, list) else ()


def text_map(value: JsonValue, *path: str) -> dict[str, str]:
    """Return the string values of the object at `path`, by key."""
    return {key: item for key, item in child(value, *path).items() if isinstance(item, str)}


_FIRST_YEAR, _LAST_YEAR = 1, 9999


def moment(written: str) -> float | None:
    """Convert an RFC 3339 time to seconds since the epoch.

    Returns None for any other string, and for times at the ends of the calendar, which other time zones cannot show.
    """
    if not written:
        return None
    try:
        parsed = datetime.fromisoformat(written)
    except ValueError:
        return None
    if not _FIRST_YEAR < parsed.year < _LAST_YEAR:
        return None
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()


def written(seconds: float) -> str:
    """Format seconds since the epoch as RFC 3339 in UTC, without fractions of a second."""
    return timestamp(datetime.fromtimestamp(seconds, UTC))


def duration(seconds: float) -> str:
    """Format a duration like the ages that kubectl shows: `45s`, `12m`, `3h`, `5d`."""
    whole = max(0, int(seconds))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if whole >= 2 * size:
            return f"{whole // size}{unit}"
    return f"{whole}s"


def exact_duration(seconds: float) -> str:
    """Format a duration with each of its units, because the length of a run is compared: `93s`, `3m12s`, `2h5m`."""
    left, told = max(0, round(seconds)), ""
    if left < 120:
        return f"{left}s"
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")):
        number, left = divmod(left, size)
        told += f"{number}{unit}" if number else ""
    return told


def matches_map(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Return whether a Service selector matches. An empty selector matches nothing."""
    return bool(selector) and all(labels.get(key) == value for key, value in selector.items())


def matches_selector(selector: JsonObject, labels: Mapping[str, str]) -> bool:
    """Return whether a selector with `matchLabels` and `matchExpressions` matches. An empty selector always matches."""
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


_RFC_3339 = expression(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")


def instant(text: str) -> datetime | None:
    """Parse an RFC 3339 time to the microsecond. Returns None for any other string."""
    found = _RFC_3339.fullmatch(text)
    if found is None:
        return None
    base, fraction, zone = found.groups()
    try:
        return datetime.fromisoformat(f"{base}.{(fraction or '0')[:6].ljust(6, '0')}{zone}").astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def nanoseconds(text: str) -> int | None:
    """Convert an RFC 3339 time to nanoseconds since the epoch. Returns None for any other string.

    Nanoseconds are necessary, because the times of log lines can differ by less than a microsecond.
    """
    found = _RFC_3339.fullmatch(text)
    whole = instant(f"{found[1]}{found[3]}") if found else None
    if found is None or whole is None:
        return None
    return int(whole.timestamp()) * 1_000_000_000 + int((found[2] or "0").ljust(9, "0"))


def timestamp(value: datetime) -> str:
    """Format `value` as RFC 3339 in UTC, without fractions of a second."""
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
