"""Rules for addresses that are written by hand: endpoints of a Service without a selector, and hostAliases."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.edges import consumer_logs, edges, failures, newest_lines
from holmes.diagnosis.facts.evidence import field, log_line, value
from holmes.diagnosis.facts.line_kinds import reports_success
from holmes.diagnosis.facts.services import selector_of, slices_of
from holmes.diagnosis.facts.status import pod_ready
from holmes.diagnosis.facts.templates import pod_templates
from holmes.diagnosis.facts.typos import workload_named
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.cluster_state import LogKey
from holmes.kubernetes.fields import SERVICE_NAME, children, integer, text, texts
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence

_BROKEN: Final = frozenset({"refused", "timeout"})
_NO_ANSWER: Final = expression(
    r"(?i)(?<![^\W_])(?<![./?&=-])(?:time[d-]? ?out|(?<!login )(?<!access_)refused(?! (?:because|for)\b)|unreachable)"
    r"(?![\w=-]|\.\w|\":|: 0)"
    r"|(?:timeout|refused)(?:error|exception)|(?:\bconnect|\bread|client\.)timeout\b|hostunreachable|no route to host"
    r"|deadline exceeded|ETIMEDOUT|EHOSTUNREACH|ECONNREFUSED"
)
_MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
_CONTROLLER: Final = "endpointslice-controller.k8s.io"
_MOST: Final = 3
_OWN: Final = frozenset({"127.0.0.1", "::1", "0.0.0.0"})  # noqa: S104  addresses of the pod itself


@Row(
    id="N-S09",
    title="Endpoints that were entered by hand do not answer",
    severity="critical",
    kinds=("Service", "EndpointSlice"),
    reads=("spec.selector", "EndpointSlice endpoints[].addresses", "logs of clients"),
    explanation="A Service without a selector sends requests to the addresses of an EndpointSlice that a user wrote. "
    "A Service with a selector can have such an EndpointSlice, too. Kubernetes does not check the addresses. The rule "
    "reports them if the logs of clients show that connections fail. Correct the addresses, or repair the system "
    "behind them.",
)
def hand_made_endpoints(state: ClusterState) -> Iterator[Fault]:
    for service in state.of("Service"):
        if service.text("spec", "type") == "ExternalName" or service.deleted is not None:
            continue
        slices = [each for each in slices_of(state, service) if not selector_of(service) or _is_foreign(each)]
        addresses = [address for each in slices for address in _addresses(state, each)]
        failed = [each for each in failures(state).get(service.ref, ()) if each.kind in _BROKEN]
        if not addresses or not failed:
            continue
        yield Fault(
            subject=service.ref,
            cause=f"The endpoints {', '.join(addresses[:_MOST])} of {service.ref} were entered by hand in "
            f"{slices[0].ref}, so no controller updates them, and connections of {failed[0].consumer.ref} to them fail"
            f"{_moved(state, service, addresses)}",
            evidence=(
                value(slices[0], "endpoints[0].addresses", addresses[0]),
                *(each.line for each in failed[:1]),
                field(service, "spec", "selector"),
            ),
            next_check=f"kubectl -n {service.namespace} get endpointslices -l {SERVICE_NAME}={service.name} -o yaml",
            logs=consumer_logs(state, [edge.consumer for edge in edges(state).get(service.ref, ())]),
        )


def _is_foreign(piece: ClusterObject) -> bool:
    """Return whether another program or a person wrote the endpoints of a Service that has a selector."""
    return piece.labels.get(_MANAGED_BY, _CONTROLLER) != _CONTROLLER


def _moved(state: ClusterState, service: ClusterObject, addresses: list[str]) -> str:
    """Return where the workload with the name of the Service runs, if none of the addresses is one of its pods."""
    workload = workload_named(state, service.ref)
    pods = state.pods_of(workload) if workload is not None else ()
    found = [each for pod in pods if pod_ready(pod) and (each := pod.text("status", "podIP"))]
    if workload is None or not found or any(each.partition(":")[0] in found for each in addresses):
        return ""
    return f"; {workload.ref} has the address {', '.join(found[:_MOST])}"


def _addresses(state: ClusterState, piece: ClusterObject) -> Iterator[str]:
    ports = [integer(port, "port") for port in children(piece.body, "ports")]
    for endpoint in children(piece.body, "endpoints"):
        pod = text(endpoint, "targetRef", "name")
        if not pod or state.is_missing("Pod", piece.namespace, pod):
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
            line = _failed_line(state, workload, (address, *names)) if address and address not in _OWN else None
            if line is None:
                continue
            yield Fault(
                subject=workload.ref,
                cause=f"{workload.ref} resolves {', '.join(names)} to {address} with hostAliases instead of DNS"
                f"{_meant(state, workload.namespace, address, names)}, and connections to it fail",
                evidence=(value(workload, f"{template.path}.hostAliases[{index}]", dict(alias)), line),
                next_check=f"kubectl -n {workload.namespace} get {workload.kind.lower()} {workload.name} -o yaml",
                logs=consumer_logs(state, [workload]),
            )


def _meant(state: ClusterState, namespace: str, address: str, names: tuple[str, ...]) -> str:
    """Return the Service that has one of the names and another address, in words for the cause, or empty words."""
    for name in names:
        first, _, rest = name.partition(".")
        found = state.get("Service", rest.partition(".")[0] or namespace, first)
        own = found.text("spec", "clusterIP") if found is not None else ""
        if found is not None and own not in ("", "None", address):
            return f", although {found.ref} has the address {own}"
    return ""


def _failed_line(state: ClusterState, workload: ClusterObject, names: tuple[str, ...]) -> Evidence | None:
    """Return the newest line in which a connection to one of the names or addresses fails."""
    word = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, names))})(?![\w-]|\.\w)")
    for pod in state.pods_of(workload):
        for container in pod.children("spec", "containers"):
            name = text(container, "name")
            log = state.timed_logs.get(LogKey(pod=pod.ref, container=name, previous=False), "")
            for line in newest_lines(log, state.now):
                if word.search(line) and _NO_ANSWER.search(line) and not reports_success(line):
                    return log_line(pod, name, line.strip(), previous=False)
    return None
