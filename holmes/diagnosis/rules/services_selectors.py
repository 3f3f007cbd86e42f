"""Rule for Services that also select pods of another program."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.edges import consumer_logs, edges, failures
from holmes.diagnosis.facts.evidence import field, log_line, value
from holmes.diagnosis.facts.network import container_ports, service_ports, target_ports
from holmes.diagnosis.facts.pods import is_sick, program_of
from holmes.diagnosis.facts.services import is_headless, pods_behind, selecting_services, selector_of
from holmes.diagnosis.facts.status import pod_ready
from holmes.diagnosis.facts.templates import template_of
from holmes.diagnosis.rule import Fault, Row
from holmes.diagnosis.rules.services_ports import declared_ports, speaks_of
from holmes.kubernetes.cluster_state import LogKey
from holmes.kubernetes.fields import at, text
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence

_MOST_PROOFS: Final = 2
_MOST_LINES: Final = 400
_LEAST_ANSWERS: Final = 5
_MOSTLY: Final = 0.8
_ANSWER: Final = expression(
    r"\b(?:GET|POST|PUT|DELETE|PATCH|HEAD) (?P<route>/[^\s?\"]{0,200})[^\n]{0,60}?"
    r"(?<![\d.:/-])(?P<status>[2-5]\d\d)(?![\d.:/-])"
)
_ERROR: Final = expression(
    r"(?i)\berror\b|\bfail|refused|time[d-]? ?out"
    r"|(?:->|\bstatus(?:[_ ]?code)?|\bHTTP/[\d.]{1,3}\"?|\breturned|\banswered|\bgot|(?<!\d):)[\"' :=]{0,3}[45]\d\d"
    r"(?![\w.:/-])"
)
_ADDRESS: Final = expression(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])")
_NUMBER: Final = expression(r"\d+")
_FIRST_ERROR: Final = 400


@Row(
    id="N-S04",
    title="Service also selects pods of another program",
    severity="warning",
    kinds=("Service", "Pod"),
    reads=("spec.selector", "owners, labels, programs, ports and probes of the selected pods", "logs of clients"),
    explanation=(
        "The selector matches pods of several workloads, and some of these pods run another program without the target "
        "port. Requests to these pods fail. If the other program declares the port but has no probe there, the log of "
        "a client must show refused connections. If no log shows them, the severity is info. Several versions of one "
        "program (canary, blue-green) behind one Service are normal. Usually a label must be added to the selector."
    ),
)
def selector_too_broad(state: ClusterState) -> Iterator[Fault]:
    for service in selecting_services(state):
        pods = [pod for pod in pods_behind(state, service) if pod_ready(pod)]
        workloads = {state.workload_of(pod): pod for pod in reversed(pods)}
        if len(workloads) < 2 or is_headless(service):
            continue
        targets = [port.target for port in service_ports(service)]
        serving = {workload for workload, pod in workloads.items() if _serves(pod, targets)}
        programs = {program_of(workloads[workload]) for workload in serving}
        strangers = [
            workload
            for workload, pod in workloads.items()
            if workload not in serving and not _may_serve(pod, targets, other_program=program_of(pod) not in programs)
        ]
        if serving and strangers:
            yield _too_broad(service, strangers, sorted(str(each.ref) for each in serving))
        elif serving:
            found = _answering_differently(state, service, workloads) or _failing_addresses(state, service, workloads)
            yield from found or _unproved(state, service, workloads)


def _serves(pod: ClusterObject, targets: list[int | str]) -> bool:
    declared = {each for port in container_ports(pod.child("spec")) for each in (port.number, port.name)}
    return any(target in declared for target in targets)


def _may_serve(pod: ClusterObject, targets: list[int | str], *, other_program: bool) -> bool:
    """Return whether a pod may respond at one of the ports without declaring the port, or receives no requests."""
    numbers = [target for target in targets if isinstance(target, int)]
    if any(speaks_of(pod, number) for number in numbers):
        return True
    if any(True for _ in container_ports(pod.child("spec"))):
        return False
    # A pod without a port of this name is not an endpoint.
    return not numbers or not other_program or (pod.owner is not None and pod.owner.kind == "Job")


def _unproved(
    state: ClusterState, service: ClusterObject, workloads: dict[ClusterObject, ClusterObject]
) -> Iterator[Fault]:
    """Report pods that run a different program from the probed pods and have no probe at the declared target port."""
    probed = {workload for workload, pod in workloads.items() if _probe_numbers(pod) & target_ports(service, pod)}
    programs = {program_of(workloads[workload]) for workload in probed}
    strangers = [
        workload
        for workload, pod in workloads.items()
        if workload not in probed
        and program_of(pod) not in programs
        and workload.kind not in {"Job", "CronJob"}
        and target_ports(service, pod)
    ]
    if not probed or not strangers:
        return
    refused = [each for each in failures(state).get(service.ref, ()) if each.kind == "refused"]
    if any(is_sick(state, each) for each in probed):
        refused = []
    sick = any(is_sick(state, each.consumer) for each in refused)
    fault = _too_broad(service, strangers, sorted(str(each.ref) for each in probed))
    names = ", ".join(sorted(str(each.ref) for each in strangers))
    yield replace(
        fault,
        cause=(
            f"The selector of {service.ref} also matches the pods of {names}, which do not run the same program as "
            f"{', '.join(sorted(str(each.ref) for each in probed))} and are not probed at the target port"
            + (": some connections are refused" if refused else "")
        ),
        evidence=(*fault.evidence[:1], *_labels_of(strangers), *(each.line for each in refused[:_MOST_PROOFS])),
        severity=("critical" if sick else "warning") if refused else "info",
        logs=consumer_logs(state, [edge.consumer for edge in edges(state).get(service.ref, ())]),
    )


def _labels_of(workloads: list[ClusterObject]) -> tuple[Evidence, ...]:
    templates = [template_of(each) for each in sorted(workloads, key=lambda each: each.ref)[:_MOST_PROOFS]]
    return tuple(
        value(each.workload, each.path.removesuffix("spec") + "metadata.labels", dict(each.labels))
        for each in templates
    )


def _probe_numbers(pod: ClusterObject) -> set[int]:
    """Return the probe ports of a pod, with port names resolved to numbers."""
    names = {port.name: port.number for port in container_ports(pod.child("spec")) if port.name}
    ports = [
        at(container, probe, how, "port")
        for container in pod.children("spec", "containers")
        for probe in ("readinessProbe", "livenessProbe", "startupProbe")
        for how in ("httpGet", "tcpSocket", "grpc")
    ]
    named = {names[each] for each in ports if isinstance(each, str) and each in names}
    return {port for port in ports if isinstance(port, int)} | named


def _too_broad(service: ClusterObject, strangers: list[ClusterObject], serving: list[str]) -> Fault:
    names = ", ".join(sorted(str(each.ref) for each in strangers))
    first = min(strangers, key=lambda each: each.ref)
    targets = ", ".join(str(port.target) for port in service_ports(service))
    return Fault(
        subject=service.ref,
        culprit=service.ref,
        cause=(
            f"The selector of {service.ref} also matches the pods of {names}, which lack the target port "
            f"({targets}) that {', '.join(serving)} has: some requests fail"
        ),
        evidence=(
            field(service, "spec", "selector"),
            value(first, f"{template_of(first).path}.containers[0].ports", declared_ports(first)),
            *_labels_of(strangers),
        ),
        next_check=(
            f"kubectl -n {service.namespace} get pods -o wide -l "
            + ",".join(f"{key}={label}" for key, label in selector_of(service).items())
        ),
    )


def _answering_differently(
    state: ClusterState, service: ClusterObject, workloads: dict[ClusterObject, ClusterObject]
) -> list[Fault]:
    """Report a program that answers with errors what another program behind the same Service answers well."""
    answers = {workload: list(_answers(state, workload)) for workload in workloads}
    rates = {each: sum(one.good for one in found) / len(found) for each, found in answers.items() if _is_enough(found)}
    serving = [each for each, rate in rates.items() if rate >= _MOSTLY]
    routes = {one.route for each in serving for one in answers[each] if one.good}
    programs = {program_of(workloads[each]) for each in serving}
    bad = {
        each: [one for one in answers[each] if not one.good and one.route in routes]
        for each, rate in rates.items()
        if rate <= 1 - _MOSTLY and program_of(workloads[each]) not in programs
    }
    strangers = [each for each in bad if _is_enough(bad[each])]
    if not serving or not strangers:
        return []
    first = bad[strangers[0]][-1]
    names, others = (", ".join(sorted(str(each.ref) for each in found)) for found in (strangers, serving))
    fault = _too_broad(service, strangers, sorted(str(each.ref) for each in serving))
    cause = (
        f"The selector of {service.ref} also matches the pods of {names}, another program than {others}: it answers "
        f"{first.route} with {first.status}, and {others} answers it well"
    )
    return [
        replace(
            fault,
            cause=cause,
            evidence=(fault.evidence[0], first.line, *_labels_of(strangers)),
            severity="critical",
            logs=consumer_logs(state, [edge.consumer for edge in edges(state).get(service.ref, ())]),
        )
    ]


def _failing_addresses(
    state: ClusterState, service: ClusterObject, workloads: dict[ClusterObject, ClusterObject]
) -> list[Fault]:
    """Report the only program behind the Service whose pods have the addresses in failures of clients."""
    owners = {pod.text("status", "podIP"): each for each in workloads for pod in state.pods_of(each)}
    owners.pop("", None)
    failed: dict[ClusterObject, list[Evidence]] = defaultdict(list)
    for consumer in {edge.consumer for edge in edges(state).get(service.ref, ())}:
        for pod, name, line in _lines(state, consumer):
            if _ERROR.search(line) is not None:
                for address in set(_ADDRESS.findall(line)) & owners.keys():
                    failed[owners[address]].append(log_line(pod, name, line.strip(), previous=False))
    if len(failed) != 1:
        return []
    ((stranger, lines),) = failed.items()
    serving = [each for each in workloads if each is not stranger]
    if len(lines) < _LEAST_ANSWERS or program_of(workloads[stranger]) in {
        program_of(workloads[each]) for each in serving
    }:
        return []
    names = ", ".join(sorted(str(each.ref) for each in serving))
    cause = (
        f"The selector of {service.ref} also matches the pods of {stranger.ref}, another program than {names}, and all "
        "failures of clients name their addresses"
    )
    fault = _too_broad(service, [stranger], sorted(str(each.ref) for each in serving))
    proof = (fault.evidence[0], lines[-1], *_labels_of([stranger]))
    return [replace(fault, cause=cause, evidence=proof, severity="critical")]


def _lines(state: ClusterState, workload: ClusterObject) -> Iterator[tuple[ClusterObject, str, str]]:
    """Yield the last lines of the current containers of a workload, with the pod and the container."""
    for pod in state.pods_of(workload):
        for container in pod.children("spec", "containers"):
            name = text(container, "name")
            log = state.logs.get(LogKey(pod=pod.ref, container=name, previous=False), "")
            yield from ((pod, name, line) for line in log.splitlines()[-_MOST_LINES:])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """A line of an access log. Numbers in the route are replaced."""

    route: str
    status: int
    line: Evidence

    @property
    def good(self) -> bool:
        return self.status < _FIRST_ERROR


def _is_enough(found: list[_Answer]) -> bool:
    return len(found) >= _LEAST_ANSWERS


def _answers(state: ClusterState, workload: ClusterObject) -> Iterator[_Answer]:
    for pod, name, line in _lines(state, workload):
        match = _ANSWER.search(line)
        if match is not None:
            proof = log_line(pod, name, line.strip(), previous=False)
            yield _Answer(route=_NUMBER.sub("N", match["route"]), status=int(match["status"]), line=proof)
