"""What one model taught about its own counting: how many of its tokens one of ours is, and how large its window is.

Written by the loop after each reply and each overflow, read by whatever divides the window. One per model, shared by
all investigations that ask it, and safe to use from several threads. Pure sums: no I/O, no clock, no tokenizer.

Local counts can be a third too low, so the factor rises at once and falls slowly. A provider that reports far fewer
tokens than were sent took too much in silence (S5): that is never learned as a factor. The window only shrinks (S4).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

MIN_FACTOR = 0.8
MAX_FACTOR = 3.0
SUSPICIOUS_RATIO = 0.7
MIN_WINDOW_TOKENS = 1_000
MAX_WINDOW_TOKENS = 100_000_000
# Below this, what every provider adds to a request (a few hundred tokens for tools alone) would pass for a factor.
MIN_LEARNED_TOKENS = 500

_SCALE = 1_000
_FALL_SHARE = 10
_GROWTH_PCT = 110
_PLATEAU_PCT = range(75, 103)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What one reply taught. `ratio` is reported over estimated, None when there was nothing to compare.

    `suspicious` says that the provider reports so few tokens that it must have dropped a part of the request.
    """

    ratio: float | None
    factor: float
    suspicious: bool = False


class Calibration:
    """The factor and the window of one model. Its sums are of whole numbers, so going back and forth does not drift."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thousandths = _SCALE
        self._window_tokens: int | None = None
        self._last: tuple[int, int] | None = None

    @property
    def factor(self) -> float:
        """The provider's tokens for one of ours, between 0.8 and 3."""
        return self._thousandths / _SCALE

    @property
    def learned_window_tokens(self) -> int | None:
        """The smallest window that the provider has shown, in its own tokens; None as long as it has shown none."""
        return self._window_tokens

    def observe(self, estimated_tokens: int, reported_prompt_tokens: int) -> Observation:
        """Learn from one reply: our uncalibrated count of the request, and the provider's."""
        if estimated_tokens <= 0 or reported_prompt_tokens <= 0:
            return Observation(ratio=None, factor=self.factor)
        ratio = reported_prompt_tokens / estimated_tokens
        with self._lock:
            last, self._last = self._last, (estimated_tokens, reported_prompt_tokens)
            if ratio >= SUSPICIOUS_RATIO:
                if estimated_tokens >= MIN_LEARNED_TOKENS:
                    self._thousandths = _moved(self._thousandths, estimated_tokens, reported_prompt_tokens)
                return Observation(ratio=ratio, factor=self.factor)
            window = _plateau_tokens(last, estimated_tokens, reported_prompt_tokens)
            if window is not None:
                self._shrink_to(window)
        return Observation(ratio=ratio, factor=self.factor, suspicious=True)

    def learn_window(self, tokens: int) -> None:
        """Learn the window that an overflow message stated, in the provider's tokens. It never grows again.

        Numbers that can be no window (below 1,000: error codes, counts of messages) are left out.
        """
        with self._lock:
            self._shrink_to(tokens)

    def effective_window(self, window_tokens: int) -> int:
        """The window to work with, in the provider's tokens, when `window_tokens` is what the model should have."""
        learned = self._window_tokens
        return window_tokens if learned is None else min(window_tokens, learned)

    def provider_tokens(self, our_tokens: int) -> int:
        """What the provider will count for `our_tokens`, rounded up."""
        return -(-our_tokens * self._thousandths // _SCALE)

    def our_tokens(self, provider_tokens: int) -> int:
        """The most of our tokens that the provider counts as at most `provider_tokens`."""
        return provider_tokens * _SCALE // self._thousandths

    def _shrink_to(self, tokens: int) -> None:
        """Take `tokens` if it can be a window and is smaller than what was known."""
        is_window = MIN_WINDOW_TOKENS <= tokens <= MAX_WINDOW_TOKENS
        if is_window and (self._window_tokens is None or tokens < self._window_tokens):
            self._window_tokens = tokens


def _moved(thousandths: int, estimated_tokens: int, reported_tokens: int) -> int:
    """The factor after one more ratio: all the way up at once, a tenth of the way down."""
    seen = -(-reported_tokens * _SCALE // estimated_tokens)
    moved = seen if seen >= thousandths else thousandths - (thousandths - seen) // _FALL_SHARE
    return max(int(MIN_FACTOR * _SCALE), min(int(MAX_FACTOR * _SCALE), moved))


def _plateau_tokens(last: tuple[int, int] | None, estimated_tokens: int, reported_tokens: int) -> int | None:
    """Where the provider cuts off, when it reports about as much as before for a request that is a tenth longer.

    A provider that drops whole messages stays a little below its window, differently each time; one that reports far
    less than before counts something else, for example only what was not in its cache.
    """
    if last is None or estimated_tokens * 100 < last[0] * _GROWTH_PCT:
        return None
    if reported_tokens * 100 // last[1] not in _PLATEAU_PCT:
        return None
    return max(reported_tokens, last[1])
