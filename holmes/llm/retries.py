"""Retries one model request.

The wait between attempts grows exponentially, with jitter, or is the wait that the provider requests. Only requests
with a retryable error are retried. If the last attempt fails, its error is raised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from holmes.values.stats import RequestStats

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tenacity import RetryCallState

    from holmes.values.errors import ModelError

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """The number of attempts and the waits between them.

    Wait n is `backoff_seconds` * 2**(n-1), at most `max_backoff_seconds`, plus up to `backoff_seconds` of jitter. If a
    provider requests a wait of more than `retry_after_cap_seconds`, the request fails at once, because trying another
    model is faster.
    """

    max_attempts: int = 5
    backoff_seconds: float = 1.0
    max_backoff_seconds: float = 30.0
    retry_after_cap_seconds: float = 60.0


class AttemptFailed(Exception):
    """One attempt failed with `error`. `stats` is the cost of the attempt.

    `streamed_text` is true if streamed text must be discarded. `max_attempts` is the total number of attempts if it is
    lower than in the policy, else None.
    """

    def __init__(
        self,
        error: ModelError,
        *,
        retry_after_seconds: float | None = None,
        max_attempts: int | None = None,
        streamed_text: bool = False,
        stats: RequestStats | None = None,
    ) -> None:
        super().__init__(str(error))
        self.error = error
        self.retry_after_seconds = retry_after_seconds
        self.max_attempts = max_attempts
        self.streamed_text = streamed_text
        self.stats = stats or RequestStats()


async def with_retries(
    attempt: Callable[[], Awaitable[T]],
    policy: RetryPolicy,
    before_wait: Callable[[AttemptFailed, float], Awaitable[None]],
) -> T:
    """Call `attempt` until it succeeds, at most as often as `policy` allows.

    `before_wait` receives the failure and the seconds until the next attempt. Raises the last `AttemptFailed`.
    """
    import tenacity

    backoff = tenacity.wait_exponential(
        multiplier=policy.backoff_seconds, max=policy.max_backoff_seconds
    ) + tenacity.wait_random(0, policy.backoff_seconds)

    def wait_seconds(state: RetryCallState) -> float:
        asked = _failure(state).retry_after_seconds
        return backoff(state) if asked is None else asked

    async def announce(state: RetryCallState) -> None:
        await before_wait(_failure(state), state.upcoming_sleep)

    retrying = tenacity.AsyncRetrying(
        stop=tenacity.stop_after_attempt(policy.max_attempts),
        wait=wait_seconds,
        retry=lambda state: _is_worth_waiting(state, policy),
        before_sleep=announce,
        reraise=True,
    )

    async def run() -> T:
        return await attempt()

    return await retrying(run)


def _failure(state: RetryCallState) -> AttemptFailed:
    failure = state.outcome.exception() if state.outcome is not None else None
    if not isinstance(failure, AttemptFailed):
        raise TypeError(f"cannot retry {failure!r}: expected AttemptFailed")
    return failure


def _is_worth_waiting(state: RetryCallState, policy: RetryPolicy) -> bool:
    error = state.outcome.exception() if state.outcome is not None else None
    if not isinstance(error, AttemptFailed) or not error.error.retryable:
        return False
    if error.max_attempts is not None and state.attempt_number >= error.max_attempts:
        return False
    return error.retry_after_seconds is None or error.retry_after_seconds <= policy.retry_after_cap_seconds
