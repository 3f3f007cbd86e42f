"""Rule for pods that need a port of a node which another pod already uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.evidence import owner_words, spec_field
from holmes.diagnosis.facts.nodes import chooses, host_ports
from holmes.diagnosis.facts.unscheduled import unscheduled_for, waiting_severity
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import child

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holmes.diagnosis.facts.unscheduled import Unscheduled
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence

_MOST: Final = 5


@Row(
    id="S06",
    title="Host port is already in use",
    severity="critical",
    kinds=("Pod",),
    needs=("Node",),
    reads=("status.conditions[PodScheduled]", "event FailedScheduling", "spec.containers[].ports[].hostPort"),
    explanation=(
        "A container requests a port of the node (`hostPort`) that another pod uses on every suitable node. Only one "
        "pod per node can use the port, so the workload can have at most one replica per node. Usually a Service makes "
        "the host port unnecessary. The pod of a DaemonSet has no other node, so the workload that holds its port is "
        "at fault."
    ),
)
def port_taken(state: ClusterState) -> Iterator[Fault]:
    holders: dict[tuple[int, str], list[ClusterObject]] | None = None
    for found in unscheduled_for(state, "ports"):
        holders = _holders(state) if holders is None else holders
        yield _port_taken(state, found, holders)


def _port_taken(
    state: ClusterState, found: Unscheduled, holders: Mapping[tuple[int, str], list[ClusterObject]]
) -> Fault:
    pod = found.pod
    asked = list(host_ports(child(pod.body, "spec")))
    taken = next((each for each in asked if holders.get(each[1:])), asked[0] if asked else ("containers", 0, "TCP"))
    path, port, protocol = taken
    spec = child(pod.body, "spec")
    suitable = {node.name for node in state.of("Node") if chooses(spec, node)}
    every = holders.get((port, protocol), [])
    by = [each for each in every if each.text("spec", "nodeName") in suitable] or every
    who = ", ".join(
        f"{each.ref} of {owner_words(each, state)} on {each.text('spec', 'nodeName')}" for each in by[:_MOST]
    )
    own = state.workload_of(pod)
    again = by and all(state.workload_of(each) is own for each in by)
    others = {state.workload_of(each).ref for each in by}
    replicas = (evidence.field(own, "spec", "replicas"),) if again and own.kind != "Pod" else ()
    told = ""
    if replicas:
        told = f"; it needs {own.integer('spec', 'replicas')} replicas, but only one pod per node can use the port"
    return Fault(
        subject=pod.ref,
        culprit=min(others) if own.kind == "DaemonSet" and len(others) == 1 else None,
        severity=waiting_severity(state, pod),
        cause=f"{owner_words(pod, state)} requests port {port}/{protocol} of the node (hostPort), which is already "
        f"in use{f' by {who}' if who else ''}{told}",
        evidence=(spec_field(pod, state, path), *replicas, *_holder_evidence(by, port), *found.proofs),
        next_check="kubectl get pods -A -o wide --field-selector spec.nodeName="
        + (by[0].text("spec", "nodeName") if by else "<node>"),
        since=found.since,
    )


def _holders(state: ClusterState) -> dict[tuple[int, str], list[ClusterObject]]:
    found: dict[tuple[int, str], list[ClusterObject]] = {}
    for pod in state.of("Pod"):
        if pod.text("spec", "nodeName") and pod.text("status", "phase") not in {"Succeeded", "Failed"}:
            for _, port, protocol in host_ports(child(pod.body, "spec")):
                found.setdefault((port, protocol), []).append(pod)
    return found


def _holder_evidence(holders: list[ClusterObject], port: int) -> Iterator[Evidence]:
    for each in holders[:_MOST]:
        for path, own, _ in host_ports(child(each.body, "spec")):
            if own == port:
                yield evidence.value(each, f"spec.{path}", own)
