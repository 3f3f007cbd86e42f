"""Forks, controls and watches the investigation process for `holmes serve`.

Python runs one thread at a time, so twenty investigations in the serving process would delay pages, probes and alerts.
The fork happens before threads start, and shares the memory of imported modules.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import multiprocessing
import signal
import threading
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Final

from holmes.server import work_main
from holmes.server.work_main import ENDING_SIGNALS, work
from holmes.values.errors import HolmesError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkProcess

    from prometheus_client import Metric

    from holmes.redaction.redactor import Redactor
    from holmes.server.work_main import Order, Report
    from holmes.settings.settings import Settings
    from holmes.toolsets.registry import ToolsetStatus

_PATIENCE_SECONDS: Final = 0.5
_WATCH_SECONDS: Final = 5.0
_SILENT_WATCHES: Final = 12
"""Number of consecutive checks without a reply after which the process is killed.

Several short checks are safer than one long check, because the suspension of the machine fails at most one check.
"""
_GOES_ON: Final = "its investigations resume after the next start or on another replica"
_ENDING_SECONDS: Final = 10.0
"""Time limit for the exit after the drain time.

The chart's grace period is five seconds longer than the drain time and this time limit together.
"""
_LOST: Final = 1
_log = logging.getLogger(__name__)


class WorkFailed(HolmesError):
    """Raised if the investigation process could not start work or exited unexpectedly."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@contextmanager
def work_process(redactor: Redactor | None) -> Iterator[WorkProcess]:
    """Fork the investigation process. It waits for `working`, and is killed when the context manager exits.

    Call this function in the main thread, before threads or an event loop start. Raises `WorkFailed`.
    """
    # Keeps the garbage collector from writing to the shared memory of imported modules.
    gc.collect()
    gc.freeze()
    # A signal during the fork could leave locks that are never released.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING_SIGNALS)
    try:
        here, there = multiprocessing.Pipe()
        forked = (here, there, redactor)
        process = multiprocessing.get_context("fork").Process(target=_forked, args=forked, name="holmes-work")
        process.start()
    except OSError as error:
        raise WorkFailed(f"cannot start the investigation process: {error.strerror or error}") from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    there.close()
    try:
        yield WorkProcess(process, here)
    finally:
        if process.is_alive():
            process.kill()
        process.join()
        here.close()


def _forked(here: Connection[Order, Report], there: Connection[Report, Order], redactor: Redactor | None) -> None:
    here.close()  # otherwise the pipe would stay open after the other process exits
    work(there, redactor)


