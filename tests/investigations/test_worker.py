"""One investigation from its record to its outcome, with an `Ask` that plays streams of events."""

# ruff: noqa: ARG001, ARG005  the players have the parameters of their protocols

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable

import pytest

from holmes.investigations.queue.worker import (
    MAX_BARREN_ATTEMPTS,
    InvestigationWorker,
    WorkerParts,
)
from holmes.investigations.records.database import Database
from holmes.investigations.records.records import InvestigationRecords
from holmes.investigations.records.values import InvestigationRecord, NewInvestigation
from holmes.values.errors import ClusterUnreachable
from holmes.values.events import AgentEvent, AnswerFinished, ModelSwitched, RunFailed
from holmes.values.stats import NOTHING_SPENT, RequestStats
from holmes.values.steps import StepRunner

Play = Callable[[InvestigationRecord, StepRunner], AsyncGenerator[AgentEvent, None]]


def answer(text: str, model: str = "gpt") -> AnswerFinished:
    return AnswerFinished(text=text, messages=(), stats=RequestStats(cost=0.5), steps=1, model=model)


class Bench:
    """A worker on a database, and what it announced."""

    def __init__(self, database: Database, play: Play, **times: float) -> None:
        self.records = InvestigationRecords(database)
        self.announced: list[InvestigationRecord] = []

        async def ask(record: InvestigationRecord, steps: StepRunner, spent: float) -> AsyncGenerator[AgentEvent, None]:
            return play(record, steps)

        parts = {"timeout_seconds": 60.0, "cluster_wait_seconds": 0.0, **times}
        self.worker = InvestigationWorker(
            WorkerParts(
                database=database,
                replica="me",
                ask=ask,
                on_finished=lambda connection, record: None,
                announce=self.announced.append,
                timeout_seconds=parts["timeout_seconds"],
                cluster_wait_seconds=parts["cluster_wait_seconds"],
            )
        )

    async def run(self, new: NewInvestigation | None = None) -> InvestigationRecord:
        identity = await self.records.add(new or NewInvestigation(question="q", title="t", source="api"))
        await self.worker.run(identity)
        record = await self.records.get(identity)
        assert record is not None
        return record


async def test_a_model_that_takes_all_the_time_is_followed_by_an_answer_without_one(database: Database) -> None:
    async def play(record: InvestigationRecord, steps: StepRunner) -> AsyncGenerator[AgentEvent, None]:
        if record.without_llm is None:
            await asyncio.Event().wait()
        assert await steps.run("step-1", lambda: asyncio.sleep(0, "recorded")) == "recorded"
        yield answer("found", "builtin/triage")

    bench = Bench(database, play, timeout_seconds=0.2)
    record = await bench.run()
    assert (record.state, record.answer, record.answered_by) == ("answered", "found", "builtin/triage")
    assert "did not finish within 0 seconds" in str(record.without_llm)
    assert [each.id for each in bench.announced] == [record.id]


async def test_zero_bytes_and_halves_of_characters_cost_no_paid_answer(database: Database) -> None:
    async def play(record: InvestigationRecord, steps: StepRunner) -> AsyncGenerator[AgentEvent, None]:
        yield answer("a\0b\ud800c")

    record = await Bench(database, play).run(NewInvestigation(question="\0?", title="\ud800", source="api"))
    assert (record.state, record.answer) == ("answered", "a\ufffdb\ufffdc")


async def test_who_could_not_be_asked_and_why_is_kept(database: Database) -> None:
    async def play(record: InvestigationRecord, steps: StepRunner) -> AsyncGenerator[AgentEvent, None]:
        yield ModelSwitched(from_model="gpt", to_model="builtin/triage", reason="the budget is spent")
        yield answer("found", "builtin/triage")

    record = await Bench(database, play).run()
    assert record.without_llm == "gpt failed: the budget is spent"
    assert record.stats.cost == 0.5


async def test_a_run_that_fails_and_a_bug_are_told_apart(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    async def fails(record: InvestigationRecord, steps: StepRunner) -> AsyncGenerator[AgentEvent, None]:
        yield RunFailed(error="no model", exit_code=1, messages=(), stats=NOTHING_SPENT)

    async def bug(record: InvestigationRecord, steps: StepRunner) -> AsyncGenerator[AgentEvent, None]:
        yield answer(str(1 // len(record.route)))

    assert (await Bench(database, fails).run()).error == "no model"
    with caplog.at_level(logging.ERROR):
        record = await Bench(database, bug).run()
    assert record.state == "failed"
    assert "Internal error" in str(record.error)
    assert "ZeroDivisionError" in caplog.text


async def test_a_cluster_that_does_not_come_back_fails_with_its_name(database: Database) -> None:
    def never(record: InvestigationRecord, steps: StepRunner) -> AsyncGenerator[AgentEvent, None]:
        raise ClusterUnreachable("nobody answers at c1")

    record = await Bench(database, never).run()
    assert (record.state, record.error) == ("failed", "nobody answers at c1")


async def test_an_investigation_that_kills_every_replica_fails_but_not_one_that_is_handed_over(
    database: Database,
) -> None:
    async def hangs(record: InvestigationRecord, steps: StepRunner) -> AsyncGenerator[AgentEvent, None]:
        await asyncio.Event().wait()
        yield answer("never")

    bench = Bench(database, hangs)
    new = NewInvestigation(question="q", title="t", source="api")
    handed_over, killed = await bench.records.add(new), await bench.records.add(new)
    for _ in range(MAX_BARREN_ATTEMPTS + 2):
        for identity in (handed_over, killed):
            task = asyncio.create_task(bench.worker.run(identity))
            await asyncio.wait({task}, timeout=0.1)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await bench.worker.hand_over([handed_over])
    alive, dead = await bench.records.get(handed_over), await bench.records.get(killed)
    assert alive is not None
    assert dead is not None
    assert alive.state == "running"
    assert dead.state == "failed"
    assert "without progress" in str(dead.error)
