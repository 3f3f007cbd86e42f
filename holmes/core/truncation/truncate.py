"""Shortens a history without a model: system prompt, task, a line that says so, the recent rounds (K7).

Called when a summary failed or would not help, and by the emergency. Pure; refuses to make a history longer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holmes.core.errors import CompactionInsufficientError
from holmes.core.messages import Text, UserMessage, user_text
from holmes.core.truncation.plan import Room, plan_removal

if TYPE_CHECKING:
    from holmes.core.history import History
    from holmes.core.messages import Message
    from holmes.core.tokens import TokenCounter
    from holmes.core.truncation.context import Budget

TRUNCATION_LINE = "[Earlier messages truncated]"
KEEP_SHARE = 0.40
_NO_ROOM = Room(tail_tokens=0, newest_round_tokens=0, history_tokens=0)


def truncate_history(history: History, budget: Budget, counter: TokenCounter) -> History | None:
    """The newest 40% of the usable window and what must stay, or None when that is not shorter."""
    room = Room(
        tail_tokens=int(budget.usable_tokens * KEEP_SHARE),
        newest_round_tokens=budget.newest_round_tokens,
        history_tokens=budget.history_limit_tokens,
    )
    return truncate_to(history, room, counter)


def truncate_to(history: History, room: Room, counter: TokenCounter) -> History | None:
    """`history` cut to `room`, or None when that is not shorter. An earlier summary stays."""
    stand_in = _stand_in(history.messages())
    room = replace(room, history_tokens=room.history_tokens - counter.count_message(stand_in))
    plan = plan_removal(history, room, counter)
    summaries = [message for message in plan.removed if isinstance(message, UserMessage) and message.kind == "summary"]
    only_summary_removed = len(summaries) == len(plan.removed)
    shortened = history.replaced(plan.assemble(*summaries) if only_summary_removed else plan.assemble(stand_in))
    return shortened if shortened.tokens() < history.tokens() else None


def _stand_in(messages: tuple[Message, ...]) -> UserMessage:
    """The truncation line, after the latest summary if there is one."""
    summaries = [message for message in messages if isinstance(message, UserMessage) and message.kind == "summary"]
    if not summaries:
        return user_text(TRUNCATION_LINE, kind="summary")
    latest = summaries[-1]
    if latest.text.endswith(TRUNCATION_LINE):
        return latest
    return replace(latest, parts=(*latest.parts, Text(text=TRUNCATION_LINE)))


def require_fit(history: History, budget: Budget, counter: TokenCounter) -> None:
    """Raise `CompactionInsufficientError` when even the shortest form of `history` is larger than the window."""
    plan = plan_removal(history, _NO_ROOM, counter)
    if history.replaced(plan.assemble()).tokens() > budget.hard_limit_tokens:
        raise insufficient(history, budget, counter)


def insufficient(history: History, budget: Budget, counter: TokenCounter) -> CompactionInsufficientError:
    """The error for a history that cannot be made to fit; it names every part that has to stay, and its size."""
    plan = plan_removal(history, _NO_ROOM, counter)
    parts = {
        "system prompt": plan.system,
        "tool schemas": (),
        "first question": plan.task,
        "last question": plan.last_request,
        "newest round of tool calls, its results cut": plan.tail,
    }
    sizes = {name: history.replaced(messages).tokens() for name, messages in parts.items()}
    sizes["tool schemas"] = budget.schema_tokens
    listed = ", ".join(f"{name} {size:,}" for name, size in sizes.items() if size)
    return CompactionInsufficientError(
        f"the conversation does not fit the model's window of {budget.window_tokens:,} tokens, of which "
        f"{budget.reserve_tokens:,} are kept for the reply; what must stay takes (tokens): {listed}. "
        "Shorten the largest, enable fewer toolsets, or use a model with a larger window."
    )
