"""Stores the state of a cluster in memory for the rules.

A state contains indexed objects, events and logs, and the kinds that were not read completely. It never changes.
Reading more logs creates a new state. The absence of an object is conclusive only if `covers` returns true.
"""

from __future__ import annotations

import re
from collections import defaultdict
from copy import copy
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from holmes.kubernetes.fields import matches_map, matches_selector, text_map
from holmes.kubernetes.kinds import WORKLOADS
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from holmes.kubernetes.cluster_object import ClusterEvent, ClusterObject
    from holmes.values.findings import ObjectRef
    from holmes.values.json_types import JsonObject


GapCategory: TypeAlias = Literal["forbidden", "absent", "late", "throttled", "limit", "failed"]
DEFINITION_KIND: Final = "CustomResourceDefinition"
LOG_TIME: Final = expression(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)) ?", re.MULTILINE)
"""The time that the kubelet writes before each line of a log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A kind that was not read completely. An empty `namespace` means all namespaces.

    `category` states why: `forbidden`, `absent` (the cluster does not have the kind), `late`, `throttled`, `limit` or
    `failed`. `read_in` contains namespaces in which the kind was listed on its own, although it could not be listed in
    the whole cluster.
    """

    kind: str
    why: str
    namespace: str = ""
    category: GapCategory = "failed"
    read_in: tuple[str, ...] = ()

    def hides(self, namespace: str) -> bool:
        """Return whether objects in the namespace, or in any namespace if it is empty, may be missing."""
        if not namespace or not self.namespace:
            return namespace not in self.read_in
        return self.namespace == namespace


