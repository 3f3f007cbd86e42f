"""Keeps the conversation inside the model's window.

`compact_if_necessary` is called by `ToolCallingLLM.call_stream()` at the top of every iteration, before the model is
asked; `compact_after_overflow` after a provider refused a request as too long. The stages are modules of their own:
`compaction` (summary), `truncate` (no model), `emergency`. Refuses to go on with a history that cannot fit.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

from holmes.core.events import CompactionFailed, CompactionStarted, HistoryCompacted
from holmes.core.stats import RequestStats
from holmes.core.truncation.compaction import CompactionAttempt, compact_conversation_history
from holmes.core.truncation.context import CompactionOutcome, budget_of
from holmes.core.truncation.emergency import cut_for_overflow
from holmes.core.truncation.truncate import insufficient, require_fit, truncate_history

if TYPE_CHECKING:
    from holmes.core.history import History
    from holmes.core.truncation.context import Budget, CompactionContext


async def compact_if_necessary(history: History, context: CompactionContext) -> CompactionOutcome:
    """The same history while (tokens + reserve) is at most the threshold's share of the window, else a shorter one.

    Tokens include system prompt and tool schemas. Summarises; if that fails or frees too little, truncates. Raises
    `CompactionInsufficientError`, before anything is paid, when what must stay is larger than the window.
    """
    if not context.limits.compaction_enabled or _surely_below(history, context):
        return CompactionOutcome(history=history)
    budget = await asyncio.to_thread(budget_of, history, context)
    if not await asyncio.to_thread(history.exceeds, budget.history_limit_tokens):
        return CompactionOutcome(history=history)
    await asyncio.to_thread(require_fit, history, budget, context.counter)
    await context.emit(
        CompactionStarted(
            tokens=history.tokens() + budget.schema_tokens,
            trigger_tokens=budget.history_limit_tokens + budget.schema_tokens,
        )
    )
    attempt = await compact_conversation_history(history, context, budget)
    if attempt.history is None:
        return await _truncate(history, context, budget, attempt)
    await context.emit(_compacted("summarize", history, attempt.history, budget, attempt))
    return CompactionOutcome(history=attempt.history, stats=attempt.stats)


async def compact_after_overflow(
    history: History, context: CompactionContext, *, window_tokens: int | None
) -> CompactionOutcome:
    """Without the model, to about half of the window; always shorter than before.

    `window_tokens` is the real window if the provider told it. Raises `CompactionInsufficientError` when nothing is
    left to cut.
    """
    budget = await asyncio.to_thread(budget_of, history, context)
    shortened = await asyncio.to_thread(cut_for_overflow, history, budget, context.counter, window_tokens=window_tokens)
    attempt = CompactionAttempt(history=shortened, stats=RequestStats(compactions=1))
    await context.emit(_compacted("emergency", history, shortened, budget, attempt))
    return CompactionOutcome(history=shortened, stats=attempt.stats)


async def _truncate(
    history: History, context: CompactionContext, budget: Budget, failed: CompactionAttempt
) -> CompactionOutcome:
    """The stage after a summary that was not adopted."""
    shortened = await asyncio.to_thread(truncate_history, history, budget, context.counter)
    result = history if shortened is None else shortened
    then = "the history stays as it is" if shortened is None else "older messages are cut off instead"
    await context.emit(CompactionFailed(reason=f"{failed.failure}; {then}", stats=failed.stats))
    if result.tokens() > budget.hard_limit_tokens:
        raise insufficient(history, budget, context.counter)
    if shortened is None:
        return CompactionOutcome(history=history, stats=failed.stats)
    attempt = CompactionAttempt(history=shortened, stats=RequestStats(compactions=1))
    await context.emit(_compacted("truncate", history, shortened, budget, attempt))
    return CompactionOutcome(history=shortened, stats=failed.stats + attempt.stats)


def _surely_below(history: History, context: CompactionContext) -> bool:
    """Whether the upper bounds settle it, so that no tokenizer has to be loaded."""
    limits = context.model.limits
    total = history.upper_bound_tokens() + context.counter.upper_bound_tools(context.tools)
    trigger = int(limits.context_window_tokens * context.limits.compaction_threshold_pct / 100)
    return total + limits.output_reserve_tokens <= trigger


def _compacted(
    strategy: Literal["summarize", "truncate", "emergency"],
    before: History,
    after: History,
    budget: Budget,
    attempt: CompactionAttempt,
) -> HistoryCompacted:
    return HistoryCompacted(
        strategy=strategy,
        tokens_before=before.tokens() + budget.schema_tokens,
        tokens_after=after.tokens() + budget.schema_tokens,
        messages_before=len(before),
        messages_after=len(after),
        summary=attempt.summary,
        stats=attempt.stats,
    )
