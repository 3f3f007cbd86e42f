"""Lets a conversation rest after a compaction (S1). Asked by `compact_if_necessary`.

The state is the mark in the summary message, so it lies in the conversation and outlives a restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.values.messages import AssistantMessage, UserMessage

if TYPE_CHECKING:
    from holmes.core.history import History
    from holmes.core.truncation.context import Budget


def is_cooling_down(history: History, budget: Budget) -> bool:
    """Whether the last compaction is too recent for another one (S1): too few rounds or too few new tokens since.

    The caller lets the hard limit go before it.
    """
    rounds = 0
    for message in reversed(history):
        if isinstance(message, AssistantMessage):
            rounds += 1
        elif isinstance(message, UserMessage) and message.mark is not None:
            rounds -= message.mark.kept_rounds
            new_tokens = max(0, history.tokens() - message.mark.tokens)
            safety = budget.policy.safety
            return rounds < safety.cooldown_rounds or new_tokens < budget.usable_tokens * safety.cooldown_share
    return False
