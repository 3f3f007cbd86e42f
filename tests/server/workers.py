"""Workers for servers that run within the process of the tests, which has threads and therefore cannot fork."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from prometheus_client import Metric

from holmes.app.work import Work, open_work
from holmes.redaction.redactor import Redactor
from holmes.settings.settings import Settings
from holmes.toolsets.registry import ToolsetStatus


class NoWorker:
    """Investigations stay queued."""

    @asynccontextmanager
    async def working(self, _settings: Settings) -> AsyncIterator[None]:
        """Do nothing."""
        yield

    def wake(self) -> None:
        """Nobody is there."""

    def use_toolsets(self, _statuses: tuple[ToolsetStatus, ...]) -> None:
        """Whoever works here checks by itself."""

    def begin_to_end(self) -> None:
        """Nothing runs."""

    async def figures(self) -> tuple[Metric, ...]:
        """None."""
        return ()


class HereWorker(NoWorker):
    """The half that works, in this process: where there are threads, none can be forked."""

    def __init__(self, redactor: Redactor | None) -> None:
        self._redactor = redactor
        self._work: Work | None = None

    @asynccontextmanager
    async def working(self, settings: Settings) -> AsyncIterator[None]:
        """Work on the loop that answers, too."""
        async with open_work(settings, self._redactor) as self._work:
            yield

    def wake(self) -> None:
        """Pass it on."""
        if self._work is not None:
            self._work.wake()

    def begin_to_end(self) -> None:
        """Pass it on."""
        if self._work is not None:
            self._work.begin_to_end()

    async def figures(self) -> tuple[Metric, ...]:
        """What was counted."""
        return self._work.metrics.families() if self._work is not None else ()
