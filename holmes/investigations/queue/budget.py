"""Stops paid models when a budget is spent. `holmes.app` wraps the models of a run in it.

The next model of the chain then goes on, which in the end is `builtin/triage`: it costs nothing.
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
    """The money of one run: `max_cost` for itself, `max_cost_per_day` together with all others. None means no limit.

    `spent_today` is asked before each call, since other runs spend, too; `spent` is what earlier attempts cost. `keep`
    is told what each call cost, also one that failed, before anything builds on it.
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
        """Why no paid model may be asked now; None when one may."""
        if self._max_cost is not None and self._spent >= self._max_cost:
            return f"the budget of this investigation is spent: ${self._spent:.2f} of ${self._max_cost:.2f}"
        if self._max_cost_per_day is None:
            return None
        today = await self._spent_today()
        if today < self._max_cost_per_day:
            return None
        return f"the budget of today is spent: ${today:.2f} of ${self._max_cost_per_day:.2f}"

    async def charge(self, cost: float) -> None:
        """A call cost so many US dollars."""
        self._spent += cost
        if self._keep is not None and cost:
            await self._keep(cost)


class Budgeted:
    """A `ChatModel` that refuses to be asked when the budget is spent."""

    def __init__(self, inner: ChatModel, budget: Budget) -> None:
        self._inner = inner
        self._budget = budget

    @property
    def name(self) -> str:
        """The name of the model."""
        return self._inner.name

    @property
    def limits(self) -> ModelLimits:
        """The sizes of the model."""
        return self._inner.limits

    async def complete(self, request: ModelRequest, emit: EmitEvent) -> ModelReply:
        """Ask the model. Raises `ModelError` when the budget is spent, and what the model raises."""
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
    """What one chat costs, call by call, so that running chats count and a killed process forgets nothing."""

    def __init__(self, database: Database, run_id: str) -> None:
        self._database = database
        self._run_id = run_id
        self._calls = 0
        self._waiting: dict[str, tuple[float, float]] = {}

    async def add(self, cost: float) -> None:
        """A call cost so many US dollars. Without a database it is kept with the next one: the answer is paid for."""
        self._calls += 1
        self._waiting[f"{self._run_id}/{self._calls}"] = (cost, time.time())
        await self.flush()

    async def flush(self) -> None:
        """Keep what could not be kept yet, if the database is there. Raises nothing."""
        waiting = dict(self._waiting)
        if not waiting:
            return

        def insert(connection: Connection) -> None:
            for name, (cost, at) in waiting.items():
                # Under a name: a transaction that is said again, because its answer got lost, adds nothing.
                values = {"investigation_id": CHATS, "name": name, "result": b"", "cost": cost, "finished_at": at}
                insert_once(connection, STEPS, values)

        try:
            await self._database.transaction(insert, wait_seconds=_WAIT_SECONDS)
        except DatabaseUnavailable:
            return
        for name in waiting:
            self._waiting.pop(name, None)
