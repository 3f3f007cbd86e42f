"""Reports of clients about a server that shows no fault itself.

A cache that is full refuses writes and logs nothing. Only its clients report it. A proxy with a new setting cuts the
connections to a server that works.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.diagnosis.facts.edges import edges
from holmes.triage.asked import look_about
from holmes.triage.log_blame import blamed
from holmes.triage.log_evidence import cause_in_logs
from holmes.triage.log_links import named_services, own_services
from holmes.triage.log_troubles import troubles_of, workloads_of
from holmes.triage.past import past_period

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.log_evidence import LogCause
    from holmes.triage.subjects import Named
    from holmes.values.findings import ObjectRef
    from holmes.values.first_look import FirstLook


def told_by_clients(asked: Asked, named: Named) -> FirstLook | None:
    """Return the cause that clients of a server report, or that it is in doubt, or None if no client reports any."""
    servers = {each.ref for each in workloads_of(asked.state, named.objects)}
    services, doubts = _services(asked, named), None
    clients = tuple(_clients(asked, services))
    for client in clients:
        told = cause_in_logs(asked.state, asked.question, (client,), past_period(asked))
        if told is None or client.ref in servers:
            continue
        own = told.reason is not None and told.troubles[-1].workload.ref == client.ref
        between = own and not services.isdisjoint(named_services(asked.state, told.troubles[-1]))
        between = between and not any(_suffers_too(asked, each, told) for each in clients)
        if told.culprit in servers or (between and asked.question.wants_cause):
            return blamed(asked, told, named)
        if told.clean is not None and told.clean in services:
            doubts = doubts or told
    if doubts is None:
        return None
    text = f"Nothing is wrong with {named.objects[0].ref} itself. {doubts.sentence}."
    return look_about(asked, named, "inconclusive", text)


def _suffers_too(asked: Asked, client: ClusterObject, told: LogCause) -> bool:
    """Return whether another client reports the same kind of trouble, so that no setting of one client explains it."""
    group = told.troubles[-1].group
    same = (each for each in troubles_of(asked.state, client) if each.group.kind == group.kind)
    return client.ref != told.troubles[-1].workload.ref and any(each.group.is_lasting for each in same)


def _services(asked: Asked, named: Named) -> set[ObjectRef]:
    workloads = workloads_of(asked.state, named.objects)
    return {ref for each in workloads for ref in own_services(asked.state, each)}


def _clients(asked: Asked, services: Iterable[ObjectRef]) -> Iterable[ClusterObject]:
    used = edges(asked.state)
    return {edge.consumer.ref: edge.consumer for each in services for edge in used.get(each, ())}.values()
