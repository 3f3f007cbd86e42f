"""Rejects calls to paid models when a budget is exhausted, and records the costs of chats.

After a rejected call, the run continues with the next model in the chain. The last model is `builtin/triage`, which is
free.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from holmes.investigations.records.database import DatabaseUnavailable
from holmes.investigations.records.journal import insert_once
from holmes.investigations.records.schema import CHATS, STEPS
from holmes.values.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sqlalchemy import Connection

    from holmes.investigations.records.database import Database
    from holmes.values.model import ChatModel, EmitEvent, ModelLimits, ModelReply, ModelRequest


class Budget:
    """The budget of one run, in US dollars.

    `max_cost` limits the run, and `max_cost_per_day` limits all runs on one day. A limit of None means no limit.
    `spent_today` is called before each model call, because other runs also spend money. `spent` is the cost of earlier
    attempts. `keep` records the cost of each model call, including failed calls, before the reply is used.
    """

    def __init__(
        self,
        *,
        max_cost: float | None,
        max_cost_per_day: float | None,
        spent_today: Callable[[], Awaitable[float]],
        spent: float = 0.0,
        keep: Callable[[float], Awaitable[None]] | None = None,
    ) -> None:
        self._max_cost = max_cost
        self._max_cost_per_day = max_cost_per_day
        self._spent_today = spent_today
        self._spent = spent
        self._keep = keep

    async def refusal(self) -> str | None:
        """Return a message that explains the rejection, or None if the budget is not exhausted."""
        if self._max_cost is not None and self._spent >= self._max_cost:
            return f"the budget of this investigation is exhausted: ${self._spent:.2f} of ${self._max_cost:.2f}"
        if self._max_cost_per_day is None:
            return None
        today = await self._spent_today()
        if today < self._max_cost_per_day:
            return None
        return f"today's budget is exhausted: ${today:.2f} of ${self._max_cost_per_day:.2f}"

    async def charge(self, cost: float) -> None:
        """Add the cost of a call in US dollars."""
        self._spent += cost
        if self._keep is not None and cost:
            await self._keep(cost)


class Budgeted:
    """A `ChatModel` that rejects calls when the budget is exhausted."""

    def __init__(self, inner: ChatModel, budget: Budget) -> None:
        self._inner = inner
        self._budget = budget

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def limits(self) -> ModelLimits:
        return self._inner.limits

    async def complete(self, request: ModelRequest, emit: EmitEvent) -> ModelReply:
        """Call the model. Raises `ModelError` if the call fails or the budget is exhausted."""
        refusal = await self._budget.refusal()
        if refusal is not None:
            raise ModelError(refusal, provider="", model=self.name, retryable=False)
        try:
            reply = await self._inner.complete(request, emit)
        except ModelError as error:
            await self._budget.charge(error.stats.cost if error.stats else 0.0)
            raise
        await self._budget.charge(reply.stats.cost)
        return reply


_WAIT_SECONDS: Final = 2.0


class ChatCosts:
    """Records the cost of a chat after each call.

    Running chats therefore count towards the daily budget, and no cost is lost if the process is killed.
    """

    def __init__(self, database: Database, run_id: str) -> None:
        self._database = database
        self._run_id = run_id
        self._calls = 0
        self._waiting: dict[str, tuple[float, float]] = {}

    async def add(self, cost: float) -> None:
        """Add the cost of a call in US dollars. If the database is unavailable, a later call stores the cost."""
        self._calls += 1
        self._waiting[f"{self._run_id}/{self._calls}"] = (cost, time.time())
        await self.flush()

    async def flush(self) -> None:
        """Store the pending costs if the database is available. Never raises."""
        waiting = dict(self._waiting)
        if not waiting:
            return

        def insert(connection: Connection) -> None:
            for name, (cost, at) in waiting.items():
                # The name makes the transaction idempotent, so a retry does not add the cost twice.
                values = {"investigation_id": CHATS, "name": name, "result": b"", "cost": cost, "finished_at": at}
                insert_once(connection, STEPS, values)

        try:
            await self._database.transaction(insert, wait_seconds=_WAIT_SECONDS)
        except DatabaseUnavailable:
            return
        for name in waiting:
            self._waiting.pop(name, None)
