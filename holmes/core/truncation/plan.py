"""Decides which messages stay and which go, for every stage that shortens a history.

The shape of a compacted history is (context.md, section 2): system prompt; the original task; one user message that
stands for what was removed; the last user message if it is older than the tail; the tail in order. Works on whole
rounds, so a call is never separated from its results (K9). Removes and cuts; never writes a summary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.core.messages import AssistantMessage, SystemMessage, ToolMessage, UserMessage
from holmes.core.truncation.shrink import shrink_round

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holmes.core.history import History
    from holmes.core.messages import Message
    from holmes.core.tokens import TokenCounter


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Sizes in tokens: of the rounds that stay verbatim, of the newest round, and of the whole history."""

    tail_tokens: int
    newest_round_tokens: int
    history_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What stays of a history, and what a summary must stand for: `removed`, in order, which frees `removed_tokens`."""

    system: tuple[Message, ...]
    task: tuple[Message, ...]
    last_request: tuple[Message, ...]
    tail: tuple[Message, ...]
    removed: tuple[Message, ...]
    removed_tokens: int

    def assemble(self, *stand_in: UserMessage) -> tuple[Message, ...]:
        """The compacted history, with `stand_in` in the place of what was removed."""
        return (*self.system, *self.task, *stand_in, *self.last_request, *self.tail)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tail:
    """Positions of the messages at the end that stay: whole rounds, the newest round, notes of the loop after it."""

    kept: tuple[int, ...]
    newest: tuple[int, ...]
    notes: tuple[int, ...]


def split_rounds(messages: Sequence[Message], positions: Iterable[int]) -> list[tuple[int, ...]]:
    """`positions` grouped: a reply with its results is one round, any other message stands alone."""
    rounds: list[tuple[int, ...]] = []
    for position in positions:
        message = messages[position]
        if isinstance(message, ToolMessage) and rounds and isinstance(messages[rounds[-1][0]], AssistantMessage):
            rounds[-1] = (*rounds[-1], position)
        else:
            rounds.append((position,))
    return rounds


def plan_removal(history: History, room: Room, counter: TokenCounter) -> Plan:
    """Keep the rounds at the end that fit `room.tail_tokens`, and always the newest one if the model has not seen it.

    That one is cut to `room.newest_round_tokens` if it is larger. Where task and last request leave less of
    `room.history_tokens` than the tail would take, the tail gets what is left.
    """
    messages, weights = history.messages(), history.token_counts()
    system = [index for index, message in enumerate(messages) if isinstance(message, SystemMessage)]
    requests = [index for index, message in enumerate(messages) if _is_user(message, "request")]
    task, last = requests[:1], requests[-1:]
    fixed = {*system, *task, *last}
    left = max(0, room.history_tokens - _sum(weights, fixed))
    body = [index for index in range(len(messages)) if index not in {*system, *task}]
    tail = _choose_tail(messages, weights, body, min(room.tail_tokens, left))
    newest = tuple(messages[index] for index in tail.newest)
    newest_cap = min(room.newest_round_tokens, left - _sum(weights, tail.notes))
    if _sum(weights, tail.newest) > newest_cap:
        newest = shrink_round(newest, newest_cap, counter)
    stays = {*fixed, *tail.kept, *tail.newest, *tail.notes}
    removed = [index for index in range(len(messages)) if index not in stays]
    apart = [index for index in last if index not in task and index not in tail.kept]
    return Plan(
        system=tuple(messages[index] for index in system),
        task=tuple(messages[index] for index in task),
        last_request=tuple(messages[index] for index in apart),
        tail=(*(messages[i] for i in tail.kept), *newest, *(messages[i] for i in tail.notes)),
        removed=tuple(messages[index] for index in removed),
        removed_tokens=_sum(weights, removed),
    )


def _choose_tail(messages: Sequence[Message], weights: Sequence[int], body: list[int], tail_tokens: int) -> _Tail:
    rounds = split_rounds(messages, body)
    notes: tuple[int, ...] = ()
    while rounds and _is_user(messages[rounds[-1][0]], "note"):
        notes = (*rounds.pop(), *notes)
    newest: tuple[int, ...] = ()
    if rounds and isinstance(reply := messages[rounds[-1][0]], AssistantMessage) and reply.tool_calls:
        newest = rounds.pop()
    left = tail_tokens - _sum(weights, newest) - _sum(weights, notes)
    kept: tuple[int, ...] = ()
    while rounds and not _is_user(messages[rounds[-1][0]], "summary"):
        left -= _sum(weights, rounds[-1])
        if left < 0:
            break
        kept = (*rounds.pop(), *kept)
    return _Tail(kept=kept, newest=newest, notes=notes)


def _is_user(message: Message, kind: str) -> bool:
    return isinstance(message, UserMessage) and message.kind == kind


def _sum(weights: Sequence[int], positions: Iterable[int]) -> int:
    return sum(weights[position] for position in positions)
