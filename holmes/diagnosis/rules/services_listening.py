"""Rule for servers that listen at another port or address than their Service uses, according to their own log."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.edges import consumer_logs, edges, failures
from holmes.diagnosis.facts.evidence import log_line, value
from holmes.diagnosis.facts.host_mentions import settings_of
from holmes.diagnosis.facts.network import container_ports, service_ports
from holmes.diagnosis.facts.services import pods_behind, selecting_services
from holmes.diagnosis.facts.status import pod_ready
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.cluster_state import LogKey
from holmes.kubernetes.fields import text
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.network import ServicePort
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence, ObjectRef

_LISTENS: Final = expression(
    r"(?i)\b(?:listen(?:ing|s)?\b|(?:serv(?:er|ing)|start(?:ed|ing)|running|bound|bind(?:ing)?|accepting connections)\b"
    r".{0,60}?\b(?:on|at|to)\b).{0,60}?"
    r"(?:(?<=[\s(/\"'=])(?P<host>\*|\[::1?\]|0\.0\.0\.0|127\.0\.0\.1|localhost)?:(?P<port>\d{2,5})\b(?!:)"
    r"|(?<=[\s\"'])(?P<local>127\.0\.0\.1|localhost)?[\"',]{0,2} ?\bport(?:\(s\)|s)?[ :=]{1,2}[\"']?"
    r"(?P<number>\d{2,5}))\b"
)
_AS_CLIENT: Final = expression(
    r"(?i)\bconnect\w* to\b|\b(?:refused|failed|unreachable|timed out|cannot|can't|could not)\b"
)
"""Words of a line about another server, or about a port that is not open."""
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
_MOST_LINES: Final = 2_000
_MOST_PROOFS: Final = 1


@Row(
    id="N-S11",
    title="Server listens at another port or address than its Service uses",
    severity="critical",
    kinds=("Service", "Pod"),
    needs=("ConfigMap",),
    reads=("logs of the pods", "spec.ports[].targetPort", "settings of the workload", "logs of clients"),
    explanation="The log of a ready pod tells at which port it listens. The Service sends requests to another port, or "
    "the program listens only at the loopback address, and the logs of clients report refused connections. Correct "
    "the setting with the port, or targetPort of the Service.",
)
def listens_elsewhere(state: ClusterState) -> Iterator[Fault]:
    for service in selecting_services(state):
        refused = [each for each in failures(state).get(service.ref, ()) if each.kind == "refused"]
        pods = [pod for pod in pods_behind(state, service) if pod_ready(pod)] if refused else []
        heard = [(pod, each) for pod in pods for each in _listening(state, pod)]
        for port in service_ports(service) if heard else ():
            lines = [each.line for each in refused if each.use.port in {port.port, None}]
            targets = {_number(port, pod) for pod in pods}
            open_ports = {number for _, (number, local, _) in heard if not local}
            if lines and not targets & open_ports and 0 not in targets:
                yield _elsewhere(state, service, port, heard, lines)


def _number(port: ServicePort, pod: ClusterObject) -> int:
    declared = {each.name: each.number for each in container_ports(pod.child("spec"))}
    return declared.get(port.target, 0) if isinstance(port.target, str) else port.target


def _listening(state: ClusterState, pod: ClusterObject) -> Iterator[tuple[int, bool, Evidence]]:
    """Yield each port at which the log of a pod says that it listens, and whether only at the loopback address."""
    for container in pod.children("spec", "containers"):
        name = text(container, "name")
        log = state.logs.get(LogKey(pod=pod.ref, container=name, previous=False), "")
        for line in log.splitlines()[:_MOST_LINES]:
            match = _LISTENS.search(line)
            if match is not None and not _AS_CLIENT.search(line):
                local = (match["host"] or match["local"] or "").lower() in _LOOPBACK
                number = int(match["port"] or match["number"])
                yield number, local, log_line(pod, name, line.strip(), previous=False)


def _elsewhere(
    state: ClusterState,
    service: ClusterObject,
    port: ServicePort,
    heard: list[tuple[ClusterObject, tuple[int, bool, Evidence]]],
    lines: list[Evidence],
) -> Fault:
    pod, (number, local, proof) = next((each for each in heard if each[1][1]), heard[-1])
    workload = state.workload_of(pod)
    target = _number(port, pod)
    setting = _setting(state, workload, number) if number != target else None
    where = f"only at the loopback address, port {number}" if local else f"at port {number}"
    culprit: ObjectRef = setting.object if setting is not None else workload.ref if local else service.ref
    return Fault(
        subject=service.ref,
        culprit=culprit,
        cause=f"{service.ref} sends requests to port {target} of its pods, but {workload.ref} listens {where}, "
        f"so connections are refused{f' ({setting.object}, {setting.path}: {setting.value})' if setting else ''}",
        evidence=(
            proof,
            *((setting,) if setting is not None else ()),
            value(service, f"spec.ports[{port.index}].targetPort", port.target),
            *lines[:_MOST_PROOFS],
        ),
        next_check=f"kubectl -n {service.namespace} get service {service.name} -o jsonpath='{{.spec.ports}}'",
        logs=consumer_logs(state, [workload, *(edge.consumer for edge in edges(state).get(service.ref, ()))]),
    )


def _setting(state: ClusterState, workload: ClusterObject, number: int) -> Evidence | None:
    """Return the setting of the workload that contains the port number, or None."""
    word = re.compile(rf"(?<![\d.]){number}(?![\d.])")
    for setting in settings_of(state, workload):
        for place in (setting.evidence, *setting.sources):
            if word.search(place.value) and len(place.value) <= 80:
                return place
    return None
