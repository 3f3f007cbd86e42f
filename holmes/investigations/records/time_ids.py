"""Ids that sort by the time at which they were made."""

from __future__ import annotations

import uuid


def time_id(seconds: float) -> str:
    """24 hexadecimal digits: milliseconds since the epoch, then chance."""
    return f"{int(seconds * 1000):012x}{uuid.uuid4().hex[:12]}"
