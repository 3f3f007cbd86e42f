"""Which calls of a reply run, and what a repeated call is answered with (N4).

Polling stays legal: a call of another reply really runs again, and its answer is "unchanged since step 7", a diff, or
the whole result; it only refers to what the model can still see. Errors are never answered from memory, small results
stay as they are, and nothing gets larger. What an answer leaves out is in the store, under the id that it names.

Of one reply a bounded number of calls runs, and identical ones once; calls beyond that are answered with the reason. Of
a flood only some stay in the message, so that neither calls nor results fill the history; the last answer says how many
were removed. Every call that stays has exactly one result.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from holmes.core.tools_utils.output_changes import output_change
from holmes.previews.excerpts import count_lines
from holmes.values.messages import AssistantMessage, Image, Text, ToolMessage
from holmes.values.tools import RESULT_TOOLS, label_of, output_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.tokens import TokenCounter
    from holmes.values.messages import Message, ToolCall, ToolCallId

SMALLEST_ANSWERED_TOKENS = 60
_DIFF_SHARE = 1 / 3
_SMALLEST_CHARACTERS = 80
_KEYS_KEPT = 64
_ANSWER = re.compile(r"(?:Unchanged|Changed) since step \d+\b")
IDENTICAL_CALL = "Identical to the call"
"""How the result of a call begins that another call of the same reply answers."""

_Key: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Earlier:
    """The last result of a call that stands whole, or as a pointer, in the conversation.

    `latest` is the answer that last described it or what changed since, with its step, None when there was none.
    """

    message: ToolMessage
    step: int
    latest: ToolMessage | None = None
    latest_step: int = 0


class RepeatedCalls:
    """The calls of a conversation and where their last results stand. Steps are rounds, counted from 1."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._earlier: dict[_Key, _Earlier] = {}
        self.rounds = 0

    @classmethod
    def of(cls, messages: Sequence[Message], counter: TokenCounter) -> RepeatedCalls:
        """What `messages` tell; `rounds` is then how many rounds they have."""
        calls = cls(counter)
        waiting: dict[str, ToolCall] = {}
        for message in messages:
            if isinstance(message, AssistantMessage) and message.tool_calls:
                calls.rounds += 1
                waiting = {call.id: call for call in reversed(message.tool_calls)}
            elif isinstance(message, ToolMessage) and message.call_id in waiting:
                calls.note(message, waiting[message.call_id], calls.rounds)
        return calls

    def note(self, message: ToolMessage, call: ToolCall, step: int) -> None:
        """`message` joined the history in round `step` as the result of `call`."""
        self.rounds = max(self.rounds, step)
        key = call_key(call)
        if message.masked:
            self._earlier.pop(key, None)
        elif message.status in {"success", "no_data"} and not message.text.startswith(IDENTICAL_CALL):
            earlier = self._earlier.get(key)
            if not _ANSWER.match(message.text):
                self._earlier[key] = _Earlier(message=message, step=step)
            elif earlier is not None:
                self._earlier[key] = replace(earlier, latest=message, latest_step=step)

    async def answer(self, call: ToolCall, message: ToolMessage, history: Sequence[Message]) -> ToolMessage:
        """`message`, the new result of `call`, or a shorter one that refers to a result that `history` still shows.

        What comes back has the call id, status and stored results of `message`.
        """
        earlier = self._earlier.get(call_key(call))
        if earlier is None or message.masked or message.status != earlier.message.status:
            return message
        if len(output_text(message)) < _SMALLEST_CHARACTERS and not _pictures(message):
            return message
        if not _shows(history, earlier.message):
            return message
        if earlier.latest is not None and not _shows(history, earlier.latest):
            earlier = replace(earlier, latest=None)
        return await asyncio.to_thread(self._answer, earlier, message, _read_id(call))

    def _answer(self, earlier: _Earlier, message: ToolMessage, read_id: str | None) -> ToolMessage:
        size = self._counter.count_message(message)
        if size < SMALLEST_ANSWERED_TOKENS:
            return message
        text, limit_tokens = _unchanged_text(earlier, message), size - 1
        if text is None and message.stored and not _stands_for_other(earlier.message, message):
            text, limit_tokens = _changed_text(earlier, message), int(size * _DIFF_SHARE)
        if text is None:
            return message
        answered = _with_text(message, text, _ids(message) or _ids(earlier.message), read_id)
        return answered if self._counter.count_message(answered) <= limit_tokens else message


def _unchanged_text(earlier: _Earlier, message: ToolMessage) -> str | None:
    """The answer when `message` says what the model sees already: in the whole result, or there and in a diff."""
    if _same(earlier.message, message):
        if message.spilled:
            return f"Unchanged since step {earlier.step}: same as result {message.stored[0].id}."
        return f"Unchanged since step {earlier.step} ({_lines(message)})."
    if earlier.latest is not None and message.stored and _ids(earlier.latest) == _ids(message):
        return f"Unchanged since step {earlier.latest_step} ({_lines(message)})."
    return None


def _changed_text(earlier: _Earlier, message: ToolMessage) -> str | None:
    """What changed since the whole result. Lines of a diff that only grew older are left out of it."""
    change = output_change(output_text(earlier.message), output_text(message))
    if change is None:
        return None
    if not change.diff:
        return f"Unchanged since step {earlier.step} except {change.left_out} ({_lines(message)})."
    left_out = f"; {change.left_out} left out" if change.left_out else ""
    heading = f"Changed since step {earlier.step}, {_counted(change.changed_lines)} of {_lines(message)}"
    return f"{heading}{left_out}:\n{change.diff}"


