"""Stores what is removed before it goes, so that it can be read back (K11).

The text is verbatim; results that lie in the store already are named by their ids instead of being repeated. Refuses to
fail: without a store, or when the disk is full, compaction goes on and nothing is said about where the messages lie.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holmes.values.errors import ResultStoreError
from holmes.values.messages import AssistantMessage, Image, SystemMessage, ToolCallId, ToolMessage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.core.truncation.context import CompactionContext
    from holmes.values.messages import Message, StoredResult
    from holmes.values.tools import ResultStore

CONVERSATION_TOOL_NAME = "conversation"
GROUP_TOOL_NAME = "group"
MAX_CARRIED_RESULTS = 500


async def store_removed(
    messages: Sequence[Message], context: CompactionContext, *, step: str = "removed"
) -> StoredResult | None:
    """One text of all `messages`, stored under the name of the iteration; None when there is no store or it fails.

    `step` is what the stage calls this step; two stages may follow each other in one iteration.
    """

    async def put() -> StoredResult | None:
        return await _put_messages(messages, context.store, CONVERSATION_TOOL_NAME, context.step_name)

    return await context.steps.run(f"{context.step_name}/{step}", put)


def where_removed_lie(messages: Sequence[Message], removed: StoredResult | None) -> tuple[StoredResult, ...]:
    """What the message that stands for `messages` points at: `removed`, then the newest results they pointed at.

    So a disk that is full for a while breaks no chain of ids, and what was shown before can still be cited.
    """
    pointing = [message for message in messages if not isinstance(message, SystemMessage | AssistantMessage)]
    earlier = {stored.id: stored for message in pointing for stored in message.stored}
    newest = tuple(earlier.values())[-MAX_CARRIED_RESULTS:]
    return newest if removed is None else (removed, *(stored for stored in newest if stored.id != removed.id))


async def store_groups(groups: Sequence[Sequence[Message]], context: CompactionContext) -> tuple[StoredResult, ...]:
    """Each group as a text of its own, named by `chat_id` and its number from 1 (K10); empty when that fails."""

    async def put() -> tuple[StoredResult, ...]:
        chat_id = context.policy.summary.chat_id or context.steps.new_id()
        stored = [
            await _put_messages(group, context.store, GROUP_TOOL_NAME, f"{chat_id}-{number}")
            for number, group in enumerate(groups, start=1)
        ]
        return tuple(each for each in stored if each is not None)

    return await context.steps.run(f"{context.step_name}/groups", put)


async def _put_messages(
    messages: Sequence[Message], store: ResultStore | None, tool_name: str, call_id: str
) -> StoredResult | None:
    if store is None or not messages:
        return None
    try:
        pictures = await _put_pictures(messages, store)
        content = await asyncio.to_thread(_encoded_text, messages, pictures)
        return await store.put(content, tool_name=tool_name, call_id=ToolCallId(call_id), media_type="text/plain")
    except ResultStoreError:
        return None


async def _put_pictures(messages: Sequence[Message], store: ResultStore) -> dict[int, tuple[StoredResult, ...]]:
    """Pictures that lie nowhere else, by the position of their message."""
    put: dict[int, tuple[StoredResult, ...]] = {}
    for position, message in enumerate(messages):
        if isinstance(message, SystemMessage | AssistantMessage) or message.stored:
            continue
        images = [part for part in message.parts if isinstance(part, Image)]
        call_id = message.call_id if isinstance(message, ToolMessage) else ToolCallId(message.kind)
        put[position] = tuple(
            [
                await store.put(image.data, tool_name="picture", call_id=call_id, media_type=image.media_type)
                for image in images
            ]
        )
    return put


def _encoded_text(messages: Sequence[Message], pictures: dict[int, tuple[StoredResult, ...]]) -> bytes:
    text = "\n\n".join(_entry(message, pictures.get(position, ())) for position, message in enumerate(messages))
    return text.encode("utf-8", "surrogatepass")


def _entry(message: Message, pictures: tuple[StoredResult, ...]) -> str:
    if isinstance(message, SystemMessage):
        return f"## system\n{message.text}"
    if isinstance(message, AssistantMessage):
        calls = (f"calls {call.name} ({call.id}) with {call.arguments}" for call in message.tool_calls)
        return "\n".join(part for part in ("## assistant", message.text, *calls) if part)
    where = "".join(f"\n[stored as result {stored.id}, {stored.media_type}]" for stored in (*message.stored, *pictures))
    if isinstance(message, ToolMessage):
        heading = f"## result of {message.tool_name} ({message.call_id}), {message.status}"
        return f"{heading}{where}" if message.stored else f"{heading}{where}\n{message.text}"
    return f"## user ({message.kind}){where}\n{message.text}"
