"""Reads a cluster into a `ClusterState`, with one list for each kind.

The lists are read concurrently and in pages, within limits on the time and the number of objects. A list that cannot be
read becomes a `Gap` that states why. If no list can be read, the reader raises an error. For Secrets, only metadata is
requested. All served custom kinds are listed, the most useful kinds first. Fields that no rule reads are removed, so
that a large cluster fits into memory.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from holmes.kubernetes.cluster_object import ClusterEvent, ClusterObject
from holmes.kubernetes.cluster_state import DEFINITION_KIND, ClusterState, Gap, Reading
from holmes.kubernetes.custom_kinds import custom_kinds, discovered_kinds, status_shape
from holmes.kubernetes.errors import Forbidden, Gone, NotFound
from holmes.kubernetes.fields import LAST_APPLIED, child, children, text
from holmes.kubernetes.kinds import EVENT, KINDS, Kind, api_path
from holmes.values.errors import ClusterUnreachable, HolmesError, ToolError
from holmes.values.texts import without_last_word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.kubernetes.client import ClusterClient
    from holmes.kubernetes.cluster_state import GapCategory
    from holmes.values.json_types import JsonObject, JsonValue

_LONGEST_VALUE_CHARACTERS: Final = 16_384


def slim(body: JsonObject, kind: str) -> JsonObject:
    """Remove large fields from an object.

    - `managedFields` keeps manager, operation and time.
    - A ConfigMap keeps all keys, with at most 16,384 characters of each value.
    - The schema of a CustomResourceDefinition is removed, except for whether it has a status.
    - The last applied configuration is removed.
    """
    slimmer: dict[str, JsonValue] = dict(body)
    metadata: dict[str, JsonValue] = dict(child(body, "metadata"))
    annotations = child(metadata, "annotations")
    if LAST_APPLIED in annotations:
        metadata["annotations"] = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
    if "managedFields" in metadata:
        metadata["managedFields"] = [
            {key: entry[key] for key in ("manager", "operation", "time", "subresource") if key in entry}
            for entry in children(metadata, "managedFields")
        ]
    slimmer["metadata"] = metadata
    if kind == "ConfigMap":
        slimmer["data"] = {key: _cut(value) for key, value in child(body, "data").items()}
        slimmer["binaryData"] = dict.fromkeys(child(body, "binaryData"), "")
    elif kind == "CustomResourceDefinition":
        slimmer["spec"] = _without_schemas(child(body, "spec"))
    return slimmer


def _cut(value: JsonValue) -> JsonValue:
    if not isinstance(value, str) or len(value) <= _LONGEST_VALUE_CHARACTERS:
        return value
    return without_last_word(value[:_LONGEST_VALUE_CHARACTERS])


def _without_schemas(spec: JsonObject) -> dict[str, JsonValue]:
    versions: list[JsonValue] = [
        {**{key: value for key, value in version.items() if key != "schema"}, **status_shape(version)}
        for version in children(spec, "versions")
    ]
    kept: dict[str, JsonValue] = {key: value for key, value in spec.items() if key != "conversion"}
    return {**kept, "versions": versions, "group": text(spec, "group")}


_NAMES_ONLY: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""Media type for metadata only. A server that does not support this type cannot send Secret values instead."""

_DISCOVERY: Final = "application/json;as=APIGroupDiscoveryList;g=apidiscovery.k8s.io;v=v2"

_CUSTOM_SLOTS: Final = 8
"""Custom kinds that are read at the same time. Their turns follow the order of the kinds."""

LEASES: Final = "kube-node-lease"
SYSTEM_NAMESPACE: Final = "kube-system"
NODE_EVENTS: Final = "default"
"""Namespace of events about nodes, which are cluster-scoped."""

