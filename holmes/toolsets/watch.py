"""Checks toolsets repeatedly, and logs changes.

While a toolset fails, the pause between two checks doubles up to a maximum. If all toolsets can run, the maximum pause
is used. A run keeps its tools, because its cached prompt must not change. The next run uses the toolsets from the last
check. In a server, one process checks the toolsets. The second process adopts the statuses, so that both use the same
toolsets.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from holmes.toolsets.registry import ToolsetStatus
from holmes.values.errors import HolmesError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from holmes.toolsets.readiness import Readiness

_LONGEST_PAUSE_FACTOR: Final = 20
_FILES: Final = "toolset files"
_log = logging.getLogger(__name__)


class Checked(Protocol):
    """The result of checking all toolsets."""

    @property
    def readiness(self) -> Readiness: ...


T_co = TypeVar("T_co", bound=Checked, covariant=True)
T = TypeVar("T", bound=Checked)


class Check(Protocol[T_co]):
    """Reads all toolset files and checks which toolsets can run. Raises `ConfigError`.

    If another process has already checked them, `decided` contains the statuses that it determined.
    """

    async def __call__(self, *, refresh: bool, decided: Sequence[ToolsetStatus] | None) -> T_co: ...


class ToolsetWatch(Generic[T]):
    """Keeps the toolsets of one process up to date.

    If `adopts` is true, it waits for calls to `adopt` and checks nothing itself.

    `on_check` receives the statuses of all toolsets after each check. `close` closes what the toolsets keep open.
    `place` is the cluster of the toolsets, for the log.
    """

    def __init__(
        self,
        check: Check[T],
        *,
        retry_seconds: float,
        adopts: bool = False,
        on_check: Callable[[tuple[ToolsetStatus, ...]], None] = lambda _: None,
        close: Callable[[], Awaitable[None]] | None = None,
        place: str = "",
    ) -> None:
        self._run_check = check
        self._retry_seconds = retry_seconds
        self._adopts = adopts
        self._on_check = on_check
        self._close = close
        self._place = f" of cluster {place!r}" if place else ""
        self._decided: tuple[ToolsetStatus, ...] | None = None
        self._adopted = asyncio.Event()
        self._checked = asyncio.Event()
        self._opened: T | None = None
        self._problem: HolmesError | None = None
        self._pause = retry_seconds
        self.statuses: tuple[ToolsetStatus, ...] = ()

    @property
    def failed(self) -> tuple[ToolsetStatus, ...]:
        """The enabled toolsets that cannot run."""
        return tuple(status for status in self.statuses if status.state == "failed")

    @property
    def nothing_works(self) -> bool:
        return bool(self.failed) and all(status.state != "enabled" for status in self.statuses)

    async def current(self) -> T:
        """Return the result of the last check. The same object is returned until a status changes.

        Raises `ConfigError`.
        """
        await self._checked.wait()
        if self._opened is None:
            assert self._problem is not None  # noqa: S101  a check sets one of the two
            raise self._problem
        return self._opened

    def adopt(self, statuses: Sequence[ToolsetStatus]) -> None:
        """Adopt the statuses that another process determined."""
        self._decided = tuple(statuses)
        self._adopted.set()

    async def aclose(self) -> None:
        """Close the connections of the toolsets, after the last run."""
        if self._close is not None:
            await self._close()

    async def step(self) -> None:
        """Run one check, and pause after it. If `adopts` is true, wait for the statuses first and do not pause."""
        if self._adopts:
            await self._adopted.wait()
            self._adopted.clear()
            await self._check()
            return
        before = self.statuses
        await self._check()
        first = self._retry_seconds
        longest = _LONGEST_PAUSE_FACTOR * first
        is_steady = self.statuses == before
        self._pause = longest if not self.failed else min(2 * self._pause, longest) if is_steady else first
        await asyncio.sleep(self._pause)

    async def _check(self) -> None:
        """Check the toolsets. A file that became invalid since the last check does not affect toolsets that can run."""
        try:
            opened = await self._run_check(refresh=self._opened is not None, decided=self._decided)
        except HolmesError as error:
            self._problem = error
            broken = ToolsetStatus(name=_FILES, state="failed", reason=str(error))
            working = [status for status in self.statuses if status.name != _FILES]
            statuses = (*working, broken)
        else:
            self._problem, statuses = None, opened.readiness.statuses
            if self._opened is None or statuses != self.statuses:
                self._opened = opened
        if not self._adopts:
            self._log_changes(statuses)
        self.statuses = statuses
        self._checked.set()
        self._on_check(statuses)

    def _log_changes(self, statuses: tuple[ToolsetStatus, ...]) -> None:
        before = {status.name: status for status in self.statuses}
        for status in statuses:
            known = before.get(status.name)
            if status.state == "failed" and (known is None or known.reason != status.reason):
                more = "can no longer be used" if known and known.state == "enabled" else "cannot be used"
                reason = " ".join((status.reason or "").split())
                again = "Holmes will check it again"
                _log.warning("toolset %r%s %s: %s; %s", status.name, self._place, more, reason, again)
            elif status.state == "enabled" and known is not None and known.state == "failed":
                _log.info("toolset %r%s can be used again", status.name, self._place)
