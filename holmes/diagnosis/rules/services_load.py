"""Rule for Services that send all requests to one of several pods, which cannot handle them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.actors import last_write
from holmes.diagnosis.facts.evidence import field, shown
from holmes.diagnosis.facts.log_groups import stories_of
from holmes.diagnosis.facts.log_numbers import risen_numbers
from holmes.diagnosis.facts.logs import quoted
from holmes.diagnosis.facts.services import is_headless, selecting_services, selector_of
from holmes.diagnosis.facts.status import pod_ready
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import matches_map, written
from holmes.values.findings import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holmes.diagnosis.facts.line_groups import LogGroup
    from holmes.diagnosis.facts.line_patterns import LineKind
    from holmes.diagnosis.facts.log_groups import LogStory
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState, LogKey
    from holmes.values.findings import ObjectRef

_OF_LOAD: Final[frozenset[LineKind | None]] = frozenset({
    "queue full", "slow", "rate limited", "pool exhausted", "lock", "out of memory", "connection timeout",
})  # fmt: skip
_OF_ONE_POD: Final = frozenset({
    "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index", "kubernetes.io/hostname",
})  # fmt: skip
_SLACK_SECONDS: Final = 60.0
_LEAST_LINES: Final = 5
_SILENT_STEPS: Final = 5


@Row(
    id="N-S12",
    title="Service sends all requests to one of several pods",
    severity="critical",
    kinds=("Service", "Pod"),
    reads=("spec.selector", "spec.sessionAffinity", "logs of the pods"),
    explanation="A workload has several ready pods, but its Service uses one of them. Its selector contains the label "
    "of a single pod, or sessionAffinity sends all requests of a client to the same pod. The logs show that this pod "
    "has too much load, while the other pods have none. Remove the label from the selector, or the session affinity. "
    "A Service for each single pod, and the Service of an elected leader, are normal.",
)
def one_pod_for_all(state: ClusterState) -> Iterator[Fault]:
    for service in selecting_services(state):
        pinned, sticky = _pinned(state, service), service.text("spec", "sessionAffinity") == "ClientIP"
        if is_headless(service) or not (pinned or sticky):
            continue
        pods = [pod for pod in state.selected("Pod", service.namespace, selector_of(service)) if pod_ready(pod)]
        for workload in dict.fromkeys(map(state.workload_of, pods)):
            every = [pod for pod in state.pods_of(workload) if pod_ready(pod)]
            if len(every) > 1 and (pinned or len(pods) > 1):
                yield from _loaded(state, service, workload, every)


def _pinned(state: ClusterState, service: ClusterObject) -> str:
    """Return the label of a single pod in the selector, or an empty string if such Services exist for other pods."""
    selector = selector_of(service)
    key = next((key for key in selector if key in _OF_ONE_POD), "")
    others = (selector_of(each) for each in state.of("Service", service.namespace) if each is not service)
    return "" if any(key in other and other[key] != selector[key] for other in others) else key


def _loaded(
    state: ClusterState, service: ClusterObject, workload: ClusterObject, every: list[ClusterObject]
) -> Iterator[Fault]:
    stories = stories_of(state, workload)
    read = {key.pod for key, _ in stories}
    if any(pod.ref not in read for pod in every):
        return
    loaded: dict[ObjectRef, tuple[LogKey, LogGroup]] = {}
    for key, story in stories:
        for group in (*story.groups, *risen_numbers(story)):
            if group.kind in _OF_LOAD and group.sudden and group.is_evidence(state.now):
                loaded.setdefault(key.pod, (key, group))
    if len(loaded) != 1:
        return
    ((key, group),) = loaded.values()
    others = [story for other, story in stories if other.pod != key.pod]
    silent = all(_fell_silent(story, group.first, state.now) for story in others)
    if silent or (_pinned(state, service) and matches_map(selector_of(service), _labels(state, key.pod))):
        yield _fault(state, service, workload, len(every), (key, group))


def _fell_silent(story: LogStory, since: float, now: float) -> bool:
    """Return whether a pod with regular lines wrote none since another pod got its load."""
    if len(story.heads) < _LEAST_LINES:
        return False
    first, last = story.time_of(story.heads[0]), story.time_of(story.heads[-1])
    pace = (last - first) / (len(story.heads) - 1)
    return last < since + _SLACK_SECONDS and now - last > _SILENT_STEPS * pace


def _labels(state: ClusterState, ref: ObjectRef) -> Mapping[str, str]:
    pod = state.find(ref)
    return pod.labels if pod is not None else {}


def _fault(
    state: ClusterState, service: ClusterObject, workload: ClusterObject, number: int, found: tuple[LogKey, LogGroup]
) -> Fault:
    key, group = found
    pinned = _pinned(state, service)
    name = "selector" if pinned else "sessionAffinity"
    at, manager = last_write(service, f"f:{name}")
    since = f" since {manager} changed it at {written(at)}" if at > service.created + 1 else ""
    how = f"its selector has {pinned}" if pinned else "sessionAffinity is ClientIP"
    return Fault(
        subject=workload.ref,
        culprit=service.ref,
        cause=f"{service.ref} sends all requests to {key.pod}, one of {number} ready pods of {workload.ref}, because "
        f"{how}{since}; the log of this pod reports {group.span}: {quoted(group.record)}",
        evidence=(
            field(service, "spec", name),
            Evidence(object=key.pod, path=f"log of container {key.container}", value=shown(group.record)),
        ),
        next_check=f"kubectl -n {service.namespace} get service {service.name} -o yaml",
        since=at if at > service.created + 1 else group.first or None,
    )
