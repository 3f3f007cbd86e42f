"""What stands beside the line `[Earlier messages truncated]`: where the removed messages lie, ledger, reminder.

Used by the truncation and the emergency, which have no model to ask (K8, K11, N6).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.core.truncation.reminder import reminder_text
from holmes.core.truncation.removed import store_removed
from holmes.core.truncation.summary_message import ledger_room_tokens
from holmes.evidence.ledger import ledger_of

if TYPE_CHECKING:
    from holmes.core.history import History
    from holmes.core.truncation.context import Budget, CompactionContext
    from holmes.values.messages import Message, StoredResult

_WHERE_TOKENS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncationNote:
    """`texts` follow the truncation line; `removed` is where the removed messages lie, None when nowhere."""

    texts: tuple[str, ...] = ()
    removed: StoredResult | None = None


async def truncation_note_tokens(history: History, context: CompactionContext, budget: Budget) -> int:
    """What the note takes at most."""
    return _WHERE_TOKENS + sum(context.counter.count_text(text) + 1 for text in await _texts(history, context, budget))


async def make_truncation_note(
    history: History, removed: tuple[Message, ...], context: CompactionContext, budget: Budget
) -> TruncationNote:
    """The note for a history that loses `removed`, which are stored first."""
    stored = await store_removed(removed, context)
    where = () if stored is None else (f"The removed messages are stored as result {stored.id}.",)
    return TruncationNote(texts=(*where, *await _texts(history, context, budget)), removed=stored)


async def _texts(history: History, context: CompactionContext, budget: Budget) -> tuple[str, ...]:
    proved = await ledger_of(history.messages(), context.verifier)
    ledger = await asyncio.to_thread(proved.render, ledger_room_tokens(budget.summary_tokens), context.counter)
    reminder = reminder_text(context.tools) if context.policy.summary.reminder else ""
    return tuple(text for text in (ledger, reminder) if text)
