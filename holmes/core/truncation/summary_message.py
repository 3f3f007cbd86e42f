"""Builds the message that replaces removed turns, and stores these turns.

The parts of the message are the summary, the ledger, and a reminder of the tools, in this order. A truncation keeps the
first part of an earlier summary. The message never exceeds `largest_message_tokens`. The ledger has priority over the
list of other names, and the list has priority over the reminder. A summary that is too long is cut. The stored text is
verbatim and refers to stored results by their ids. If the turns cannot be stored, the compaction continues.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.core.truncation.entity_check import with_distinct_lines
from holmes.core.truncation.summary_request import LONGEST_SHARE_OF_CAP, shortened
from holmes.evidence.verification import LEDGER_HEADING
from holmes.tokens import MESSAGE_OVERHEAD_TOKENS
from holmes.values.errors import ResultStoreError
from holmes.values.expressions import expression
from holmes.values.messages import AssistantMessage, Image, SystemMessage, Text, ToolCallId, ToolMessage, UserMessage
from holmes.values.texts import after_placeholder, before_placeholder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.core.truncation.context import CompactionContext
    from holmes.core.truncation.entity_check import RankedEntity
    from holmes.tokens import TokenCounter
    from holmes.values.messages import Message, StoredResult
    from holmes.values.tools import ResultStore, Tool

_MAX_LISTED_TOOLS = 20
_MAX_CHARACTERS = 360
_FIRST_WORD = expression(r"[^A-Za-z0-9]*([A-Z]?[a-z0-9]+|[A-Z0-9]+)")


def reminder_text(tools: Sequence[Tool]) -> str:
    """List up to 20 tools by name on one line. For more tools, list the families and the number of tools in each.

    If `tools` is empty, return an empty string. The text has at most 450 characters, and at most 150 tokens if the
    names consist of words.
    """
    if not tools:
        return ""
    names = [tool.name for tool in tools]
    listed = ", ".join(names)
    if len(names) <= _MAX_LISTED_TOOLS and len(listed) <= _MAX_CHARACTERS:
        return f"Available tools, as before: {listed}."
    counts = Counter(map(_family, names))
    families = [f"{family} ({count})" for family, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    shown: list[str] = []
    for family in families:
        if sum(map(len, shown)) + 2 * len(shown) + len(family) > _MAX_CHARACTERS:
            break
        shown.append(family)
    rest = len(families) - len(shown)
    more = f" and {rest:,} more kinds" if rest else ""
    listed = ", ".join(shown)
    return f"Available tools, as before, {len(names):,} in total: {listed}{more}. Their schemas are in the request."


def _family(name: str) -> str:
    """Return the family of a tool, which is `kubectl` for both `kubectl_get` and `kubectlDescribe`."""
    match = _FIRST_WORD.match(name)
    return match[1].lower()[:24] if match else name[:24]


SUMMARY_HEADING = (
    "Summary of the conversation so far. The summarised messages were removed to save space. "
    "Results with an id can still be read. Continue from here and do not repeat earlier checks."
)
_MAX_ALSO_SEEN_TOKENS = 600
_MAX_EXTRA_TOKENS = 300
_ALSO_SEEN_SHARE = 0.15
_SEPARATOR_TOKENS = 8
_LINE_CHARACTERS = 140


@dataclass(frozen=True, slots=True, kw_only=True)
class StandIn:
    """The parts of the message that replaces removed messages.

    `missing` contains the names that the summary does not mention, the most important first. `ledger` has at most
    `ledger_room_tokens` tokens. If no reminder is needed, `tools` is empty.
    """

    summary: str
    removed: StoredResult | None = None
    missing: tuple[RankedEntity, ...] = ()
    ledger: str = ""
    tools: Sequence[Tool] = ()


def largest_message_tokens(cap_tokens: int) -> int:
    """Return the maximum size of the message if the cap of the summary is `cap_tokens`."""
    return int(cap_tokens * LONGEST_SHARE_OF_CAP) + min(_MAX_EXTRA_TOKENS, 2 * cap_tokens)


def ledger_room_tokens(cap_tokens: int) -> int:
    return cap_tokens // 3


def summary_message(stand_in: StandIn, cap_tokens: int, counter: TokenCounter) -> UserMessage:
    """Build the message. `cap_tokens` is the maximum size that was requested for the summary."""
    heading = SUMMARY_HEADING
    if stand_in.removed is not None:
        heading += f" The removed messages are stored as result {stand_in.removed.id}."
    room = largest_message_tokens(cap_tokens) - MESSAGE_OVERHEAD_TOKENS - _SEPARATOR_TOKENS
    room -= counter.count_text(heading) + counter.count_text(stand_in.ledger)
    also_tokens = min(_MAX_ALSO_SEEN_TOKENS, int(cap_tokens * _ALSO_SEEN_SHARE), room - cap_tokens)
    also_seen = also_seen_text(stand_in.missing, also_tokens, counter)
    room -= counter.count_text(also_seen)
    reminder = reminder_text(stand_in.tools)
    if counter.count_text(reminder) > room - cap_tokens:
        reminder = ""
    room -= counter.count_text(reminder)
    # If the model copied the heading, its text would be treated as a ledger with checked citations.
    text = stand_in.summary.replace(LEDGER_HEADING, LEDGER_HEADING.rstrip(":"))
    summary = shortened(text, room, counter) or _cut(text, room, counter)
    first = "\n\n".join(part for part in (heading, summary, also_seen) if part)
    parts = (first, stand_in.ledger, reminder)
    removed = (stand_in.removed,) if stand_in.removed is not None else ()
    return UserMessage(parts=tuple(Text(text=part) for part in parts if part), kind="summary", stored=removed)


def also_seen_text(missing: Sequence[RankedEntity], room_tokens: int, counter: TokenCounter) -> str:
    """List as many of the names in `missing` as fit within `room_tokens`, each with a line from the conversation.

    A name alone would not show what is wrong with the object.
    """
    lines: list[str] = []
    left = room_tokens - counter.count_text("Also seen:\n")
    for item in with_distinct_lines(missing):
        line = f"- {_clipped(item)}"
        left -= counter.count_text(line) + 1
        if left < 0:
            break
        lines.append(line)
    return "\n".join(["Also seen:", *lines]) if lines else ""


def _clipped(item: RankedEntity) -> str:
    """Return the line of `item`, or its name if the line does not contain the name."""
    line, value = " ".join(item.line.split()).lstrip("- "), item.entity.value
    if value not in line:
        return f"{item.entity.kind} {value}"
    start = after_placeholder(line, max(0, line.find(value) + len(value) - _LINE_CHARACTERS))
    return line[start : before_placeholder(line, start + _LINE_CHARACTERS)]


def _cut(text: str, room_tokens: int, counter: TokenCounter) -> str:
    """Return the beginning of a text, cut at any character."""
    keep = len(text) * max(1, room_tokens) // max(1, counter.count_text(text))
    while keep > 1 and counter.count_text(text[:keep]) > room_tokens:
        keep = keep * 9 // 10
    return text[: before_placeholder(text, keep)]


_CONVERSATION_TOOL_NAME = "conversation"
_GROUP_TOOL_NAME = "group"
_MAX_CARRIED_RESULTS = 500


async def store_removed(
    messages: Sequence[Message], context: CompactionContext, *, step: str = "removed"
) -> StoredResult | None:
    """Store `messages` as one text.

    Returns None if storage is disabled or fails. `step` makes the name of the durable step unique, because two stages
    can run in one iteration.
    """

    async def put() -> StoredResult | None:
        return await _put_messages(messages, context.store, _CONVERSATION_TOOL_NAME, context.step_name)

    return await context.steps.run(f"{context.step_name}/{step}", put)


def where_removed_lie(messages: Sequence[Message], removed: StoredResult | None) -> tuple[StoredResult, ...]:
    """Return the stored results to which the message in place of `messages` refers.

    These are `removed` and the newest stored results of `messages`. If `removed` is None, the stored results of
    `messages` can still be cited.
    """
    pointing = [message for message in messages if not isinstance(message, SystemMessage | AssistantMessage)]
    earlier = {stored.id: stored for message in pointing for stored in message.stored}
    newest = tuple(earlier.values())[-_MAX_CARRIED_RESULTS:]
    return newest if removed is None else (removed, *(stored for stored in newest if stored.id != removed.id))


async def store_groups(groups: Sequence[Sequence[Message]], context: CompactionContext) -> tuple[StoredResult, ...]:
    """Store each group as a separate text. The name of the text consists of `chat_id` and a number, starting at 1.

    Groups that cannot be stored are omitted.
    """

    async def put() -> tuple[StoredResult, ...]:
        chat_id = context.policy.summary.chat_id or context.steps.new_id()
        stored = [
            await _put_messages(group, context.store, _GROUP_TOOL_NAME, f"{chat_id}-{number}")
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
    """Store the images that are not stored yet. Returns the stored images by the position of their message."""
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
