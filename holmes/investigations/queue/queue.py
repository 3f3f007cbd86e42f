"""Distributes queued investigations to replicas without losing any of them.

A stored record in the state `queued` is enough to queue an investigation. The investigation starts within a second, or
at once after `wake`. If a replica loses its lease, other replicas take over its investigations. When a replica stops,
its running investigations have a limited time to finish. Other replicas take over the rest.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import and_, func, or_, select, update

from holmes.investigations.queue.workflows import Workflows, WorkflowSettings
from holmes.investigations.records.database import lock_recovery
from holmes.investigations.records.schema import INVESTIGATIONS
from holmes.investigations.records.values import FINAL_STATES, UNFINISHED_STATES, InvestigationId
from holmes.values.errors import HolmesError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence

    from sqlalchemy import Connection

    from holmes.investigations.queue.worker import InvestigationWorker
    from holmes.investigations.records.database import Database
    from holmes.investigations.records.replicas import Replicas

_FEED_SECONDS: Final = 1.0
_FEED_LIMIT: Final = 200
_RENEWALS_PER_LEASE: Final = 4
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """Settings of the queue. `database_url` is the URL of the database for the DBOS tables."""

    database_url: str
    replica: str
    concurrency: int
    lease_seconds: float
    drain_seconds: float


class InvestigationQueue:
    """Takes investigations from the queue and runs them on this replica."""

    def __init__(
        self, settings: QueueSettings, database: Database, replicas: Replicas, worker: InvestigationWorker
    ) -> None:
        self._settings = settings
        self._database = database
        self._replicas = replicas
        self._worker = worker
        self._workflows = Workflows(
            WorkflowSettings(
                database_url=settings.database_url,
                replica=settings.replica,
                concurrency=settings.concurrency,
                run=self._run,
                on_damage=database.note_damage,
            )
        )
        self._running: dict[InvestigationId, asyncio.Task[None]] = {}
        self._woken = asyncio.Event()
        self._draining = False
        self._taking: tuple[asyncio.Task[None], ...] = ()
        self._keeping: tuple[asyncio.Task[None], ...] = ()
        self._stopping: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start taking investigations from the queue. Raises `DatabaseUnavailable`."""
        await self._replicas.join()  # the lease must exist before DBOS can assign workflows
        await self._workflows.launch()
        renewal = self._settings.lease_seconds / _RENEWALS_PER_LEASE
        self._taking = (
            asyncio.create_task(repeat(self._feed, _FEED_SECONDS, self._woken), name="holmes-feed"),
            asyncio.create_task(repeat(self._take_over, renewal), name="holmes-take-over"),
        )
        self._keeping = (
            asyncio.create_task(repeat(self._replicas.renew, renewal), name="holmes-lease"),
            asyncio.create_task(repeat(self._stop_lost, _FEED_SECONDS), name="holmes-stop-lost"),
        )

    def wake(self) -> None:
        """Check for queued investigations now."""
        self._woken.set()

    async def forget(self, workflow_ids: Sequence[str]) -> None:
        """Delete the workflows of deleted investigations."""
        await self._workflows.forget(workflow_ids)

    def begin_to_stop(self) -> None:
        """Start the shutdown without waiting until it is complete (see `stop`)."""
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop(), name="holmes-stop")

    async def stop(self) -> None:
        """Stop taking investigations, wait up to `drain_seconds` for running investigations, and hand over the rest."""
        self.begin_to_stop()
        if self._stopping is not None:
            await self._stopping

    async def _stop(self) -> None:
        self._draining = True
        await _ended(self._taking)
        running = tuple(self._running.values())
        if running:
            _log.info("waiting up to %.0f s for running investigations: %d", self._settings.drain_seconds, len(running))
        stopping = asyncio.create_task(self._workflows.stop())  # does not end the tasks in `running`
        if running:
            await asyncio.wait(running, timeout=self._settings.drain_seconds)
        left = tuple(self._running)
        await _ended((*self._keeping, *running))
        await stopping
        try:
            await self._worker.hand_over(left)
            await self._replicas.leave()
        except HolmesError as error:
            _log.warning("could not end the lease of this replica; other replicas wait until it expires: %s", error)

    async def _run(self, argument: str) -> None:
        """Run a workflow that DBOS assigned to this replica."""
        identity = InvestigationId(argument)
        if self._draining:
            await asyncio.Event().wait()  # never returns, so that DBOS keeps the workflow open for another replica
        if identity in self._running:
            self._running[identity].cancel()  # cancels an attempt that lost its lease
        task = asyncio.create_task(self._worker.run(identity), name=f"investigation-{identity}")
        self._running[identity] = task
        task.add_done_callback(lambda ended: self._forget(identity, ended))
        await asyncio.wait({task})
        if task.cancelled() and self._draining:
            await asyncio.Event().wait()
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("investigation %s stopped and will be restarted: %s", identity, error)

    def _forget(self, identity: InvestigationId, task: asyncio.Task[None]) -> None:
        if self._running.get(identity) is task:
            del self._running[identity]

    async def _feed(self) -> None:
        """Create one workflow for each queued investigation, even if two replicas try to do so at the same time."""
        query = select(INVESTIGATIONS.c.id).where(
            INVESTIGATIONS.c.state == "queued", INVESTIGATIONS.c.workflow_id.is_(None)
        )
        statement = query.order_by(INVESTIGATIONS.c.id).limit(_FEED_LIMIT)
        waiting = await self._database.read(lambda connection: connection.execute(statement).scalars().all())
        for identity in waiting:
            await self._workflows.enqueue(identity, identity)
        if waiting:
            await self._database.transaction(lambda connection: _note_workflows(connection, {i: i for i in waiting}))

    async def _take_over(self) -> None:
        """Requeue the investigations of dead replicas, and replace lost workflows."""
        alive = await self._replicas.alive()
        if not self._replicas.can_judge():
            return  # an expired lease proves nothing yet, because no replica could renew its lease during an outage
        recovered = await self._recover(alive)
        if recovered:
            _log.warning("took over investigations of dead replicas: %d", recovered)
        columns = INVESTIGATIONS.c
        # A running investigation has a workflow, even if the workflow id was not stored.
        query = select(columns.id, func.coalesce(columns.workflow_id, columns.id).label("workflow_id")).where(
            or_(columns.state == "running", and_(columns.state == "queued", columns.workflow_id.is_not(None)))
        )
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        ended = await self._workflows.ended([row.workflow_id for row in rows])
        renamed = {row.id: _next_workflow(row.id, row.workflow_id) for row in rows if row.workflow_id in ended}
        still = await self._database.transaction(lambda connection: _unfinished(connection, tuple(renamed)))
        for identity in still:
            _log.warning("investigation %s lost its workflow and was requeued", identity)
            await self._workflows.enqueue(renamed[identity], identity)
        await self._database.transaction(
            lambda connection: _note_workflows(connection, {identity: renamed[identity] for identity in still})
        )

    async def _recover(self, alive: frozenset[str]) -> int:
        if not await self._workflows.has_abandoned(alive):
            return 0

        def resume(connection: Connection) -> int:
            lock_recovery(connection)  # another replica may have resumed the workflows
            return self._workflows.resume_abandoned(alive)

        return await self._database.transaction(resume)

    async def _stop_lost(self) -> None:
        """Stop the investigations that were cancelled or that another replica is now running."""
        mine = tuple(self._running)
        if not mine:
            return
        columns = INVESTIGATIONS.c
        query = select(columns.id).where(
            columns.id.in_(mine),
            or_(
                columns.state.in_(FINAL_STATES),
                and_(columns.state == "running", columns.replica != self._settings.replica),
            ),
        )
        lost = await self._database.read(lambda connection: connection.execute(query).scalars().all())
        for identity in lost:
            task = self._running.get(InvestigationId(identity))
            if task is not None:
                task.cancel()


