"""Keeps the conversation inside the model's window; the order of the stages is this file.

`compact_if_necessary` runs at the top of every iteration, before the model is asked; `compact_on_request` for
`/compact` and hooks; `compact_after_overflow` after a provider refused a request as too long. The stages are modules of
their own: `masking` (old results age), `compaction` (summary), `truncate` (no model, and the emergency). Refuses to go
on with a history that cannot fit.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from holmes.core.tools_utils.result_storage import store_results
from holmes.core.truncation.compaction import CompactionAttempt, compact_conversation_history
from holmes.core.truncation.context import Budget, CompactionGuard, CompactionOutcome, budget_of, is_cooling_down
from holmes.core.truncation.masking.mask import mask_old_results
from holmes.core.truncation.masking.plan import plan_masks
from holmes.core.truncation.plan import Room, plan_removal
from holmes.core.truncation.summary_message import make_truncation_note, truncation_note_tokens
from holmes.core.truncation.truncate import (
    emergency_room,
    insufficient,
    plan_truncation,
    require_fit,
    truncated,
    truncation_room,
)
from holmes.values.errors import CompactionInsufficientError
from holmes.values.events import CompactionFailed, CompactionStarted, HistoryCompacted, ToolResultsMasked
from holmes.values.messages import SystemMessage
from holmes.values.stats import RequestStats

if TYPE_CHECKING:
    from holmes.core.history import History
    from holmes.core.truncation.context import CompactionContext
    from holmes.core.truncation.masking.plan import MaskPlan

_ROOM_FOR_SUMMARY_REQUEST = 1.3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """Somebody asked for a compaction before it was due: the real trigger, and whether masks alone will not do."""

    trigger_tokens: int
    summarise: bool


async def compact_if_necessary(history: History, context: CompactionContext) -> CompactionOutcome:
    """The same history while no trigger of the policy holds (C2), else a shorter one.

    Tokens include system prompt and tool schemas. Masks old results if that is enough; else summarises; if that fails
    or frees too little, truncates. Rests after a compaction (S1) as long as the history fits. Raises
    `CompactionInsufficientError`, before anything is paid, when what must stay is larger than the window.
    """
    aged = await _age(history, context) if context.policy.masking.every_step else history
    if not context.policy.trigger.enabled or _surely_below(aged, context):
        return CompactionOutcome(history=aged)
    budget = await asyncio.to_thread(budget_of, aged, context)
    if not await asyncio.to_thread(is_triggered, aged, budget):
        return CompactionOutcome(history=aged)
    if await asyncio.to_thread(_may_wait, history, aged, context, budget):
        return CompactionOutcome(history=aged)
    return await compact_now(aged, context, budget)


def _may_wait(before_ageing: History, history: History, context: CompactionContext, budget: Budget) -> bool:
    """Whether a triggered history is left alone, as long as it fits.

    It rests after a compaction (S1), cannot get shorter, has just aged enough (C5), or is too small to be worth a
    summary (K10).
    """
    if history.exceeds(budget.hard_limit_tokens):
        return False
    if context.guard.is_futile or is_cooling_down(history, budget):
        return True
    ratio = budget.policy.safety.auto_ratio
    if ratio is not None and history.tokens() <= before_ageing.tokens() * ratio:
        return True
    least = budget.policy.summary.compress_above_tokens
    if least is None or budget.policy.mode == "compact":
        return False
    return plan_removal(history, Room.of(budget, budget.summary_tokens), context.counter).removed_tokens <= least


def is_triggered(history: History, budget: Budget) -> bool:
    """Whether one of the policy's triggers holds. Tokenizes what is new when the upper bound does not settle it."""
    messages = budget.policy.trigger.messages
    if messages is not None and sum(not isinstance(message, SystemMessage) for message in history) > messages:
        return True
    return history.exceeds(budget.history_limit_tokens)


async def compact_on_request(
    history: History, context: CompactionContext, *, summarise: bool = True
) -> CompactionOutcome:
    """What `/compact` and hooks ask for: as if the window were just full, so that it is worth while at any size.

    `summarise` asks for a summary also where masking would do. What fails leaves the history as it is: nobody asked for
    messages to be cut off. Does not count as an attempt of the loop. Raises `CompactionInsufficientError` only for what
    cannot fit the real window.
    """
    budget = await asyncio.to_thread(budget_of, history, context)
    await asyncio.to_thread(require_fit, history, budget, context.counter)
    trigger_tokens = budget.history_limit_tokens + budget.schema_tokens
    full = await asyncio.to_thread(history.tokens) + budget.schema_tokens + budget.reserve_tokens
    with_summary_request = int(full * _ROOM_FOR_SUMMARY_REQUEST)
    budget = replace(budget, window_tokens=min(budget.window_tokens, with_summary_request))
    wanted = replace(context, window_tokens=budget.window_tokens, guard=CompactionGuard())
    request = _Request(trigger_tokens=trigger_tokens, summarise=summarise)
    try:
        return await compact_now(history, wanted, budget, request)
    except CompactionInsufficientError as insufficient:
        spent = insufficient.stats or RequestStats()
        await context.emit(CompactionFailed(reason="nothing could be made shorter", stats=spent))
        return CompactionOutcome(history=history, stats=spent)


