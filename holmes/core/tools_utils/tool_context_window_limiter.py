"""Moves one result that is too large out of the conversation and leaves a pointer in its place.

`spill_oversized_tool_result` is called by `ToolCallingLLM._invoke_llm_tool_call` right after a tool returned, before
the result joins the history; `spill_oversized_user_message` when a user's message is admitted. Both look at one message
and never at the conversation (context.md, T1 to T17). Counting and encoding run off the event loop. Neither ever raises
because of storage: a store that fails means that the data is dropped and the model is told to narrow its query.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holmes.core.errors import ResultStoreError
from holmes.core.messages import Image, Text, ToolCallId, ToolMessage, UserMessage
from holmes.core.previews import HeadAndTail, first_that_fits, head_and_tail, is_json
from holmes.core.tokens import (
    MESSAGE_OVERHEAD_TOKENS,
    image_tokens,
    message_overhead_tokens,
    upper_bound_tokens,
    utf8_bytes,
)

if TYPE_CHECKING:
    from holmes.core.messages import Part, StoredResult
    from holmes.core.results import ResultStore
    from holmes.core.tokens import TokenCounter

INLINE_ERROR_CHARACTERS = 500
MAX_PREVIEW_TOKENS = 1_500
MAX_USER_PREVIEW_TOKENS = 4_000
MAX_PREVIEW_CHARACTERS_PER_TOKEN = 5.0
_CERTAINLY_OVER = 2
_MOST_BYTES_PER_TOKEN = 128  # the longest tokens are runs of white space
_SAMPLED_FROM_CHARACTERS = 327_680

SEARCH_TOOL = "search_stored_result"
LINES_TOOL = "read_stored_result_lines"
IMAGE_TOOL = "read_image_file"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpillOutcome:
    """The message that joins the history.

    `tokens` is the size of the original: exact up to the cap, an upper bound where that is below the cap already,
    extrapolated for large texts. `spilled` says that the message was replaced; `stored` that its content is in the
    store (false also when nothing had to be stored).
    """

    message: ToolMessage
    tokens: int
    spilled: bool
    stored: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measure:
    """What a message weighs."""

    tokens: int
    text_tokens: int
    size_bytes: int
    lines: int

    @property
    def characters_per_token(self) -> float:
        return max(0.25, self.size_bytes / max(1, self.text_tokens))


async def spill_oversized_tool_result(
    message: ToolMessage, *, cap_tokens: int, counter: TokenCounter, store: ResultStore | None
) -> SpillOutcome:
    """`message` itself when it is at most `cap_tokens`, else a pointer of at most `cap_tokens` to the stored content.

    `store` is None when storage is switched off. Without storage, or when storing fails, the data is dropped, the
    status becomes `error` and the text asks for a narrower query.
    """
    bound = upper_bound_tokens(message)
    if bound <= cap_tokens:
        return SpillOutcome(message=message, tokens=bound, spilled=False, stored=False)
    # What is certainly too large is stored first: its encoded copy is gone before the tokenizer needs its memory.
    early = await _stored(message, store) if bound > cap_tokens * _MOST_BYTES_PER_TOKEN else None
    measure = await asyncio.to_thread(_measure, message, cap_tokens, counter)
    if early is None and measure.tokens <= cap_tokens:
        return SpillOutcome(message=message, tokens=measure.tokens, spilled=False, stored=False)
    stored = await _stored(message, store) if early is None else early
    if isinstance(stored, ResultStoreError):
        text = await asyncio.to_thread(_dropped_text, message, measure, cap_tokens, str(stored), counter)
        dropped = replace(message, status="error", parts=(Text(text=text),))
        return SpillOutcome(message=dropped, tokens=measure.tokens, spilled=True, stored=False)
    text = await asyncio.to_thread(_pointer_text, message, measure, stored, cap_tokens, counter)
    pointer = replace(message, parts=(Text(text=text),), spilled=(*message.spilled, *stored))
    return SpillOutcome(message=pointer, tokens=measure.tokens, spilled=True, stored=True)


async def _stored(message: ToolMessage, store: ResultStore | None) -> tuple[StoredResult, ...] | ResultStoreError:
    """Where the parts of a result lie now, or why they could not be stored."""
    try:
        return await _store_parts(message, store, tool_name=message.tool_name, call_id=message.call_id)
    except ResultStoreError as error:
        return error


async def spill_oversized_user_message(
    message: UserMessage, *, cap_tokens: int, char_limit: int, counter: TokenCounter, store: ResultStore | None
) -> UserMessage:
    """`message` itself, or a pointer with both ends of its text when it is above `cap_tokens` or `char_limit`.

    The kinds that Holmes makes itself are never spilled: they are bounded where they are made.

    When it cannot be stored, it stays as it is if it is within `cap_tokens`; else both ends stay and say that the
    middle is lost: a question is never dropped.
    """
    if message.kind not in {"request", "attachment"}:
        return message
    too_long = len(message.text) > char_limit
    if not too_long and upper_bound_tokens(message) <= cap_tokens:
        return message
    measure = await asyncio.to_thread(_measure, message, cap_tokens, counter)
    if not too_long and measure.tokens <= cap_tokens:
        return message
    moved, pictures = _without_small_pictures(message, cap_tokens)
    full_cap_tokens = cap_tokens
    cap_tokens -= message_overhead_tokens(replace(message, parts=pictures)) if pictures else 0
    try:
        stored = await _store_parts(moved, store, tool_name="user_message", call_id=ToolCallId("request"))
    except ResultStoreError as error:
        if measure.tokens <= full_cap_tokens:
            return message
        text = await asyncio.to_thread(_dropped_text, moved, measure, cap_tokens, str(error), counter)
    else:
        text = await asyncio.to_thread(_pointer_text, moved, measure, stored, cap_tokens, counter, char_limit)
    return replace(message, parts=(Text(text=text), *pictures))


def _without_small_pictures(message: UserMessage, cap_tokens: int) -> tuple[UserMessage, tuple[Part, ...]]:
    """`message` without the pictures that may stay in sight: all of them, if they take at most half of the cap."""
    pictures = tuple(part for part in message.parts if isinstance(part, Image))
    if sum(image_tokens(picture) for picture in pictures) > cap_tokens // 2:
        return message, ()
    return replace(message, parts=tuple(part for part in message.parts if isinstance(part, Text))), pictures


def _measure(message: ToolMessage | UserMessage, cap_tokens: int, counter: TokenCounter) -> _Measure:
    """Count `message`. A text far above the cap is only sampled, and counting ends soon after the cap."""
    text = message.text
    text_tokens = counter.estimate_text(text) if len(text) > _SAMPLED_FROM_CHARACTERS else 0
    if text_tokens <= cap_tokens * _CERTAINLY_OVER:
        text_tokens = _count_texts([part.text for part in message.parts if isinstance(part, Text)], cap_tokens, counter)
    images = sum(len(part.data) for part in message.parts if isinstance(part, Image))
    return _Measure(
        tokens=text_tokens + message_overhead_tokens(message),
        text_tokens=text_tokens,
        size_bytes=utf8_bytes(text) + images,
        lines=text.count("\n") + (0 if text.endswith("\n") or not text else 1),
    )


def _count_texts(texts: list[str], cap_tokens: int, counter: TokenCounter) -> int:
    """Exact when at most `cap_tokens`; above, what was counted until then stands for the rest."""
    tokens = characters = 0
    for text in texts:
        counted = counter.count_text_up_to(text, cap_tokens - tokens)
        tokens, characters = tokens + counted[0], characters + counted[1]
        if tokens > cap_tokens:
            return round(tokens * sum(map(len, texts)) / characters)
    return tokens


async def _store_parts(
    message: ToolMessage | UserMessage, store: ResultStore | None, *, tool_name: str, call_id: ToolCallId
) -> tuple[StoredResult, ...]:
    """Put the text, if any, and every picture into the store. Raises `ResultStoreError`."""
    if store is None:
        raise ResultStoreError("storage of tool results is switched off")
    stored: list[StoredResult] = []
    text = message.text
    if text:
        media_type = "application/json" if await asyncio.to_thread(is_json, text) else "text/plain"
        content = await asyncio.to_thread(_encode, text)
        stored.append(await store.put(content, tool_name=tool_name, call_id=call_id, media_type=media_type))
        del content
    stored += [
        await store.put(image.data, tool_name=tool_name, call_id=call_id, media_type=image.media_type)
        for image in message.parts
        if isinstance(image, Image)
    ]
    return tuple(stored)


def _encode(text: str) -> bytes:
    """UTF-8. A toolset that decoded with `surrogateescape` gets back the very bytes, and no text makes this fail."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _pointer_text(
    message: ToolMessage | UserMessage,
    measure: _Measure,
    stored: tuple[StoredResult, ...],
    cap_tokens: int,
    counter: TokenCounter,
    char_limit: int | None = None,
) -> str:
    """The longest of several pointers that fits, in tokens and in characters if `char_limit` is given.

    With a preview, without it, the ids alone.
    """
    inline_error = _inline_error(message)
    ids = ", ".join(result.id for result in stored)
    short = f"[{_size(measure, cap_tokens)} Stored as {ids}; use {SEARCH_TOOL}, {LINES_TOOL} or {IMAGE_TOOL}.]"
    lead = "\n".join((inline_error + _size(measure, cap_tokens), *_how_to_read(stored), _NARROW))
    room = min(cap_tokens // 4, MAX_PREVIEW_TOKENS)
    if isinstance(message, UserMessage):
        room = min(cap_tokens // 2, MAX_USER_PREVIEW_TOKENS)
    per_token = min(MAX_PREVIEW_CHARACTERS_PER_TOKEN, 0.95 * measure.characters_per_token)
    if char_limit is not None:
        per_token = min(per_token, char_limit / 2 / max(1, room))
    preview = head_and_tail(message.text, room, counter, characters_per_token=per_token)
    options: tuple[str, ...] = (
        "\n".join((lead, _shown(preview, measure), preview.render())) if preview.head else lead,
        lead,
        inline_error + short,
        short,
        f"[stored: {ids}]",
    )
    within = tuple(option for option in options if char_limit is None or len(option) <= char_limit)
    return first_that_fits(within or options[-1:], cap_tokens - MESSAGE_OVERHEAD_TOKENS, counter)


_NARROW = (
    "Do not guess what is not shown. If the question needs more, read it back, or narrow the query "
    "(a pattern, a field or label selector, a namespace, a time range), or ask the user."
)


def _size(measure: _Measure, cap_tokens: int) -> str:
    return (
        f"Too large for the conversation: {measure.size_bytes:,} bytes, {measure.lines:,} lines, "
        f"about {measure.tokens:,} tokens; the limit is {cap_tokens:,} tokens."
    )


def _how_to_read(stored: tuple[StoredResult, ...]) -> list[str]:
    lines: list[str] = []
    for result in stored:
        where = f" (file {result.path})" if result.path is not None else ""
        if result.media_type.startswith("image/"):
            how = f'look at it with {IMAGE_TOOL}(result="{result.id}")'
            lines.append(f"Picture {result.media_type}, {result.size_bytes:,} bytes: result {result.id}{where}; {how}.")
        else:
            how = (
                f'{SEARCH_TOOL}(result_id="{result.id}", pattern="...") finds lines by regular expression, '
                f'{LINES_TOOL}(result_id="{result.id}", first_line=1, last_line=100) reads a range'
            )
            lines.append(f"The full text is stored as result {result.id}{where}. Read it back: {how}.")
    return lines


def _shown(preview: HeadAndTail, measure: _Measure) -> str:
    if not preview.omitted_characters:
        return "The whole text:"
    shown = max(0, measure.lines - preview.omitted_lines)
    return f"Preview, {shown:,} of {measure.lines:,} lines (beginning and end):"


def _dropped_text(
    message: ToolMessage | UserMessage, measure: _Measure, cap_tokens: int, reason: str, counter: TokenCounter
) -> str:
    """What replaces data that could not be stored (T10). Of a user's message both ends stay."""
    lost = f"{_size(measure, cap_tokens)} It could not be kept: {reason}."
    ask = "The data was dropped. Narrow the query (a pattern, a selector, a namespace, a time range) and call again."
    if isinstance(message, UserMessage):
        room = min(cap_tokens * 3 // 4, cap_tokens - 200)
        ends = head_and_tail(message.text, max(0, room), counter).render()
        note = "The middle of this message was dropped; ask the user for the part that is needed."
        options: tuple[str, ...] = (f"{ends}\n[{lost} {note}]", f"{ends}\n[too large; the middle was dropped]", ends)
    else:
        options = (f"{_inline_error(message)}{lost} {ask}", f"{lost} {ask}", ask, "[dropped: too large]")
    return first_that_fits(options, cap_tokens - MESSAGE_OVERHEAD_TOKENS, counter)


def _inline_error(message: ToolMessage | UserMessage) -> str:
    """The beginning of an error result, which stays in the conversation (T11)."""
    if isinstance(message, UserMessage) or message.status != "error" or not message.text:
        return ""
    return message.text[:INLINE_ERROR_CHARACTERS].rstrip() + "\n[...]\n"