async def _ended(tasks: tuple[asyncio.Task[None], ...]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _next_workflow(identity: str, workflow: str) -> str:
    """Return the next workflow id of an investigation. `workflow` is the current workflow id."""
    number = int(workflow.rpartition(".")[2]) if "." in workflow else 0
    return f"{identity}.{number + 1}"


def _unfinished(connection: Connection, identities: tuple[InvestigationId, ...]) -> tuple[InvestigationId, ...]:
    """Return those of `identities` that are unfinished. The workflow of a finished investigation has ended normally."""
    if not identities:
        return ()
    query = select(INVESTIGATIONS.c.id).where(
        INVESTIGATIONS.c.id.in_(identities), INVESTIGATIONS.c.state.in_(UNFINISHED_STATES)
    )
    return tuple(InvestigationId(each) for each in connection.execute(query).scalars())


def _note_workflows(connection: Connection, workflows: dict[str, str]) -> None:
    for identity, workflow in workflows.items():
        connection.execute(update(INVESTIGATIONS).where(INVESTIGATIONS.c.id == identity).values(workflow_id=workflow))


@asynccontextmanager
async def running(work: Coroutine[None, None, None], name: str) -> AsyncIterator[None]:
    """Run `work` until the context manager exits."""
    task = asyncio.create_task(work, name=name)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def repeat(work: Callable[[], Awaitable[None]], pause_seconds: float, woken: asyncio.Event | None = None) -> None:
    """Run `work` now, after each pause, and as soon as `woken` is set.

    Exceptions that `work` raises are only logged.
    """
    event = woken or asyncio.Event()
    while True:
        event.clear()
        try:
            await work()
        except HolmesError as error:
            _log.warning("%s; will retry", error)
        except Exception:  # noqa: BLE001  a bug must not end the loop
            _log.exception("internal error; will retry")
        try:
            async with asyncio.timeout(pause_seconds):
                await event.wait()
        except TimeoutError:
            pass
