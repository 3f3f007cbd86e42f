"""What one model taught about its own counting: how many of its tokens one of ours is, and how large its window is.

Written by the loop after each reply and each overflow, read by whatever divides the window. One for each endpoint and
model, shared by all investigations that ask it, and safe to use from several threads. No I/O, no tokenizer.

Local counts can be a third too low, so the factor rises at once and falls slowly. Far fewer tokens than were sent (S5)
teach nothing: a gateway that leaves cached tokens out of its usage looks like a provider that cuts prompts. Only the
text of an error teaches a window (S4), which shrinks and is forgotten an hour after the last such error.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MIN_FACTOR = 0.8
MAX_FACTOR = 3.0
SUSPICIOUS_RATIO = 0.7
MIN_WINDOW_TOKENS = 1_000
MAX_WINDOW_TOKENS = 100_000_000
# Below this, what every provider adds to a request (a few hundred tokens for tools alone) would pass for a factor.
MIN_LEARNED_TOKENS = 500
LEARNED_WINDOW_SECONDS = 3_600.0

_SCALE = 1_000
_FALL_SHARE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What one reply taught. `ratio` is reported over estimated, None when there was nothing to compare.

    `suspicious` says that the provider reports so few tokens that it may have dropped a part of the request.
    """

    ratio: float | None
    factor: float
    suspicious: bool = False


class Calibration:
    """The factor and the window of one model. Its sums are of whole numbers, so going back and forth does not drift.

    `clock` gives seconds and never goes back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._thousandths = _SCALE
        self._window_tokens: int | None = None
        self._learned_at = 0.0

    @property
    def factor(self) -> float:
        """The provider's tokens for one of ours, between 0.8 and 3."""
        return self._thousandths / _SCALE

    @property
    def learned_window_tokens(self) -> int | None:
        """The smallest window that errors of the last hour stated, in the provider's tokens; None without one."""
        if self._window_tokens is None:  # asked several times a step, and mostly nothing was learned
            return None
        with self._lock:
            return self._remembered_window()

    def observe(self, estimated_tokens: int, reported_prompt_tokens: int) -> Observation:
        """Learn from one reply: our uncalibrated count of the request, and the provider's."""
        if estimated_tokens <= 0 or reported_prompt_tokens <= 0:
            return Observation(ratio=None, factor=self.factor)
        ratio = reported_prompt_tokens / estimated_tokens
        if ratio < SUSPICIOUS_RATIO:
            return Observation(ratio=ratio, factor=self.factor, suspicious=True)
        with self._lock:
            if estimated_tokens >= MIN_LEARNED_TOKENS:
                self._thousandths = _moved(self._thousandths, estimated_tokens, reported_prompt_tokens)
            return Observation(ratio=ratio, factor=self.factor)

    def learn_window(self, tokens: int) -> None:
        """Learn the window that an overflow message stated, in the provider's tokens. Within the hour it never grows.

        Numbers that can be no window (below 1,000: error codes, counts of messages) are left out.
        """
        if not MIN_WINDOW_TOKENS <= tokens <= MAX_WINDOW_TOKENS:
            return
        with self._lock:
            known = self._remembered_window()
            self._window_tokens = tokens if known is None else min(known, tokens)
            self._learned_at = self._clock()

    def effective_window(self, window_tokens: int) -> int:
        """The window to work with, in the provider's tokens, when `window_tokens` is what the model should have."""
        learned = self.learned_window_tokens
        return window_tokens if learned is None else min(window_tokens, learned)

    def provider_tokens(self, our_tokens: int) -> int:
        """What the provider will count for `our_tokens`, rounded up."""
        return -(-our_tokens * self._thousandths // _SCALE)

    def our_tokens(self, provider_tokens: int) -> int:
        """The most of our tokens that the provider counts as at most `provider_tokens`."""
        return provider_tokens * _SCALE // self._thousandths

    def _remembered_window(self) -> int | None:
        return self._window_tokens if self._clock() - self._learned_at < LEARNED_WINDOW_SECONDS else None


def _moved(thousandths: int, estimated_tokens: int, reported_tokens: int) -> int:
    """The factor after one more ratio: all the way up at once, a tenth of the way down."""
    seen = -(-reported_tokens * _SCALE // estimated_tokens)
    moved = seen if seen >= thousandths else thousandths - (thousandths - seen) // _FALL_SHARE
    return max(int(MIN_FACTOR * _SCALE), min(int(MAX_FACTOR * _SCALE), moved))
