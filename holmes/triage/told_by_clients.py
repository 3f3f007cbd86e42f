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
from holmes.triage.log_troubles import workloads_of
from holmes.triage.past import past_period

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.subjects import Named
    from holmes.values.findings import ObjectRef
    from holmes.values.first_look import FirstLook


def told_by_clients(asked: Asked, named: Named) -> FirstLook | None:
    """Return the cause that clients of a server report, or that it is in doubt, or None if no client reports any."""
    servers = {each.ref for each in workloads_of(asked.state, named.objects)}
    services, doubts = _services(asked, named), None
    for client in _clients(asked, services):
        told = cause_in_logs(asked.state, asked.question, (client,), past_period(asked))
        if told is None or client.ref in servers:
            continue
        own = told.reason is not None and told.troubles[-1].workload.ref == client.ref
        between = own and not services.isdisjoint(named_services(asked.state, told.troubles[-1]))
        if told.culprit in servers or (between and asked.question.wants_cause):
            return blamed(asked, told, named)
        if told.clean is not None and told.clean in services:
            doubts = doubts or told
    if doubts is None:
        return None
    text = f"Nothing is wrong with {named.objects[0].ref} itself. {doubts.sentence}."
    return look_about(asked, named, "inconclusive", text)


def _services(asked: Asked, named: Named) -> set[ObjectRef]:
    workloads = workloads_of(asked.state, named.objects)
    return {ref for each in workloads for ref in own_services(asked.state, each)}


def _clients(asked: Asked, services: Iterable[ObjectRef]) -> Iterable[ClusterObject]:
    used = edges(asked.state)
    return {edge.consumer.ref: edge.consumer for each in services for edge in used.get(each, ())}.values()
