"""Stores each result, and replaces a result that is too large with a pointer.

`spill_oversized_tool_result` checks a result before it is added to the history. `spill_oversized_user_message` checks a
user message at the start of a run. Both functions check a single message. `cap_round` limits all results of one turn
together. Large texts are counted and encoded outside the event loop. A storage failure never raises an error. If a
result cannot be stored, it stays if it fits. Otherwise a note asks the model for a narrower query.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from io import BytesIO
from typing import TYPE_CHECKING

from holmes.core.policy import SpillPolicy
from holmes.core.tools_utils.pointers import (
    Pointer,
    PointerLimits,
    cut_text,
    dropped_text,
    measure_message,
    round_limit_text,
)
from holmes.previews import is_json
from holmes.tokens import message_overhead_tokens, upper_bound_tokens
from holmes.values.errors import ResultStoreError
from holmes.values.events import ToolCallFinished, ToolResultSpilled
from holmes.values.messages import Image, Part, Text, ToolCallId, ToolMessage, UserMessage
from holmes.values.tools import RESULT_TOOLS, label_of, result_label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.core.tools_utils.pointers import Measure
    from holmes.tokens import TokenCounter
    from holmes.tokens.history import History
    from holmes.values.charts import Chart
    from holmes.values.messages import Message, StoredResult, ToolCall
    from holmes.values.tools import ResultStore


_PIECE_CHARACTERS = 262_144
_INLINE_CHARACTERS = 16_384
"""Maximum length of a text that is processed on the event loop. For such a short text, a thread would take longer."""
_MAX_LABEL_BYTES = 80
_DEFAULT_POLICY = SpillPolicy()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpillOutcome:
    """The message that is added to the history.

    `tokens` is the size of the original message. It is an upper bound for small results, an estimate for large texts,
    and exact for all other results. `spilled` is true if a pointer or a note about the loss replaces the original.
    `stored` is true if the content is in the store. `limit` is a clause about the limit that a spilled result exceeds.
    """

    message: ToolMessage
    tokens: int
    spilled: bool
    stored: bool
    limit: str = ""


async def spill_oversized_tool_result(
    message: ToolMessage,
    *,
    cap_tokens: int,
    counter: TokenCounter,
    store: ResultStore | None,
    policy: SpillPolicy = _DEFAULT_POLICY,
    label: bool = False,
) -> SpillOutcome:
    """Store `message`, and replace it with a pointer if it exceeds `cap_tokens` or the policy's `char_limit`.

    A result that fits keeps its text. If `label` is true, the label `[result <id>]` is added if it fits too. If `store`
    is None, storage is disabled. Results that fit stay. Other results are replaced by a note with status `error` that
    asks for a narrower query. Pointers and masks stay unchanged. If the size in bytes does not show whether the result
    fits, tokens are counted exactly, even if `counter` estimates.
    """
    if message.spilled or message.masked:
        tokens = upper_bound_tokens(message)
        return SpillOutcome(message=message, tokens=tokens, spilled=False, stored=bool(message.stored))
    if message.status == "approval_required":  # the call did not run, so it has no result
        stored: tuple[StoredResult, ...] | ResultStoreError = ()
    else:
        stored = await store_tool_message(message, store)
    over = policy.char_limit is not None and len(message.text) > policy.char_limit
    bound = upper_bound_tokens(message) if _is_small(message) else cap_tokens + 1
    if bound + _MAX_LABEL_BYTES <= cap_tokens and not over:
        return _kept(message, stored, bound, label=label)
    counter = counter.exact
    measure = await asyncio.to_thread(measure_message, message, cap_tokens, counter)
    if over or measure.tokens > cap_tokens:
        return await _replaced(message, measure, stored, cap_tokens, counter, policy)
    if label and not isinstance(stored, ResultStoreError):
        label = measure.tokens + 1 + counter.count_text(result_label(stored)) <= cap_tokens
    return _kept(message, stored, measure.tokens, label=label)


def _kept(
    message: ToolMessage, stored: tuple[StoredResult, ...] | ResultStoreError, tokens: int, *, label: bool
) -> SpillOutcome:
    """Return the outcome for a result that stays whole. An unchanged message stays the same object."""
    if isinstance(stored, ResultStoreError) or not stored:
        return SpillOutcome(message=message, tokens=tokens, spilled=False, stored=False)
    kept = message if message.stored == stored else replace(message, stored=stored)
    if label and label_of(kept) is None:
        kept = replace(kept, parts=(*kept.parts, Text(text=result_label(stored))))
    return SpillOutcome(message=kept, tokens=tokens, spilled=False, stored=True)


def _is_small(message: ToolMessage | UserMessage) -> bool:
    return len(message.text) <= 8 * _INLINE_CHARACTERS


async def _replaced(
    message: ToolMessage,
    measure: Measure,
    stored: tuple[StoredResult, ...] | ResultStoreError,
    cap_tokens: int,
    counter: TokenCounter,
    policy: SpillPolicy,
) -> SpillOutcome:
    """Return the outcome with a pointer to the stored result, or with a note that the result is lost."""
    limits = PointerLimits.of_result(cap_tokens, policy)
    if isinstance(stored, ResultStoreError):
        text = await asyncio.to_thread(dropped_text, message, measure, cap_tokens, str(stored), counter)
        dropped = replace(message, status="error", parts=(Text(text=text),))
        return SpillOutcome(message=dropped, tokens=measure.tokens, spilled=True, stored=False, limit=limits.text)
    made = await asyncio.to_thread(Pointer.of_result, message, measure, stored, limits, counter)
    text = await asyncio.to_thread(made.render, limits, counter)
    pointer = replace(message, parts=(Text(text=text),), stored=stored, spilled=True)
    return SpillOutcome(message=pointer, tokens=measure.tokens, spilled=True, stored=True, limit=limits.text)


async def spill_oversized_user_message(
    message: UserMessage, *, cap_tokens: int, char_limit: int, counter: TokenCounter, store: ResultStore | None
) -> UserMessage:
    """Return `message`, or a pointer with both ends of its text if it exceeds `cap_tokens` or `char_limit`.

    Pointers and messages that Holmes writes stay unchanged, because their size is already limited. A question is never
    dropped. If a message exceeds `cap_tokens` and cannot be stored, both ends stay, with a note that the middle is
    lost.
    """
    if message.kind not in {"request", "attachment"} or message.stored:
        return message
    too_long = len(message.text) > char_limit
    if not too_long and _is_small(message) and upper_bound_tokens(message) <= cap_tokens:
        return message
    counter = counter.exact
    measure = await asyncio.to_thread(measure_message, message, cap_tokens, counter)
    if not too_long and measure.tokens <= cap_tokens:
        return message
    moved, pictures = _without_small_pictures(message, cap_tokens, counter)
    room = cap_tokens - (message_overhead_tokens(replace(message, parts=pictures)) if pictures else 0)
    try:
        stored = await _store_parts(moved, store, tool_name="user_message", call_id=ToolCallId("request"))
    except ResultStoreError as error:
        if measure.tokens <= cap_tokens:
            return message
        text = await asyncio.to_thread(dropped_text, moved, measure, room, str(error), counter)
        return replace(message, parts=(Text(text=text), *pictures))
    limits = PointerLimits.of_user_message(cap_tokens, room, char_limit)
    pointer = await asyncio.to_thread(Pointer.of_user_message, moved, measure, stored, limits, counter)
    text = await asyncio.to_thread(pointer.render, limits, counter)
    return replace(message, parts=(Text(text=text), *pictures), stored=stored)


def _without_small_pictures(
    message: UserMessage, cap_tokens: int, counter: TokenCounter
) -> tuple[UserMessage, tuple[Part, ...]]:
    """Separate the images that stay visible from `message`. Returns the rest of the message and these images.

    All images stay visible if they take at most half of the cap. Otherwise all images are moved to the store.
    """
    pictures = tuple(part for part in message.parts if isinstance(part, Image))
    if sum(counter.image_tokens(picture) for picture in pictures) > cap_tokens // 2:
        return message, ()
    return replace(message, parts=tuple(part for part in message.parts if isinstance(part, Text))), pictures


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutcome:
    """The outcome of a call. Large data is in the store, so the outcome is small enough for a journal."""

    spill: SpillOutcome
    cap_tokens: int
    invocation: str | None
    error: str | None
    elapsed_seconds: float
    chart: Chart | None = None

    @classmethod
    def of(cls, answer: ToolMessage) -> ToolOutcome:
        """Return the outcome of a call that has a result although it did not run."""
        spill = SpillOutcome(message=answer, tokens=0, spilled=False, stored=False)
        error = answer.text if answer.status == "error" else None
        return cls(spill=spill, cap_tokens=0, invocation=None, error=error, elapsed_seconds=0.0)

    def finished(
        self, call: ToolCall, message: ToolMessage, *, toolset: str | None, description: str
    ) -> ToolCallFinished:
        """Return the event for the end of the call. `message` is what the conversation gets as its result."""
        return ToolCallFinished(
            call=call,
            toolset=toolset,
            description=description,
            message=message,
            invocation=self.invocation,
            error=self.error,
            elapsed_seconds=self.elapsed_seconds,
            chart=self.chart,
        )

    def spilled(self, call: ToolCall) -> ToolResultSpilled | None:
        """Return the event for a result that was too large, or None for other results."""
        if not self.spill.spilled:
            return None
        return ToolResultSpilled(
            call=call,
            tokens=self.spill.tokens,
            cap_tokens=self.cap_tokens,
            stored=self.spill.stored,
            limit=self.spill.limit,
        )


async def store_tool_message(
    message: ToolMessage, store: ResultStore | None
) -> tuple[StoredResult, ...] | ResultStoreError:
    """Store the parts of a result, unless they are stored already. Returns the stored parts, or the error."""
    if message.stored:
        return message.stored
    try:
        return await _store_parts(message, store, tool_name=message.tool_name, call_id=message.call_id)
    except ResultStoreError as error:
        return error


async def _store_parts(
    message: ToolMessage | UserMessage, store: ResultStore | None, *, tool_name: str, call_id: ToolCallId
) -> tuple[StoredResult, ...]:
    """Store the text and every image of `message`. Raises `ResultStoreError`."""
    if store is None:
        raise ResultStoreError("storage of tool results is disabled")
    stored: list[StoredResult] = []
    text = message.text
    if text:
        small = len(text) <= _INLINE_CHARACTERS
        content, media_type = _encoded(text) if small else await asyncio.to_thread(_encoded, text)
        stored.append(await store.put(content, tool_name=tool_name, call_id=call_id, media_type=media_type))
        del content
    stored += [
        await store.put(image.data, tool_name=tool_name, call_id=call_id, media_type=image.media_type)
        for image in message.parts
        if isinstance(image, Image)
    ]
    return tuple(stored)


def _encoded(text: str) -> tuple[bytes, str]:
    """Encode the text in UTF-8, and return it with its media type.

    Restores the bytes that `surrogateescape` decoded. Never fails.
    """
    media_type = "application/json" if is_json(text) else "text/plain"
    try:
        return _in_pieces(text, "surrogateescape"), media_type
    except UnicodeEncodeError:
        return _in_pieces(text, "surrogatepass"), media_type


def _in_pieces(text: str, errors: str) -> bytes:
    if text.isascii():
        return text.encode("ascii")  # this makes only one copy
    content = BytesIO()
    for start in range(0, len(text), _PIECE_CHARACTERS):
        content.write(text[start : start + _PIECE_CHARACTERS].encode("utf-8", errors))
    return content.getvalue()  # this makes no copy unless the buffer changes


async def store_results(history: History, store: ResultStore | None) -> History:
    """Store all results of `history`. Texts and token counts stay unchanged.

    Returns the same object if no result was stored.
    """
    if store is None:
        return history
    stored: dict[int, Message] = {}
    for index, message in enumerate(history):
        if not isinstance(message, ToolMessage) or message.stored or message.masked:
            continue
        put = await store_tool_message(message, store)
        if isinstance(put, ResultStoreError):
            break  # other results would also fail, for example on a full disk
        if put:
            stored[index] = replace(message, stored=put)
    if not stored:
        return history
    return history.with_replaced(stored)


SMALLEST_RESULT_TOKENS = 60
_READ_AGAIN = "[Cut: the results of this step are too large together. Request this part alone, or a smaller part.]"
_LOST = (
    "[Cut: the results of this step are too large together, and the middle of this result could not be stored: "
    "{reason}. Call again with a narrower query.]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Share:
    """The share of one result in the cap of a turn, and the limits of its pointer."""

    tokens: int
    limits: PointerLimits


async def cap_round(
    messages: Sequence[ToolMessage],
    cap_tokens: int,
    counter: TokenCounter,
    policy: SpillPolicy,
    store: ResultStore | None,
) -> tuple[ToolMessage, ...]:
    """Replace the largest of `messages` until all of them together take at most `cap_tokens`.

    Messages that stay unchanged are the same objects. No result is shortened to less than 60 tokens, so a turn with
    very many results can stay above the cap. If a large result cannot be stored, its middle is lost, and a note in the
    text reports the loss.
    """
    counter = counter.exact
    weights = await asyncio.to_thread(lambda: [counter.count_message(message) for message in messages])
    total = sum(weights)
    share = _share(cap_tokens, len(messages), policy)
    capped = list(messages)
    for index in sorted(range(len(messages)), key=weights.__getitem__, reverse=True):
        if total <= cap_tokens or weights[index] <= share.tokens:
            break
        capped[index] = await _within(messages[index], share, counter, store)
        total += await asyncio.to_thread(counter.count_message, capped[index]) - weights[index]
    return tuple(capped)


def _share(cap_tokens: int, results: int, policy: SpillPolicy) -> _Share:
    """Return an equal share of the cap. If every larger result is shortened to this share, the turn fits."""
    tokens = max(SMALLEST_RESULT_TOKENS, cap_tokens // max(1, results))
    limits = PointerLimits.of_result(tokens, policy, round_limit_text(results, cap_tokens))
    return _Share(tokens=tokens, limits=limits)


async def _within(message: ToolMessage, share: _Share, counter: TokenCounter, store: ResultStore | None) -> ToolMessage:
    """Shorten `message` to its share: shorten its pointer, replace it with a pointer, or cut its text."""
    if message.spilled or message.masked:
        if not message.stored:
            text = await asyncio.to_thread(cut_text, message, share.tokens, "[cut]", counter)
        else:
            text = await asyncio.to_thread(Pointer.shorten, message, share.tokens, counter)
        return replace(message, parts=(Text(text=text),))
    if message.tool_name in RESULT_TOOLS and not message.stored:
        text = await asyncio.to_thread(cut_text, message, share.tokens, _READ_AGAIN, counter)
        return replace(message, parts=(Text(text=text),))
    stored = await store_tool_message(message, store)
    if isinstance(stored, ResultStoreError):
        note = _LOST.format(reason=stored)
        text = await asyncio.to_thread(cut_text, message, share.tokens, note, counter)
        return replace(message, parts=(Text(text=text),))
    return await asyncio.to_thread(_pointer, message, stored, share, counter)


def _pointer(
    message: ToolMessage, stored: tuple[StoredResult, ...], share: _Share, counter: TokenCounter
) -> ToolMessage:
    output = message if label_of(message) is None else replace(message, parts=message.parts[:-1])
    measure = measure_message(output, share.tokens, counter)
    text = Pointer.of_result(output, measure, stored, share.limits, counter).render(share.limits, counter)
    return replace(message, parts=(Text(text=text),), stored=stored, spilled=True)
