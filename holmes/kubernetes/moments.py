"""Times as Kubernetes writes them, as seconds since the epoch."""

from __future__ import annotations

from datetime import UTC, datetime


def moment(written: str) -> float | None:
    """Seconds since the epoch of an RFC 3339 time; None for anything else."""
    if not written:
        return None
    try:
        parsed = datetime.fromisoformat(written)
    except ValueError:
        return None
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()


def written(seconds: float) -> str:
    """RFC 3339 in UTC, whole seconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def duration(seconds: float) -> str:
    """A duration as kubectl shows ages: `45s`, `12m`, `3h`, `5d`."""
    whole = max(0, int(seconds))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if whole >= 2 * size:
            return f"{whole // size}{unit}"
    return f"{whole}s"
