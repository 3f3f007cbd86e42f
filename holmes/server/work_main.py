"""The worker process, which runs investigations and obeys the serving process through a pipe.

Orders and reports are pickled by `multiprocessing`; no other process can reach the pipe. At most one order of each kind
is pending, so that the pipe never fills up. Only the serving process handles signals. If it dies, this process exits at
once: its lease expires, and other replicas take over.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import signal
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from holmes.app.service_parts import limit_arenas
from holmes.app.work import open_work
from holmes.values.errors import HolmesError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from prometheus_client import Metric

    from holmes.app.work import Work
    from holmes.redaction.redactor import Redactor
    from holmes.settings.settings import Settings
    from holmes.toolsets.registry import ToolsetStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """Start to work with these settings. The first order."""

    settings: Settings


@dataclass(frozen=True, slots=True)
class Wake:
    """Check the queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UseToolsets:
    """The state of the toolsets after the last check."""

    statuses: tuple[ToolsetStatus, ...]


@dataclass(frozen=True, slots=True)
class BeginToEnd:
    """Start nothing new; running investigations may finish."""


@dataclass(frozen=True, slots=True)
class End:
    """Finish in order, and exit. The last order."""


@dataclass(frozen=True, slots=True)
class TellFigures:
    """Answer with `Figures`."""


@dataclass(frozen=True, slots=True)
class Begun:
    """The work has started."""


@dataclass(frozen=True, slots=True)
class Woken:
    """`Wake` was received; the next one may be sent."""


@dataclass(frozen=True, slots=True)
class ToolsetsUsed:
    """`UseToolsets` was received; the next one may be sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The work cannot start; the text and exit code of the error."""

    message: str
    exit_code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The counts of this process since its start."""

    families: tuple[Metric, ...]


Order: TypeAlias = Begin | Wake | UseToolsets | BeginToEnd | End | TellFigures
Report: TypeAlias = Begun | Woken | ToolsetsUsed | Failed | Figures


ENDING_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_ORPHANED: Final = 1
_PR_SET_PDEATHSIG: Final = 1
_NICENESS: Final = 5
"""A lower priority than the serving process, for which people and alert senders wait."""
_log = logging.getLogger(__name__)


def work(pipe: Connection[Report, Order], redactor: Redactor | None) -> None:
    """Wait for `Begin`, work until `End`. `ENDING_SIGNALS` must be blocked."""
    for number in ENDING_SIGNALS:
        # Not SIG_IGN, which tools and their children would inherit.
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING_SIGNALS)
    _end_with_parent()
    try:
        order = pipe.recv()
    except EOFError:
        return  # the parent never started
    if isinstance(order, Begin):
        os.nice(_NICENESS)
        limit_arenas()
        try:
            asyncio.run(_work(order.settings, redactor, pipe))
        except Exception:  # noqa: BLE001  the edge of the process: unexpected exceptions are logged with masked secrets
            _log.exception("the worker process failed")
            sys.exit(1)


def _end_with_parent() -> None:
    """Let the kernel kill this process when its parent dies, even if it is stopped. Linux only; see `_listen`."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


async def _work(settings: Settings, redactor: Redactor | None, pipe: Connection[Report, Order]) -> None:
    orders: asyncio.Queue[Order] = asyncio.Queue()
    threading.Thread(
        target=_listen, args=(pipe, asyncio.get_running_loop(), orders), name="holmes-orders", daemon=True
    ).start()
    try:
        async with open_work(settings, redactor, adopts=True) as opened:
            pipe.send(Begun())
            await _obey_unless_damaged(opened, orders, pipe)
    except HolmesError as error:
        pipe.send(Failed(message=str(error), exit_code=error.exit_code))


async def _obey_unless_damaged(opened: Work, orders: asyncio.Queue[Order], pipe: Connection[Report, Order]) -> None:
    """Raises `DatabaseDamaged` if damage is found during the work."""
    obeying = asyncio.create_task(_obey(opened, orders, pipe), name="orders")
    damaged = asyncio.create_task(opened.database.damaged(), name="the database is damaged")
    try:
        await asyncio.wait({obeying, damaged}, return_when=asyncio.FIRST_COMPLETED)
        if damaged.done():
            raise damaged.result()
        await obeying
    finally:
        obeying.cancel()
        damaged.cancel()


async def _obey(opened: Work, orders: asyncio.Queue[Order], pipe: Connection[Report, Order]) -> None:
    while not isinstance(order := await orders.get(), End):
        match order:
            case Begin():
                pass  # it was already done
            case Wake():
                pipe.send(Woken())
                opened.wake()
            case UseToolsets():
                pipe.send(ToolsetsUsed())
                opened.toolsets.adopt(order.statuses)
            case BeginToEnd():
                opened.begin_to_end()
            case TellFigures():
                # Fast enough to run here: orders must not wait for a thread.
                pipe.send(Figures(families=opened.metrics.families()))


def _listen(pipe: Connection[Report, Order], loop: asyncio.AbstractEventLoop, orders: asyncio.Queue[Order]) -> None:
    """Runs in a thread, so that the end of the other process is noticed even if the loop is busy."""
    try:
        while True:
            loop.call_soon_threadsafe(orders.put_nowait, pipe.recv())
    except (EOFError, OSError):
        os._exit(_ORPHANED)
