"""Investigators for the server: one for each model that is asked for, opened when it is first needed and then kept.

Called by `holmes.app.serving`. What one run needs of its own (recorded steps, a budget) comes with the run.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from holmes.app.investigator import open_investigator, result_store
from holmes.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from types import TracebackType

    from holmes.app.investigator import Investigator
    from holmes.app.requests import AskRequest, RunParts
    from holmes.core.events import AgentEvent
    from holmes.core.redaction.redactor import Redactor
    from holmes.core.results import ResultStore
    from holmes.settings.settings import Settings


class Investigators:
    """Answers questions with any model of the configuration."""

    def __init__(self, settings: Settings, redactor: Redactor | None) -> None:
        self.settings = settings
        self.results: ResultStore | None = result_store(settings) if settings.storage.results_enabled else None
        self._redactor = redactor
        self._opened: dict[str, Investigator] = {}
        self._opening = asyncio.Lock()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Nothing is opened yet."""
        await self._stack.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close what was opened."""
        await self._stack.__aexit__(kind, error, trace)

    def model_names(self) -> tuple[str, ...]:
        """What can be asked for: the chosen model first, then those of the model list and `builtin/triage`."""
        chain = (entry.name for entry in self.settings.model_chain())
        return tuple(dict.fromkeys((self.settings.model.model, *self.settings.model_names(), *chain)))

    async def ask(
        self, request: AskRequest, *, model: str | None = None, parts: RunParts | None = None
    ) -> AsyncGenerator[AgentEvent, None]:
        """Investigate with `model` (None: the general one), see `Investigator.ask`.

        Raises `ConfigError` for a model that is not configured, `ClusterUnreachable` when no cluster answers.
        """
        return (await self._investigator(model)).ask(request, parts)

    async def _investigator(self, model: str | None) -> Investigator:
        name = model or self.settings.model.model
        if name not in self.model_names():
            raise ConfigError(f"unknown model {name!r}; there are: {', '.join(self.model_names())}")
        async with self._opening:
            if name not in self._opened:
                settings = replace(self.settings, model=self.settings.model.model_copy(update={"model": name}))
                opened = open_investigator(settings, redactor=self._redactor, store=self.results)
                self._opened[name] = await self._stack.enter_async_context(opened)
            return self._opened[name]