async def compact_now(
    history: History, context: CompactionContext, budget: Budget, request: _Request | None = None
) -> CompactionOutcome:
    """Mask, summarise or truncate, whatever the triggers say. The same object when nothing could be made shorter."""
    if request is None:
        await asyncio.to_thread(require_fit, history, budget, context.counter)
    context.guard.begin(context.policy.safety, budget.window_tokens)
    await asyncio.to_thread(history.count_exactly)
    trigger_tokens = request.trigger_tokens if request else budget.history_limit_tokens + budget.schema_tokens
    await context.emit(
        CompactionStarted(
            tokens=context.provider_tokens(history.tokens() + budget.schema_tokens),
            trigger_tokens=context.provider_tokens(trigger_tokens),
        )
    )
    outcome = await _shorten(await store_results(history, context.store), context, budget, request)
    if outcome.history.tokens() >= history.tokens():  # results were stored at most
        outcome = replace(outcome, history=history)
    context.guard.record(history.tokens(), outcome.history.tokens(), context.policy.safety)
    return outcome


async def compact_after_overflow(history: History, context: CompactionContext) -> CompactionOutcome:
    """Without the model, to about half of the window; always shorter than before (S3).

    Raises `CompactionInsufficientError` when nothing is left to cut.
    """
    budget = await asyncio.to_thread(budget_of, history, context)
    await asyncio.to_thread(history.count_exactly)
    context.guard.begin(context.policy.safety, budget.window_tokens)
    history = await store_results(history, context.store)
    room = await asyncio.to_thread(emergency_room, history, budget)
    shortened = await _truncated(history, context, room, "emergency")
    if shortened is None:
        raise insufficient(history, budget, context.counter)
    context.guard.record(history.tokens(), shortened.history.tokens(), context.policy.safety)
    return shortened


async def _shorten(
    history: History, context: CompactionContext, budget: Budget, request: _Request | None
) -> CompactionOutcome:
    """The stages in their order: masks if they are enough, the summary, the truncation."""
    policy = context.policy
    plan = await asyncio.to_thread(plan_masks, history, budget, can_store=context.store is not None)
    wants_summary = request is not None and request.summarise
    if policy.mode == "compact" or (not wants_summary and _is_enough(history, plan, budget)):
        masked = await _mask(history, plan, context, budget)
        # A disk that is full by now leaves results whole: then masking was not enough after all.
        limit = budget.hard_limit_tokens if policy.mode == "compact" else budget.history_limit_tokens
        if not await asyncio.to_thread(masked.exceeds, limit):
            return CompactionOutcome(history=masked)
        history = masked
    elif policy.safety.auto_ratio is not None:
        history = await _mask(history, plan, context, budget)
    if policy.strategy == "truncate" or policy.mode == "compact":
        return await _truncate(history, context, budget, failed=None)
    attempt = await compact_conversation_history(history, context, budget)
    if attempt.history is None and request is not None:
        await context.emit(CompactionFailed(reason=f"{attempt.failure}; nothing was removed", stats=attempt.stats))
        return CompactionOutcome(history=history, stats=attempt.stats)
    if attempt.history is None:
        return await _truncate(history, context, budget, failed=attempt)
    await context.emit(_compacted("summarize", history, attempt, context, budget))
    return CompactionOutcome(history=await _mask_tail(attempt.history, context, budget), stats=attempt.stats)


def _is_enough(history: History, plan: MaskPlan, budget: Budget) -> bool:
    """Whether masking alone frees enough: the policy's ratio (C5), else the target of a compaction."""
    if not plan.freed_tokens:
        return False
    ratio = budget.policy.safety.auto_ratio
    left = history.tokens() - plan.freed_tokens
    if ratio is not None:
        return left <= history.tokens() * ratio
    return left <= budget.mask_is_enough_tokens


