"""The process that runs investigations. It executes orders that the serving process sends through a pipe.

`multiprocessing` pickles orders and reports; no other process can write to the pipe. At most one order of each kind is
in transit, so that the pipe never fills up. Signals reach both processes, but only the serving process acts on them. If
the serving process dies, the investigation process exits at once. Its lease then expires, and other replicas take over.
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
    """The first order: start work with these settings."""

    settings: Settings


@dataclass(frozen=True, slots=True)
class Wake:
    """Order to check for queued work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UseToolsets:
    """Order to use the toolset states from the last check."""

    statuses: tuple[ToolsetStatus, ...]


@dataclass(frozen=True, slots=True)
class BeginToEnd:
    """Order to take no new work. Running work may finish."""


@dataclass(frozen=True, slots=True)
class End:
    """The last order: finish running work and exit."""


@dataclass(frozen=True, slots=True)
class SendFigures:
    """Order to send `Figures`."""


@dataclass(frozen=True, slots=True)
class Begun:
    """Report that work has started."""


@dataclass(frozen=True, slots=True)
class Woken:
    """Report that `Wake` was received, so that another `Wake` may be sent."""


@dataclass(frozen=True, slots=True)
class ToolsetsUsed:
    """Report that `UseToolsets` was received, so that another `UseToolsets` may be sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """Report that work failed, with the message and exit code of the error."""

    message: str
    exit_code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Report with the metrics of the process."""

    families: tuple[Metric, ...]


Order: TypeAlias = Begin | Wake | UseToolsets | BeginToEnd | End | SendFigures
Report: TypeAlias = Begun | Woken | ToolsetsUsed | Failed | Figures


ENDING_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_ORPHANED: Final = 1
_PR_SET_PDEATHSIG: Final = 1
_NICENESS: Final = 5
"""Niceness of this process. The serving process has priority, because users and alert senders wait for it."""
_log = logging.getLogger(__name__)


def work(pipe: Connection[Report, Order], redactor: Redactor | None) -> None:
    """Wait for `Begin`, then work until `End`. `ENDING_SIGNALS` are blocked on entry."""
    for number in ENDING_SIGNALS:
        # Not SIG_IGN, because tools and their children would inherit it and ignore signals.
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING_SIGNALS)
    _end_with_parent()
    try:
        order = pipe.recv()
    except EOFError:
        return  # the serving process exited before `Begin`
    if isinstance(order, Begin):
        os.nice(_NICENESS)
        limit_arenas()
        try:
            asyncio.run(_work(order.settings, redactor, pipe))
        except Exception:  # noqa: BLE001  logged here, because the log masks secrets
            _log.exception("the investigation process failed")
            sys.exit(1)


def _end_with_parent() -> None:
    """Let the kernel kill this process when the serving process dies.

    This works only on Linux (otherwise, see `_listen`).
    """
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
    """Execute orders until `End`. Raises `DatabaseDamaged` if a transaction detects a damaged database."""
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
                pass  # already received
            case Wake():
                pipe.send(Woken())
                opened.wake()
            case UseToolsets():
                pipe.send(ToolsetsUsed())
                opened.adopt(order.statuses)
            case BeginToEnd():
                opened.begin_to_end()
            case SendFigures():
                # This takes milliseconds, so a thread is not needed.
                pipe.send(Figures(families=opened.metrics.families()))


def _listen(pipe: Connection[Report, Order], loop: asyncio.AbstractEventLoop, orders: asyncio.Queue[Order]) -> None:
    """Receive orders in a thread, so that this process exits at once even if its event loop is busy."""
    try:
        while True:
            loop.call_soon_threadsafe(orders.put_nowait, pipe.recv())
    except (EOFError, OSError):
        os._exit(_ORPHANED)
