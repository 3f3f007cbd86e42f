"""The existing name that somebody probably meant. Called by rules that found a name that does not exist."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_ALIKE = 0.6


def nearest(name: str, existing: Iterable[str]) -> str | None:
    """The existing name that looks most like `name`, or None when none looks like it."""
    names = sorted(set(existing) - {name})
    lower = {each.lower(): each for each in names}
    close = difflib.get_close_matches(name.lower(), list(lower), n=1, cutoff=_ALIKE)
    if close:
        return lower[close[0]]
    containing = [each for each in names if name in each or each in name]
    return min(containing, key=len, default=None)


def hint(name: str, existing: Iterable[str]) -> str:
    """`; the nearest existing one is 'x'`, or nothing."""
    found = nearest(name, existing)
    return f"; the nearest existing one is {found!r}" if found else ""
