"""How much stays when a provider says "too long": about half of the window, half of the usual tail (S3).

Used by `compact_after_overflow`, before the one retry; works when compaction is switched off, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.core.truncation.plan import Room

if TYPE_CHECKING:
    from holmes.core.history import History
    from holmes.core.truncation.context import Budget

HISTORY_SHARE = 0.60


def emergency_room(history: History, budget: Budget) -> Room:
    """Half of what a truncation usually keeps.

    A history that should have fitted by our count, since the provider counts more or its window is smaller than we
    think, is cut to 60% of itself.
    """
    half_of_window = int(budget.window_tokens * budget.policy.safety.emergency_share) - budget.schema_tokens
    most = max(0, min(half_of_window, int(history.tokens() * HISTORY_SHARE)))
    return Room.of(budget, 0).halved(most)
