"""Shortens a history without a model.

The shortened history contains the system prompt, the task, a truncation line and the recent turns. This stage runs
after a failed or useless summary, under policies without summaries, and after an overflow. After an overflow, the
history is cut to about half of the context window and half of the usual tail. A truncation never makes a history
longer.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holmes.core.truncation.plan import Room, plan_removal
from holmes.core.truncation.summary_message import ledger_room_tokens, reminder_text, store_removed, where_removed_lie
from holmes.evidence.verification import ledger_of
from holmes.values.errors import CompactionInsufficientError
from holmes.values.messages import AssistantMessage, CompactionMark, Text, UserMessage

if TYPE_CHECKING:
    from holmes.core.truncation.context import CompactionContext, HistoryBudget
    from holmes.core.truncation.plan import Plan
    from holmes.tokens import TokenCounter
    from holmes.tokens.history import History
    from holmes.values.messages import Message, StoredResult
    from holmes.values.stats import RequestStats

TRUNCATION_LINE = "[Earlier messages truncated]"
_NO_ROOM = Room(tail_tokens=0, newest_round_tokens=0, history_tokens=0)


def truncation_room(history: History, budget: HistoryBudget) -> Room:
    """Return the maximum sizes of the parts that stay: a share of the history, or the sizes after a summary."""
    room, fraction = Room.of(budget, 0), budget.policy.keep.fraction
    if fraction is None:
        return room
    tokens = min(budget.usable_tokens, history.tokens() - budget.system_tokens)
    return replace(room, tail_tokens=int(tokens * fraction), tail_messages=None)


def plan_truncation(history: History, room: Room, counter: TokenCounter, note_tokens: int) -> Plan:
    """Select the messages that stay within `room`. The truncation line and its note take `note_tokens`."""
    latest = _latest_summary(history.messages())
    earlier = sum(counter.count_text(part.text) for part in _summary_parts(latest)) if latest else 0
    return plan_removal(history, replace(room, history_tokens=room.history_tokens - note_tokens - earlier), counter)


def truncated(history: History, plan: Plan, note: TruncationNote) -> History | None:
    """Cut `history` as planned. The text of an earlier summary stays. Returns None if the result is not shorter."""
    latest = _latest_summary(history.messages())
    if all(message is latest for message in plan.removed):  # only results were cut, so the summary is still valid
        shortened = history.replaced(plan.assemble(*((latest,) if plan.removed and latest else ())))
    else:
        line = replace(_line_after(latest, note), stored=where_removed_lie(plan.removed, note.removed))
        rounds = sum(isinstance(message, AssistantMessage) for message in plan.tail)
        tokens = history.replaced(plan.assemble(line)).tokens()
        line = replace(line, mark=CompactionMark(kept_rounds=rounds, tokens=tokens))
        shortened = history.replaced(plan.assemble(line))
    return shortened if shortened.tokens() < history.tokens() else None


def _latest_summary(messages: tuple[Message, ...]) -> UserMessage | None:
    summaries = (message for message in messages if isinstance(message, UserMessage) and message.kind == "summary")
    return next(reversed(tuple(summaries)), None)


def _summary_parts(summary: UserMessage | None) -> tuple[Text, ...]:
    """Return the text of the summary, without the truncation line, ledger and reminder."""
    first = summary.parts[0] if summary else None
    return (first,) if isinstance(first, Text) and first.text != TRUNCATION_LINE else ()


def _line_after(summary: UserMessage | None, note: TruncationNote) -> UserMessage:
    """Return a message with the latest summary, if any, the truncation line and its note."""
    added = (Text(text=TRUNCATION_LINE), *(Text(text=text) for text in note.texts))
    return UserMessage(parts=(*_summary_parts(summary), *added), kind="summary")


def require_fit(history: History, budget: HistoryBudget, counter: TokenCounter) -> None:
    """Raise `CompactionInsufficientError` if even the shortest form of `history` exceeds the context window."""
    plan = plan_removal(history, _NO_ROOM, counter)
    if history.replaced(plan.assemble()).exceeds(budget.hard_limit_tokens):
        raise insufficient(history, budget, counter)


def insufficient(
    history: History, budget: HistoryBudget, counter: TokenCounter, spent: RequestStats | None = None
) -> CompactionInsufficientError:
    """Return the error for a history that cannot fit. It states the size of every part that must stay.

    `spent` is the cost of the attempt.
    """
    plan = plan_removal(history, _NO_ROOM, counter)
    parts = {
        "system prompt": plan.system,
        "tool schemas": (),
        "first question": plan.task,
        "last question": plan.last_request,
        "newest turn, with its results cut": plan.tail,
    }
    sizes = {name: history.replaced(messages).tokens() for name, messages in parts.items()}
    sizes["tool schemas"] = budget.schema_tokens
    listed = ", ".join(f"{name} {size:,}" for name, size in sizes.items() if size)
    return CompactionInsufficientError(
        f"the conversation does not fit in the model's context window of {budget.window_tokens:,} tokens, of which "
        f"{budget.reserve_tokens:,} are reserved for the reply. Parts that must stay, in tokens: {listed}. "
        "Shorten the largest part, start a new conversation, enable fewer toolsets, or use a model with a larger "
        "context window.",
        stats=spent,
    )


_HISTORY_SHARE = 0.60


def emergency_room(history: History, budget: HistoryBudget) -> Room:
    """Return the maximum sizes of the parts that stay after an overflow.

    A history that fits according to the local count is cut to 60% of its size. In this case, the provider counts more
    tokens or has a smaller context window.
    """
    half_of_window = int(budget.window_tokens * budget.policy.safety.emergency_share) - budget.schema_tokens
    most = max(0, min(half_of_window, int(history.tokens() * _HISTORY_SHARE)))
    return Room.of(budget, 0).halved(most)


_WHERE_TOKENS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncationNote:
    """The texts that follow the truncation line. `removed` refers to the stored text of the removed messages."""

    texts: tuple[str, ...] = ()
    removed: StoredResult | None = None


async def truncation_note_tokens(history: History, context: CompactionContext) -> int:
    return _WHERE_TOKENS + sum(context.counter.count_text(text) + 1 for text in await _texts(history, context))


async def make_truncation_note(
    history: History, removed: tuple[Message, ...], context: CompactionContext
) -> TruncationNote:
    """Store the messages in `removed`, and return a note that refers to their stored text."""
    stored = await store_removed(removed, context)
    where = () if stored is None else (f"The removed messages are stored as result {stored.id}.",)
    return TruncationNote(texts=(*where, *await _texts(history, context)), removed=stored)


async def _texts(history: History, context: CompactionContext) -> tuple[str, ...]:
    proved = await ledger_of(history.messages(), context.verifier)
    ledger = await asyncio.to_thread(proved.render, ledger_room_tokens(context.budget.summary_tokens), context.counter)
    reminder = reminder_text(context.tools) if context.policy.summary.reminder else ""
    return tuple(text for text in (ledger, reminder) if text)
