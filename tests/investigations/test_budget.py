"""Every call is charged, also one that failed, and kept before anything builds on it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from holmes.investigations.queue.budget import Budget, Budgeted, ChatCosts
from holmes.investigations.records.database import Database
from holmes.investigations.records.records import InvestigationRecords
from holmes.investigations.records.schema import STEPS
from holmes.values.errors import ModelError
from holmes.values.messages import AssistantMessage, SystemMessage
from holmes.values.model import ModelReply, ModelRequest
from holmes.values.stats import RequestStats
from tests.support.counting_model import CountingModel, EventLog, model_reply

REQUEST = ModelRequest(messages=(SystemMessage(text="x"),), tools=(), tool_choice="none", max_output_tokens=100)


async def nothing() -> float:
    return 0.0


def budget(keep: Callable[[float], Awaitable[None]], max_cost: float = 1.0) -> Budget:
    return Budget(max_cost=max_cost, max_cost_per_day=None, spent_today=nothing, keep=keep)


async def test_calls_that_failed_are_charged_and_kept_too() -> None:
    error = ModelError("no", provider="p", model="m", retryable=False, stats=RequestStats(cost=0.2, calls=2))
    answers: list[ModelError | ModelReply] = [model_reply(AssistantMessage(text="x")), error]
    kept: list[float] = []

    async def keep(cost: float) -> None:
        kept.append(cost)

    model = Budgeted(CountingModel(lambda _: answers.pop(0)), budget(keep, max_cost=0.21))
    await model.complete(REQUEST, EventLog())
    with pytest.raises(ModelError, match="no"):
        await model.complete(REQUEST, EventLog())
    with pytest.raises(ModelError, match="budget of this investigation is exhausted"):
        await model.complete(REQUEST, EventLog())
    assert kept == [0.01, 0.2]


async def test_a_cost_that_could_not_be_kept_is_kept_with_the_next_one_and_once(tmp_path: Path) -> None:
    database = await Database.open(f"sqlite:///{tmp_path / 'investigations.db'}")
    costs = ChatCosts(database, "run")
    await database.transaction(STEPS.drop)
    await costs.add(0.25)  # a chat goes on: its answer is paid for
    await database.transaction(STEPS.create)
    await costs.add(0.5)
    await costs.flush()
    assert await InvestigationRecords(database).spent_today() == 0.75
    await database.close()
