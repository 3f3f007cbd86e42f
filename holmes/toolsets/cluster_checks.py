"""Checks which kinds and objects the cluster has, for the prerequisites of toolsets.

All toolsets of one check share one client and one discovery request. A cluster that lacks a kind is normal, so the
toolset is absent, not failed. The client is imported only for a toolset that asks for a kind or an object.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import children, text
from holmes.toolsets.yaml.definition import KindPrerequisite, ObjectPrerequisite
from holmes.values.errors import HolmesError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.kubernetes.client import ClusterClient
    from holmes.toolsets.yaml.definition import Prerequisite
    from holmes.toolsets.yaml.prerequisites import Obstacle
    from holmes.values.environment import Environment
    from holmes.values.json_types import JsonObject

_TIMEOUT_SECONDS: Final = 5.0
# A server before Kubernetes 1.27 does not know this media type, and returns the groups without their kinds.
_DISCOVERY: Final = "application/json;as=APIGroupDiscoveryList;g=apidiscovery.k8s.io;v=v2, application/json"


class ClusterChecks:
    """The cluster of one check. Nothing is sent before the first prerequisite asks. The caller closes it."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._client: asyncio.Task[ClusterClient] | None = None
        self._served: asyncio.Task[frozenset[str]] | None = None

    async def obstacle(self, prerequisites: Sequence[Prerequisite]) -> Obstacle | None:
        """Return the first kind or object that the cluster lacks, or None. Other prerequisites are ignored."""
        from holmes.kubernetes.errors import Forbidden, NotFound
        from holmes.toolsets.yaml.prerequisites import Obstacle

        for each in prerequisites:
            try:
                reason = await self._reason(each)
            except (NotFound, Forbidden) as error:
                return Obstacle(state="absent", reason=str(error))
            except HolmesError as error:
                return Obstacle(state="failed" if self._is_connected else "absent", reason=str(error))
            if reason:
                return Obstacle(state="absent", reason=reason)
        return None

    async def close(self) -> None:
        """End requests that are still running, and close the connections."""
        for task in (self._served, self._client):
            if task is not None and not task.done():
                task.cancel()
        await asyncio.gather(*filter(None, (self._served, self._client)), return_exceptions=True)
        if self._client is not None and self._is_connected:
            await self._client.result().close()

    @property
    def _is_connected(self) -> bool:
        """Whether a cluster is configured. Without one, there is nothing to check again later."""
        client = self._client
        return client is not None and client.done() and not client.cancelled() and client.exception() is None

    async def _reason(self, prerequisite: Prerequisite) -> str | None:
        if isinstance(prerequisite, KindPrerequisite):
            served = await self._kinds()
            if not any(_is_served(kind, served) for kind in prerequisite.kinds):
                return f"the cluster has no {' or '.join(prerequisite.kinds)}"
        elif isinstance(prerequisite, ObjectPrerequisite):
            await (await self._connected()).get(prerequisite.path)
        return None

    async def _kinds(self) -> frozenset[str]:
        """Return the served kinds as `resource.group`, and the groups of an old server as `.group`."""
        if self._served is None:
            self._served = asyncio.create_task(self._discover())
        return await asyncio.shield(self._served)

    async def _discover(self) -> frozenset[str]:
        client = await self._connected()
        return frozenset(_names(await client.get("/apis", accept=_DISCOVERY)))

    async def _connected(self) -> ClusterClient:
        if self._client is None:
            from holmes.kubernetes.client import ClusterClient
            from holmes.kubernetes.sender import ClientLimits

            limits = ClientLimits(request_timeout_seconds=_TIMEOUT_SECONDS)
            self._client = asyncio.create_task(ClusterClient.connect(self._environment, limits=limits))
        return await asyncio.shield(self._client)


def _is_served(kind: str, served: frozenset[str]) -> bool:
    return kind in served or f".{kind.partition('.')[2]}" in served


def _names(page: JsonObject) -> Iterator[str]:
    for group in children(page, "groups"):
        yield f".{text(group, 'name')}"
    for group in children(page, "items"):
        for version in children(group, "versions"):
            for resource in children(version, "resources"):
                yield f"{text(resource, 'resource')}.{text(group, 'metadata', 'name')}"
