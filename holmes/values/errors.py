"""All errors of Holmes. A user's mistake is one line with the fix; a failed tool is a result, not an error.

Errors quote foreign text: from a credential plug-in, a provider, a file. So every error masks its text, for terminals,
answers and records alike. The mask is set once for the process, before anything can fail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from holmes.values.stats import RequestStats


class _ErrorMask:
    """The mask for errors in this process."""

    mask: Callable[[str], str] | None = None


def mask_errors(mask: Callable[[str], str] | None) -> None:
    """Mask the text of all errors with `mask`."""
    _ErrorMask.mask = mask


def masked(text: str) -> str:
    """Foreign `text` without secrets. Call it before cutting or joining the text."""
    return text if _ErrorMask.mask is None else _ErrorMask.mask(text)


class HolmesError(Exception):
    """An error that a person can understand: the message has the problem, the cause and the fix.

    `exit_code` is that of the command line: 1 failed, 2 usage, 3 source or cluster unreachable, 4 damaged database.
    """

    exit_code = 1

    def __str__(self) -> str:
        """The message without secrets."""
        return masked(super().__str__())


class ConfigError(HolmesError):
    """A wrong setting, file or option. The message names the place and the nearest valid key."""

    exit_code = 2


class ModelError(HolmesError):
    """The provider failed. `retryable`: the same request may succeed later.

    `stats` is the cost of the failed attempts.
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
    """The provider rejected the request as too long. `window_tokens` is the real window if the message has it."""

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
    """The part that must stay (system prompt, tools, task, last user message) exceeds the context window.

    `stats` is the cost of a summary that was written before.
    """

    def __init__(self, message: str, *, stats: RequestStats | None = None) -> None:
        super().__init__(message)
        self.stats = stats


class ToolError(HolmesError):
    """A tool could not run. The tool executor turns it into an error result for the model."""


class ResultStoreError(HolmesError):
    """A result could not be stored or read (disk full, read-only, unknown id)."""


class ClusterUnreachable(HolmesError):
    """The cluster cannot be reached: no configuration, no network, or no permission."""

    exit_code = 3


class StepLimitReached(HolmesError):
    """The last step ended without an answer. The message has the last text of the model."""
