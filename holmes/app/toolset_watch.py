"""Knows which toolsets can be used now: checks them at the start, again later, and says in the log what changed.

What failed is checked again after a pause that doubles; what works, too, in case it fails later. A run keeps the tools
that it began with, since its cached prompt must not change; the next one gets those of the last check. One process of
a server checks, and the other one is told, so that both use the same toolsets.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from holmes.app.toolsets import open_toolsets
from holmes.investigations.records.periodic import repeat
from holmes.toolsets.registry import ToolsetStatus
from holmes.values.errors import HolmesError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holmes.app.toolsets import OpenToolsets
    from holmes.redaction.redactor import Redactor
    from holmes.settings.settings import Settings

_LONGEST_PAUSE_FACTOR: Final = 20
_FILES: Final = "toolset files"
_log = logging.getLogger(__name__)


class ToolsetWatch:
    """The toolsets of one process. With `told` it checks nothing and waits for `adopt`.

    `on_check` hears how all toolsets stand after each check.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        redactor: Redactor | None = None,
        told: bool = False,
        on_check: Callable[[tuple[ToolsetStatus, ...]], None] = lambda _: None,
    ) -> None:
        self._settings = settings
        self._redactor = redactor
        self._told = told
        self._on_check = on_check
        self._decided: tuple[ToolsetStatus, ...] | None = None
        self._adopted = asyncio.Event()
        self._checked = asyncio.Event()
        self._opened: OpenToolsets | None = None
        self._problem: HolmesError | None = None
        self._pause = settings.tools.toolset_retry_seconds
        self.statuses: tuple[ToolsetStatus, ...] = ()

    @property
    def failed(self) -> tuple[ToolsetStatus, ...]:
        """Those that cannot be used and should."""
        return tuple(status for status in self.statuses if status.state == "failed")

    @property
    def nothing_works(self) -> bool:
        """Whether no toolset at all can be used, although some should."""
        return bool(self.failed) and all(status.state != "enabled" for status in self.statuses)

    async def current(self) -> OpenToolsets:
        """The toolsets by the last check, the same value until something changes. Raises `ConfigError`."""
        await self._checked.wait()
        if self._opened is None:
            assert self._problem is not None  # noqa: S101  a check gives one of the two
            raise self._problem
        return self._opened

    def adopt(self, statuses: Sequence[ToolsetStatus]) -> None:
        """Use what another process found out."""
        self._decided = tuple(statuses)
        self._adopted.set()

    async def run(self) -> None:
        """Check for ever."""
        await repeat(self._step, 0)

    async def _step(self) -> None:
        """One check, and the pause after it."""
        if self._told:
            await self._adopted.wait()
            self._adopted.clear()
            await self._check()
            return
        before = self.statuses
        await self._check()
        first = self._settings.tools.toolset_retry_seconds
        longest = _LONGEST_PAUSE_FACTOR * first
        is_steady = self.statuses == before
        self._pause = longest if not self.failed else min(2 * self._pause, longest) if is_steady else first
        await asyncio.sleep(self._pause)

    async def _check(self) -> None:
        """What an author broke in a file meanwhile costs nothing that works."""
        try:
            is_first = self._opened is None
            opened = await open_toolsets(
                self._settings, redactor=self._redactor, refresh=not is_first, decided=self._decided
            )
        except HolmesError as error:
            self._problem = error
            broken = ToolsetStatus(name=_FILES, state="failed", reason=str(error))
            working = [status for status in self.statuses if status.name != _FILES]
            statuses = (*working, broken)
        else:
            self._problem, statuses = None, opened.readiness.statuses
            if self._opened is None or statuses != self.statuses:
                self._opened = opened
        if not self._told:
            self._say(statuses)
        self.statuses = statuses
        self._checked.set()
        self._on_check(statuses)

    def _say(self, statuses: tuple[ToolsetStatus, ...]) -> None:
        before = {status.name: status for status in self.statuses}
        for status in statuses:
            known = before.get(status.name)
            if status.state == "failed" and (known is None or known.reason != status.reason):
                more = "cannot be used any more" if known and known.state == "enabled" else "cannot be used"
                reason = " ".join((status.reason or "").split())
                _log.warning("toolset %r %s: %s; it is checked again", status.name, more, reason)
            elif status.state == "enabled" and known is not None and known.state == "failed":
                _log.info("toolset %r can be used again", status.name)
