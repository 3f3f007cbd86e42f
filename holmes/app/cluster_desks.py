"""Keeps the toolsets and the opened models of each cluster of a server apart. Each is opened on first use.

A cluster that cannot be reached affects only the investigations about it.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from holmes.app.cluster import default_cluster, of_cluster, require_cluster, require_known
from holmes.app.investigator import open_assembly
from holmes.investigations.queue.queue import repeat, running
from holmes.values.errors import ClusterUnreachable, ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import TracebackType

    from holmes.app.investigator import Assembly, Guards, Investigator
    from holmes.app.toolsets import OpenToolsets
    from holmes.settings.settings import Settings
    from holmes.toolsets.registry import ToolsetStatus
    from holmes.toolsets.watch import ToolsetWatch


class ClusterDesk:
    """The toolsets of one cluster, and an investigator for each requested model."""

    def __init__(self, settings: Settings, guards: Guards, toolsets: ToolsetWatch[OpenToolsets]) -> None:
        self.settings = settings
        self.toolsets = toolsets
        self._guards = guards
        self._opened: dict[str, Assembly] = {}
        self._opening = asyncio.Lock()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Start the toolset checks."""
        await self._stack.__aenter__()
        self._stack.push_async_callback(self.toolsets.aclose)
        await self._stack.enter_async_context(running(repeat(self.toolsets.step, 0), "holmes-toolsets"))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the toolset checks, and close all models."""
        await self._stack.__aexit__(kind, error, trace)

    async def require_reachable(self) -> None:
        """Raise `ClusterUnreachable` if the API server does not respond. The message names a configured cluster."""
        with self._named():
            await require_cluster(self.settings)

    async def investigator(self, model: str) -> Investigator:
        """Return the investigator of a model with the current toolsets. Raises `ClusterUnreachable`."""
        toolsets = await self.toolsets.current()
        async with self._opening:
            if model not in self._opened:
                settings = replace(self.settings, model=self.settings.model.model_copy(update={"model": model}))
                opened = open_assembly(settings, self._guards, self.toolsets.current)
                with self._named():
                    self._opened[model] = await self._stack.enter_async_context(opened)
            return self._opened[model].with_toolsets(toolsets)

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except ClusterUnreachable as error:
            if not self.settings.cluster:
                raise
            raise ClusterUnreachable(f"cluster {self.settings.cluster!r}: {error}") from error


class ClusterDesks:
    """The desks of all clusters of a server. `watch` creates the toolset watch of a cluster from its settings."""

    def __init__(
        self, settings: Settings, guards: Guards, watch: Callable[[Settings], ToolsetWatch[OpenToolsets]]
    ) -> None:
        self._settings = settings
        self._guards = guards
        self._watch = watch
        self._desks: dict[str | None, ClusterDesk] = {}
        self._opening = asyncio.Lock()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Open the desk of the cluster that is used without a choice, if there is one. Raises `ConfigError`."""
        await self._stack.__aenter__()
        several = self._settings.serves_several
        if not several or default_cluster(self._settings) is not None:
            await self.desk(None)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all desks."""
        await self._stack.__aexit__(kind, error, trace)

    @property
    def opened(self) -> Mapping[str | None, ClusterDesk]:
        """The desks that were used so far, by cluster. The key is None for a cluster without a name."""
        return dict(self._desks)

    @property
    def failed_toolsets(self) -> tuple[ToolsetStatus, ...]:
        """The enabled toolsets that cannot run. With several clusters, their names contain the cluster."""
        return tuple(
            replace(each, name=qualified(cluster, each.name, self._settings))
            for cluster, desk in self._desks.items()
            for each in desk.toolsets.failed
        )

    @property
    def nothing_works(self) -> bool:
        """Whether no toolset works in any cluster. A cluster that was not used yet may work."""
        wanted = len(self._settings.clusters.clusters) if self._settings.serves_several else 1
        return len(self._desks) == wanted and all(desk.toolsets.nothing_works for desk in self._desks.values())

    def name_of(self, cluster: str | None) -> str | None:
        """Return the name of the chosen cluster, by default the default cluster. Raises `ConfigError`."""
        settings = self._settings
        if not settings.serves_several:
            own = settings.cluster or None
            if cluster not in {None, own, settings.investigation.cluster_name}:
                reads = f"reads only {own!r}" if own else "reads one cluster, which has no name"
                raise ConfigError(f"unknown cluster {cluster!r}; this server {reads}")
            return own
        if cluster is not None:
            require_known(settings, cluster)
            return cluster
        default = default_cluster(settings)
        if default is None:
            known = ", ".join(settings.clusters.clusters)
            raise ConfigError(f"choose a cluster with 'cluster', or set default_cluster; configured clusters: {known}")
        return default

    async def desk(self, cluster: str | None) -> ClusterDesk:
        """Return the desk of a cluster, by default of the default cluster. Raises `ConfigError`."""
        name = self.name_of(cluster)
        async with self._opening:
            if name not in self._desks:
                settings = self._settings
                own = of_cluster(settings, name) if name is not None and settings.serves_several else settings
                desk = ClusterDesk(own, self._guards, self._watch(own))
                self._desks[name] = await self._stack.enter_async_context(desk)
            return self._desks[name]


def qualified(cluster: str | None, toolset: str, settings: Settings) -> str:
    """Return the name of a toolset. If a server reads several clusters, it contains the cluster."""
    return f"{cluster}: {toolset}" if settings.serves_several else toolset
