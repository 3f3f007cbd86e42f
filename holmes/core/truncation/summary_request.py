"""Sends the requests for a summary, and rejects replies that are not summaries.

Each request is one durable step. A failure of the provider never raises an exception, and the returned value contains
its cost. A history that is too large is sent as plain text in parts, and long messages are cut in the middle.
`repair_summary` requests lines about the names that are missing from a summary.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from holmes.core.truncation.entity_check import IMPORTANT_SCORE, with_distinct_lines
from holmes.values.errors import ContextOverflow, ModelError
from holmes.values.events import TextDelta
from holmes.values.expressions import expression
from holmes.values.messages import AssistantMessage, Image, SystemMessage, ToolMessage, user_text
from holmes.values.model import ModelRequest
from holmes.values.stats import ModelSpend, RequestStats
from holmes.values.texts import after_placeholder, before_placeholder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.core.truncation.context import CompactionContext
    from holmes.core.truncation.entity_check import RankedEntity, SourceSurvey
    from holmes.tokens import TokenCounter
    from holmes.tokens.history import History
    from holmes.values.events import AgentEvent
    from holmes.values.messages import Message
    from holmes.values.model import ChatModel, ModelReply

MAX_PIECES = 4
_MESSAGE_LIMITS_TOKENS = (8_000, 4_000, 2_000, 1_000, 500, 250, 100, 50)
_HEADING_TOKENS = 24


def whole_transcript(messages: Sequence[Message]) -> str:
    """Return the text of all `messages`, without cuts."""
    return "\n\n".join(map(_whole_entry, messages))


def transcript_pieces(
    messages: Sequence[Message], weights: Sequence[int], piece_tokens: int, most_pieces: int = MAX_PIECES
) -> tuple[str, ...]:
    """Split the text of `messages` into at most `most_pieces` parts of about `piece_tokens` each, in order.

    `weights` contains the token count of each message without images. Longer messages are cut to a common limit, which
    is as large as possible. If the messages do not fit with 50 tokens each, the oldest messages are omitted.
    """
    for limit in _MESSAGE_LIMITS_TOKENS:
        sizes = [min(weight, limit) + _HEADING_TOKENS for weight in weights]
        if max(sizes, default=0) > piece_tokens:
            continue
        pieces = _pack([_entry(m, w, limit) for m, w in zip(messages, weights, strict=True)], sizes, piece_tokens)
        if len(pieces) <= most_pieces:
            return pieces
    smallest = _MESSAGE_LIMITS_TOKENS[-1]
    fitting = max(0, most_pieces * (piece_tokens // (smallest + _HEADING_TOKENS)))
    if not fitting:
        return ()
    newest = list(zip(messages, weights, strict=True))[-fitting:]
    entries = [_entry(message, weight, smallest) for message, weight in newest]
    return _pack(entries, [smallest + _HEADING_TOKENS] * len(entries), piece_tokens)


def _pack(entries: list[str], sizes: list[int], piece_tokens: int) -> tuple[str, ...]:
    pieces: list[list[str]] = []
    left = 0
    for entry, size in zip(entries, sizes, strict=True):
        if not pieces or size > left:
            pieces.append([])
            left = piece_tokens
        pieces[-1].append(entry)
        left -= size
    return tuple("\n\n".join(piece) for piece in pieces)


def _whole_entry(message: Message) -> str:
    heading, text = _heading_and_text(message)
    return f"## {heading}\n{text}"


def _entry(message: Message, weight: int, limit_tokens: int) -> str:
    heading, text = _heading_and_text(message)
    if weight > limit_tokens:
        keep = len(text) * limit_tokens // weight // 2
        head, tail = text[: before_placeholder(text, keep)], text[after_placeholder(text, len(text) - keep) :]
        left_out = len(text) - len(head) - len(tail)
        text = f"{head}\n[... {left_out:,} characters left out ...]\n{tail}"
    return f"## {heading}\n{text}"


def _heading_and_text(message: Message) -> tuple[str, str]:
    """Return the heading and the text of a message.

    The heading contains the number of images and the ids of stored results.
    """
    if isinstance(message, SystemMessage):
        return "instructions", message.text
    if isinstance(message, AssistantMessage):
        calls = (f"calls {call.name} with {call.arguments}" for call in message.tool_calls)
        return "assistant", "\n".join(part for part in (message.text, *calls) if part)
    pictures = sum(isinstance(part, Image) for part in message.parts)
    shown = f", {pictures} {'image' if pictures == 1 else 'images'} left out" if pictures else ""
    if isinstance(message, ToolMessage):
        ids = "".join(f", result {stored.id}" for stored in message.stored if stored.id not in message.text)
        return f"result of {message.tool_name} ({message.status}{ids}{shown})", message.text
    return f"user ({message.kind}{shown})", message.text


LONGEST_SHARE_OF_CAP = 1.5
SHORTENED = "[The summary exceeded its limit and was cut here.]"
_LEAST_KEPT_SHARE = 0.25
_BORDER = expression(r"\n(?=#)|\n\n|\n|(?<=[.!?])[ \t]|(?<=[。！？])")  # noqa: RUF001 the Chinese full stop
_REFUSAL = expression(r"(i.?m sorry|i am sorry|sorry,|i can(no|.)t|i am unable|i.m unable|as an ai\b)", re.IGNORECASE)
_REFUSAL_CHARACTERS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryJob:
    """A request to summarise `removed`, a part of `history`, in at most `cap_tokens`.

    `survey` is the source that the summary is compared with, or None if the check is disabled.
    """

    history: History
    removed: tuple[Message, ...]
    context: CompactionContext
    cap_tokens: int
    survey: SourceSurvey | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The reply to a summary request.

    If the reply is not usable, `text` is None and `failure` states why. `stats` is the cost of all attempts.
    `overflowed` is true if the provider rejected the request as too long. `window_tokens` is the context window that
    the provider stated, or None. `cut_off` is true if the reply reached the output limit.
    """

    text: str | None = None
    failure: str | None = None
    stats: RequestStats = field(default_factory=RequestStats)
    overflowed: bool = False
    window_tokens: int | None = None
    cut_off: bool = False


