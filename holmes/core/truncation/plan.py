"""Selects the messages that stay and the messages that are removed, for every stage that shortens a history.

A compacted history starts with the system prompt, the original task, and one user message in place of the removed
messages. The last user message follows if it is older than the tail. The tail is at the end. Only whole turns are
removed, so a call always stays with its results. `repair_pairing` pairs calls and results in conversations from other
programs or aborted runs. In a kept turn that is too large, only results and their images are cut. The cut result
contains the id of the stored result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holmes.core.truncation.masks import shrink_to_pointers
from holmes.previews import first_that_fits, head_and_tail
from holmes.previews.excerpts import DEFAULT_CHARACTERS_PER_TOKEN
from holmes.tokens import MESSAGE_OVERHEAD_TOKENS, message_overhead_tokens
from holmes.values.messages import (
    AssistantMessage,
    Image,
    SystemMessage,
    Text,
    ToolCall,
    ToolCallId,
    ToolMessage,
    is_user_message,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holmes.core.truncation.context import HistoryBudget
    from holmes.tokens import TokenCounter
    from holmes.tokens.history import History
    from holmes.values.messages import Message, UserMessage

_MOST_POINTED_ROUNDS = 2
_SMALLEST_RESULT_TOKENS = 16
_GAP_TOKENS = 32
_A_LITTLE_LESS = 0.95


def shrink_round(messages: tuple[Message, ...], cap_tokens: int, counter: TokenCounter) -> tuple[Message, ...]:
    """Cut the largest results of `messages` until all of them together take at most `cap_tokens`.

    Small results stay whole, and large results share the rest of the cap. If the reply alone exceeds the cap, the turn
    stays above the cap.
    """
    counter = counter.exact
    weights = [counter.count_message(message) for message in messages]
    if sum(weights) <= cap_tokens:
        return messages
    results = [index for index, message in enumerate(messages) if isinstance(message, ToolMessage)]
    left = cap_tokens - (sum(weights) - sum(weights[index] for index in results))
    shortened = list(messages)
    for done, index in enumerate(sorted(results, key=weights.__getitem__)):
        message = messages[index]
        share = max(_SMALLEST_RESULT_TOKENS, left // (len(results) - done))
        if weights[index] > share and isinstance(message, ToolMessage):
            shortened[index] = cut_tool_message(message, share, counter)
            left -= counter.count_message(shortened[index])
        else:
            left -= weights[index]
    return tuple(shortened)


def cut_tool_message(message: ToolMessage, cap_tokens: int, counter: TokenCounter) -> ToolMessage:
    """Cut the middle of `message`, so that it has at most `cap_tokens`. A note explains how to read the rest."""
    counter = counter.exact
    weight = counter.count_message(message)
    if weight <= cap_tokens:
        return message
    room = cap_tokens - MESSAGE_OVERHEAD_TOKENS
    pictures = sum(isinstance(part, Image) for part in message.parts)
    removed = "1 image was" if pictures == 1 else f"{pictures} images were"
    dropped = f" {removed} removed." if pictures else ""
    if message.stored:
        ids = ", ".join(result.id for result in message.stored)
        note = f"[Cut to fit the context window.{dropped} The full result is stored: {ids}]"
    else:
        note = f"[Cut to fit the context window.{dropped} To get the rest, call again with a narrower query.]"
    preview_room = max(0, room - _GAP_TOKENS - counter.count_text(note))
    text_tokens = max(1, weight - message_overhead_tokens(message))
    per_token = min(DEFAULT_CHARACTERS_PER_TOKEN, _A_LITTLE_LESS * len(message.text) / text_tokens)
    preview = (
        head_and_tail(message.text, preview_room, counter, characters_per_token=per_token)
        if preview_room >= _GAP_TOKENS
        else None
    )
    options = (f"{preview.render()}\n{note}", note, "[cut]") if preview else (note, "[cut]")
    return replace(message, parts=(Text(text=first_that_fits(options, room, counter)),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Maximum sizes, in tokens, of the tail, of the newest turn, and of the whole history.

    The tail contains the turns that stay verbatim. `tail_messages` also limits the number of messages in the tail,
    rounded up to whole turns. If `newest_round` is true, a turn that the model has not seen always stays. If `pointers`
    is true, pointers may replace the results of older turns in the tail, except for results of `protected_tools`.
    """

    tail_tokens: int
    newest_round_tokens: int
    history_tokens: int
    tail_messages: int | None = None
    newest_round: bool = True
    pointers: bool = True
    protected_tools: tuple[str, ...] = ()

    @classmethod
    def of(cls, budget: HistoryBudget, stand_in_tokens: int) -> Room:
        """Return the sizes that the policy of `budget` allows.

        `stand_in_tokens` is the size of the message that replaces the removed messages.
        """
        return cls(
            tail_tokens=budget.tail_tokens,
            newest_round_tokens=budget.newest_round_tokens,
            history_tokens=budget.history_limit_tokens - stand_in_tokens,
            tail_messages=budget.policy.keep.messages,
            newest_round=budget.policy.keep.newest_round,
            pointers=budget.policy.mode != "compress",
            protected_tools=budget.policy.masking.protected_tools,
        )

    def halved(self, history_tokens: int) -> Room:
        """Return sizes for an emergency: half of the usual tail, and a history of at most `history_tokens`."""
        return replace(
            self,
            tail_tokens=self.tail_tokens // 2,
            newest_round_tokens=self.newest_round_tokens // 2,
            history_tokens=history_tokens,
            tail_messages=None if self.tail_messages is None else self.tail_messages // 2,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The messages that stay, and the messages to remove. The removal frees `removed_tokens`."""

    system: tuple[Message, ...]
    task: tuple[Message, ...]
    last_request: tuple[Message, ...]
    tail: tuple[Message, ...]
    removed: tuple[Message, ...]
    removed_tokens: int

    def assemble(self, *stand_in: UserMessage) -> tuple[Message, ...]:
        """Return the messages of the compacted history, with `stand_in` in place of the removed messages."""
        return (*self.system, *self.task, *stand_in, *self.last_request, *self.tail)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tail:
    """The positions of the last messages, which stay: whole turns, the newest turn, and notes after the newest turn.

    `pointed` contains the positions of earlier turns in which pointers replace the results. `shrunk` contains the
    messages of these turns with the pointers.
    """

    kept: tuple[int, ...]
    newest: tuple[int, ...]
    notes: tuple[int, ...]
    pointed: tuple[int, ...] = ()
    shrunk: tuple[Message, ...] = ()


def split_rounds(messages: Sequence[Message], positions: Iterable[int]) -> list[tuple[int, ...]]:
    """Group `positions` by turns. Each message that does not belong to a turn is a separate group."""
    rounds: list[tuple[int, ...]] = []
    for position in positions:
        message = messages[position]
        if isinstance(message, ToolMessage) and rounds and isinstance(messages[rounds[-1][0]], AssistantMessage):
            rounds[-1] = (*rounds[-1], position)
        else:
            rounds.append((position,))
    return rounds


def plan_removal(history: History, room: Room, counter: TokenCounter) -> Plan:
    """Keep the last turns that fit the tail of `room`, and the newest turn if the model has not seen it.

    If the newest turn is larger than `room.newest_round_tokens`, its results are cut. The tail never exceeds the rest
    of `room.history_tokens` after the system prompt, the task and the last request.
    """
    messages, weights = history.messages(), history.token_counts()
    system = [index for index, message in enumerate(messages) if isinstance(message, SystemMessage)]
    requests = [index for index, message in enumerate(messages) if is_user_message(message, "request")]
    task, last = requests[:1], requests[-1:]
    fixed = {*system, *task, *last}
    left = max(0, room.history_tokens - _sum(weights, fixed))
    body = [index for index in range(len(messages)) if index not in {*system, *task}]
    room = replace(room, tail_tokens=min(room.tail_tokens, left))
    tail = _choose_tail(messages, weights, body, room, counter)
    newest = tuple(messages[index] for index in tail.newest)
    newest_cap = min(room.newest_round_tokens, left - _sum(weights, tail.notes))
    if _sum(weights, tail.newest) > newest_cap:
        newest = shrink_round(newest, newest_cap, counter)
    stays = {*fixed, *tail.pointed, *tail.kept, *tail.newest, *tail.notes}
    removed = [index for index in range(len(messages)) if index not in stays]
    apart = [index for index in last if index not in task and index not in tail.kept]
    return Plan(
        system=tuple(messages[index] for index in system),
        task=tuple(messages[index] for index in task),
        last_request=tuple(messages[index] for index in apart),
        tail=(*tail.shrunk, *(messages[i] for i in tail.kept), *newest, *(messages[i] for i in tail.notes)),
        removed=tuple(messages[index] for index in removed),
        removed_tokens=_sum(weights, removed),
    )


def _choose_tail(
    messages: Sequence[Message], weights: Sequence[int], body: list[int], room: Room, counter: TokenCounter
) -> _Tail:
    rounds = split_rounds(messages, body)
    notes: tuple[int, ...] = ()
    while rounds and is_user_message(messages[rounds[-1][0]], "note"):
        notes = (*rounds.pop(), *notes)
    newest: tuple[int, ...] = ()
    if room.newest_round and rounds and _has_calls(messages[rounds[-1][0]]):
        newest = rounds.pop()
    left = room.tail_tokens - _sum(weights, newest) - _sum(weights, notes)
    most = len(messages) if room.tail_messages is None else room.tail_messages
    kept: tuple[int, ...] = ()
    while rounds and len(kept) + len(newest) < most and not is_user_message(messages[rounds[-1][0]], "summary"):
        if _sum(weights, rounds[-1]) > left:
            break
        left -= _sum(weights, rounds[-1])
        kept = (*rounds.pop(), *kept)
    if room.tail_messages is not None or not room.newest_round or not room.pointers:
        return _Tail(kept=kept, newest=newest, notes=notes)
    pointed, shrunk = _pointed_rounds(messages, rounds, replace(room, tail_tokens=left), counter)
    return _Tail(kept=kept, newest=newest, notes=notes, pointed=pointed, shrunk=shrunk)


def _pointed_rounds(
    messages: Sequence[Message], rounds: list[tuple[int, ...]], room: Room, counter: TokenCounter
) -> tuple[tuple[int, ...], tuple[Message, ...]]:
    """Return up to two more turns, with pointers in place of their results.

    In a small context window, one large result could otherwise displace all other turns.
    """
    left = room.tail_tokens
    positions: tuple[int, ...] = ()
    shrunk: tuple[Message, ...] = ()
    for round_positions in reversed(rounds[-_MOST_POINTED_ROUNDS:]):
        if not _has_calls(messages[round_positions[0]]):
            break
        whole = [messages[position] for position in round_positions]
        pointers = shrink_to_pointers(whole, 0, counter, protected_tools=room.protected_tools)
        left -= sum(map(counter.count_message, pointers))
        if left < 0:
            break
        positions, shrunk = (*round_positions, *positions), (*pointers, *shrunk)
    return positions, shrunk


def _has_calls(message: Message) -> bool:
    return isinstance(message, AssistantMessage) and bool(message.tool_calls)


def _sum(weights: Sequence[int], positions: Iterable[int]) -> int:
    return sum(weights[position] for position in positions)


_MISSING_RESULT = "the call was interrupted and returned no result"


def repair_pairing(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Repair `messages` so that every call has exactly one result, in the order of the calls.

    Providers reject any other conversation. An error replaces a missing result, and a result without a call is removed.
    A duplicate call id is renamed in the call and in its result. Unchanged messages are the same objects, and a second
    repair makes no changes.
    """
    reserved = {call.id for message in messages if isinstance(message, AssistantMessage) for call in message.tool_calls}
    used: set[ToolCallId] = set()
    repaired: list[Message] = []
    position = 0
    while position < len(messages):
        message = messages[position]
        position += 1
        if isinstance(message, ToolMessage):
            continue
        if not isinstance(message, AssistantMessage) or not message.tool_calls:
            repaired.append(message)
            continue
        results: list[ToolMessage] = []
        while position < len(messages) and isinstance(result := messages[position], ToolMessage):
            results.append(result)
            position += 1
        repaired.extend(_repair_round(message, results, used, reserved))
    return tuple(repaired)


def _repair_round(
    message: AssistantMessage, results: list[ToolMessage], used: set[ToolCallId], reserved: set[ToolCallId]
) -> list[Message]:
    """Repair one turn: make the call ids unique, and add missing results.

    If several calls have the same id, the n-th result belongs to the n-th call.
    """
    waiting: dict[ToolCallId, list[ToolMessage]] = {}
    for result in results:
        waiting.setdefault(result.call_id, []).append(result)
    calls: list[ToolCall] = []
    answers: list[Message] = []
    for call in message.tool_calls:
        new_id = _unused_id(call.id, used, reserved)
        used.add(new_id)
        calls.append(call if new_id == call.id else replace(call, id=new_id))
        found = waiting.get(call.id)
        answer = found.pop(0) if found else _missing_result(call)
        answers.append(answer if answer.call_id == new_id else replace(answer, call_id=new_id))
    unchanged = tuple(calls) == message.tool_calls
    return [message if unchanged else replace(message, tool_calls=tuple(calls)), *answers]


def _unused_id(call_id: ToolCallId, used: set[ToolCallId], reserved: set[ToolCallId]) -> ToolCallId:
    if call_id not in used:
        return call_id
    number = 2
    while (candidate := ToolCallId(f"{call_id}-{number}")) in used or candidate in reserved:
        number += 1
    return candidate


def _missing_result(call: ToolCall) -> ToolMessage:
    return ToolMessage(call_id=call.id, tool_name=call.name, status="error", parts=(Text(text=_MISSING_RESULT),))
