"""The answer to a provider that says "too long": cut to about half of the window without a model (S3).

Called by the loop after a `ContextOverflow`, before the one retry. Works when compaction is switched off, too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holmes.core.truncation.plan import Room
from holmes.core.truncation.truncate import insufficient, truncate_to

if TYPE_CHECKING:
    from holmes.core.history import History
    from holmes.core.tokens import TokenCounter
    from holmes.core.truncation.context import Budget

WINDOW_SHARE = 0.50
HISTORY_SHARE = 0.60


def cut_for_overflow(history: History, budget: Budget, counter: TokenCounter, *, window_tokens: int | None) -> History:
    """A shorter history: half of the window, half of the usual tail, the newest results cut.

    A history that should have fitted by our count, since the provider counts more or its window is smaller than we
    think, is cut to 60% of itself. `window_tokens` is the real window if the provider told it. Raises
    `CompactionInsufficientError` when nothing is left to cut.
    """
    if window_tokens is not None and window_tokens < budget.window_tokens:
        reserve = min(budget.reserve_tokens, window_tokens // 4)
        budget = replace(budget, window_tokens=window_tokens, reserve_tokens=reserve)
    half_of_window = int(budget.window_tokens * WINDOW_SHARE) - budget.schema_tokens
    room = Room(
        tail_tokens=budget.tail_tokens // 2,
        newest_round_tokens=budget.newest_round_tokens // 2,
        history_tokens=max(0, min(half_of_window, int(history.tokens() * HISTORY_SHARE))),
    )
    shortened = truncate_to(history, room, counter)
    if shortened is None or shortened.tokens() > budget.hard_limit_tokens:
        raise insufficient(history, budget, counter)
    return shortened
