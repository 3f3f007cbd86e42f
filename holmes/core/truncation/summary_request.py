"""Sends one request for a summary and refuses every answer that is not one. Called by `summary` and `summary_repair`.

Each request is one durable step. Never raises what the provider did: a failure is a value with its cost.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from holmes.values.errors import ContextOverflow, ModelError
from holmes.values.events import TextDelta
from holmes.values.stats import ModelSpend, RequestStats

if TYPE_CHECKING:
    from holmes.core.history import History
    from holmes.core.truncation.context import Budget, CompactionContext
    from holmes.core.truncation.entity_check import SourceSurvey
    from holmes.tokens import TokenCounter
    from holmes.values.events import AgentEvent
    from holmes.values.messages import Message
    from holmes.values.model import ChatModel, ModelReply, ModelRequest

LONGEST_SHARE_OF_CAP = 1.5
SHORTENED = "[The summary was longer than asked for and ends here.]"
_LEAST_KEPT_SHARE = 0.25
_BORDER = re.compile(r"\n(?=#)|\n\n|\n|(?<=[.!?])[ \t]|(?<=[。！？])")  # noqa: RUF001  sentences end so in Chinese
_REFUSAL = re.compile(r"(i.?m sorry|i am sorry|sorry,|i can(no|.)t|i am unable|i.m unable|as an ai\b)", re.IGNORECASE)
_REFUSAL_CHARACTERS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryJob:
    """What is to be summarised: `removed`, which are messages of `history`, in at most `cap_tokens` (K5).

    `survey` is what the summary is compared with, None when that is switched off.
    """

    history: History
    removed: tuple[Message, ...]
    context: CompactionContext
    budget: Budget
    cap_tokens: int
    survey: SourceSurvey | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What came of asking. `text` is None when nothing usable came, then `failure` says why.

    `stats` has every attempt; `overflowed` says that the request was too long, `window_tokens` is the real window if
    that told it, and `cut_off` says that the answer was longer than its limit.
    """

    text: str | None = None
    failure: str | None = None
    stats: RequestStats = field(default_factory=RequestStats)
    overflowed: bool = False
    window_tokens: int | None = None
    cut_off: bool = False


async def ask(model: ChatModel, request: ModelRequest, step_name: str, context: CompactionContext) -> Summary:
    """The answer of `model`. Events of the request are passed on, apart from its text, which is not the user's."""

    async def emit_without_text(event: AgentEvent) -> None:
        if not isinstance(event, TextDelta):
            await context.emit(event)

    def named(stats: RequestStats | None) -> RequestStats:
        return replace(stats, summaries=(ModelSpend(model=model.name, stats=stats),)) if stats else RequestStats()

    try:
        reply = await context.steps.run(step_name, lambda: model.complete(request, emit_without_text))
    except ModelError as error:
        overflowed = isinstance(error, ContextOverflow)
        window = error.window_tokens if isinstance(error, ContextOverflow) else None
        return Summary(failure=str(error), stats=named(error.stats), overflowed=overflowed, window_tokens=window)
    stats, failure = named(reply.stats), _failure_of(reply)
    if failure is not None:
        return Summary(failure=failure, stats=stats, cut_off=reply.finish_reason == "length")
    return Summary(text=reply.message.text.strip(), stats=stats)


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


def shortened(text: str, limit_tokens: int, counter: TokenCounter) -> str | None:
    """`text` if it is at most `limit_tokens`, else its beginning up to the end of a section, line or sentence.

    The cut says so. None when there is no such place in the last three quarters: that is no prose.
    """
    if counter.count_text(text) <= limit_tokens:
        return text
    room = limit_tokens - counter.count_text(SHORTENED) - 1
    borders = [match.start() for match in _BORDER.finditer(text)]
    low, high = 0, len(borders)
    while low < high:  # the last border that fits
        middle = (low + high) // 2
        if counter.count_text(text[: borders[middle]]) <= room:
            low = middle + 1
        else:
            high = middle
    if not low:
        return None
    kept = text[: borders[low - 1]].rstrip()
    if counter.count_text(kept) < room * _LEAST_KEPT_SHARE:
        return None
    return f"{kept}\n{SHORTENED}"
