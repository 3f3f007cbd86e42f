"""Keeps the conversation inside the model's context window.

`compact_if_necessary` runs before each request to the model. `compact_on_request` runs for `/compact` and hooks.
`compact_after_overflow` runs after a provider rejects a request as too long. The stage `masks` replaces old results,
the stage `compaction` writes a summary, and the stage `truncate` works without a model. `_shorten` defines their order.
A history that cannot fit causes an error.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from holmes.core.tools_utils.tool_context_window_limiter import store_results
from holmes.core.truncation.compaction import CompactionAttempt, compact_conversation_history
from holmes.core.truncation.context import CompactionGuard, CompactionOutcome, is_cooling_down, measured
from holmes.core.truncation.masks import mask_old_results, plan_masks
from holmes.core.truncation.plan import Room, plan_removal
from holmes.core.truncation.truncate import (
    emergency_room,
    insufficient,
    make_truncation_note,
    plan_truncation,
    require_fit,
    truncated,
    truncation_note_tokens,
    truncation_room,
)
from holmes.values.errors import CompactionInsufficientError
from holmes.values.events import CompactionFailed, CompactionStarted, HistoryCompacted, ToolResultsMasked
from holmes.values.messages import SystemMessage
from holmes.values.stats import RequestStats

if TYPE_CHECKING:
    from holmes.core.truncation.context import CompactionContext, HistoryBudget
    from holmes.core.truncation.masks import MaskPlan
    from holmes.tokens.history import History

_ROOM_FOR_SUMMARY_REQUEST = 1.3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """A compaction that does not wait for a trigger. `summarise` requests a summary even if masking is enough."""

    trigger_tokens: int
    summarise: bool


async def compact_if_necessary(history: History, context: CompactionContext) -> CompactionOutcome:
    """Shorten the history if a trigger of the policy fires. Otherwise, return the same history.

    The sizes that the triggers test include the system prompt and the tool schemas. If masking old results is enough,
    no summary is written. If the summary fails or frees too little, the history is truncated. During the cooldown of
    the last compaction, a history that fits stays unchanged. Raises `CompactionInsufficientError` without a request if
    the messages that must stay exceed the context window.
    """
    aged = await _age(history, context) if context.policy.masking.every_step else history
    if not context.policy.trigger.enabled or _surely_below(aged, context):
        return CompactionOutcome(history=aged)
    context = await asyncio.to_thread(measured, aged, context)
    if not await asyncio.to_thread(is_triggered, aged, context.budget):
        return CompactionOutcome(history=aged)
    if await asyncio.to_thread(_may_wait, history, aged, context):
        return CompactionOutcome(history=aged)
    return await _compact_now(aged, context)


def _may_wait(before_ageing: History, history: History, context: CompactionContext) -> bool:
    """Return whether a history above its trigger stays unchanged.

    A history that fits stays unchanged in four cases: the last compaction is recent, the last attempts freed too
    little, masking freed enough, or a summary would remove too few tokens.
    """
    budget = context.budget
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


def is_triggered(history: History, budget: HistoryBudget) -> bool:
    """Return whether a trigger of the policy fires. Tokenizes new messages only if necessary."""
    messages = budget.policy.trigger.messages
    if messages is not None and sum(not isinstance(message, SystemMessage) for message in history) > messages:
        return True
    return history.exceeds(budget.history_limit_tokens)


async def compact_on_request(
    history: History, context: CompactionContext, *, summarise: bool = True
) -> CompactionOutcome:
    """Compact the history for `/compact` or a hook, without testing the triggers.

    The compaction treats the context window as full, so that it shortens a history of any size. `summarise` requests a
    summary even if masking is enough. After a failure, the history stays unchanged, because the user did not request a
    truncation. The loop does not count this compaction as an attempt. Raises `CompactionInsufficientError` only if the
    history cannot fit in the real context window.
    """
    context = await asyncio.to_thread(measured, history, context)
    budget = context.budget
    await asyncio.to_thread(require_fit, history, budget, context.counter)
    trigger_tokens = budget.history_limit_tokens + budget.schema_tokens
    full = await asyncio.to_thread(history.tokens) + budget.schema_tokens + budget.reserve_tokens
    with_summary_request = int(full * _ROOM_FOR_SUMMARY_REQUEST)
    budget = replace(budget, window_tokens=min(budget.window_tokens, with_summary_request))
    wanted = replace(context, budget=budget, guard=CompactionGuard())
    request = _Request(trigger_tokens=trigger_tokens, summarise=summarise)
    try:
        return await _compact_now(history, wanted, request)
    except CompactionInsufficientError as insufficient:
        spent = insufficient.stats or RequestStats()
        await context.emit(CompactionFailed(reason="no message could be shortened", stats=spent))
        return CompactionOutcome(history=history, stats=spent)


async def _compact_now(
    history: History, context: CompactionContext, request: _Request | None = None
) -> CompactionOutcome:
    """Mask, summarise or truncate the history without testing the triggers.

    Returns the same object if no message can be shortened.
    """
    budget = context.budget
    if request is None:
        await asyncio.to_thread(require_fit, history, budget, context.counter)
    context.guard.begin(context.policy.safety, budget.window_tokens)
    await asyncio.to_thread(history.count_exactly)
    trigger_tokens = request.trigger_tokens if request else budget.history_limit_tokens + budget.schema_tokens
    await context.emit(
        CompactionStarted(tokens=context.request_tokens(history), trigger_tokens=budget.provider_tokens(trigger_tokens))
    )
    outcome = await _shorten(await store_results(history, context.store), context, request)
    if outcome.history.tokens() >= history.tokens():  # after results are stored, the count is an upper bound
        outcome = replace(outcome, history=history)
    context.guard.record(history.tokens(), outcome.history.tokens(), context.policy.safety)
    return outcome


async def compact_after_overflow(history: History, context: CompactionContext) -> CompactionOutcome:
    """Cut the history to about half of the context window, without a model.

    Raises `CompactionInsufficientError` if the history cannot become shorter.
    """
    context = await asyncio.to_thread(measured, history, context)
    await asyncio.to_thread(history.count_exactly)
    context.guard.begin(context.policy.safety, context.budget.window_tokens)
    history = await store_results(history, context.store)
    room = await asyncio.to_thread(emergency_room, history, context.budget)
    shortened = await _truncated(history, context, room, "emergency")
    if shortened is None:
        raise insufficient(history, context.budget, context.counter)
    context.guard.record(history.tokens(), shortened.history.tokens(), context.policy.safety)
    return shortened


async def _shorten(history: History, context: CompactionContext, request: _Request | None) -> CompactionOutcome:
    """Run the stages in order until the history is short enough: masking, summary, truncation."""
    policy, budget = context.policy, context.budget
    plan = await asyncio.to_thread(plan_masks, history, budget, can_store=context.store is not None)
    wants_summary = request is not None and request.summarise
    if policy.mode == "compact" or (not wants_summary and _is_enough(history, plan, budget)):
        masked = await _mask(history, plan, context)
        # On a full disk, results stay whole, so masking might not be enough.
        limit = budget.hard_limit_tokens if policy.mode == "compact" else budget.history_limit_tokens
        if not await asyncio.to_thread(masked.exceeds, limit):
            return CompactionOutcome(history=masked)
        history = masked
    elif policy.safety.auto_ratio is not None:
        history = await _mask(history, plan, context)
    if policy.strategy == "truncate" or policy.mode == "compact":
        return await _truncate(history, context, failed=None)
    attempt = await compact_conversation_history(history, context)
    if attempt.history is None and request is not None:
        await context.emit(CompactionFailed(reason=f"{attempt.failure}; nothing was removed", stats=attempt.stats))
        return CompactionOutcome(history=history, stats=attempt.stats)
    if attempt.history is None:
        return await _truncate(history, context, failed=attempt)
    await context.emit(_compacted("summarize", history, attempt, context))
    return CompactionOutcome(history=await _mask_tail(attempt.history, context), stats=attempt.stats)


def _is_enough(history: History, plan: MaskPlan, budget: HistoryBudget) -> bool:
    """Return whether masking alone is enough, based on `auto_ratio` if it is set, else on `mask_is_enough_share`."""
    if not plan.freed_tokens:
        return False
    ratio = budget.policy.safety.auto_ratio
    left = history.tokens() - plan.freed_tokens
    if ratio is not None:
        return left <= history.tokens() * ratio
    return left <= budget.mask_is_enough_tokens


async def _mask_tail(history: History, context: CompactionContext) -> History:
    """Mask old results in the tail of a compacted history, if the history is still above the target."""
    if history.tokens() <= context.budget.target_tokens:
        return history
    plan = await asyncio.to_thread(plan_masks, history, context.budget, can_store=context.store is not None)
    return await _mask(history, plan, replace(context, step_name=f"{context.step_name}/tail"))


async def _age(history: History, context: CompactionContext) -> History:
    """Mask old results before each request, for policies with `every_step`."""
    context = await asyncio.to_thread(measured, history, context)
    plan = await asyncio.to_thread(plan_masks, history, context.budget, can_store=context.store is not None)
    return await _mask(history, plan, replace(context, step_name=f"{context.step_name}/age"))


async def _mask(history: History, plan: MaskPlan, context: CompactionContext) -> History:
    if not plan.freed_tokens:
        return history
    masked = await mask_old_results(history, plan, context)
    if masked.masked_count:
        schema_tokens, provider_tokens = context.budget.schema_tokens, context.budget.provider_tokens
        await context.emit(
            ToolResultsMasked(
                count=masked.masked_count,
                policy=context.policy.masking.kind,
                tokens_before=provider_tokens(masked.tokens_before + schema_tokens),
                tokens_after=provider_tokens(masked.tokens_after + schema_tokens),
                messages=masked.history.messages(),
            )
        )
    return masked.history


async def _truncate(
    history: History, context: CompactionContext, *, failed: CompactionAttempt | None
) -> CompactionOutcome:
    """Truncate the history after a rejected summary, or as the only stage of the strategy `truncate`."""
    room = await asyncio.to_thread(truncation_room, history, context.budget)
    spent = failed.stats if failed else RequestStats()
    if failed:
        await context.emit(CompactionFailed(reason=f"{failed.failure}; truncating older messages", stats=failed.stats))
    outcome = await _truncated(history, context, room, "truncate")
    if outcome is not None:
        return replace(outcome, stats=spent + outcome.stats)
    if history.exceeds(context.budget.hard_limit_tokens):
        raise insufficient(history, context.budget, context.counter, spent)
    await context.emit(CompactionFailed(reason="no message could be shortened", stats=RequestStats()))
    return CompactionOutcome(history=history, stats=spent)


async def _truncated(
    history: History, context: CompactionContext, room: Room, strategy: Literal["truncate", "emergency"]
) -> CompactionOutcome | None:
    """Store the removed messages, and cut `history` to `room`.

    Returns None if the cut history is not shorter or does not fit.
    """
    reserved = await truncation_note_tokens(history, context)
    plan = await asyncio.to_thread(plan_truncation, history, room, context.counter, reserved)
    note = await make_truncation_note(history, plan.removed, context)
    shortened = await asyncio.to_thread(truncated, history, plan, note)
    if shortened is None or await asyncio.to_thread(shortened.exceeds, context.budget.hard_limit_tokens):
        return None
    lost = bool(plan.removed) and note.removed is None
    attempt = CompactionAttempt(history=shortened, stats=RequestStats(compactions=1), removed=note.removed, lost=lost)
    await context.emit(_compacted(strategy, history, attempt, context))
    return CompactionOutcome(history=shortened, stats=attempt.stats)


def _surely_below(history: History, context: CompactionContext) -> bool:
    """Return whether the upper bounds already exclude a compaction. In that case, the tokenizer is not needed."""
    bounds = replace(context.budget, schema_tokens=context.counter.upper_bound_tools(context.tools))
    messages = context.policy.trigger.messages
    few = messages is None or len(history) <= messages
    return few and history.upper_bound_tokens() <= bounds.history_limit_tokens


def _compacted(
    strategy: Literal["summarize", "truncate", "emergency"],
    before: History,
    attempt: CompactionAttempt,
    context: CompactionContext,
) -> HistoryCompacted:
    after = attempt.history or before
    return HistoryCompacted(
        strategy=strategy,
        tokens_before=context.request_tokens(before),
        tokens_after=context.request_tokens(after),
        messages_before=len(before),
        messages_after=len(after),
        summary=attempt.summary,
        stats=attempt.stats,
        flagged=attempt.flagged,
        removed=attempt.removed,
        lost=attempt.lost and context.store is not None,
        messages=after.messages(),
    )
