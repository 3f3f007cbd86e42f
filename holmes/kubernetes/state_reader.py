"""Reads a cluster into a `ClusterState`, with one list for each kind.

The most useful lists are read first, several at the same time. Lists that the API server rejects because of too much
load are read again, more slowly, until the time limit. A list that cannot be read completely becomes a `Gap` that
states why, and what was read of it is kept. If nothing can be read, the reader raises an error. All served custom kinds
are listed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from holmes.kubernetes.cluster_state import DEFINITION_KIND, ClusterState, Reading
from holmes.kubernetes.custom_kinds import custom_kinds, discovered_kinds
from holmes.kubernetes.errors import Forbidden, NotFound, Throttled
from holmes.kubernetes.fields import children
from holmes.kubernetes.kinds import EVENT, KINDS, Kind
from holmes.kubernetes.one_list import OneList
from holmes.values.errors import ClusterUnreachable, HolmesError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holmes.kubernetes.client import ClusterClient
    from holmes.kubernetes.cluster_object import ClusterObject

_DISCOVERY: Final = "application/json;as=APIGroupDiscoveryList;g=apidiscovery.k8s.io;v=v2"

_AT_ONCE: Final = 8
"""Lists that are read at the same time. Their turns follow their order."""

_AT_ONCE_AFTER_FAILURES: Final = 2
_PAGE_SIZE_AFTER_FAILURES: Final = 100
"""Smaller pages cost the API server less, so that it accepts them earlier."""

_MOST_FAILURES: Final = 2
"""Attempts for a list that fails for another reason than too much load."""

_FAILS_FAST_SECONDS: Final = 5.0
_LONGEST_PAUSE_SECONDS: Final = 4.0
_WORKLOADS_FIRST: Final = (
    "Pod", "Node", "Namespace", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Event", "Service",
    "EndpointSlice", "Job", "CronJob", "PersistentVolumeClaim", "ConfigMap", "Secret", "CustomResourceDefinition",
)  # fmt: skip
"""The kinds that are read first. Most causes are in these lists."""

LEASES: Final = "kube-node-lease"
SYSTEM_NAMESPACE: Final = "kube-system"
_NODE_EVENTS: Final = "default"
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
class Rights:
    """The rights of a user who may not read the whole cluster.

    Kinds that may not be listed in the whole cluster are listed in `namespaces`. `forbidden` contains the kinds that an
    earlier scan was not allowed to list in the whole cluster, with the reason. They are not requested again.
    """

    namespaces: tuple[str, ...] = ()
    forbidden: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadCost:
    """The cost of reading a cluster: the number of lists, and the number of requests for all their pages."""

    list_calls: int
    requests: int


class StateReader:
    """Reads the objects and events of one cluster. If `namespaces` is empty, all namespaces are read."""

    def __init__(
        self,
        client: ClusterClient,
        *,
        namespaces: Sequence[str] = (),
        limits: ReadLimits | None = None,
        rights: Rights | None = None,
        grace_seconds: float = 60.0,
        progress: Progress | None = None,
    ) -> None:
        self._client = client
        self._limits = limits or ReadLimits()
        self._asked = tuple(dict.fromkeys(namespaces))
        self._rights = rights or Rights()
        self._grace_seconds = grace_seconds
        self._progress = progress
        self._lists: list[OneList] = []
        self._requests = 0
        self._deadline = 0.0

    async def read(self) -> tuple[ClusterState, ReadCost]:
        """Return the state and the cost of reading it. Raises `ClusterUnreachable` if nothing could be read."""
        self._deadline = time.monotonic() + self._limits.seconds
        waiting, customs_planned, attempt = self._plan(sorted((EVENT, *KINDS), key=_worth)), False, 0
        while waiting:
            await self._read_all(waiting, attempt)
            if not any(each.answers or _is_throttled(each) for each in self._lists):
                break
            if not customs_planned and not any(each.name == DEFINITION_KIND for each in self._failed()):
                customs_planned = True
                await self._read_all(self._plan(await self._custom_kinds()), attempt)
            waiting, attempt = self._failed(), attempt + 1
            if waiting:
                await asyncio.sleep(min(_LONGEST_PAUSE_SECONDS, 0.25 * 2**attempt, self._seconds_left()))
        if not any(each.answers for each in self._lists):
            raise self._nothing_read()
        state = await asyncio.to_thread(self._state)
        requests = self._requests + sum(each.requests for each in self._lists)
        return state, ReadCost(list_calls=len(self._lists), requests=requests)

    def _plan(self, kinds: Iterable[Kind]) -> list[OneList]:
        """Add the lists of `kinds`, and return those that are to be read."""
        planned: list[OneList] = []
        for kind in kinds:
            for place in self._places(kind):
                one = OneList(kind=kind, place=place)
                self._lists.append(one)
                why = "" if place else self._rights.forbidden.get(one.name, "")
                planned += self._narrowed(one, why) if why else [one]
        return planned

    def _narrowed(self, one: OneList, why: str) -> list[OneList]:
        """Return the lists of single namespaces in place of a list of the whole cluster that is forbidden."""
        places = self._rights.namespaces if one.kind.namespaced and not one.place else ()
        one.leave(why, "forbidden", places)
        lists = [OneList(kind=one.kind, place=place) for place in places]
        self._lists += lists
        return lists

    def _places(self, kind: Kind) -> tuple[str, ...]:
        """Return the namespaces in which to list a kind.

        An empty name selects all namespaces, and is used for cluster-scoped kinds. Includes the system namespace,
        because everything depends on its DNS and webhooks, and the Leases of nodes and of the control plane.
        """
        if not kind.namespaced or not self._asked:
            return ("",)
        more = {"Event": (_NODE_EVENTS,), "Lease": (LEASES,)}.get(kind.name, ())
        return tuple(dict.fromkeys((*self._asked, SYSTEM_NAMESPACE, *more)))

    def _failed(self) -> list[OneList]:
        """Return the lists that another attempt may complete, the most useful first."""
        failed = [each for each in self._lists if self._may_succeed(each)] if self._seconds_left() > 0 else []
        return sorted(failed, key=lambda each: _worth(each.kind))

    def _may_succeed(self, one: OneList) -> bool:
        if one.gap is None or one.gap.category != "failed":
            return _is_throttled(one)
        # A custom kind that fails slowly usually has a webhook that does not respond.
        return one.failures < _MOST_FAILURES and (one.is_builtin or one.seconds < _FAILS_FAST_SECONDS)

    async def _read_all(self, lists: Sequence[OneList], attempt: int) -> None:
        slots = asyncio.Semaphore(_AT_ONCE_AFTER_FAILURES if attempt else _AT_ONCE)
        page_size = min(self._limits.page_size, _PAGE_SIZE_AFTER_FAILURES if attempt else self._limits.page_size)
        async with asyncio.TaskGroup() as group:
            for one in lists:
                group.create_task(self._in_turn(one, page_size, slots))

    async def _in_turn(self, one: OneList, page_size: int, slots: asyncio.Semaphore) -> None:
        """Read a list when its turn comes, and the lists of single namespaces if it is forbidden."""
        async with slots:
            why = await self._read_one(one, page_size)
            for narrowed in self._narrowed(one, why) if why else ():
                await self._read_one(narrowed, page_size)
        if self._progress is not None:
            self._progress(one.kind.resource, sum(each.attempted for each in self._lists), len(self._lists))

    async def _read_one(self, one: OneList, page_size: int) -> str:
        """Read one list. If it cannot be read, record why. Returns the reason if the list is forbidden."""
        started, earlier, one.gap = time.monotonic(), one.gap, None
        try:
            async with asyncio.timeout(max(0.0, self._seconds_left())):
                await self._read_within_limits(one, page_size)
        except TimeoutError:
            rejections = self._client.rejections
            load = f"; the API server is overloaded and rejected {rejections:,} requests" if rejections else ""
            one.leave(f"reading the lists took longer than {self._limits.seconds:g} s{load}", "late")
            one.gap = earlier or one.gap
        except Forbidden as error:
            one.leave(str(error), "forbidden")
            return str(error)
        except NotFound as error:
            one.leave(f"the cluster does not have this kind ({error})", "absent")
        except Throttled as error:
            one.leave(f"the API server is overloaded and rejected the request ({error})", "throttled")
        except HolmesError as error:
            one.leave(str(error))
        finally:
            one.attempted = True
            one.seconds = time.monotonic() - started
            one.failures += one.gap is not None
        return ""

    async def _read_within_limits(self, one: OneList, page_size: int) -> None:
        limits = self._limits
        if one.is_builtin:
            await one.read(self._client, page_size, limits.events if one.kind is EVENT else limits.objects)
        elif sum(len(each.objects) for each in self._lists if not each.is_builtin) < limits.custom_objects:
            await one.read(self._client, page_size, limits.custom_kind_objects)
        else:
            one.leave(f"more than {limits.custom_objects:,} custom objects; the other kinds were not read", "limit")

    def _seconds_left(self) -> float:
        return max(0.0, self._deadline - time.monotonic())

    async def _custom_kinds(self) -> tuple[Kind, ...]:
        """Return the kinds of the definitions. If these cannot be listed, return the kinds of the API discovery."""
        first, objects = self._limits.first_kinds, self._objects()
        definitions = [each for each in self._lists if each.name == DEFINITION_KIND]
        if not any(each.gap is not None and each.gap.category == "forbidden" for each in definitions):
            return await asyncio.to_thread(custom_kinds, objects, first)
        self._requests += 1
        try:
            page = await self._client.get("/apis", accept=_DISCOVERY)
        except HolmesError:
            return ()  # the gap of the definitions states what is missing
        return await asyncio.to_thread(discovered_kinds, children(page, "items"), objects, first)

    def _objects(self) -> list[ClusterObject]:
        return [each for one in self._lists for each in one.objects]

    def _nothing_read(self) -> ClusterUnreachable:
        why = next((each.gap.why for each in self._lists if each.gap is not None), "no response")
        message = f"Cannot read anything from the cluster at {self._client.server}: {why}"
        return ClusterUnreachable(message)

    def _state(self) -> ClusterState:
        objects, recorded = self._objects(), self._client.recorded_namespaces
        now = self._client.server_seconds
        newest = max((each.created for each in objects), default=0.0)
        namespaces = frozenset((*self._asked, SYSTEM_NAMESPACE) if self._asked else recorded)
        # The user did not select these namespaces for the recording, so it is expected that they are missing.
        unasked = {SYSTEM_NAMESPACE, _NODE_EVENTS} - {*recorded, *self._asked} if recorded else set()
        gaps = [each.gap for each in self._lists if each.gap is not None]
        gaps += [gap for each in self._lists for gap in each.missing]
        reading = Reading(
            # `now` is at least the time of the newest object.
            # Otherwise, a wrong date header from a proxy could make objects look new.
            now=max(time.time() if now is None else now, newest),
            namespaces=namespaces - unasked,
            gaps=tuple(gap for gap in gaps if gap.namespace not in unasked),
            grace_seconds=self._grace_seconds,
        )
        return ClusterState(reading, objects, [each for one in self._lists for each in one.events])


def _worth(kind: Kind) -> int:
    """Return the position of a kind among the built-in kinds. Custom kinds are in their own order after them."""
    if kind is not EVENT and kind not in KINDS:
        return len(_WORKLOADS_FIRST) + 1
    return _WORKLOADS_FIRST.index(kind.name) if kind.name in _WORKLOADS_FIRST else len(_WORKLOADS_FIRST)


def _is_throttled(one: OneList) -> bool:
    return one.gap is not None and one.gap.category == "throttled"