Progress: TypeAlias = Callable[[str, int, int], None]
"""A callback that receives the current list, the number of finished lists, and the total number of lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """Limits for reading a cluster.

    `objects` and `events` apply to each list, and `seconds` applies to all lists together. `custom_objects` applies to
    all custom kinds together, and `custom_kind_objects` to each list of a custom kind. `first_kinds` (`Kind.group`) are
    the custom kinds to list before the others, so that they are the last to be affected by a limit.
    """

    seconds: float = 60.0
    objects: int = 50_000
    events: int = 100_000
    page_size: int = 500
    custom_objects: int = 20_000
    custom_kind_objects: int = 5_000
    first_kinds: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadCost:
    """The cost of reading a cluster: the number of lists, and the number of requests for all their pages."""

    list_calls: int
    requests: int


@dataclass(slots=True)
class _Harvest:
    objects: list[ClusterObject] = field(default_factory=list)
    events: list[ClusterEvent] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    custom_objects: int = 0
    list_calls: int = 0
    requests: int = 0
    answers: int = 0


class StateReader:
    """Reads the objects and events of one cluster. If `namespaces` is empty, all namespaces are read."""

    def __init__(
        self,
        client: ClusterClient,
        *,
        namespaces: Sequence[str] = (),
        limits: ReadLimits | None = None,
        grace_seconds: float = 60.0,
        progress: Progress | None = None,
    ) -> None:
        self._client = client
        self._limits = limits or ReadLimits()
        self._asked = tuple(dict.fromkeys(namespaces))
        self._grace_seconds = grace_seconds
        self._progress = progress
        self._harvest = _Harvest()
        self._custom_slots = asyncio.Semaphore(_CUSTOM_SLOTS)
        self._done = 0
        self._planned = 0

    async def read(self) -> tuple[ClusterState, ReadCost]:
        """Return the state and the cost of reading it. Raises `ClusterUnreachable` if nothing could be read."""
        deadline = time.monotonic() + self._limits.seconds
        await self._read_all([(kind, place) for kind in (EVENT, *KINDS) for place in self._places(kind)], deadline)
        if not self._harvest.answers:
            raise self._nothing_read()
        customs = await self._custom_kinds()
        await self._read_all([(kind, place) for kind in customs for place in self._places(kind)], deadline)
        state = await asyncio.to_thread(self._state)
        return state, ReadCost(list_calls=self._harvest.list_calls, requests=self._harvest.requests)

    async def _custom_kinds(self) -> tuple[Kind, ...]:
        """Return the kinds of the definitions. If these cannot be listed, return the kinds of the API discovery."""
        first = self._limits.first_kinds
        if all(gap.kind != DEFINITION_KIND or gap.category != "forbidden" for gap in self._harvest.gaps):
            return await asyncio.to_thread(custom_kinds, self._harvest.objects, first)
        self._harvest.requests += 1
        try:
            page = await self._client.get("/apis", accept=_DISCOVERY)
        except HolmesError:
            return ()  # the gap of the definitions states what is missing
        return await asyncio.to_thread(discovered_kinds, children(page, "items"), self._harvest.objects, first)

    def _nothing_read(self) -> ClusterUnreachable:
        why = self._harvest.gaps[0].why if self._harvest.gaps else "no response"
        message = f"Cannot read anything from the cluster at {self._client.server}: {why}"
        return ClusterUnreachable(message)

    def _state(self) -> ClusterState:
        harvest, recorded = self._harvest, self._client.recorded_namespaces
        now = self._client.server_seconds
        newest = max((each.created for each in harvest.objects), default=0.0)
        namespaces = frozenset((*self._asked, SYSTEM_NAMESPACE) if self._asked else recorded)
        # The user did not select these namespaces for the recording, so it is expected that they are missing.
        unasked = {SYSTEM_NAMESPACE, NODE_EVENTS} - {*recorded, *self._asked} if recorded else set()
        reading = Reading(
            # `now` is at least the time of the newest object.
            # Otherwise, a wrong date header from a proxy could make objects look new.
            now=max(time.time() if now is None else now, newest),
            namespaces=namespaces - unasked,
            gaps=tuple(gap for gap in harvest.gaps if gap.namespace not in unasked),
            grace_seconds=self._grace_seconds,
        )
        return ClusterState(reading, harvest.objects, harvest.events)

    def _places(self, kind: Kind) -> tuple[str, ...]:
        """Return the namespaces in which to list a kind.

        An empty name selects all namespaces, and is used for cluster-scoped kinds. Includes the system namespace,
        because everything depends on its DNS and webhooks.
        """
        if kind.name == "Lease":
            return (LEASES,)
        if not kind.namespaced or not self._asked:
            return ("",)
        places = (*self._asked, SYSTEM_NAMESPACE, NODE_EVENTS) if kind is EVENT else (*self._asked, SYSTEM_NAMESPACE)
        return tuple(dict.fromkeys(places))

    async def _read_all(self, lists: list[tuple[Kind, str]], deadline: float) -> None:
        self._planned += len(lists)
        async with asyncio.TaskGroup() as group:
            for kind, place in lists:
                group.create_task(self._read_one(kind, place, deadline))

    async def _read_one(self, kind: Kind, place: str, deadline: float) -> None:
        """Read one list. If it cannot be read, record a gap that states why."""
        try:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                await (self._read_pages if _is_builtin(kind) else self._read_customs)(kind, place)
        except TimeoutError:
            self._gap(kind, place, f"reading the lists took longer than {self._limits.seconds:g} s", "late")
        except Forbidden as error:
            self._harvest.answers += 1
            self._gap(kind, place, str(error), "forbidden")
        except NotFound as error:
            self._harvest.answers += 1
            self._gap(kind, place, f"the cluster does not have this kind ({error})", "absent")
        except HolmesError as error:
            self._gap(kind, place, str(error))
        self._done += 1
        if self._progress is not None:
            self._progress(kind.resource, self._done, self._planned)

    async def _read_customs(self, kind: Kind, place: str) -> None:
        """Read a list of a custom kind when its turn comes, unless the limit for all custom objects was reached."""
        async with self._custom_slots:
            most = self._limits.custom_objects
            if self._harvest.custom_objects >= most:
                self._gap(kind, place, f"more than {most:,} custom objects; the other kinds were not read", "limit")
            else:
                await self._read_pages(kind, place)

    async def _read_pages(self, kind: Kind, place: str) -> None:
        """Read a complete list. Objects read before a failure are kept. An expired list is read again once."""
        self._harvest.list_calls += 1
        try:
            await self._pages(kind, place, set())
        except Gone:
            await self._pages(kind, place, {each.uid for each in self._harvest.objects if each.kind == kind.name})

    async def _pages(self, kind: Kind, place: str, known: set[str]) -> None:
        path = api_path(kind.group_version, kind.resource, namespace=place or None)
        limit = self._limits.events if kind is EVENT else self._limits.objects
        limit = limit if _is_builtin(kind) else self._limits.custom_kind_objects
        accept = _NAMES_ONLY if kind.metadata_only else ""
        token, count = "", 0
        while True:
            params = {"limit": str(self._limits.page_size), **({"continue": token} if token else {})}
            self._harvest.requests += 1
            page = await self._client.get(path, params, accept=accept)
            self._harvest.answers += 1
            items = children(page, "items")
            if not _is_list(page):
                self._gap(kind, place, f"GET {path}: the API server did not return a list of objects")
            await asyncio.to_thread(self._keep, kind, items, known)
            count += len(items)
            before, token = token, text(child(page, "metadata"), "continue")
            if not token:
                return
            if token == before:
                raise ToolError(f"GET {path}: the API server returned the same page twice; {count:,} objects were read")
            if count >= limit:
                self._gap(kind, place, f"more than {limit:,} objects; the first {count:,} were read", "limit")
                return

    def _keep(self, kind: Kind, items: tuple[JsonObject, ...], known: set[str]) -> None:
        if kind is EVENT:
            self._harvest.events += [ClusterEvent.of(item) for item in items]
            return
        group = "" if _is_builtin(kind) else kind.group
        scope = self._client.scope if kind.name == "Namespace" else ()
        items = tuple(item for item in items if not scope or text(child(item, "metadata"), "name") in scope)
        found = [ClusterObject.of(slim(item, kind.name), kind=kind.name, group=group) for item in items]
        self._harvest.objects += [each for each in found if each.uid not in known]
        self._harvest.custom_objects += len(found) if group else 0

    def _gap(self, kind: Kind, place: str, why: str, category: GapCategory = "failed") -> None:
        name = kind.name if _is_builtin(kind) else f"{kind.name}.{kind.group}"
        self._harvest.gaps.append(Gap(kind=name, why=" ".join(why.split()), namespace=place, category=category))


def _is_builtin(kind: Kind) -> bool:
    return kind is EVENT or kind in KINDS


def _is_list(page: JsonObject) -> bool:
    """Return whether the items of a page are objects. An empty list may be null. A `Status` is not a list."""
    items = page.get("items", "")
    return items is None or (isinstance(items, list) and all(isinstance(item, dict) for item in items))
