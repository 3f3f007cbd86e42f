"""Keeps compaction from running for ever (S2). Asked by `compact_if_necessary` before it does anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.values.errors import CompactionInsufficientError

if TYPE_CHECKING:
    from holmes.core.policy import SafetyPolicy

LOW_GAINS_THAT_END_IT = 2


class CompactionGuard:
    """Counts attempts of one run.

    Attempts in a row start again at zero with each reply of the model; attempts that gained little are remembered
    until one gains more, since a history that cannot shrink would otherwise be compacted at every step.
    """

    def __init__(self) -> None:
        self._attempts = 0
        self._low_gains = 0

    @property
    def is_futile(self) -> bool:
        """Whether the last attempts freed so little that another one is no use below the hard limit."""
        return self._low_gains >= LOW_GAINS_THAT_END_IT

    def begin(self, safety: SafetyPolicy, window_tokens: int) -> None:
        """Count an attempt. Raises `CompactionInsufficientError` when there were too many in a row (S2)."""
        if self._attempts >= safety.max_attempts:
            raise CompactionInsufficientError(
                f"the conversation was compacted {self._attempts} times in a row and is still too long for the model's "
                f"window of {window_tokens:,} tokens. Start a new conversation, or use a model with a larger "
                "window."
            )
        self._attempts += 1

    def record(self, before_tokens: int, after_tokens: int, safety: SafetyPolicy) -> None:
        """Note what an attempt gained."""
        gained = before_tokens - after_tokens
        is_low = gained < before_tokens * safety.least_progress
        self._low_gains = self._low_gains + 1 if is_low else 0

    def step_succeeded(self) -> None:
        """The model answered."""
        self._attempts = 0
