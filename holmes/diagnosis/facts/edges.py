"""Who uses which Service, and what goes wrong on the way: edges from settings, failures from logs.

Called by rules about Services, network policies and DNS. An edge says that a workload names a Service; a failure is a
line of a log that says that a connection did not come about.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from holmes.diagnosis.facts.evidence import log_line
from holmes.diagnosis.facts.hosts import host_uses, workload_hosts
from holmes.diagnosis.facts.pods import containers_of
from holmes.diagnosis.facts.templates import pod_templates
from holmes.kubernetes.cluster_state import LogKey
from holmes.kubernetes.fields import text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from holmes.diagnosis.facts.hosts import HostUse
    from holmes.diagnosis.facts.pods import Container
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence, ObjectRef

T = TypeVar("T")
FailureKind: TypeAlias = Literal["unresolved", "refused", "timeout", "failed"]

_MOST_LINES: Final = 500
_KINDS: Final[tuple[tuple[FailureKind, re.Pattern[str]], ...]] = (
    (
        "unresolved",
        re.compile(
            r"(?i)no such host|bad address|name or service not known|ENOTFOUND|EAI_AGAIN|EAI_NONAME|unknown ?host"
            r"|could(?: not|n't) (?:resolve|translate)|can(?:not|'t) (?:resolve|find)|not known|NXDOMAIN"
            r"|name resolution|host not found|failed to resolve|nodename nor servname|unknown .{0,12}server host"
        ),
    ),
    ("refused", re.compile(r"(?i)refused|ECONNREFUSED|reset by peer|ECONNRESET")),
    (
        "timeout",
        re.compile(
            r"(?i)time[d-]? ?out|ETIMEDOUT|deadline exceeded|unreachable|EHOSTUNREACH|ENETUNREACH|no route to host"
        ),
    ),
    (
        "refused",
        re.compile(r"(?i)max retries exceeded|can(?:'t|not) connect|(?:fail\w*|unable|error) .{0,20}connect"),
    ),
    (
        "failed",
        re.compile(
            r"(?i)\b(?:fail(?:ed|ure|s|ing)?|error|cannot|can't|could not|couldn't|unable|unavailable|50[234])\b"
        ),
    ),
)

_WAITS: Final = re.compile(r"(?i)\bwait(?:ing|s)?[ -]for\b|\bnot (?:yet )?(?:ready|available|reachable)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A workload names a Service, which need not exist. `named` is where it does."""

    consumer: ClusterObject
    use: HostUse
    named: Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A line in the log of a pod about a Service that could not be reached; `failed` when it does not say how.

    `blocks` says that it is the log of an init container that has not come to its end.
    """

    pod: ClusterObject
    consumer: ClusterObject
    use: HostUse
    kind: FailureKind
    line: Evidence
    blocks: bool = False


_EDGES: WeakKeyDictionary[ClusterState, Mapping[ObjectRef, tuple[Edge, ...]]] = WeakKeyDictionary()
_FAILURES: WeakKeyDictionary[ClusterState, Mapping[ObjectRef, tuple[Failure, ...]]] = WeakKeyDictionary()


def edges(state: ClusterState) -> Mapping[ObjectRef, tuple[Edge, ...]]:
    """All edges by Service, made once per state. Workloads that are scaled to zero use nothing."""
    found = _EDGES.get(state)
    if found is None:
        found = _EDGES[state] = _grouped(_edges(state))
    return found


def _edges(state: ClusterState) -> Iterator[tuple[ObjectRef, Edge]]:
    for template in pod_templates(state):
        if template.workload.at("spec", "replicas") == 0:
            continue
        for use, named in workload_hosts(state, template.workload):
            yield use.service, Edge(consumer=template.workload, use=use, named=named)


def failures(state: ClusterState) -> Mapping[ObjectRef, tuple[Failure, ...]]:
    """What the logs that were read say about Services, by Service, the newest line first; made once per state."""
    # Also when they are known: the state counts which rules ask for logs, and only those run again with them.
    logs = state.logs
    found = _FAILURES.get(state)
    if found is None:
        found = _FAILURES[state] = _grouped(_failures(state, logs))
    return found


def _failures(state: ClusterState, logs: Mapping[LogKey, str]) -> Iterator[tuple[ObjectRef, Failure]]:
    for key, log in sorted(logs.items(), key=lambda entry: (entry[0].pod, entry[0].container, entry[0].previous)):
        pod = state.find(key.pod)
        if pod is None:
            continue
        consumer, waits = state.workload_of(pod), _still_waits(pod, key)
        for line in reversed(log.splitlines()[-_MOST_LINES:]):
            kind = next((kind for kind, pattern in _KINDS if pattern.search(line)), None)
            if kind is None and waits and _WAITS.search(line):
                kind = "failed"
            if kind is None:
                continue
            named = log_line(pod, key.container, line.strip(), previous=key.previous)
            for use in host_uses(line, pod.namespace, state):
                yield use.service, Failure(pod=pod, consumer=consumer, use=use, kind=kind, line=named, blocks=waits)


def _still_waits(pod: ClusterObject, key: LogKey) -> bool:
    """Whether the log is that of an init container that has not come to its end: what it waits for does not answer."""
    inits = (each for each in containers_of(pod) if each.name == key.container and is_blocking(each))
    return any(not (key.previous and each.running) for each in inits)


def is_blocking(container: Container) -> bool:
    """Whether it is an init container that runs, or fails again and again, so that the others are not started."""
    crashing = container.waiting.get("reason") == "CrashLoopBackOff"
    return container.kind == "init" and not container.sidecar and (bool(container.running) or crashing)


def _grouped(found: Iterable[tuple[ObjectRef, T]]) -> dict[ObjectRef, tuple[T, ...]]:
    groups: dict[ObjectRef, list[T]] = defaultdict(list)
    for service, each in found:
        groups[service].append(each)
    return {service: tuple(group) for service, group in groups.items()}


def consumer_logs(state: ClusterState, consumers: Iterable[ClusterObject]) -> tuple[LogKey, ...]:
    """The logs that would show whether the consumers reach what they use: of one pod each, the sickest."""
    keys: list[LogKey] = []
    for consumer in {each.uid: each for each in consumers}.values():
        pods = [pod for pod in state.pods_of(consumer) if pod.text("status", "phase") in {"Running", "Pending"}]
        for pod in sorted(pods, key=is_ready)[:1]:
            for container in containers_of(pod):
                if container.running:
                    keys.append(LogKey(pod=pod.ref, container=container.name, previous=False))
                elif container.kind != "ephemeral" and container.last_terminated:
                    keys.append(LogKey(pod=pod.ref, container=container.name, previous=True))
    return tuple(keys)


def is_ready(pod: ClusterObject) -> bool:
    """Whether the pod is ready."""
    return text(pod.condition("Ready"), "status") == "True"


def is_sick(state: ClusterState, workload: ClusterObject) -> bool:
    """Whether a pod of the workload is not ready, was restarted or failed, though it is old enough to be ready."""
    for pod in state.pods_of(workload):
        if pod.deleted is not None or pod.text("status", "phase") == "Succeeded":
            continue
        restarted = any(container.restarts for container in containers_of(pod))
        if (not is_ready(pod) and state.age_seconds(pod) >= state.grace_seconds) or restarted:
            return True
    return False
