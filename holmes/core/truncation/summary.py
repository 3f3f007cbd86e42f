"""Requests a summary of the messages to remove. Large histories are summarised in groups of whole turns.

The first request is the agent's last request plus one user message, so the provider can use its cache. A separate
summary model receives the removed messages as plain text. A failed request is repeated as plain text. If the text does
not fit in one request, each request contains the next part and the summary of the earlier parts. No request exceeds the
context window of its model. A reply that is not a summary or is mostly invented is rejected. If important names are
missing from a summary, lines about these names are requested and added.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holmes.core.truncation.plan import split_rounds
from holmes.core.truncation.summary_request import (
    LONGEST_SHARE_OF_CAP,
    MAX_PIECES,
    Summary,
    ask,
    repair_summary,
    shortened,
    transcript_pieces,
    whole_transcript,
)
from holmes.values.messages import AssistantMessage, Image, SystemMessage, Text, user_text
from holmes.values.model import ModelRequest
from holmes.values.stats import RequestStats

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holmes.core.truncation.summary_request import SummaryJob
    from holmes.values.messages import Message
    from holmes.values.model import ChatModel


def split_groups(
    messages: Sequence[Message], weights: Sequence[int], threshold_tokens: int | None, most_groups: int
) -> tuple[tuple[Message, ...], ...]:
    """Split messages into groups of at most `threshold_tokens`, in order. A larger turn is a separate group.

    If the threshold is None or 0, all messages are one group. `weights` contains the token count of each message. Each
    group requires a request and a share of the summary. Therefore the threshold is doubled until the number of groups
    is at most `most_groups`.
    """
    if not messages:
        return ()
    if not threshold_tokens:
        return (tuple(messages),)
    rounds = split_rounds(messages, range(len(messages)))
    sizes = [sum(weights[position] for position in positions) for positions in rounds]
    while len(groups := _pack(sizes, threshold_tokens)) > max(1, most_groups):
        threshold_tokens *= 2
    return tuple(tuple(messages[position] for number in group for position in rounds[number]) for group in groups)


def _pack(sizes: Sequence[int], threshold_tokens: int) -> list[list[int]]:
    groups: list[list[int]] = []
    left = 0
    for number, size in enumerate(sizes):
        if not groups or size > left:
            groups.append([])
            left = threshold_tokens
        groups[-1].append(number)
        left -= size
    return groups


# Allows for the difference between the token counts of two providers.
OTHER_PROVIDER_MARGIN = 1.35
_SMALLEST_GROUP_SUMMARY_TOKENS = 128
_SUMMARY_MODEL_PIECES = 8
_PIECE_SHARE = 0.7
_SMALLEST_PIECE_TOKENS = 200
_FIRST_LINE_TOKENS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class _Writer:
    """A model that writes summaries from plain text. `window_tokens` is its context window in local tokens."""

    model: ChatModel
    window_tokens: int
    output_tokens: int
    most_pieces: int
    step_name: str


async def request_summary(job: SummaryJob) -> Summary:
    """Return a checked and repaired summary of `job.removed`. Its `stats` contain the cost of all requests.

    Sends at most nine requests with a summary model and six requests without one. The repair and groups need additional
    requests.
    """
    stats = RequestStats()
    groups = removed_groups(job)
    if len(groups) > 1:
        grouped = await _from_groups(job, groups)
        if grouped.text is not None:
            return await _repaired(job, grouped)
        stats = grouped.stats
    first = await (_from_summary_model(job) if job.context.summary_model else _in_place(job))
    stats += first.stats
    if first.text is not None:
        return await _repaired(job, replace(first, stats=stats))
    second = await _again(job, first)
    stats += second.stats
    if second.text is None:
        return Summary(failure=f"{first.failure}; second attempt: {second.failure}", stats=stats)
    return await _repaired(job, replace(second, stats=stats))


def removed_groups(job: SummaryJob) -> tuple[tuple[Message, ...], ...]:
    """Split the removed messages into the groups that the policy requires. If it has no threshold, return one group."""
    weights = _exact_weights(job, job.removed)
    most = job.cap_tokens // _SMALLEST_GROUP_SUMMARY_TOKENS
    return split_groups(job.removed, weights, job.context.policy.summary.group_token_threshold, most)


async def _repaired(job: SummaryJob, summary: Summary) -> Summary:
    context, budget = job.context, job.context.budget
    if context.summary_model is not None:
        window = _window_of_other(context.summary_model)
        return await repair_summary(job, summary, context.summary_model, window)
    return await repair_summary(job, summary, context.model, budget.window_tokens)


async def _in_place(job: SummaryJob) -> Summary:
    """Request a summary with the agent's last request plus one user message."""
    context = job.context
    request = await asyncio.to_thread(_in_place_request, job)
    if request is None:
        return Summary(failure="the context window is too small for a summary request with this conversation")
    answer = await ask(context.model, request, f"{context.step_name}/summary", context)
    return await _checked(job, answer)


