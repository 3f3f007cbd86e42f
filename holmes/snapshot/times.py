"""Reads and writes the moments in Kubernetes objects, log lines and requests. Used all over this package."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_MOMENT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")


def moment(text: str) -> datetime | None:
    """The moment that RFC 3339 `text` names, to the microsecond; None when it names none."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    base, fraction, zone = found.groups()
    try:
        return datetime.fromisoformat(f"{base}.{(fraction or '0')[:6].ljust(6, '0')}{zone}").astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def nanoseconds(text: str) -> int | None:
    """Nanoseconds since 1970 of RFC 3339 `text`: log lines are told apart by less than a microsecond."""
    found = _MOMENT.fullmatch(text)
    whole = moment(f"{found[1]}{found[3]}") if found else None
    if found is None or whole is None:
        return None
    return int(whole.timestamp()) * 1_000_000_000 + int((found[2] or "0").ljust(9, "0"))


def timestamp(value: datetime) -> str:
    """`value` as Kubernetes writes it, to the second."""
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
