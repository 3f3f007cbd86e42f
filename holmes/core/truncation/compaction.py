"""Replaces old messages by a summary that the model writes. Called by `compact_if_necessary`.

Decides nothing about when; refuses a summary that failed or that does not make the history shorter (K16), so that the
caller can truncate instead.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from holmes.core.messages import user_text
from holmes.core.stats import RequestStats
from holmes.core.truncation.plan import Room, plan_removal
from holmes.core.truncation.summary import request_summary

if TYPE_CHECKING:
    from holmes.core.history import History
    from holmes.core.truncation.context import Budget, CompactionContext

SUMMARY_HEADING = (
    "Summary of the investigation until here. The messages it stands for were removed to save space; "
    "results with an id can still be read back. Go on from here without repeating what was checked."
)
_SMALLEST_GAIN_SHARE = 0.10


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionAttempt:
    """`history` is None when nothing was adopted, then `failure` says why. `stats` is what it cost either way."""

    history: History | None = None
    summary: str | None = None
    failure: str | None = None
    stats: RequestStats = field(default_factory=RequestStats)


async def compact_conversation_history(
    history: History, context: CompactionContext, budget: Budget
) -> CompactionAttempt:
    """System prompt, task, summary, last user message, tail of whole rounds (K1 and section 2 of context.md).

    Does not ask the model when less than 10% of the usable window would come free.
    """
    plan = await asyncio.to_thread(plan_removal, history, _room(budget, budget.summary_tokens), context.counter)
    if plan.removed_tokens <= max(budget.summary_tokens, int(budget.usable_tokens * _SMALLEST_GAIN_SHARE)):
        reason = f"only {plan.removed_tokens:,} tokens could be removed"
        return CompactionAttempt(failure=reason)
    written = await request_summary(history, plan.removed, context, budget)
    stats = replace(written.stats, compaction_cost=written.stats.cost)
    if written.text is None:
        return CompactionAttempt(failure=written.failure, stats=stats)
    stand_in = user_text(f"{SUMMARY_HEADING}\n\n{written.text}", kind="summary")
    room = _room(budget, context.counter.count_message(stand_in))
    plan = await asyncio.to_thread(plan_removal, history, room, context.counter)
    compacted = history.replaced(plan.assemble(stand_in))
    if compacted.tokens() >= history.tokens() or compacted.tokens() > budget.hard_limit_tokens:
        reason = "the summary does not make the history short enough"
        return CompactionAttempt(failure=reason, stats=stats)
    return CompactionAttempt(history=compacted, summary=written.text, stats=replace(stats, compactions=1))


def _room(budget: Budget, summary_tokens: int) -> Room:
    return Room(
        tail_tokens=budget.tail_tokens,
        newest_round_tokens=budget.newest_round_tokens,
        history_tokens=budget.history_limit_tokens - summary_tokens,
    )
