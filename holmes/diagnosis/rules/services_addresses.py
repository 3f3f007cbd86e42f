"""Rules for addresses that are written by hand: endpoints of a Service without a selector, and hostAliases."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.edges import consumer_logs, edges, failures
from holmes.diagnosis.facts.evidence import field, log_line, value
from holmes.diagnosis.facts.services import selector_of
from holmes.diagnosis.facts.templates import pod_templates
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import SERVICE_NAME, children, integer, text, texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence

_BROKEN: Final = frozenset({"refused", "timeout"})
_NO_ANSWER: Final = re.compile(
    r"(?i)time[d-]? ?out|refused|no route to host|unreachable|deadline exceeded|ETIMEDOUT|EHOSTUNREACH|ECONNREFUSED"
)
_MOST: Final = 3
_MOST_LINES: Final = 200


@Row(
    id="N-S09",
    title="Endpoints that were entered by hand do not answer",
    severity="critical",
    kinds=("Service", "EndpointSlice"),
    reads=("spec.selector", "EndpointSlice endpoints[].addresses", "logs of clients"),
    explanation="A Service without a selector sends requests to the addresses of an EndpointSlice that a user wrote. "
    "Kubernetes does not check them. The rule reports them if the logs of clients show that connections fail. Correct "
    "the addresses, or repair the system behind them.",
)
def hand_made_endpoints(state: ClusterState) -> Iterator[Fault]:
    for service in state.of("Service"):
        if selector_of(service) or service.text("spec", "type") == "ExternalName" or service.deleted is not None:
            continue
        slices = state.selected("EndpointSlice", service.namespace, {SERVICE_NAME: service.name})
        addresses = [address for each in slices for address in _addresses(each)]
        failed = [each for each in failures(state).get(service.ref, ()) if each.kind in _BROKEN]
        if not addresses or not failed:
            continue
        yield Fault(
            subject=service.ref,
            cause=f"{service.ref} has no selector; its endpoints {', '.join(addresses[:_MOST])} were entered by hand, "
            f"and connections of {failed[0].consumer.ref} to them fail",
            evidence=(
                value(slices[0], "endpoints[0].addresses", addresses[0]),
                *(each.line for each in failed[:1]),
                field(service, "spec", "selector"),
            ),
            next_check=f"kubectl -n {service.namespace} get endpointslices -l {SERVICE_NAME}={service.name} -o yaml",
            logs=consumer_logs(state, [edge.consumer for edge in edges(state).get(service.ref, ())]),
        )


def _addresses(piece: ClusterObject) -> Iterator[str]:
    ports = [integer(port, "port") for port in children(piece.body, "ports")]
    for endpoint in children(piece.body, "endpoints"):
        if not text(endpoint, "targetRef", "name"):
            for address in texts(endpoint, "addresses"):
                yield f"{address}:{ports[0]}" if ports else address


@Row(
    id="D04",
    title="Address in hostAliases does not answer",
    severity="warning",
    kinds=("Deployment", "StatefulSet", "DaemonSet", "Pod"),
    reads=("spec.template.spec.hostAliases", "logs of the workload"),
    explanation="Entries of hostAliases replace DNS in the containers of a pod. If the address of a host changes, pods "
    "with an alias still use the old address, and other workloads are not affected. The rule reports an alias whose "
    "host name or address appears in failed connections of the log. Correct or remove the alias.",
)
def outdated_alias(state: ClusterState) -> Iterator[Fault]:
    for template in pod_templates(state):
        aliases = children(template.spec, "hostAliases")
        workload = template.workload
        if not aliases or workload.at("spec", "replicas") == 0:
            continue
        for index, alias in enumerate(aliases):
            address, names = text(alias, "ip"), texts(alias, "hostnames")
            line = _failed_line(state, workload, address) if address else None
            if line is None:
                continue
            yield Fault(
                subject=workload.ref,
                cause=f"{workload.ref} resolves {', '.join(names)} to {address} with hostAliases instead of DNS, and "
                "this address does not answer",
                evidence=(value(workload, f"{template.path}.hostAliases[{index}]", dict(alias)), line),
                next_check=f"kubectl -n {workload.namespace} get {workload.kind.lower()} {workload.name} -o yaml",
                logs=consumer_logs(state, [workload]),
            )


def _failed_line(state: ClusterState, workload: ClusterObject, address: str) -> Evidence | None:
    """Return the newest line in which a connection to the address fails."""
    word = re.compile(rf"(?<![\d.]){re.escape(address)}(?![\d.]*\d)")
    for pod in state.pods_of(workload):
        for container in pod.children("spec", "containers"):
            name = text(container, "name")
            log = state.log_of(pod, name, previous=False) or ""
            for line in reversed(log.splitlines()[-_MOST_LINES:]):
                if word.search(line) and _NO_ANSWER.search(line):
                    return log_line(pod, name, line.strip(), previous=False)
    return None