class WorkProcess:
    """Sends orders to the process and receives its reports. Use it on one event loop only."""

    def __init__(self, process: ForkProcess, pipe: Connection[Order, Report]) -> None:
        self._process = process
        self._pipe = pipe
        self._begun: asyncio.Future[None] | None = None
        self._drain_seconds = 0.0
        self._ends_at: float | None = None
        self._gone = asyncio.Event()
        self._lost = False
        self._failure: work_main.Failed | None = None
        self._told: asyncio.Future[None] | None = None
        self._waking = False
        self._wake_again = False
        self._toolsets: work_main.UseToolsets | None = None
        self._toolsets_told = False
        self._families: tuple[Metric, ...] = ()

    @asynccontextmanager
    async def working(self, settings: Settings) -> AsyncIterator[None]:
        """Start work. On exit, waits until running work has finished or has been handed over. Raises `WorkFailed`."""
        loop = asyncio.get_running_loop()
        self._begun = loop.create_future()
        self._drain_seconds = settings.investigations.drain_seconds
        threading.Thread(target=self._listen, args=(loop,), name="holmes-reports", daemon=True).start()
        self._tell(work_main.Begin(settings=settings))
        try:
            await self._begun
        except asyncio.CancelledError:
            self._process.kill()  # no work has started yet
            raise
        try:
            yield
        finally:
            self.begin_to_end()
            self._tell(work_main.End())
            await self._end()

    def wake(self) -> None:
        """Notify the process that work is queued. Calls are combined until the process has received the order."""
        if self._waking:
            self._wake_again = True
            return
        self._waking = True
        self._tell(work_main.Wake())

    def use_toolsets(self, statuses: tuple[ToolsetStatus, ...]) -> None:
        """Send toolset states. They replace states that have not been sent yet."""
        self._toolsets = work_main.UseToolsets(statuses=statuses)
        if not self._toolsets_told:
            self._tell_toolsets()

    def _tell_toolsets(self) -> None:
        if self._toolsets is not None:
            self._toolsets_told = True
            self._tell(self._toolsets)
            self._toolsets = None

    def begin_to_end(self) -> None:
        """Stop taking new work. Running work may finish within the drain time. Idempotent."""
        if self._ends_at is None:
            self._ends_at = asyncio.get_running_loop().time() + self._drain_seconds + _ENDING_SECONDS
            self._tell(work_main.BeginToEnd())

    async def figures(self) -> tuple[Metric, ...]:
        """Return the metrics of the process, or the last known metrics if it does not reply in time."""
        if not self._gone.is_set():
            await asyncio.wait({self._asked_for_figures()}, timeout=_PATIENCE_SECONDS)
        return self._families

    async def lost(self) -> str:
        """Wait until the process exits unexpectedly, and describe how it ended. Kills a process that stops replying."""
        silent = 0
        while not self._gone.is_set():
            asked = self._asked_for_figures()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._gone.wait(), _WATCH_SECONDS)
            silent = 0 if asked.done() else silent + 1
            if silent == _SILENT_WATCHES:
                _log.error("the investigation process has not replied for a minute, so the server kills it")
                self._process.kill()
        self._lost = True
        return self._how_it_ended()

    @property
    def failed(self) -> bool:
        """Whether the process exited unexpectedly. Valid after the context manager `working` exits."""
        return self._lost or self._process.exitcode != 0

    @property
    def exit_code(self) -> int:
        """The exit code of the server: 0 if the process exited as ordered."""
        if self._failure is not None:
            return self._failure.exit_code
        return _LOST if self.failed else 0

    def _asked_for_figures(self) -> asyncio.Future[None]:
        """Request the metrics. The future is done when they have arrived."""
        if self._told is None:
            self._told = asyncio.get_running_loop().create_future()
            self._tell(work_main.SendFigures())
        return self._told

    async def _end(self) -> None:
        """Wait until the process exits, and kill it after the time limit."""
        loop = asyncio.get_running_loop()
        assert self._ends_at is not None  # noqa: S101  see `working`
        try:
            await asyncio.wait_for(self._gone.wait(), max(0.0, self._ends_at - loop.time()))
        except TimeoutError:
            _log.error("the investigation process did not exit in time, so the server kills it; %s", _GOES_ON)
            self._process.kill()
            return
        if not self._lost and self.failed:
            _log.error("the investigation process %s; %s", self._how_it_ended(), _GOES_ON)

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """Receive reports in a thread, because receiving blocks until a report has arrived completely."""
        try:
            while True:
                self._on_loop(loop, self._hear, self._pipe.recv())
        except (EOFError, OSError):
            self._process.join(_PATIENCE_SECONDS)
            self._on_loop(loop, self._end_of_pipe)

    @staticmethod
    def _on_loop(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *arguments: object) -> None:
        with suppress(RuntimeError):  # the event loop is closed
            loop.call_soon_threadsafe(function, *arguments)

    def _end_of_pipe(self) -> None:
        self._gone.set()
        self._settle(WorkFailed(f"the investigation process {self._how_it_ended()}"))

    def _hear(self, report: Report) -> None:
        match report:
            case work_main.Begun():
                self._settle(None)
            case work_main.Woken():
                self._waking = False
                if self._wake_again:
                    self._wake_again = False
                    self.wake()
            case work_main.ToolsetsUsed():
                self._toolsets_told = False
                self._tell_toolsets()
            case work_main.Failed():
                self._failure = report
                if not self._settle(WorkFailed(report.message, report.exit_code)):
                    _log.error("the investigation process failed: %s", report.message)
            case work_main.Figures():
                self._families = report.families
                if self._told is not None:
                    self._told.set_result(None)
                    self._told = None

    def _settle(self, failure: WorkFailed | None) -> bool:
        """Let the caller of `working` continue, with or without an error. Returns false if no caller is waiting."""
        if self._begun is None or self._begun.done():
            return False
        if failure is None:
            self._begun.set_result(None)
        else:
            self._begun.set_exception(failure)
        return True

    def _tell(self, order: Order) -> None:
        """Send an order without blocking, because the pipe never fills up (see `work_main`)."""
        with suppress(OSError):  # the process has exited; see `lost`
            self._pipe.send(order)

    def _how_it_ended(self) -> str:
        code = self._process.exitcode
        if code is not None and code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        return "ended" if code is None else f"exited with code {code}"