def _with_text(message: ToolMessage, text: str, ids: tuple[str, ...], read_id: str | None) -> ToolMessage:
    """`message` with `text` in place of its output, and the ids under which that is in the store.

    `read_id` is the stored result that the output is a part of, for tools that read one.
    """
    label = label_of(message)
    if label is None and ids:
        text = f"{text}\nThe full result is {', '.join(ids)}."
    elif read_id is not None:
        text = f"{text}\nIt is a part of result {read_id}."
    parts = (Text(text=text),) if label is None else (Text(text=text), Text(text=label))
    return replace(message, parts=parts, spilled=bool(message.stored))


def _same(one: ToolMessage, other: ToolMessage) -> bool:
    """Whether two results have the same content, whole or as pointers to the same stored bytes."""
    if one.spilled or other.spilled:
        return one.spilled == other.spilled and bool(other.stored) and _ids(one) == _ids(other)
    return output_text(one) == output_text(other) and _pictures(one) == _pictures(other)


def _stands_for_other(one: ToolMessage, other: ToolMessage) -> bool:
    """Whether the text of one of them is not its whole output, so that comparing the texts says nothing."""
    return one.spilled or other.spilled or bool(_pictures(one)) or bool(_pictures(other))


def _shows(history: Sequence[Message], wanted: ToolMessage) -> bool:
    """Whether `history` still holds `wanted` as it was: not masked, not cut, not removed."""
    return any(
        isinstance(message, ToolMessage) and message.call_id == wanted.call_id and message == wanted
        for message in reversed(history)
    )


@lru_cache(maxsize=_KEYS_KEPT)
def call_key(call: ToolCall) -> _Key:
    """The call without its id; how the model wrote the JSON of its arguments does not matter."""
    if call.malformed is not None:
        return call.name, call.malformed
    try:
        return call.name, json.dumps(json.loads(call.arguments), sort_keys=True, ensure_ascii=False)
    except (ValueError, RecursionError):
        return call.name, call.arguments


def _read_id(call: ToolCall) -> str | None:
    """The stored result that `call` reads, None for other tools."""
    if call.name not in RESULT_TOOLS or call.malformed is not None:
        return None
    read_id = json.loads(call.arguments or "{}").get("result_id")
    return read_id if isinstance(read_id, str) else None


def _ids(message: ToolMessage) -> tuple[str, ...]:
    return tuple(stored.id for stored in message.stored)


def _pictures(message: ToolMessage) -> tuple[Image, ...]:
    return tuple(part for part in message.parts if isinstance(part, Image))


def _lines(message: ToolMessage) -> str:
    return _counted(count_lines(output_text(message)))


def _counted(lines: int) -> str:
    return "1 line" if lines == 1 else f"{lines:,} lines"


MAX_RUNNING_CALLS = 32
MAX_ANSWERED_CALLS = 32
"""How many calls that do not run stay in the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedReply:
    """The reply as it joins the history. `answers` has the result of each of its calls, None for those that run."""

    message: AssistantMessage
    answers: tuple[ToolMessage | None, ...]

    @property
    def running(self) -> tuple[ToolCall, ...]:
        """The calls that run."""
        return tuple(call for call, answer in zip(self.message.tool_calls, self.answers, strict=True) if answer is None)


def bound_reply(message: AssistantMessage) -> BoundedReply:
    """`message` with at most 32 calls that run and 32 that do not; the same object when it has no more."""
    if len(message.tool_calls) < 2:
        return BoundedReply(message=message, answers=(None,) * len(message.tool_calls))
    first_ids: dict[tuple[str, str], ToolCallId] = {}
    kept: list[ToolCall] = []
    answers: list[ToolMessage | None] = []
    answered = 0
    for call in message.tool_calls:
        key = call_key(call)
        answer = _answer(call, first_ids.get(key), len(first_ids))
        if answer is None:
            first_ids[key] = call.id
        elif answered == MAX_ANSWERED_CALLS:
            continue
        else:
            answered += 1
        kept.append(call)
        answers.append(answer)
    removed = len(message.tool_calls) - len(kept)
    if not removed:
        return BoundedReply(message=message, answers=tuple(answers))
    last = max(index for index, answer in enumerate(answers) if answer is not None)
    answers[last] = _with_removed(answers[last], removed)
    return BoundedReply(message=replace(message, tool_calls=tuple(kept)), answers=tuple(answers))


def _answer(call: ToolCall, first_id: ToolCallId | None, running: int) -> ToolMessage | None:
    """The result of a call that does not run, None for one that does."""
    if first_id is not None:
        text = f"{IDENTICAL_CALL} {first_id!r} of this reply, which runs once: its result is the result of this call."
        return ToolMessage(call_id=call.id, tool_name=call.name, status="success", parts=(Text(text=text),))
    if running < MAX_RUNNING_CALLS:
        return None
    text = f"Not run: at most {MAX_RUNNING_CALLS} calls of one reply run. Call it again if it is still needed."
    return ToolMessage(call_id=call.id, tool_name=call.name, status="error", parts=(Text(text=text),))


def _with_removed(answer: ToolMessage | None, removed: int) -> ToolMessage | None:
    if answer is None:
        return None
    note = f"{removed:,} more calls of this reply were not run either, and were removed from the conversation."
    return replace(answer, parts=(*answer.parts, Text(text=note)))
