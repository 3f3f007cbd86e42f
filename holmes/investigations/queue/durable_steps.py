"""A `StepRunner` that does each step once, however often the investigation is begun. Made by the worker."""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import TYPE_CHECKING, TypeVar, cast

from holmes.investigations.records.step_codec import UnreadableStep, step_from_bytes
from holmes.values.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from holmes.investigations.records.journal import Journal

T = TypeVar("T")


class DurableStepRunner:
    """Returns what is recorded, else runs the step and records it before anything builds on it.

    A step that fails is not recorded, only what it cost: it was not finished.
    A finished step is recorded even when the attempt is being
    cancelled, since it may have been paid for.
    """

    def __init__(self, journal: Journal, recorded: Mapping[str, bytes], prefix: str = "") -> None:
        self._journal = journal
        self._prefix = prefix
        self._recorded = dict(recorded)
        self._recording: set[asyncio.Task[object]] = set()

    async def run(self, name: str, step: Callable[[], Awaitable[T]]) -> T:
        """The recorded result of `name`, or that of `step`. Raises `LostInvestigation`, and what `step` raises."""
        name = self._prefix + name
        content = self._recorded.pop(name, None)
        if content is not None:
            try:
                return cast("T", step_from_bytes(content))
            except UnreadableStep:
                pass  # of a version too far away: it is done again
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
            recording.exception()  # seen here, when nobody waits for it any more

    def now_seconds(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def new_id(self) -> str:
        """A random id."""
        return uuid.uuid4().hex