@dataclass(frozen=True, slots=True, kw_only=True)
class LogKey:
    """Identifies a container log. `previous` is true for the log of the container's previous instance."""

    pod: ObjectRef
    container: str
    previous: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Describes how the cluster was read. `now` is the time of the cluster in seconds since the epoch.

    `namespaces` are the namespaces that were read. Empty means all namespaces. Objects younger than `grace_seconds` may
    still be starting. Processes such as provisioning a volume may take a multiple of `patience_seconds`.
    """

    now: float
    namespaces: frozenset[str] = frozenset()
    gaps: tuple[Gap, ...] = ()
    grace_seconds: float = 60.0
    patience_seconds: float | None = None


class ClusterState:
    def __init__(
        self,
        reading: Reading,
        objects: Iterable[ClusterObject],
        events: Iterable[ClusterEvent] = (),
        logs: Mapping[LogKey, str] | None = None,
    ) -> None:
        self.reading = reading
        self._timed_logs = dict(logs or {})
        self._logs: dict[LogKey, str] | None = None
        self.log_questions = 0
        """The number of times that rules requested a log.

        A rule that requested no log need not run again after logs are read.
        """

        self._objects = tuple(objects)
        self._events = tuple(events)
        self._by_kind: dict[str, list[ClusterObject]] = defaultdict(list)
        self._by_name: dict[tuple[str, str, str], ClusterObject] = {}
        self._by_uid: dict[str, ClusterObject] = {}
        self._by_owner: dict[str, list[ClusterObject]] = defaultdict(list)
        self._by_place: dict[tuple[str, str], list[ClusterObject]] = defaultdict(list)
        self._events_by_uid: dict[str, list[ClusterEvent]] = defaultdict(list)
        self._index()

    def _index(self) -> None:
        for each in sorted(self._objects, key=lambda each: (each.kind, each.namespace, each.name)):
            key = _kind_key(each)
            self._by_kind[key].append(each)
            self._by_name[key, each.namespace, each.name] = each
            self._by_place[key, each.namespace].append(each)
            if each.uid:
                self._by_uid[each.uid] = each
            if each.owner is not None:
                self._by_owner[each.owner.uid].append(each)
        self._events = tuple(map(self._with_uid_of_node, self._events))
        for event in sorted(self._events, key=lambda event: event.last):
            self._events_by_uid[event.uid].append(event)

    def _with_uid_of_node(self, event: ClusterEvent) -> ClusterEvent:
        """Return an event with the uid of its node. The kubelet writes the name of the node instead."""
        node = self._by_name.get(("Node", "", event.name)) if event.kind == "Node" and event.uid == event.name else None
        return event if node is None else replace(event, uid=node.uid)

    def with_logs(self, logs: Mapping[LogKey, str]) -> ClusterState:
        """Return a copy of this state with additional logs, or with other texts of logs."""
        return self._copy(self.reading, {**self._timed_logs, **logs})

    def without_grace(self) -> ClusterState:
        """Return a copy of this state in which no object is too young to be judged."""
        reading = replace(self.reading, grace_seconds=0.0, patience_seconds=self.patience_seconds)
        return self._copy(reading, self._timed_logs)

    def _copy(self, reading: Reading, logs: dict[LogKey, str]) -> ClusterState:
        """Return a state that shares the objects and their index with this state."""
        other = copy(self)
        vars(other).update(reading=reading, _timed_logs=logs, _logs=None, log_questions=0)
        return other

    @property
    def logs(self) -> Mapping[LogKey, str]:
        """The logs without the times that the kubelet writes before each line."""
        self.log_questions += 1
        if self._logs is None:
            self._logs = {key: LOG_TIME.sub("", log) for key, log in self._timed_logs.items()}
        return self._logs

    @property
    def timed_logs(self) -> Mapping[LogKey, str]:
        """The logs as they were read, usually with a time before each line."""
        self.log_questions += 1
        return self._timed_logs

    @property
    def now(self) -> float:
        """The time of the cluster in seconds since the epoch."""
        return self.reading.now

    @property
    def grace_seconds(self) -> float:
        """The age in seconds below which an object may still be starting."""
        return self.reading.grace_seconds

    @property
    def patience_seconds(self) -> float:
        """The grace period of the scan, also where no object is too young to be judged."""
        given = self.reading.patience_seconds
        return self.grace_seconds if given is None else given

    def of(self, kind: str, namespace: str | None = None) -> tuple[ClusterObject, ...]:
        """Return all objects of a kind, optionally in one namespace only.

        Kinds that are not built into Kubernetes have the form `Kind.group`.
        """
        return tuple(self._by_kind[kind] if namespace is None else self._by_place[kind, namespace])

    @property
    def kinds(self) -> tuple[str, ...]:
        """The sorted kinds that have at least one object."""
        return tuple(sorted(kind for kind, objects in self._by_kind.items() if objects))

    @property
    def custom_resources(self) -> tuple[ClusterObject, ...]:
        """All objects of kinds that are not built into Kubernetes."""
        return tuple(each for key, objects in sorted(self._by_kind.items()) if "." in key for each in objects)

    def get(self, kind: str, namespace: str, name: str) -> ClusterObject | None:
        """Return one object, or None if it was not read. Call `is_missing` to find out whether it exists."""
        return self._by_name.get((kind, namespace, name))

    def find(self, ref: ObjectRef) -> ClusterObject | None:
        return self.get(f"{ref.kind}.{ref.group}" if ref.group else ref.kind, ref.namespace, ref.name)

    def written(self, name: str) -> ClusterObject | None:
        """Return the object with a name such as `Deployment shop/checkout`, or None if it was not read.

        The name of a custom resource has no group, so it is never found.
        """
        kind, _, path = name.partition(" ")
        namespace, _, plain = path.rpartition("/")
        return self.get(kind, namespace, plain)

    def by_uid(self, uid: str) -> ClusterObject | None:
        return self._by_uid.get(uid)

    def covers(self, kind: str, namespace: str = "") -> bool:
        """Return whether all objects of the kind in the namespace were read, so that an object's absence is conclusive.

        If `namespace` is empty, this applies to the whole cluster, or to all namespaces that were read.
        """
        if namespace and self.reading.namespaces and namespace not in self.reading.namespaces:
            return False
        kinds = (kind, DEFINITION_KIND) if "." in kind else (kind,)
        return not any(gap.kind in kinds and gap.hides(namespace) for gap in self.reading.gaps)

    def is_missing(self, kind: str, namespace: str, name: str) -> bool:
        """Return whether the object definitely does not exist."""
        return self.get(kind, namespace, name) is None and self.covers(kind, namespace)

    def owned_by(self, owner: ClusterObject, kind: str | None = None) -> tuple[ClusterObject, ...]:
        """Return the objects that have `owner` as their controller."""
        return tuple(each for each in self._by_owner.get(owner.uid, ()) if kind is None or each.kind == kind)

    def events_of(self, about: ClusterObject, *reasons: str) -> tuple[ClusterEvent, ...]:
        """Return the events of the object, sorted by last occurrence.

        If `reasons` is set, only events with one of these reasons are returned. Events usually expire after one hour,
        so the absence of an event is not conclusive.
        """
        events = self._events_by_uid.get(about.uid, ())
        return tuple(event for event in events if not reasons or event.reason in reasons)

    @property
    def events(self) -> tuple[ClusterEvent, ...]:
        return self._events

    def selected(self, kind: str, namespace: str, selector: Mapping[str, str]) -> tuple[ClusterObject, ...]:
        """Return the objects that a Service selector matches."""
        return tuple(each for each in self._by_place[kind, namespace] if matches_map(selector, each.labels))

    def matched(self, kind: str, namespace: str, selector: JsonObject) -> tuple[ClusterObject, ...]:
        """Return the objects that a selector with `matchLabels` and `matchExpressions` matches."""
        return tuple(each for each in self._by_place[kind, namespace] if matches_selector(selector, each.labels))

    def workload_of(self, each: ClusterObject) -> ClusterObject:
        """Return the outermost known owner of `each`, for example the Deployment of a pod.

        Returns `each` itself if it has no known owner.
        """
        seen = {each.uid}
        while each.owner is not None and each.owner.uid not in seen:
            seen.add(each.owner.uid)
            owner = self._by_uid.get(each.owner.uid)
            if owner is None or owner.kind == "Node":  # a static pod has its node as the owner
                break
            each = owner
        return each

    def pods_of(self, workload: ClusterObject) -> tuple[ClusterObject, ...]:
        """Return the pods of a workload, at any depth of ownership. Owners that own each other are read once."""
        if workload.kind == "Pod":
            return (workload,)
        pods: list[ClusterObject] = []
        owners, seen = [workload], {workload.uid}
        while owners:
            for owned in self._by_owner.get(owners.pop().uid, ()):
                if owned.kind == "Pod":
                    pods.append(owned)
                elif owned.kind in WORKLOADS and owned.uid not in seen:
                    seen.add(owned.uid)
                    owners.append(owned)
        return tuple(sorted(pods, key=lambda pod: pod.name))

    def services_of(self, pod: ClusterObject) -> tuple[ClusterObject, ...]:
        """Return the Services that select the pod."""
        return tuple(
            service
            for service in self._by_place["Service", pod.namespace]
            if matches_map(text_map(service.body, "spec", "selector"), pod.labels)
        )

    def log_of(self, pod: ClusterObject, container: str, *, previous: bool) -> str | None:
        """Return the last lines of a log, or None if the log was not read."""
        return self.logs.get(LogKey(pod=pod.ref, container=container, previous=previous))

    def age_seconds(self, each: ClusterObject) -> float:
        return max(0.0, self.now - each.created)


def _kind_key(each: ClusterObject) -> str:
    return f"{each.kind}.{each.group}" if each.group else each.kind


T = TypeVar("T")


def once_per_state(compute: Callable[[ClusterState], T]) -> Callable[[ClusterState], T]:
    """Compute a fact of a whole state only once. It is kept as long as its state."""
    known: WeakKeyDictionary[ClusterState, T] = WeakKeyDictionary()

    @wraps(compute)
    def kept(state: ClusterState) -> T:
        if state not in known:
            known[state] = compute(state)
        return known[state]

    return kept