def _in_place_request(job: SummaryJob) -> ModelRequest | None:
    """Return the largest request that fits, or None if no request fits."""
    context, budget = job.context, job.context.budget
    note = user_text(_prompt(job, job.cap_tokens), kind="note")
    counter = context.counter.exact
    fixed = counter.count_tools(context.tools) + counter.count_message(note)
    limits = context.model.limits
    output = limits.reply_tokens(2 * job.cap_tokens, limits.max_output_tokens)
    for messages in _in_place_messages(job):
        if not job.history.replaced(messages).exceeds(budget.window_tokens - fixed - output):
            return ModelRequest(
                messages=(*messages, note), tools=context.tools, tool_choice="none", max_output_tokens=output
            )
    return None


def _in_place_messages(job: SummaryJob) -> Iterator[tuple[Message, ...]]:
    """Yield the whole history, then the part up to the last removed message, then this part without images."""
    messages = job.history.messages()
    yield messages
    removed = {id(message) for message in job.removed}
    last = max((index for index, message in enumerate(messages) if id(message) in removed), default=len(messages) - 1)
    start = messages[: last + 1]
    yield start
    if any(_pictures(message) for message in start):
        yield tuple(map(_without_pictures, start))


def _pictures(message: Message) -> int:
    if isinstance(message, SystemMessage | AssistantMessage):
        return 0
    return sum(isinstance(part, Image) for part in message.parts)


def _without_pictures(message: Message) -> Message:
    """Replace the images of `message` with a note that states their number."""
    count = _pictures(message)
    if isinstance(message, SystemMessage | AssistantMessage) or not count:
        return message
    note = Text(text=f"[{count} {'image' if count == 1 else 'images'} left out]")
    return replace(message, parts=(*(part for part in message.parts if isinstance(part, Text)), note))


async def _from_summary_model(job: SummaryJob) -> Summary:
    model = job.context.summary_model
    if model is None:
        return Summary(failure="no summary model is configured")
    return await _checked(job, await _from_text(job, _summary_model_writer(job, model, "summary-model-text")))


