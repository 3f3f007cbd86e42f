"""Workloads that run no pod although something needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.dependents import autoscalers_of, services_selecting
from holmes.diagnosis.facts.edges import consumer_logs, edges, failures, is_sick
from holmes.diagnosis.facts.templates import template_of
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import at, children, text, text_map

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.edges import Edge
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence

_RECENT_SECONDS: Final = 3_600
_MOST_USERS: Final = 3
_SCALE_TO_ZERO: Final = "keda.sh"


@Row(
    id="W04",
    title="Scaled to zero although something needs it",
    severity="critical",
    kinds=("Deployment", "StatefulSet"),
    needs=("Service",),
    reads=(
        "spec.replicas", "Service spec.selector", "Ingress backends", "HorizontalPodAutoscaler spec.scaleTargetRef",
        "settings and logs of consumers", "events ScalingReplicaSet, SuccessfulDelete",
    ),
    explanation="The workload has spec.replicas 0, and a Service that has no other pods selects it. It is critical "
    "when an Ingress or an autoscaler points there too, or when workloads that use the Service fail or it was scaled "
    "down within the last hour. It is a warning when the settings of a workload name the Service, and only worth "
    "knowing when nothing does: then it is probably on purpose. A workload that nothing points at, that another "
    "workload stands in for, or that KEDA scales to zero, is no fault.",
)  # fmt: skip
def scaled_to_zero(state: ClusterState) -> Iterator[Fault]:
    """Workloads with 0 replicas behind a Service without other pods, or under an autoscaler."""
    routed = _routed_services(state)
    for workload in (*state.of("Deployment"), *state.of("StatefulSet")):
        if workload.at("spec", "replicas") != 0 or workload.deleted is not None or _is_scaled_by_keda(state, workload):
            continue
        services = _left_alone(state, workload)
        scaler = next(iter(autoscalers_of(state, workload)), None)
        if not services and scaler is None:
            continue
        proof = tuple(_scaled_down(state, workload))
        users = [edge for each in services for edge in edges(state).get(each.ref, ())]
        pointed_at = scaler is not None or any((each.namespace, each.name) in routed for each in services)
        severity = "critical" if pointed_at else _severity(state, services, users, recent=bool(proof))
        yield Fault(
            subject=workload.ref,
            severity=severity,
            title="Scaled to zero, nothing is known to need it" if severity == "info" else None,
            cause=f"{workload.ref} is scaled to zero (spec.replicas is 0), "
            + (f"and {services[0].ref} has no other pods" if severity == "info" else _needed(services, scaler, users)),
            evidence=(
                evidence.field(workload, "spec", "replicas"),
                *(evidence.field(each, "spec", "selector") for each in services),
                *((evidence.field(scaler, "spec", "scaleTargetRef"),) if scaler is not None else ()),
                *proof,
                *(edge.named for edge in users[:1]),
            ),
            next_check=f"kubectl -n {workload.namespace} describe {workload.kind.lower()} {workload.name}",
            logs=consumer_logs(state, [edge.consumer for edge in users]),
        )


def _severity(
    state: ClusterState, services: list[ClusterObject], users: list[Edge], *, recent: bool
) -> Literal["critical", "warning", "info"]:
    """Without an Ingress or an autoscaler it matters to those who use the Services, as far as that is known."""
    fails = any(failures(state).get(each.ref) for each in services)
    if not users:
        return "critical" if fails and recent else "info"
    return "critical" if fails or recent or any(is_sick(state, edge.consumer) for edge in users) else "warning"


def _needed(services: list[ClusterObject], scaler: ClusterObject | None, users: list[Edge]) -> str:
    needed = [*(str(each.ref) for each in services), *([str(scaler.ref)] if scaler is not None else [])]
    used = ", ".join(sorted({str(edge.consumer.ref) for edge in users})[:_MOST_USERS])
    words = f"{' and '.join(needed)} {'needs' if len(needed) == 1 else 'need'} it"
    return f"but {words}, and {used} uses the Service" if used else f"but {words}"


def _left_alone(state: ClusterState, workload: ClusterObject) -> list[ClusterObject]:
    """The Services that select the workload's pods and no others."""
    services = services_selecting(state, workload.namespace, template_of(workload).labels)
    return [
        service
        for service in services
        if not state.selected("Pod", workload.namespace, text_map(service.body, "spec", "selector"))
    ]


def _routed_services(state: ClusterState) -> set[tuple[str, str]]:
    """Namespace and name of every Service that an Ingress sends requests to."""
    found: set[tuple[str, str]] = set()
    for ingress in state.of("Ingress"):
        backends = [ingress.at("spec", "defaultBackend")]
        for rule in ingress.children("spec", "rules"):
            backends += [at(path, "backend") for path in children(rule, "http", "paths")]
        found |= {(ingress.namespace, text(backend, "service", "name")) for backend in backends}
    return found


def _is_scaled_by_keda(state: ClusterState, workload: ClusterObject) -> bool:
    """Whether something may wake it when it is needed."""
    return any(
        each.kind == "ScaledObject" and text(each.body, "spec", "scaleTargetRef", "name") == workload.name
        for each in state.of(f"ScaledObject.{_SCALE_TO_ZERO}", workload.namespace)
    )


def _scaled_down(state: ClusterState, workload: ClusterObject) -> Iterator[Evidence]:
    """What says that it ran shortly ago."""
    for event in state.events_of(workload, "ScalingReplicaSet"):
        if (
            "scaled down" in event.message.lower()
            and "to 0" in event.message
            and state.now - event.last <= _RECENT_SECONDS
        ):
            yield evidence.event(event)
    if workload.kind == "StatefulSet":
        yield from (evidence.event(event) for event in state.events_of(workload, "SuccessfulDelete")[-1:])
