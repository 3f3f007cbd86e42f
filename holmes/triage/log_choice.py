"""Chooses the logs that an answer needs: along the edges from the subject, one pod of each workload and image first.

The alphabet never decides: pods that failed come first, then every workload gets a log before one gets a second.
"""

from __future__ import annotations

from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.actors import suspects
from holmes.diagnosis.facts.edges import edges
from holmes.diagnosis.facts.pods import containers_of
from holmes.kubernetes.cluster_state import LogKey
from holmes.kubernetes.fields import moment
from holmes.triage.asked import refs_of
from holmes.triage.causes import look_for_cause
from holmes.triage.connections import connections
from holmes.triage.dependencies import uses
from holmes.triage.filters import WORKLOAD_KINDS
from holmes.triage.happenings import changes
from holmes.triage.log_answers import log_answer
from holmes.triage.log_links import behind_service, name_servers, own_services
from holmes.triage.moments import asks_since_fault
from holmes.triage.plans import plans_of
from holmes.triage.quota_answers import quota
from holmes.triage.run_sizes import made_size
from holmes.triage.states import is_ready

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.asked import Asked

MOST_LOGS: Final = 40
_MOST_SUSPECTS: Final = 6


def logs_for(asked: Asked) -> tuple[LogKey, ...]:
    """Return the logs of the subject and of what it needs, the nearest first. Empty if the answer uses no logs."""
    question, state = asked.question, asked.state
    plans = plans_of(question, asked.subject)
    can_lead_to_fault = plans[:1] and plans[0].answer in (look_for_cause, log_answer, changes, quota, uses, made_size)
    if plans and not can_lead_to_fault and not asks_since_fault(question, asked.subject):
        return ()
    if not (question.wants_cause or question.asks("health", "logs") or asked.subject.named):
        return ()
    workloads = _near(asked) if asked.subject.named else []
    if not workloads or question.complains:  # what the complaint is about may be named by other words
        workloads = list(dict.fromkeys((*workloads, *_of_scope(asked, workloads))))
    rounds = zip_longest(*(_by_image(state.pods_of(each) or (each,)) for each in workloads))
    pods = chain(asked.subject.objects, filter(None, chain.from_iterable(rounds)))
    resolving = (
        pod for service in name_servers(state) for each in behind_service(state, service) for pod in state.pods_of(each)
    )
    pods = chain(pods, _recent_jobs(asked, workloads), resolving if question.wants_cause else ())
    keys = chain(_of_suspects(asked), (key for pod in pods for key in _of_pod(pod)))
    return tuple(dict.fromkeys(keys))[:MOST_LOGS]


def _recent_jobs(asked: Asked, workloads: Iterable[ClusterObject]) -> Iterator[ClusterObject]:
    """Yield the pods of the newest Jobs beside the workloads. These may have changed what the workloads use."""
    if asked.question.wants_cause:
        spaces = {each.namespace for each in workloads}
        jobs = sorted((each for space in spaces for each in asked.state.of("Job", space)), key=lambda job: -job.created)
        yield from (pod for job in jobs[:_MOST_SUSPECTS] for pod in asked.state.pods_of(job))


def _of_suspects(asked: Asked) -> Iterator[LogKey]:
    """Yield the logs of Jobs that may have caused a fault of what the subject needs.

    These ran just before it, or may have deleted an object that is missing.
    """
    near = connections(asked.state, asked.subject.objects).keys()
    for incident in asked.report.incidents if near else ():
        if incident.severity != "info" and refs_of(incident) & near:
            missing = asked.state.find(incident.culprit) is None
            began = None if missing else moment(incident.since)
            if missing or began is not None:
                yield from suspects(asked.state, began)[:_MOST_SUSPECTS]


def _near(asked: Asked) -> list[ClusterObject]:
    """Return the workloads that the subject needs, and those that use the same Services, the nearest first.

    The clients of a workload that restarts can be the reason, because they can send too many requests.
    """
    state = asked.state
    known = _needed(state, asked.subject.objects)
    services = [each for each in known if each.kind == "Service"]
    services += [each for pod in _restarting(state, known) for each in state.services_of(pod)]
    others = [edge.consumer for each in services for edge in edges(state).get(each.ref, ())]
    pods = (each for each in (*known, *_needed(state, others)) if each.kind == "Pod")
    return list(dict.fromkeys((*map(state.workload_of, pods), *others)))


def _restarting(state: ClusterState, known: Iterable[ClusterObject]) -> Iterator[ClusterObject]:
    """Yield a pod of each workload whose containers have ended before."""
    workloads = dict.fromkeys(state.workload_of(each) for each in known if each.kind == "Pod")
    for workload in workloads:
        pods = (pod for pod in state.pods_of(workload) if any(each.last_terminated for each in containers_of(pod)))
        yield from islice(pods, 1)


def _needed(state: ClusterState, subjects: Iterable[ClusterObject]) -> list[ClusterObject]:
    """Return what objects need, the nearest first."""
    found = sorted(connections(state, subjects).values(), key=lambda each: each.hops)
    return [each for one in found if (each := state.find(one.ref)) is not None]


def _of_scope(asked: Asked, near: Iterable[ClusterObject] = ()) -> list[ClusterObject]:
    """Return the workloads in the namespaces of the question: the unready ones, then those with most clients.

    Without a namespace in the question, those of the objects that are `near` to its subject count.
    """
    state = asked.state
    spaces = {each.namespace for each in near} if not asked.subject.namespaces else set()
    clients = {ref: len(found) for ref, found in edges(state).items()}

    def rank(workload: ClusterObject) -> tuple[bool, int]:
        services = own_services(state, workload)
        return is_ready(workload), -max((clients.get(ref, 0) for ref in services), default=0)

    found = (
        each
        for kind in WORKLOAD_KINDS
        for each in state.of(kind)
        if (each.namespace in spaces if spaces else asked.subject.contains(each))
    )
    return sorted(dict.fromkeys(state.workload_of(pod) for each in found for pod in state.pods_of(each)), key=rank)


def _by_image(pods: Iterable[ClusterObject]) -> Iterator[ClusterObject]:
    """Yield the pods of a workload: those that failed first, and one of each image before a second one."""
    ordered = sorted(pods, key=lambda pod: (is_ready(pod), -sum(each.restarts for each in containers_of(pod))))
    images: dict[tuple[str, ...], list[ClusterObject]] = {}
    for pod in ordered:
        images.setdefault(tuple(str(each.spec.get("image")) for each in containers_of(pod)), []).append(pod)
    return filter(None, chain.from_iterable(zip_longest(*images.values())))


def _of_pod(pod: ClusterObject) -> Iterator[LogKey]:
    if pod.kind != "Pod":
        return
    for container in containers_of(pod):
        if container.running or container.terminated:
            yield LogKey(pod=pod.ref, container=container.name, previous=False)
        if container.last_terminated:
            yield LogKey(pod=pod.ref, container=container.name, previous=True)
