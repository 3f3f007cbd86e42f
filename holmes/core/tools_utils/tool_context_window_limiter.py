"""Stores each result, and moves one that is too large out of the conversation with a pointer in its place.

`spill_oversized_tool_result` looks at the message of a result (`tool_result_message`) before it joins the history;
`spill_oversized_user_message` at a user's message when it is admitted. Both look at one message and never at the
conversation (context.md, T1 to T17). Counting and encoding of large texts run off the event loop. Neither ever raises
because of storage: what fits stays as it is, and a result that is too large to stay is dropped while the model is told
to narrow its query.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from io import BytesIO
from typing import TYPE_CHECKING

from holmes.core.policy import SpillPolicy
from holmes.core.tools_utils.pointers import Pointer, PointerLimits, dropped_text, measure_message
from holmes.previews import is_json
from holmes.tokens import message_overhead_tokens, upper_bound_tokens
from holmes.values.errors import ResultStoreError
from holmes.values.events import ToolResultSpilled
from holmes.values.messages import Image, Part, Text, ToolCallId, ToolMessage, UserMessage
from holmes.values.tools import label_of, result_label

if TYPE_CHECKING:
    from holmes.core.tools_utils.pointers import Measure
    from holmes.tokens import TokenCounter
    from holmes.tokens.history import History
    from holmes.values.messages import Message, StoredResult, ToolCall
    from holmes.values.tools import ResultStore


PIECE_CHARACTERS = 262_144
INLINE_CHARACTERS = 16_384
"""A text of at most this length is handled on the event loop: a thread would take longer."""
MAX_LABEL_BYTES = 80
_DEFAULT_POLICY = SpillPolicy()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpillOutcome:
    """The message that joins the history.

    `tokens` is the size of the original: exact up to the cap, an upper bound where that is below the cap already,
    extrapolated for large texts. `spilled` says that a pointer or a note about the loss took its place; `stored` that
    its content is in the store. `limit` is a clause that names what a spilled result was over.
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
    """Store `message`; when it is above `cap_tokens` or the policy's `char_limit`, a pointer within both stands for it.

    A result that fits keeps its text, with `label` followed by the part `[result <id>]` if that fits too. `store` is
    None when storage is switched off: then, and when storing fails, what fits simply stays, and what does not is
    dropped with status `error` and a request for a narrower query. What is a pointer or mask already comes back as it
    is (T12). What its bytes do not settle is counted exactly, also by a counter that estimates.
    """
    if message.spilled or message.masked:
        tokens = upper_bound_tokens(message)
        return SpillOutcome(message=message, tokens=tokens, spilled=False, stored=bool(message.stored))
    if message.status == "approval_required":  # nothing ran, so there is no output
        stored: tuple[StoredResult, ...] | ResultStoreError = ()
    else:
        stored = await store_tool_message(message, store)
    over = policy.char_limit is not None and len(message.text) > policy.char_limit
    bound = upper_bound_tokens(message) if _is_small(message) else cap_tokens + 1
    if bound + MAX_LABEL_BYTES <= cap_tokens and not over:
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
    """A result that stays whole. It is the same object when it neither was stored nor gets a label."""
    if isinstance(stored, ResultStoreError) or not stored:
        return SpillOutcome(message=message, tokens=tokens, spilled=False, stored=False)
    kept = message if message.stored == stored else replace(message, stored=stored)
    if label and label_of(kept) is None:
        kept = replace(kept, parts=(*kept.parts, Text(text=result_label(stored))))
    return SpillOutcome(message=kept, tokens=tokens, spilled=False, stored=True)


def _is_small(message: ToolMessage | UserMessage) -> bool:
    return len(message.text) <= 8 * INLINE_CHARACTERS


async def _replaced(
    message: ToolMessage,
    measure: Measure,
    stored: tuple[StoredResult, ...] | ResultStoreError,
    cap_tokens: int,
    counter: TokenCounter,
    policy: SpillPolicy,
) -> SpillOutcome:
    """A pointer to what is stored, or the words for what is lost."""
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
    """`message` itself, or a pointer with both ends of its text when it is above `cap_tokens` or `char_limit` (T16).

    The kinds that Holmes makes itself are never spilled: they are bounded where they are made. A pointer stays as it
    is. When it cannot be stored, it stays as it is if it is within `cap_tokens`; else both ends stay and say that the
    middle is lost: a question is never dropped.
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
        stored = await store_parts(moved, store, tool_name="user_message", call_id=ToolCallId("request"))
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
    """`message` without the pictures that may stay in sight: all of them, if they take at most half of the cap."""
    pictures = tuple(part for part in message.parts if isinstance(part, Image))
    if sum(counter.image_tokens(picture) for picture in pictures) > cap_tokens // 2:
        return message, ()
    return replace(message, parts=tuple(part for part in message.parts if isinstance(part, Text))), pictures


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutcome:
    """Small enough for a journal, since large data is in the store."""

    spill: SpillOutcome
    cap_tokens: int
    invocation: str | None
    error: str | None
    elapsed_seconds: float

    @classmethod
    def of(cls, answer: ToolMessage) -> ToolOutcome:
        """The outcome of a call that is answered without running."""
        spill = SpillOutcome(message=answer, tokens=0, spilled=False, stored=False)
        error = answer.text if answer.status == "error" else None
        return cls(spill=spill, cap_tokens=0, invocation=None, error=error, elapsed_seconds=0.0)

    def spilled(self, call: ToolCall) -> ToolResultSpilled | None:
        """The event for a result that was too large, None for one that was not."""
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
    """Where the parts of a result lie, or why they could not be stored. What is stored already is not stored again."""
    if message.stored:
        return message.stored
    try:
        return await store_parts(message, store, tool_name=message.tool_name, call_id=message.call_id)
    except ResultStoreError as error:
        return error


async def store_parts(
    message: ToolMessage | UserMessage, store: ResultStore | None, *, tool_name: str, call_id: ToolCallId
) -> tuple[StoredResult, ...]:
    """Put the text, if any, and every picture into the store. Raises `ResultStoreError`."""
    if store is None:
        raise ResultStoreError("storage of tool results is switched off")
    stored: list[StoredResult] = []
    text = message.text
    if text:
        small = len(text) <= INLINE_CHARACTERS
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
    """UTF-8 and the media type.

    A toolset that decoded with `surrogateescape` gets back the very bytes, and no text makes this fail.
    """
    media_type = "application/json" if is_json(text) else "text/plain"
    try:
        return _in_pieces(text, "surrogateescape"), media_type
    except UnicodeEncodeError:
        return _in_pieces(text, "surrogatepass"), media_type


def _in_pieces(text: str, errors: str) -> bytes:
    if text.isascii():
        return text.encode("ascii")  # a plain copy
    content = BytesIO()
    for start in range(0, len(text), PIECE_CHARACTERS):
        content.write(text[start : start + PIECE_CHARACTERS].encode("utf-8", errors))
    return content.getvalue()  # shares its bytes until someone writes again


async def store_results(history: History, store: ResultStore | None) -> History:
    """`history` with every result stored that was not, or the same object. Texts and token counts do not change."""
    if store is None:
        return history
    stored: dict[int, Message] = {}
    for index, message in enumerate(history):
        if not isinstance(message, ToolMessage) or message.stored or message.masked:
            continue
        put = await store_tool_message(message, store)
        if isinstance(put, ResultStoreError):
            break  # a full disk stays full: asking once is enough
        if put:
            stored[index] = replace(message, stored=put)
    if not stored:
        return history
    return history.with_replaced(stored)
