"""Queues one DBOS workflow for each investigation. No other module uses DBOS.

DBOS assigns each queued workflow to exactly one replica and records the owner. DBOS requires a paid controller to take
over the workflows of a dead replica. `resume_abandoned` replaces this controller. All replicas share one application
version, because investigations resume from named steps (see `journal`).
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from holmes.investigations.records.database import DatabaseDamaged, is_damage
from holmes.values.errors import HolmesError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from dbos import DBOS

P = ParamSpec("P")
T = TypeVar("T")

_QUEUE: Final = "holmes-investigations"
_APPLICATION: Final = "holmes"
_JOURNAL_VERSION: Final = "1"
_ENDED: Final = ("SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED")
_POLL_SECONDS: Final = 0.5


class WorkflowsUnavailable(HolmesError):
    """Raised if DBOS fails, usually because its database is unavailable."""

    exit_code = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowSettings:
    """Settings and callbacks for DBOS.

    `run` is called with the argument of each assigned workflow, in the event loop that called `launch`. `on_damage` is
    called if the database file is damaged.
    """

    database_url: str
    replica: str
    concurrency: int
    run: Callable[[str], Awaitable[None]]
    on_damage: Callable[[DatabaseDamaged], None]


class Workflows:
    """The DBOS functions that the queue needs.

    Create one object for each process, and use it between `launch` and `stop`.
    """

    def __init__(self, settings: WorkflowSettings) -> None:
        self._settings = settings
        self._launched: _Launched | None = None

    async def launch(self) -> None:
        """Connect, create the DBOS tables, and start taking workflows from the queue."""
        loop = asyncio.get_running_loop()
        self._launched = await self._in_thread(_launch, self._settings, loop)

    async def enqueue(self, workflow_id: str, argument: str) -> None:
        """Queue a workflow, unless a workflow with this id already exists."""
        await self._in_thread(self._running.enqueue, workflow_id, argument)

    async def has_abandoned(self, alive: frozenset[str]) -> bool:
        """Return whether a replica that is not in `alive` still owns a workflow."""
        return bool(await self._in_thread(self._abandoned, alive))

    def resume_abandoned(self, alive: frozenset[str]) -> int:
        """Requeue the workflows of replicas that are not in `alive`. Returns the number of requeued workflows.

        This call blocks. Only one replica may call it at a time, because DBOS does not check the owner again.
        """
        with self._translated_errors():
            abandoned = self._abandoned(alive)
            if abandoned:
                self._running.dbos.resume_workflows(abandoned, queue_name=_QUEUE)
            return len(abandoned)

    async def ended(self, workflow_ids: Sequence[str]) -> frozenset[str]:
        """Return the ids of the workflows that have ended or do not exist."""
        return await self._in_thread(self._ended, tuple(workflow_ids))

    async def forget(self, workflow_ids: Sequence[str]) -> None:
        """Delete ended workflows."""
        if workflow_ids:
            await self._in_thread(self._running.dbos.delete_workflows, list(workflow_ids))

    async def stop(self) -> None:
        """Stop taking workflows. This replica still owns its running workflows until `resume_abandoned` is called."""
        if self._launched is not None:
            await asyncio.to_thread(self._launched.dbos.destroy, workflow_completion_timeout_sec=0)

    @property
    def _running(self) -> _Launched:
        if self._launched is None:
            message = "the workflows are not running"
            raise RuntimeError(message)
        return self._launched

    async def _in_thread(self, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        with self._translated_errors():
            return await asyncio.to_thread(work, *arguments, **named)

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Convert DBOS errors to `WorkflowsUnavailable` and `DatabaseDamaged`."""
        # Imported here, because the import is slow and only the server needs DBOS.
        from dbos import error as dbos_error

        try:
            yield
        except (dbos_error.DBOSException, SQLAlchemyError) as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            if is_damage(error) or is_damage(error.__cause__):
                damage = DatabaseDamaged(str(make_url(self._settings.database_url).database), reason)
                self._settings.on_damage(damage)
                raise damage from error
            raise WorkflowsUnavailable(f"DBOS failed: {reason}") from error

    def _abandoned(self, alive: frozenset[str]) -> list[str]:
        dbos = self._running.dbos
        pending = dbos.list_workflows(status="PENDING", queue_name=_QUEUE, load_input=False, load_output=False)
        return [each.workflow_id for each in pending if each.executor_id and each.executor_id not in alive]

    def _ended(self, workflow_ids: tuple[str, ...]) -> frozenset[str]:
        if not workflow_ids:
            return frozenset()
        known = self._running.dbos.list_workflows(workflow_ids=list(workflow_ids), load_input=False, load_output=False)
        running = {each.workflow_id for each in known if each.status not in _ENDED}
        return frozenset(workflow_ids) - running


@dataclass(frozen=True, slots=True, kw_only=True)
class _Launched:
    """The running DBOS instance, and the function that queues a workflow."""

    dbos: type[DBOS]
    enqueue: Callable[[str, str], None]


def _launch(settings: WorkflowSettings, loop: asyncio.AbstractEventLoop) -> _Launched:
    # Imported here, because the import takes almost a second and only the server needs DBOS.
    from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer, SetWorkflowID

    config: DBOSConfig = {
        "name": _APPLICATION,
        "system_database_url": settings.database_url,
        "application_version": _JOURNAL_VERSION,
        "executor_id": settings.replica,
        "log_level": "WARNING",
        "enable_otlp": False,
        "use_listen_notify": False,
        "serializer": DBOSPortableJSONSerializer(),
        "max_executor_threads": settings.concurrency + 8,
        "sys_db_pool_size": 5,
    }
    DBOS(config=config)
    _quieten()

    @DBOS.workflow(name="investigate")
    async def investigate(argument: str) -> None:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_as_coroutine(settings.run(argument)), loop))

    def enqueue(workflow_id: str, argument: str) -> None:
        with SetWorkflowID(workflow_id):
            DBOS.enqueue_workflow(_QUEUE, investigate, argument)

    DBOS.launch()
    _quieten()
    DBOS.register_queue(
        _QUEUE,
        worker_concurrency=settings.concurrency,
        polling_interval_sec=_POLL_SECONDS,
        on_conflict="always_update",
    )
    return _Launched(dbos=DBOS, enqueue=enqueue)


def _quieten() -> None:
    """Send only critical DBOS logs to the Holmes handlers, which mask secrets. The queue logs all other errors."""
    logger = logging.getLogger("dbos")
    for handler in tuple(logger.handlers):
        logger.removeHandler(handler)
    logger.propagate = True
    logger.setLevel(logging.CRITICAL)


async def _as_coroutine(awaitable: Awaitable[None]) -> None:
    await awaitable
