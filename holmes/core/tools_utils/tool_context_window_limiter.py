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
from typing import TYPE_CHECKING

from holmes.core.policy import SpillPolicy
from holmes.core.tools_utils.pointers import (
    MAX_USER_PREVIEW_TOKENS,
    PointerLimits,
    dropped_text,
    limit_text,
    measure_message,
    tool_pointer_text,
    user_pointer_text,
)
from holmes.core.tools_utils.result_storage import INLINE_CHARACTERS, store_parts, store_tool_message
from holmes.tokens import message_overhead_tokens, upper_bound_tokens
from holmes.values.errors import ResultStoreError
from holmes.values.events import ToolResultSpilled
from holmes.values.messages import Image, Part, Text, ToolCallId, ToolMessage, UserMessage
from holmes.values.tools import label_of, result_label

if TYPE_CHECKING:
    from holmes.core.tools_utils.pointers import Measure
    from holmes.tokens import TokenCounter
    from holmes.values.messages import StoredResult, ToolCall
    from holmes.values.tools import ResultStore, ToolResult


def tool_result_message(call: ToolCall, result: ToolResult) -> ToolMessage:
    """The message for `call`: the plain output on success, else one line that says what happened, then the output."""
    parts: tuple[Part, ...] = (Text(text=_result_text(result)), *result.images)
    return ToolMessage(call_id=call.id, tool_name=call.name, status=result.status, parts=parts)


def _result_text(result: ToolResult) -> str:
    if result.status == "success" and (result.data or result.images):
        return result.data
    if result.status == "error":
        code = f" (exit code {result.return_code})" if result.return_code else ""
        lines = [f"Error{code}: {result.error or 'the tool gave no reason'}", result.data]
    elif result.status == "approval_required":
        lines = [f"Not run: {result.error or 'this call needs the approval of a person.'}", result.data]
    else:
        lines = [result.error or "The tool ran and returned no output.", result.data]
    if result.invocation and result.status != "success":
        lines.append(f"It ran: {result.invocation}")
    return "\n".join(line for line in lines if line)


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
    limit = limit_text(cap_tokens, policy.char_limit)
    if isinstance(stored, ResultStoreError):
        text = await asyncio.to_thread(dropped_text, message, measure, cap_tokens, str(stored), counter)
        dropped = replace(message, status="error", parts=(Text(text=text),))
        return SpillOutcome(message=dropped, tokens=measure.tokens, spilled=True, stored=False, limit=limit)
    limits = PointerLimits(
        cap_tokens=cap_tokens,
        preview_tokens=min(int(cap_tokens * policy.preview_share), policy.preview_max_tokens),
        limit=limit,
        char_limit=policy.char_limit,
        preview=policy.preview,
    )
    text = await asyncio.to_thread(tool_pointer_text, message, measure, stored, limits, counter)
    pointer = replace(message, parts=(Text(text=text),), stored=stored, spilled=True)
    return SpillOutcome(message=pointer, tokens=measure.tokens, spilled=True, stored=True, limit=limit)


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
    limits = PointerLimits(
        cap_tokens=room,
        preview_tokens=min(room // 2, MAX_USER_PREVIEW_TOKENS),
        limit=limit_text(cap_tokens),
        char_limit=char_limit,
    )
    text = await asyncio.to_thread(user_pointer_text, moved, measure, stored, limits, counter)
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