async def _mask_tail(history: History, context: CompactionContext, budget: Budget) -> History:
    """After a summary old results of the kept tail age too, if the tail is still above the target."""
    if history.tokens() <= budget.target_tokens:
        return history
    plan = await asyncio.to_thread(plan_masks, history, budget, can_store=context.store is not None)
    return await _mask(history, plan, replace(context, step_name=f"{context.step_name}/tail"), budget)


async def _age(history: History, context: CompactionContext) -> History:
    """Masks at the top of every iteration, for the policies that want that (P1, P2)."""
    budget = await asyncio.to_thread(budget_of, history, context)
    plan = await asyncio.to_thread(plan_masks, history, budget, can_store=context.store is not None)
    return await _mask(history, plan, replace(context, step_name=f"{context.step_name}/age"), budget)


async def _mask(history: History, plan: MaskPlan, context: CompactionContext, budget: Budget) -> History:
    if not plan.freed_tokens:
        return history
    masked = await mask_old_results(history, plan, context)
    if masked.masked_count:
        await context.emit(
            ToolResultsMasked(
                count=masked.masked_count,
                policy=context.policy.masking.kind,
                tokens_before=context.provider_tokens(masked.tokens_before + budget.schema_tokens),
                tokens_after=context.provider_tokens(masked.tokens_after + budget.schema_tokens),
                messages=masked.history.messages(),
            )
        )
    return masked.history


async def _truncate(
    history: History, context: CompactionContext, budget: Budget, *, failed: CompactionAttempt | None
) -> CompactionOutcome:
    """The stage after a summary that was not adopted, or the only one of the strategy `truncate`."""
    room = await asyncio.to_thread(truncation_room, history, budget)
    spent = failed.stats if failed else RequestStats()
    if failed:
        await context.emit(CompactionFailed(reason=f"{failed.failure}; cutting older messages off", stats=failed.stats))
    outcome = await _truncated(history, context, room, "truncate")
    if outcome is not None:
        return replace(outcome, stats=spent + outcome.stats)
    if history.exceeds(budget.hard_limit_tokens):
        raise insufficient(history, budget, context.counter, spent)
    await context.emit(CompactionFailed(reason="nothing could be made shorter", stats=RequestStats()))
    return CompactionOutcome(history=history, stats=spent)


async def _truncated(
    history: History, context: CompactionContext, room: Room, strategy: Literal["truncate", "emergency"]
) -> CompactionOutcome | None:
    """`history` cut to `room`, what is removed stored before; None when that is not shorter or does not fit."""
    budget = await asyncio.to_thread(budget_of, history, context)
    reserved = await truncation_note_tokens(history, context, budget)
    plan = await asyncio.to_thread(plan_truncation, history, room, context.counter, reserved)
    note = await make_truncation_note(history, plan.removed, context, budget)
    shortened = await asyncio.to_thread(truncated, history, plan, note)
    if shortened is None or await asyncio.to_thread(shortened.exceeds, budget.hard_limit_tokens):
        return None
    lost = bool(plan.removed) and note.removed is None
    attempt = CompactionAttempt(history=shortened, stats=RequestStats(compactions=1), removed=note.removed, lost=lost)
    await context.emit(_compacted(strategy, history, attempt, context, budget))
    return CompactionOutcome(history=shortened, stats=attempt.stats)


def _surely_below(history: History, context: CompactionContext) -> bool:
    """Whether the upper bounds settle it, so that no tokenizer has to be loaded."""
    bounds = Budget(
        window_tokens=context.window_tokens,
        reserve_tokens=context.reserve_tokens,
        schema_tokens=context.counter.upper_bound_tools(context.tools),
        system_tokens=0,
        max_output_tokens=context.model.limits.max_output_tokens,
        policy=context.policy,
    )
    messages = context.policy.trigger.messages
    few = messages is None or len(history) <= messages
    return few and history.upper_bound_tokens() <= bounds.history_limit_tokens


def _compacted(
    strategy: Literal["summarize", "truncate", "emergency"],
    before: History,
    attempt: CompactionAttempt,
    context: CompactionContext,
    budget: Budget,
) -> HistoryCompacted:
    after = attempt.history or before
    return HistoryCompacted(
        strategy=strategy,
        tokens_before=context.provider_tokens(before.tokens() + budget.schema_tokens),
        tokens_after=context.provider_tokens(after.tokens() + budget.schema_tokens),
        messages_before=len(before),
        messages_after=len(after),
        summary=attempt.summary,
        stats=attempt.stats,
        flagged=attempt.flagged,
        removed=attempt.removed,
        lost=attempt.lost and context.store is not None,
        messages=after.messages(),
    )
