"""Answers questions about logs: lines, numbers in lines, and the first error. Chooses the logs to read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.pods import containers_of
from holmes.kubernetes.cluster_state import LogKey
from holmes.triage.connections import connections

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.causes import Asked

_MOST_LOGS: Final = 20


def logs_for(asked: Asked) -> tuple[LogKey, ...]:
    """Return the logs of the subject and of what it needs, the nearest first, one pod of each workload first."""
    question = asked.question
    if not (question.asks("why", "trouble", "health", "logs") or question.symptoms or asked.subject.named):
        return ()
    found = connections(asked.state, asked.subject.objects) if asked.subject.named else {}
    near = sorted(found.values(), key=lambda each: each.hops)
    keys = [key for each in near if (known := asked.state.find(each.ref)) is not None for key in _of_pod(known)]
    return tuple(dict.fromkeys(keys))[:_MOST_LOGS]


def _of_pod(each: ClusterObject) -> Iterator[LogKey]:
    if each.kind != "Pod":
        return
    for container in containers_of(each):
        if container.running or container.terminated:
            yield LogKey(pod=each.ref, container=container.name, previous=False)
        if container.last_terminated:
            yield LogKey(pod=each.ref, container=container.name, previous=True)


