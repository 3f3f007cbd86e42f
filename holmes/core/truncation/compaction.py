"""Replaces old messages with a summary that the model writes.

The caller decides when to compact. If the summary fails or does not shorten the history, it is rejected, and the caller
can truncate instead. The removed messages are stored.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from holmes.core.truncation.context import SMALLEST_SUMMARY_TOKENS
from holmes.core.truncation.entity_check import NOTEWORTHY_SCORE, mark_invented, survey
from holmes.core.truncation.plan import Room, plan_removal
from holmes.core.truncation.summary import removed_groups, request_summary
from holmes.core.truncation.summary_message import (
    SUMMARY_HEADING,
    StandIn,
    largest_message_tokens,
    ledger_room_tokens,
    store_groups,
    store_removed,
    summary_message,
    where_removed_lie,
)
from holmes.core.truncation.summary_request import SummaryJob
from holmes.evidence.verification import ledger_of
from holmes.values.messages import AssistantMessage, CompactionMark
from holmes.values.stats import RequestStats

if TYPE_CHECKING:
    from holmes.core.truncation.context import CompactionContext, HistoryBudget
    from holmes.core.truncation.plan import Plan
    from holmes.evidence.verification import Ledger
    from holmes.tokens.history import History
    from holmes.values.messages import StoredResult, UserMessage

__all__ = ["SUMMARY_HEADING", "CompactionAttempt", "compact_conversation_history"]

_SMALLEST_GAIN_SHARE = 0.10
_SUMMARY_SHARE_OF_REMOVED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionAttempt:
    """The result of one compaction attempt.

    If the summary is rejected, `history` is None and `failure` states why. `stats` always contains the cost. `flagged`
    contains the invented names in the summary. `removed` refers to the stored text of the removed messages. `lost` is
    true if the removed messages could not be stored. `groups` refers to the stored texts of the groups of these
    messages.
    """

    history: History | None = None
    summary: str | None = None
    flagged: tuple[str, ...] = ()
    removed: StoredResult | None = None
    lost: bool = False
    groups: tuple[StoredResult, ...] = ()
    failure: str | None = None
    stats: RequestStats = field(default_factory=RequestStats)


async def compact_conversation_history(history: History, context: CompactionContext) -> CompactionAttempt:
    """Reduce the history to the system prompt, the task, a summary, the last user message and a tail of whole turns.

    Sends no request if the compaction would free too few tokens. The minimum is 10% of the history, or the policy's
    `compress_above_tokens` if it is set.
    """
    budget = context.budget
    room = Room.of(budget, largest_message_tokens(budget.summary_tokens))
    plan = await asyncio.to_thread(plan_removal, history, room, context.counter)
    cap_tokens = _summary_cap_tokens(plan, budget)
    if plan.removed_tokens <= _least_removed_tokens(history, cap_tokens, context):
        return CompactionAttempt(failure=f"a summary would remove only {plan.removed_tokens:,} tokens")
    job = SummaryJob(history=history, removed=plan.removed, context=context, cap_tokens=cap_tokens)
    if context.policy.summary.verify_entities:
        found = await asyncio.to_thread(survey, plan.removed, plan.assemble(), history.messages(), context.tools)
        job = replace(job, survey=found)
    written = await request_summary(job)
    stats = replace(written.stats, compaction_cost=written.stats.cost, compaction_tokens=written.stats.total_tokens)
    if written.text is None:
        return CompactionAttempt(failure=written.failure, stats=stats)
    attempt = await _adopted(job, plan, written.text)
    return replace(attempt, stats=replace(stats, compactions=0 if attempt.history is None else 1))


def _summary_cap_tokens(plan: Plan, budget: HistoryBudget) -> int:
    """Return the cap of a summary: the budget's cap, but at most a third of the tokens of the removed messages."""
    return min(budget.summary_tokens, max(SMALLEST_SUMMARY_TOKENS, plan.removed_tokens // _SUMMARY_SHARE_OF_REMOVED))


def _least_removed_tokens(history: History, cap_tokens: int, context: CompactionContext) -> int:
    least = context.policy.summary.compress_above_tokens
    return max(cap_tokens, int(history.tokens() * _SMALLEST_GAIN_SHARE) if least is None else least)


async def _adopted(job: SummaryJob, plan: Plan, text: str) -> CompactionAttempt:
    """Return the compacted history, or a failure if it is not short enough."""
    history, context = job.history, job.context
    removed = await store_removed(plan.removed, context, step="summary-removed")
    ledger = await ledger_of(job.removed, context.verifier)
    stand_in, flagged = await asyncio.to_thread(_stand_in, job, text, removed, ledger)
    compacted = history.replaced(plan.assemble(stand_in))
    tokens = await asyncio.to_thread(compacted.tokens)
    if tokens >= history.tokens() or await asyncio.to_thread(compacted.exceeds, context.budget.hard_limit_tokens):
        return CompactionAttempt(failure="the conversation is still too long with the summary")
    groups = await store_groups(removed_groups(job), context) if _wants_groups(context) else ()
    rounds = sum(isinstance(message, AssistantMessage) for message in plan.tail)
    mark = CompactionMark(kept_rounds=rounds, tokens=tokens)
    compacted = history.replaced(plan.assemble(replace(stand_in, mark=mark, stored=(*stand_in.stored, *groups))))
    return CompactionAttempt(
        history=compacted,
        summary=text,
        flagged=flagged,
        removed=removed,
        lost=removed is None,
        groups=groups,
    )


def _stand_in(
    job: SummaryJob, text: str, removed: StoredResult | None, ledger: Ledger
) -> tuple[UserMessage, tuple[str, ...]]:
    """Return the message that replaces the removed messages, and the invented names in the summary."""
    context, found = job.context, job.survey
    invented = found.invented_in(text) if found else ()
    missing = found.missing_from(text) if found else ()
    stand_in = StandIn(
        summary=mark_invented(text, invented),
        removed=removed,
        missing=tuple(item for item in missing if item.score >= NOTEWORTHY_SCORE),
        ledger=ledger.render(ledger_room_tokens(job.cap_tokens), context.counter),
        tools=context.tools if context.policy.summary.reminder else (),
    )
    message = summary_message(stand_in, job.cap_tokens, context.counter)
    message = replace(message, stored=where_removed_lie(job.removed, removed))
    return message, tuple(entity.value for entity in invented)


def _wants_groups(context: CompactionContext) -> bool:
    summary = context.policy.summary
    return any(
        setting is not None
        for setting in (summary.group_token_threshold, summary.compress_above_tokens, summary.chat_id)
    )
