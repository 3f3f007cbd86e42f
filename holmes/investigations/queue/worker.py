"""Runs one investigation until it finishes, starting after the last finished step of an earlier attempt.

Stores the events of the run for clients. Does not depend on HTTP or DBOS.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from sqlalchemy import func, select, update

from holmes.investigations.records.journal import (
    EventRecorder,
    Journal,
    Lease,
    LostInvestigation,
    UnreadableStep,
    step_from_bytes,
)
from holmes.investigations.records.schema import INCIDENTS, INVESTIGATIONS, STEPS
from holmes.investigations.records.values import InvestigationRecord, record_of, stats_to_json, storable
from holmes.values.errors import ClusterUnreachable, HolmesError, ModelError
from holmes.values.events import AnswerFinished, ModelSwitched, RunFailed, TokensCounted

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence

    from sqlalchemy import Connection

    from holmes.investigations.records.database import Database
    from holmes.investigations.records.values import InvestigationId, InvestigationState
    from holmes.values.events import AgentEvent
    from holmes.values.stats import RequestStats
    from holmes.values.steps import StepRunner
    from holmes.values.verdicts import Verdict

T = TypeVar("T")


class DurableStepRunner:
    """Returns the recorded result of a step, or runs the step and records its result before returning it.

    If a step fails, only its cost is recorded. A finished step is recorded even if the attempt is being cancelled,
    because it may have cost money.
    """

    def __init__(self, journal: Journal, recorded: Mapping[str, bytes], prefix: str = "") -> None:
        self._journal = journal
        self._prefix = prefix
        self._recorded = dict(recorded)
        self._recording: set[asyncio.Task[object]] = set()

    async def run(self, name: str, step: Callable[[], Awaitable[T]]) -> T:
        """Return the recorded result of the step `name`, or run `step`.

        Raises `LostInvestigation`, and any exception from `step`.
        """
        name = self._prefix + name
        content = self._recorded.pop(name, None)
        if content is not None:
            try:
                return cast("T", step_from_bytes(content))
            except UnreadableStep:
                pass  # an incompatible version wrote the result, so the step runs again
        await self._journal.require_mine()
        try:
            result = await step()
        except ModelError as error:
            if error.stats is not None and error.stats.cost:
                await self._journal.record_cost(name, error.stats.cost)
            raise
        recording = asyncio.create_task(self._journal.record_step(name, result))
        self._recording.add(recording)
        recording.add_done_callback(self._forget)
        return cast("T", await asyncio.shield(recording))

    def _forget(self, recording: asyncio.Task[object]) -> None:
        self._recording.discard(recording)
        if not recording.cancelled():
            recording.exception()  # marks the exception as retrieved, because the waiting task may have been cancelled

    def now_seconds(self) -> float:
        return time.time()

    def new_id(self) -> str:
        return uuid.uuid4().hex


MAX_BARREN_ATTEMPTS = 10
_CLUSTER_PAUSE_SECONDS = 5.0
_FINISH_WAIT_SECONDS = 600.0
_WITHOUT_MODEL_SECONDS = 300.0
_WITHOUT_MODEL = "without-model/"
_log = logging.getLogger(__name__)


class Ask(Protocol):
    """Function that starts the agent loop for an investigation.

    `spent` is the cost of earlier attempts in US dollars.
    """

    async def __call__(
        self, record: InvestigationRecord, steps: StepRunner, spent: float
    ) -> AsyncGenerator[AgentEvent, None]:
        """Return the stream of events. Raises `ClusterUnreachable`, and `ConfigError` for an unknown model."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of an investigation.

    `without_llm` explains why no LLM wrote the answer. It is None if an LLM wrote the answer.
    """

    state: InvestigationState
    answer: str | None = None
    error: str | None = None
    answered_by: str | None = None
    without_llm: str | None = None
    verdict: Verdict | None = None
    stats: RequestStats | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerParts:
    """The dependencies and the time limits of a worker.

    `on_finished` runs within the transaction that ends an investigation. `announce` runs after this transaction.
    """

    database: Database
    replica: str
    ask: Ask
    on_finished: Callable[[Connection, InvestigationRecord], None]
    announce: Callable[[InvestigationRecord], None]
    timeout_seconds: float = 1_800
    cluster_wait_seconds: float = 600


class InvestigationWorker:
    """Runs any number of investigations at the same time."""

    def __init__(self, parts: WorkerParts) -> None:
        self._parts = parts

    async def run(self, identity: InvestigationId) -> None:
        """Start or resume the investigation, and run it until it is answered, fails or is cancelled.

        Returns at once if the investigation is already finished or belongs to another replica. If this call is
        cancelled, the record stays unchanged, so that another replica can take over.
        """
        parts = self._parts
        record = await parts.database.transaction(lambda connection: self._begin(connection, identity))
        if record is None:
            return
        journal = Journal(
            parts.database, Lease(investigation_id=identity, replica=parts.replica, attempt=record.attempts)
        )
        try:
            outcome = await self._outcome(record, journal)
            finished = await parts.database.transaction(
                lambda connection: self._finish(connection, record, outcome), wait_seconds=_FINISH_WAIT_SECONDS
            )
            _log.info("investigation %s (%s): %s", identity, finished.title, _summary(finished))
            parts.announce(finished)
        except LostInvestigation:
            _log.info("investigation %s continues on another replica, or was cancelled", identity)

    async def hand_over(self, identities: Sequence[InvestigationId]) -> None:
        """Record that this replica stopped these investigations on purpose. The stop is then not counted as a crash."""
        columns = INVESTIGATIONS.c
        statement = (
            update(INVESTIGATIONS)
            .where(columns.id.in_(identities), columns.state == "running", columns.replica == self._parts.replica)
            .values(barren_attempts=columns.barren_attempts - 1)
        )
        await self._parts.database.transaction(lambda connection: connection.execute(statement))

    def _begin(self, connection: Connection, identity: InvestigationId) -> InvestigationRecord | None:
        columns = INVESTIGATIONS.c
        now = time.time()
        begun = connection.execute(
            update(INVESTIGATIONS)
            .where(columns.id == identity, columns.state.in_(("queued", "running")))
            .values(
                state="running",
                replica=self._parts.replica,
                attempts=columns.attempts + 1,
                started_at=func.coalesce(columns.started_at, now),
            )
        )
        if not begun.rowcount:
            return None
        row = connection.execute(select(INVESTIGATIONS).where(columns.id == identity)).one()
        record = record_of(InvestigationRecord, row)
        steps = connection.execute(
            select(func.count()).select_from(STEPS).where(STEPS.c.investigation_id == identity)
        ).scalar_one()
        barren = 0 if steps > row.steps_before or record.attempts == 1 else row.barren_attempts + 1
        counted = update(INVESTIGATIONS).where(columns.id == identity)
        connection.execute(counted.values(steps_before=steps, barren_attempts=barren))
        if barren <= MAX_BARREN_ATTEMPTS:
            return record
        message = f"The server crashed in {barren} attempts without progress. Check its memory limit and its logs."
        self._finish(connection, record, Outcome(state="failed", error=message))
        return None

    async def _outcome(self, record: InvestigationRecord, journal: Journal) -> Outcome:
        limit = asyncio.timeout(self._parts.timeout_seconds)
        try:
            async with limit:
                return await self._investigate(record, journal)
        except LostInvestigation:
            raise
        except HolmesError as error:
            return Outcome(state="failed", error=str(error))
        except Exception as error:  # noqa: BLE001  a bug must end the investigation
            if not limit.expired():
                return _bug(record, error)
        return await self._without_model(record, journal)

    async def _without_model(self, record: InvestigationRecord, journal: Journal) -> Outcome:
        """Let `builtin/triage` answer after the model exceeded the time limit."""
        late = f"did not finish within {self._parts.timeout_seconds:.0f} seconds"
        if record.without_llm is None:
            again = replace(record, without_llm=f"the model {late}")
            try:
                async with asyncio.timeout(_WITHOUT_MODEL_SECONDS):
                    return await self._investigate(again, journal, _WITHOUT_MODEL)
            except (HolmesError, TimeoutError) as error:
                _log.warning("investigation %s also failed without an LLM: %s", record.id, error)
        return Outcome(state="failed", error=f"The investigation {late}.")

    async def _investigate(self, record: InvestigationRecord, journal: Journal, prefix: str = "") -> Outcome:
        recorded = await journal.recorded_steps()
        spent = await self._parts.database.read(lambda connection: _spent(connection, record.id))
        recorder = EventRecorder(journal, prefix)
        if record.attempts > 1 and not prefix:
            await recorder.notice(
                f"resumed-{record.attempts}",
                f"Resumed by the replica {self._parts.replica}. Finished steps ({len(recorded)}) are not repeated.",
            )
        steps = DurableStepRunner(journal, recorded, prefix)
        stream = await self._started(record, recorder, lambda: self._parts.ask(record, steps, spent))
        async with aclosing(stream):
            return await self._read(stream, record, recorder)

    async def _read(
        self, stream: AsyncGenerator[AgentEvent, None], record: InvestigationRecord, recorder: EventRecorder
    ) -> Outcome:
        switched: ModelSwitched | None = None
        outcome = Outcome(state="failed", error="The investigation ended without an answer.")
        async for event in stream:
            await recorder.keep(event)
            if isinstance(event, ModelSwitched):
                switched = event
            elif isinstance(event, TokensCounted):
                await self._parts.database.transaction(_counting(record, event.stats))
            elif isinstance(event, (AnswerFinished, RunFailed)):
                outcome = _ended(event, switched, record)
        return outcome

    async def _started(
        self,
        record: InvestigationRecord,
        recorder: EventRecorder,
        start: Callable[[], Awaitable[AsyncGenerator[AgentEvent, None]]],
    ) -> AsyncGenerator[AgentEvent, None]:
        """Start the stream as soon as the cluster is reachable. Raises `ClusterUnreachable` after a time limit."""
        deadline = time.monotonic() + self._parts.cluster_wait_seconds
        while True:
            try:
                return await start()
            except ClusterUnreachable as error:
                if time.monotonic() > deadline:
                    raise
                if await recorder.notice(f"cluster-{record.attempts}", f"Waiting for the cluster: {error}"):
                    _log.warning("investigation %s is waiting for the cluster: %s", record.id, error)
                await asyncio.sleep(min(_CLUSTER_PAUSE_SECONDS, self._parts.cluster_wait_seconds))

    def _finish(self, connection: Connection, record: InvestigationRecord, outcome: Outcome) -> InvestigationRecord:
        columns = INVESTIGATIONS.c
        now = time.time()
        values: dict[str, object] = {
            "state": outcome.state,
            "answer": storable(_with_reason(outcome.answer, record.without_llm)),
            "error": storable(outcome.error),
            "answered_by": outcome.answered_by,
            "finished_at": now,
        }
        if outcome.verdict is not None:
            values |= {
                "verdict": outcome.verdict.kind,
                "verdict_by": outcome.verdict.by,
                "summary": storable(outcome.verdict.summary),
            }
        if outcome.without_llm is not None:
            values["without_llm"] = storable(outcome.without_llm)
        if outcome.stats is not None:
            values |= {"stats": stats_to_json(outcome.stats), "cost": outcome.stats.cost}
        mine = (columns.id == record.id, columns.state == "running", columns.attempts == record.attempts)
        if not connection.execute(update(INVESTIGATIONS).where(*mine).values(**values)).rowcount:
            raise LostInvestigation(record.id)
        finished = record_of(
            InvestigationRecord, connection.execute(select(INVESTIGATIONS).where(columns.id == record.id)).one()
        )
        if finished.incident_id is not None:
            changes: dict[str, object] = {"updated_at": now}
            if finished.answer:
                changes |= {
                    "root_cause": finished.root_cause,
                    "verdict": finished.verdict,
                    "summary": finished.summary,
                }
            connection.execute(update(INCIDENTS).where(INCIDENTS.c.id == finished.incident_id).values(**changes))
        self._parts.on_finished(connection, finished)
        return finished


def _with_reason(answer: str | None, without_llm: str | None) -> str | None:
    """Return the answer, followed by a note with `without_llm` if it is set."""
    return f"{answer}\n\nAnswered without an LLM: {without_llm}." if answer and without_llm else answer


def _summary(record: InvestigationRecord) -> str:
    if record.state != "answered":
        return f"{record.state}: {record.error}"
    return f"answered by {record.answered_by} for ${record.stats.cost:.2f}"


def _bug(record: InvestigationRecord, error: Exception) -> Outcome:
    _log.error("investigation %s failed: internal error", record.id, exc_info=error)
    return Outcome(state="failed", error="Internal error; see the server log.")


def _ended(event: AnswerFinished | RunFailed, switched: ModelSwitched | None, record: InvestigationRecord) -> Outcome:
    if isinstance(event, RunFailed):
        return Outcome(state="failed", error=event.error, stats=event.stats)
    without_llm = record.without_llm
    if switched is not None and switched.to_model == event.model:
        without_llm = f"{switched.from_model} failed: {switched.reason}"
    return Outcome(
        state="answered",
        answer=event.text,
        answered_by=event.model,
        without_llm=without_llm,
        verdict=event.verdict,
        stats=event.stats,
    )


def _spent(connection: Connection, identity: InvestigationId) -> float:
    query = select(func.coalesce(func.sum(STEPS.c.cost), 0)).where(STEPS.c.investigation_id == identity)
    return float(connection.execute(query).scalar() or 0.0)


def _counting(record: InvestigationRecord, stats: RequestStats) -> Callable[[Connection], None]:
    columns = INVESTIGATIONS.c
    # The displayed cost must not decrease, although a replay starts again with the cost of the first step.
    mine = (columns.id == record.id, columns.attempts == record.attempts, columns.cost <= stats.cost)
    statement = update(INVESTIGATIONS).where(*mine).values(stats=stats_to_json(stats), cost=stats.cost)

    def count(connection: Connection) -> None:
        connection.execute(statement)

    return count
