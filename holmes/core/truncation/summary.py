"""Asks the model for a summary of what is about to be removed, and refuses everything that is not one.

Called by `compaction`. The first request has the shape of the agent's own (system prompt, tools, history, one more user
message), so the provider's cache serves it (S9). When that does not fit or fails, the removed messages are sent once
more as plain text, in pieces that build on each other. Each request is one durable step.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.core.errors import ContextOverflow, ModelError
from holmes.core.events import TextDelta
from holmes.core.messages import SystemMessage, user_text
from holmes.core.model import ModelRequest
from holmes.core.stats import RequestStats
from holmes.core.truncation.transcript import transcript_pieces

if TYPE_CHECKING:
    from holmes.core.events import AgentEvent
    from holmes.core.history import History
    from holmes.core.messages import Message
    from holmes.core.model import ModelReply
    from holmes.core.truncation.context import Budget, CompactionContext

_PIECE_SHARE = 0.7
_SMALLEST_PIECE_TOKENS = 200
_REFUSAL = re.compile(r"(i.?m sorry|i am sorry|sorry,|i can(no|.)t|i am unable|i.m unable|as an ai\b)", re.IGNORECASE)
_REFUSAL_CHARACTERS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What came of asking. `text` is None when nothing usable came, then `failure` says why.

    `stats` has every attempt; `window_tokens` is the real window if an overflow told it.
    """

    text: str | None
    failure: str | None
    stats: RequestStats
    window_tokens: int | None = None


async def request_summary(
    history: History, removed: tuple[Message, ...], context: CompactionContext, budget: Budget
) -> Summary:
    """A summary of `removed`, which are messages of `history`. Costs at most five requests, all in `stats`."""
    prompt = f"{context.prompt.rstrip()}\n\nWrite at most {budget.summary_tokens:,} tokens."
    first = await _ask_in_place(history, prompt, context, budget)
    if first.text is not None:
        return first
    second = await _ask_flattened(history.replaced(removed), prompt, context, budget, first.window_tokens)
    failure = None if second.text is not None else f"{first.failure}; as plain text: {second.failure}"
    return Summary(text=second.text, failure=failure, stats=first.stats + second.stats)


async def _ask_in_place(history: History, prompt: str, context: CompactionContext, budget: Budget) -> Summary:
    """The agent's own request plus one user message."""
    note = user_text(prompt, kind="note")
    used = history.tokens() + budget.schema_tokens + context.counter.count_message(note)
    output = min(budget.reserve_tokens, budget.window_tokens - used)
    if output < min(budget.reserve_tokens, 2 * budget.summary_tokens):
        return Summary(text=None, failure="the history leaves no room for a summary request", stats=RequestStats())
    messages = (*history.messages(), note)
    request = ModelRequest(messages=messages, tools=context.tools, tool_choice="none", max_output_tokens=output)
    return await _ask(request, f"{context.step_name}/summary", context)


async def _ask_flattened(
    removed: History, prompt: str, context: CompactionContext, budget: Budget, learned_window_tokens: int | None
) -> Summary:
    """The removed messages as text, without tools; each further piece comes with the summary of those before it."""
    window = min(budget.window_tokens, learned_window_tokens or budget.window_tokens)
    system = SystemMessage(text=prompt)
    output = min(budget.reserve_tokens, window // 4)
    room = window - output - context.counter.count_message(system) - 2 * budget.summary_tokens
    piece_tokens = int(room * _PIECE_SHARE)
    pieces = transcript_pieces(removed, removed.token_counts(), piece_tokens)
    if piece_tokens < _SMALLEST_PIECE_TOKENS or not pieces:
        return Summary(text=None, failure="the window is too small for a summary request", stats=RequestStats())
    summary, stats = "", RequestStats()
    for number, piece in enumerate(pieces, start=1):
        before = f"Summary of the parts before:\n{summary}\n\n" if summary else ""
        text = f"{before}Transcript, part {number} of {len(pieces)}:\n\n{piece}"
        request = ModelRequest(
            messages=(system, user_text(text)), tools=(), tool_choice="none", max_output_tokens=output
        )
        answer = await _ask(request, f"{context.step_name}/summary-text-{number}", context)
        stats += answer.stats
        if answer.text is None:
            return Summary(text=None, failure=answer.failure, stats=stats)
        summary = answer.text
    return Summary(text=summary, failure=None, stats=stats)


async def _ask(request: ModelRequest, step_name: str, context: CompactionContext) -> Summary:
    async def emit_without_text(event: AgentEvent) -> None:
        if not isinstance(event, TextDelta):
            await context.emit(event)

    try:
        reply = await context.steps.run(step_name, lambda: context.model.complete(request, emit_without_text))
    except ModelError as error:
        window = error.window_tokens if isinstance(error, ContextOverflow) else None
        return Summary(text=None, failure=str(error), stats=error.stats or RequestStats(), window_tokens=window)
    failure = _failure_of(reply)
    return Summary(text=None if failure else reply.message.text.strip(), failure=failure, stats=reply.stats)


def _failure_of(reply: ModelReply) -> str | None:
    """Why `reply` cannot stand for the messages it was asked about, or None when it can."""
    text = reply.message.text.strip()
    if reply.message.tool_calls:
        return "the model called a tool instead of writing a summary"
    if reply.finish_reason == "length":
        return "the summary was cut off"
    if reply.finish_reason == "content_filter":
        return "the provider's content filter stopped the summary"
    if not text:
        return "the summary was empty"
    if len(text) < _REFUSAL_CHARACTERS and _REFUSAL.match(text):
        return f"the model refused: {text[:120]!r}"
    return None
