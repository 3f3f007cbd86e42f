"""Time limits of the product: a test that waits for one says how long is certainly too long."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ends_before(seconds: float) -> Iterator[None]:
    """Fails when the block took as long as without the time limit that is tested.

    `seconds` lies far above the limit, so that a busy machine passes, and below what the block would wait without it.
    """
    started = time.monotonic()
    yield
    took = time.monotonic() - started
    assert took < seconds, f"took {took:.1f} s: the time limit was not enforced"
