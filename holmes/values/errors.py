"""Defines the errors of Holmes.

The message about a user's mistake is one line that contains the fix. A failed tool call is a result, not an error.
Messages can quote untrusted text from a credential plug-in, a provider or a file. Therefore, every error masks the
secrets in its message. The mask is set once for the process, before an error can occur.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from holmes.values.stats import RequestStats


class _ErrorMask:
    """Stores the mask for the errors of this process."""

    mask: Callable[[str], str] | None = None


def mask_errors(mask: Callable[[str], str] | None) -> None:
    """Mask the messages of all errors with `mask`, or stop masking them if `mask` is None."""
    _ErrorMask.mask = mask


def masked(text: str) -> str:
    """Mask the secrets in untrusted `text`. Call this function before cutting or joining the text."""
    return text if _ErrorMask.mask is None else _ErrorMask.mask(text)


class HolmesError(Exception):
    """An error for the user. The message contains the problem, the cause and the fix.

    `exit_code` is the exit code of the command: 1 for a failure, 2 for wrong usage, 3 for an unreachable source or
    cluster, 4 for a damaged database.
    """

    exit_code = 1

    def __str__(self) -> str:
        """Return the message without secrets."""
        return masked(super().__str__())


class ConfigError(HolmesError):
    """A setting, file or option is not valid.

    The message contains the location and, for an unknown key, the closest valid key.
    """

    exit_code = 2


class ModelError(HolmesError):
    """A request to the provider failed.

    `retryable` is true if the same request may succeed later. `stats` is the cost of the failed attempts.
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
    """The provider rejected the request as too long.

    `window_tokens` is the real context window if the provider's message states it.
    """

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
    """The parts that must be kept (system prompt, tools, task, last user message) exceed the context window.

    `stats` is the cost of the summary that was written before the error, if any.
    """

    def __init__(self, message: str, *, stats: RequestStats | None = None) -> None:
        super().__init__(message)
        self.stats = stats


class ToolError(HolmesError):
    """A tool could not run. The tool executor converts the error to an error result for the model."""


class ResultStoreError(HolmesError):
    """A result could not be stored or read, for example because the disk is full or the id is unknown."""


class ClusterUnreachable(HolmesError):
    """The cluster is unreachable because of missing configuration, network or permissions."""

    exit_code = 3


class StepLimitReached(HolmesError):
    """The last allowed turn ended without an answer. The message contains the model's last text."""