async def _again(job: SummaryJob, first: Summary) -> Summary:
    """Request the summary again with the agent's model.

    After a failure of a summary model, this request is the agent's last request plus one user message, if possible.
    Otherwise it is plain text.
    """
    own = job.context.summary_model is job.context.model
    if job.context.summary_model is not None and not (own and first.overflowed):
        request = await asyncio.to_thread(_in_place_request, job)
        if request is not None:
            return await _in_place(job)
    budget = job.context.budget
    smaller = int(budget.window_tokens / OTHER_PROVIDER_MARGIN) if first.overflowed else budget.window_tokens
    window = min(budget.window_tokens, first.window_tokens or smaller)
    # A model that thinks before it writes needs more tokens than the text has.
    most = min(budget.reserve_tokens, window // 4)
    writer = _Writer(
        model=job.context.model,
        window_tokens=window,
        output_tokens=most if first.cut_off else job.context.model.limits.reply_tokens(2 * job.cap_tokens, most),
        most_pieces=MAX_PIECES,
        step_name=f"{job.context.step_name}/summary-text",
    )
    return await _checked(job, await _from_text(job, writer))


def _window_of_other(model: ChatModel) -> int:
    return int(model.limits.context_window_tokens / OTHER_PROVIDER_MARGIN)


def _summary_model_writer(job: SummaryJob, model: ChatModel, step: str) -> _Writer:
    window = job.context.budget.window_tokens if model is job.context.model else _window_of_other(model)
    return _Writer(
        model=model,
        window_tokens=window,
        output_tokens=model.limits.reply_tokens(2 * job.cap_tokens, window // 4),
        most_pieces=_SUMMARY_MODEL_PIECES,
        step_name=f"{job.context.step_name}/{step}",
    )


async def _from_groups(job: SummaryJob, groups: tuple[tuple[Message, ...], ...]) -> Summary:
    """Request one summary for each group, in order. The first failure stops the function."""
    context, budget, texts, stats = job.context, job.context.budget, [], RequestStats()
    share = job.cap_tokens // len(groups)
    for number, group in enumerate(groups, start=1):
        part = replace(job, removed=group, cap_tokens=share)
        step = f"summary-group-{number}"
        if context.summary_model is not None:
            writer = _summary_model_writer(part, context.summary_model, step)
        else:
            window = budget.window_tokens
            writer = _Writer(
                model=context.model,
                window_tokens=window,
                output_tokens=context.model.limits.reply_tokens(2 * share, min(budget.reserve_tokens, window // 4)),
                most_pieces=MAX_PIECES,
                step_name=f"{context.step_name}/{step}",
            )
        answer = await _from_text(part, writer)
        stats += answer.stats
        if answer.text is None:
            return Summary(failure=f"group {number}: {answer.failure}", stats=stats)
        texts.append(f"Part {number} of {len(groups)}:\n{answer.text}")
    return await _checked(job, Summary(text="\n\n".join(texts), stats=stats))


async def _from_text(job: SummaryJob, writer: _Writer) -> Summary:
    """Request a summary of the removed messages as plain text, in one request if possible, otherwise in parts.

    Each request contains the summary of the earlier parts.
    """
    counter = job.context.counter
    cap = min(job.cap_tokens, writer.output_tokens * 3 // 4)
    system = SystemMessage(text=_prompt(job, cap))
    room = writer.window_tokens - writer.output_tokens - counter.exact.count_message(system)
    pieces = await asyncio.to_thread(_pieces, job, room, cap, writer.most_pieces)
    if not pieces:
        return Summary(failure="the context window is too small for a summary request")
    summary, stats = "", RequestStats()
    for number, piece in enumerate(pieces, start=1):
        before = f"Summary of the earlier parts:\n{summary}\n\n" if summary else ""
        text = f"{before}Transcript, part {number} of {len(pieces)}:\n\n{piece}"
        request = ModelRequest(
            messages=(system, user_text(text)), tools=(), tool_choice="none", max_output_tokens=writer.output_tokens
        )
        answer = await ask(writer.model, request, f"{writer.step_name}-{number}", job.context)
        stats += answer.stats
        if answer.text is None:
            return replace(answer, stats=stats)
        carried = shortened(answer.text, 2 * cap, counter) if number < len(pieces) else answer.text
        if carried is None:
            return Summary(failure="the summary of one part is far too long", stats=stats)
        summary = carried
    return Summary(text=summary, stats=stats)


def _pieces(job: SummaryJob, room_tokens: int, cap_tokens: int, most_pieces: int) -> tuple[str, ...]:
    """Return the whole transcript if it fits, otherwise parts that leave space for a summary of the earlier parts.

    Returns no parts if the context window has no space for them.
    """
    # A transcript does not contain images. If their tokens were counted, text would be cut unnecessarily.
    weights = _exact_weights(job, map(_without_pictures, job.removed))
    exact = job.context.counter.exact
    if sum(weights) <= room_tokens:
        whole = whole_transcript(job.removed)
        if exact.fits(whole, room_tokens - _FIRST_LINE_TOKENS):
            return (whole,)
    room_tokens -= 2 * cap_tokens + _FIRST_LINE_TOKENS
    piece_tokens = int(room_tokens * _PIECE_SHARE)
    while piece_tokens >= _SMALLEST_PIECE_TOKENS:
        pieces = transcript_pieces(job.removed, weights, piece_tokens, most_pieces)
        if all(exact.fits(piece, room_tokens) for piece in pieces):
            return pieces
        piece_tokens //= 2  # the kept ends of a message can have more tokens per character than the middle
    return ()


def _exact_weights(job: SummaryJob, messages: Iterable[Message]) -> tuple[int, ...]:
    """Count the tokens of each message exactly, because groups and requests have hard limits."""
    history = job.history.replaced(messages)
    history.count_exactly()
    return history.token_counts()


async def _checked(job: SummaryJob, summary: Summary) -> Summary:
    """Check `summary`. Rejects it if it is mostly invented, or cannot be cut to 1.5 times its cap."""
    if summary.text is None:
        return summary
    limit = int(job.cap_tokens * LONGEST_SHARE_OF_CAP)
    text = shortened(summary.text, limit, job.context.counter)
    if text is None:
        reason = "the summary is far too long to shorten the conversation"
        return Summary(failure=reason, stats=summary.stats)
    if job.survey is not None and await asyncio.to_thread(job.survey.is_fabricated, text):
        return Summary(failure="most names in the summary do not occur in the conversation", stats=summary.stats)
    return replace(summary, text=text)


def _prompt(job: SummaryJob, cap_tokens: int) -> str:
    return f"{job.context.prompt.rstrip()}\n\nWrite at most {cap_tokens:,} tokens."