async def ask(model: ChatModel, request: ModelRequest, step_name: str, context: CompactionContext) -> Summary:
    """Request a summary from `model`.

    Emits the events of the request, except for the text, which is not for the user.
    """

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
    """Return why `reply` is not a usable summary, or None if it is one."""
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
    """Shorten `text` to `limit_tokens`, with a note, at the end of a section, line or sentence.

    Returns None if less than a quarter of the limit would remain, because such a text is not prose.
    """
    if counter.count_text(text) <= limit_tokens:
        return text
    room = limit_tokens - counter.count_text(SHORTENED) - 1
    borders = [match.start() for match in _BORDER.finditer(text)]
    low, high = 0, len(borders)
    while low < high:  # binary search for the last boundary that fits
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


REPAIR_PROMPT = (
    "You receive the summary of a conversation, and the names and values that it omits, each with a line that "
    "contains it. Write an addition to the summary: one short line for each name that matters for the question, "
    "with its kind and what was observed. Leave out names that do not matter. Do not repeat the summary, and do not "
    "add facts from other sources. Answer with the lines only, in at most {cap_tokens:,} tokens."
)
ADDED_HEADING = "Added:"
_ADDITION_SHARE = 0.25
_SMALLEST_ADDITION_TOKENS = 32
_ADDED_HEADING_TOKENS = 8
_TOKENS_PER_IMPORTANT_ENTITY = 40
_FEWEST_IMPORTANT, _MOST_IMPORTANT = 6, 100


async def repair_summary(job: SummaryJob, summary: Summary, model: ChatModel, window_tokens: int) -> Summary:
    """Add lines about missing names to `summary`.

    The request asks only for these lines, which costs less than a new summary and keeps the existing text. If no names
    are missing or the reply does not help, the text stays unchanged. `window_tokens` is the context window of `model`
    in local tokens. The returned `stats` include the cost of the request.
    """
    if job.survey is None or summary.text is None:
        return summary
    missing = await asyncio.to_thread(_important_missing, job.survey, summary.text, job.cap_tokens)
    cap = _addition_cap_tokens(job, summary.text)
    if not missing or cap < _SMALLEST_ADDITION_TOKENS:
        return summary
    output = min(2 * cap, model.limits.max_output_tokens, window_tokens // 4)
    request = await asyncio.to_thread(_repair_request, job, (summary.text, missing), output, window_tokens)
    if request is None:
        return summary
    answer = await ask(model, request, f"{job.context.step_name}/summary-repair", job.context)
    charged = replace(summary, stats=summary.stats + answer.stats)
    if answer.text is None:
        return charged
    better = await asyncio.to_thread(_with_addition, job, job.survey, summary.text, answer.text)
    return replace(charged, text=better)


def _addition_cap_tokens(job: SummaryJob, text: str) -> int:
    """Return the maximum length of the added lines, in tokens.

    The maximum is a quarter of the cap, or less if the summary would otherwise exceed its maximum length.
    """
    left = int(job.cap_tokens * LONGEST_SHARE_OF_CAP) - job.context.counter.count_text(text) - _ADDED_HEADING_TOKENS
    return min(int(job.cap_tokens * _ADDITION_SHARE), left)


def _important_missing(survey: SourceSurvey, text: str, cap_tokens: int) -> tuple[RankedEntity, ...]:
    """Return the important entities that the summary `text` does not mention. A larger cap allows more entities."""
    most = max(_FEWEST_IMPORTANT, min(_MOST_IMPORTANT, cap_tokens // _TOKENS_PER_IMPORTANT_ENTITY))
    important = {item.entity for item in survey.ranked[:most] if item.score >= IMPORTANT_SCORE}
    return tuple(item for item in survey.missing_from(text) if item.entity in important)


def _repair_request(
    job: SummaryJob, summary: tuple[str, tuple[RankedEntity, ...]], output_tokens: int, window_tokens: int
) -> ModelRequest | None:
    """Build a request with the summary and the missing names with their lines.

    If not all names fit, the least important names are omitted. Returns None if no name fits.
    """
    text, missing = summary
    cap = min(_addition_cap_tokens(job, text), output_tokens * 3 // 4)
    system = SystemMessage(text=REPAIR_PROMPT.format(cap_tokens=cap))
    counter = job.context.counter
    lines = [f"- {item.entity.kind} {item.entity.value}: {item.line}" for item in with_distinct_lines(missing)]
    while lines:
        user = user_text(f"Summary:\n{text}\n\nLeft out:\n" + "\n".join(lines))
        if counter.count_message(system) + counter.count_message(user) + output_tokens <= window_tokens:
            return ModelRequest(messages=(system, user), tools=(), tool_choice="none", max_output_tokens=output_tokens)
        lines = lines[: len(lines) // 2]
    return None


def _with_addition(job: SummaryJob, survey: SourceSurvey, text: str, addition: str) -> str:
    """Append `addition` to `text` if it contains missing names and no invented names."""
    added = shortened(addition, _addition_cap_tokens(job, text), job.context.counter)
    if added is None or survey.invented_in(added):
        return text
    repaired = f"{text}\n\n{ADDED_HEADING}\n{added}"
    missing_before, missing_after = (len(_important_missing(survey, one, job.cap_tokens)) for one in (text, repaired))
    return repaired if missing_after < missing_before else text
