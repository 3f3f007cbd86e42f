"""Decides which messages stay and which go, for every stage that shortens a history.

The shape of a compacted history is (context.md, section 2): system prompt; the original task; one user message that
stands for what was removed; the last user message if it is older than the tail; the tail in order. Works on whole
rounds, so a call is never separated from its results (K9). Removes and cuts; never writes a summary.

A kept round that is too large is shrunk: only results and their pictures are cut, never what the model or the user
said, and what is in the store keeps its pointer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holmes.core.truncation.masks import shrink_to_pointers
from holmes.previews import first_that_fits, head_and_tail
from holmes.previews.excerpts import DEFAULT_CHARACTERS_PER_TOKEN
from holmes.tokens import MESSAGE_OVERHEAD_TOKENS, message_overhead_tokens
from holmes.values.messages import AssistantMessage, Image, SystemMessage, Text, ToolMessage, UserMessage

if TYPE_CHECKING:
    from holmes.tokens import TokenCounter
    from holmes.values.messages import Message

_SMALLEST_RESULT_TOKENS = 16
_GAP_TOKENS = 32
_A_LITTLE_LESS = 0.95


def shrink_round(messages: tuple[Message, ...], cap_tokens: int, counter: TokenCounter) -> tuple[Message, ...]:
    """`messages` with its largest results cut until all together are at most `cap_tokens`.

    Small results stay whole: what they do not use is shared by the large ones. A round whose reply alone is above the
    cap stays above it; the caller decides what that means.
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
    """`message` with both ends of its text, at most `cap_tokens`, and how to get the rest."""
    counter = counter.exact
    weight = counter.count_message(message)
    if weight <= cap_tokens:
        return message
    room = cap_tokens - MESSAGE_OVERHEAD_TOKENS
    pictures = sum(isinstance(part, Image) for part in message.parts)
    dropped = f" {pictures} pictures were removed." if pictures else ""
    if message.stored:
        ids = ", ".join(result.id for result in message.stored)
        note = f"[Cut to fit the context window.{dropped} The full output is stored: {ids}]"
    else:
        note = f"[Cut to fit the context window.{dropped} For the rest, call again with a narrower query.]"
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


_MOST_POINTED_ROUNDS = 2

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holmes.core.truncation.context import HistoryBudget
    from holmes.tokens import TokenCounter
    from holmes.tokens.history import History
    from holmes.values.messages import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Sizes in tokens: of the rounds that stay verbatim, of the newest round, and of the whole history.

    `tail_messages` also limits the tail to so many messages, rounded up to whole rounds (K2); `newest_round` says
    whether a round that the model has not seen stays in any case. `pointers` lets older rounds stay with pointers for
    their results, but not those of `protected_tools`.
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
        """The room that a policy gives when `stand_in_tokens` go to what stands for the removed messages."""
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
        """Half of what usually stays, for the emergency (S3)."""
        return replace(
            self,
            tail_tokens=self.tail_tokens // 2,
            newest_round_tokens=self.newest_round_tokens // 2,
            history_tokens=history_tokens,
            tail_messages=None if self.tail_messages is None else self.tail_messages // 2,
        )


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
    """Positions of the messages at the end that stay: whole rounds, the newest round, notes of the loop after it.

    `pointed` are rounds before them whose results stay as pointers; `shrunk` are their messages.
    """

    kept: tuple[int, ...]
    newest: tuple[int, ...]
    notes: tuple[int, ...]
    pointed: tuple[int, ...] = ()
    shrunk: tuple[Message, ...] = ()


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
    """Keep the rounds at the end that fit the room's tail, and the newest one if the model has not seen it.

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
    while rounds and _is_user(messages[rounds[-1][0]], "note"):
        notes = (*rounds.pop(), *notes)
    newest: tuple[int, ...] = ()
    if room.newest_round and rounds and _has_calls(messages[rounds[-1][0]]):
        newest = rounds.pop()
    left = room.tail_tokens - _sum(weights, newest) - _sum(weights, notes)
    most = len(messages) if room.tail_messages is None else room.tail_messages
    kept: tuple[int, ...] = ()
    while rounds and len(kept) + len(newest) < most and not _is_user(messages[rounds[-1][0]], "summary"):
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
    """Up to two rounds that do not fit whole and do fit with their results as pointers: what was just done stays known.

    That matters where one large result would push all others out, as on small windows.
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


def _is_user(message: Message, kind: str) -> bool:
    return isinstance(message, UserMessage) and message.kind == kind


def _sum(weights: Sequence[int], positions: Iterable[int]) -> int:
    return sum(weights[position] for position in positions)
