"""Keeps the memory of a long-running server small.

Many threads make glibc open many arenas, and what a burst of investigations needed stays with the process for ever.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Final

_ARENAS: Final = 2
_M_ARENA_MAX: Final = -8


def limit_arenas() -> None:
    """Let all threads allocate from two arenas; to be called before there are many threads."""
    libc = _glibc()
    if libc is not None:
        libc.mallopt(_M_ARENA_MAX, _ARENAS)


def give_back() -> None:
    """Return freed memory to the system. Takes milliseconds."""
    libc = _glibc()
    if libc is not None:
        libc.malloc_trim(0)


@cache
def _glibc() -> ctypes.CDLL | None:
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "mallopt") and hasattr(libc, "malloc_trim") else None
