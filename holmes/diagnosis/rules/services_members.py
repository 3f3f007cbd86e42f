"""Rule for host names of StatefulSet pods that do not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.actors import last_write, scaled_by
from holmes.diagnosis.facts.edges import consumer_logs, edges, failures
from holmes.diagnosis.facts.evidence import field, value
from holmes.diagnosis.facts.services import is_headless
from holmes.diagnosis.rule import Fault, Row
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.edges import Failure
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState

_MEMBER: Final = expression(r"(?P<set>[a-z0-9][a-z0-9.-]*)-(?P<ordinal>\d{1,4})")


@Row(
    id="N-S10",
    title="Host name belongs to a StatefulSet pod that does not exist",
    severity="critical",
    kinds=("Service", "StatefulSet", "Pod"),
    reads=("logs and settings of clients", "spec.replicas", "spec.ordinals.start", "spec.clusterIP"),
    explanation="Each pod of a StatefulSet has its own host name below the headless Service, such as db-2.db. A client "
    "names a pod that does not exist, because the StatefulSet has fewer replicas, or because the pod was not created. "
    "The name can also be below another Service than the one in spec.serviceName. The rule reports it if the log of "
    "the client shows the failure. Start the replica again, or correct the name in the settings of the client.",
)
def named_pod_is_gone(state: ClusterState) -> Iterator[Fault]:
    for ref, failed in failures(state).items():
        service = state.find(ref)
        if service is None or not state.covers("Pod", ref.namespace):
            continue
        told: set[str] = set()
        for each in failed:
            name = each.use.host.partition(".")[0]
            if name == ref.name or name in told:
                continue
            told.add(name)
            there = state.get("Pod", ref.namespace, name)
            found = _gone(state, service, name, each) if there is None else _elsewhere(state, service, there, each)
            if found is not None:
                yield found


def _elsewhere(state: ClusterState, service: ClusterObject, pod: ClusterObject, failure: Failure) -> Fault | None:
    """Report the name of an existing pod below a Service that does not govern its StatefulSet."""
    workload = state.workload_of(pod)
    governing = workload.text("spec", "serviceName")
    if workload.kind != "StatefulSet" or governing == service.name or failure.kind != "unresolved":
        return None
    edge = next((each for each in edges(state).get(service.ref, ()) if each.use.host == failure.use.host), None)
    return Fault(
        subject=failure.consumer.ref,
        culprit=edge.named.object if edge is not None else failure.consumer.ref,
        title="Host name of a pod is below a Service that does not govern its StatefulSet",
        cause=f"{failure.consumer.ref} connects to {failure.use.host}, but the host names of {workload.ref} exist only "
        f"below Service {governing or '(not set)'} (spec.serviceName), for example {pod.name}.{governing}",
        evidence=(
            *((edge.named,) if edge is not None else ()),
            failure.line,
            field(workload, "spec", "serviceName"),
        ),
        next_check=f"kubectl -n {service.namespace} get statefulset {workload.name} -o yaml",
        logs=consumer_logs(state, [failure.consumer]),
    )


def _gone(state: ClusterState, service: ClusterObject, name: str, failure: Failure) -> Fault | None:
    member = _MEMBER.fullmatch(name) if is_headless(service) else None
    workload = state.get("StatefulSet", service.namespace, member["set"]) if member is not None else None
    if member is None or workload is None or workload is failure.consumer:
        return None
    start, replicas = workload.integer("spec", "ordinals", "start"), workload.at("spec", "replicas")
    wanted = replicas if isinstance(replicas, int) else 1
    outside = not start <= int(member["ordinal"]) < start + wanted
    by = scaled_by(state, workload) if outside else None
    why = f"{workload.ref} has only {wanted} {'replica' if wanted == 1 else 'replicas'}" if outside else "it is missing"
    users = [edge for edge in edges(state).get(service.ref, ()) if edge.use.host.partition(".")[0] == name]
    return Fault(
        subject=failure.consumer.ref,
        culprit=by.ref if by is not None and by.proved else workload.ref,
        cause=f"{failure.consumer.ref} connects to {failure.use.host}, but Pod {service.namespace}/{name} does not "
        f"exist: {why}{f'; {by.words}' if by is not None else ''}",
        evidence=(
            value(workload, "spec.replicas", wanted),
            failure.line,
            *(by.evidence if by is not None else ()),
            *(edge.named for edge in users[:1]),
            field(service, "spec", "clusterIP"),
        ),
        next_check=f"kubectl -n {service.namespace} get statefulset {workload.name}",
        role="cause" if outside else "symptom",
        because=() if outside else (workload.ref,),
        since=last_write(workload, "f:replicas")[0] or None,
        logs=consumer_logs(state, [failure.consumer]),
    )
