"""The small family of errors. A user's mistake is one line with the fix; a tool's failure is a result, not an error.

Errors quote what others wrote: a credential plug-in, a provider, a file. So their text is masked where it is made of
the error, for every line, answer and record alike. What masks is set once for the process, before anything can fail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from holmes.values.stats import RequestStats


class _ErrorMask:
    """What masks errors in this process."""

    mask: Callable[[str], str] | None = None


def mask_errors(mask: Callable[[str], str] | None) -> None:
    """From now on the text of every error is what `mask` makes of it."""
    _ErrorMask.mask = mask


def masked(text: str) -> str:
    """What may be said of foreign `text`. Called before a part of it is cut out or joined into one line."""
    return text if _ErrorMask.mask is None else _ErrorMask.mask(text)


class HolmesError(Exception):
    """Something went wrong that a person can understand: the message says what, why and what to do.

    `exit_code` is what the command line ends with: 1 failed, 2 usage, 3 source or cluster unreachable, 4 damaged
    database.
    """

    exit_code = 1

    def __str__(self) -> str:
        """The message without secrets."""
        return masked(super().__str__())


class ConfigError(HolmesError):
    """A setting, file or option is wrong; the message names the place and the nearest valid key."""

    exit_code = 2


class ModelError(HolmesError):
    """The provider failed. `retryable` says whether the same request may succeed later.

    `stats` is what the failed attempts cost, so that nothing that was paid goes uncounted.
    """

    def __init__(
        self, message: str, *, provider: str, model: str, retryable: bool, stats: RequestStats | None = None
    ) -> None:
        super().__init__(message)
        self.provider = provider
        self.model = model
        self.retryable = retryable
        self.stats = stats


class ContextOverflow(ModelError):
    """The provider says that the request is too long. `window_tokens` is the real window when the message told it."""

    def __init__(
        self,
        message: str,
        *,
        provider: str,
        model: str,
        window_tokens: int | None = None,
        stats: RequestStats | None = None,
    ) -> None:
        super().__init__(message, provider=provider, model=model, retryable=False, stats=stats)
        self.window_tokens = window_tokens


class CompactionInsufficientError(HolmesError):
    """What must stay (system prompt, tools, task, last user message) does not fit the model's window.

    `stats` is what was paid for a summary before that was known.
    """

    def __init__(self, message: str, *, stats: RequestStats | None = None) -> None:
        super().__init__(message)
        self.stats = stats


class ToolError(HolmesError):
    """A tool could not run; the tool executor turns it into an error result that the model reads."""


class ResultStoreError(HolmesError):
    """A result could not be stored or read back (disk full, read-only, unknown id)."""


class ClusterUnreachable(HolmesError):
    """No cluster answers: no configuration, no network, or no permission at all."""

    exit_code = 3


class StepLimitReached(HolmesError):
    """The last step ended without an answer; the message carries what was found until then."""
