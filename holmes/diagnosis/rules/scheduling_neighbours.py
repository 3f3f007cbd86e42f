"""Pods that no node takes because of others: neighbours, volumes, ports of the node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.nearest import hint
from holmes.diagnosis.facts.node_choice import host_ports
from holmes.diagnosis.facts.spec_places import owner_words, spec_field
from holmes.diagnosis.facts.typos import meant
from holmes.diagnosis.facts.unscheduled import claims_of, unscheduled_for, waiting_severity
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import child, children, text
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holmes.diagnosis.facts.unscheduled import Unscheduled
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence
    from holmes.values.json_types import JsonObject

_READS: Final = ("status.conditions[PodScheduled]", "event FailedScheduling")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_HOSTNAME: Final = "kubernetes.io/hostname"
_MOST: Final = 5


@Row(
    id="S04",
    title="Rules about neighbouring pods leave no node",
    severity="critical",
    kinds=("Pod",),
    needs=("Node",),
    reads=(*_READS, "spec.affinity.podAffinity", "spec.affinity.podAntiAffinity", "spec.topologySpreadConstraints"),
    explanation="Required pod anti-affinity with the host name allows one pod per node, so that more replicas than "
    "nodes cannot be placed. Required pod affinity needs a matching pod that runs. Spread constraints with "
    "DoNotSchedule need nodes that carry the topology key. Make the rule preferred, or correct selector, key or "
    "replicas.",
)
def neighbours(state: ClusterState) -> Iterator[Fault]:
    """The rule of the pod that keeps it from the nodes."""
    for found in unscheduled_for(state, "neighbours"):
        pod = found.pod
        path, why = _neighbour_rule(state, found)
        workload = state.workload_of(pod)
        replicas = (evidence.field(workload, "spec", "replicas"),) if workload.integer("spec", "replicas") else ()
        yield Fault(
            subject=pod.ref,
            severity=waiting_severity(state, pod),
            cause=f"{owner_words(pod, state)} {why}",
            evidence=(spec_field(pod, state, path), *replicas, found.proof),
            next_check=f"kubectl -n {pod.namespace} get pods -o wide",
            since=found.since,
        )


def _neighbour_rule(state: ClusterState, found: Unscheduled) -> tuple[str, str]:
    """Path of the rule below the spec, and what it demands in vain."""
    pod, told = found.pod, found.main.text
    nodes = state.of("Node") if state.covers("Node") else ()
    if "spread" in told:
        return _spread_rule(pod, told, nodes)
    anti = "anti" in told.lower()
    kind = "podAntiAffinity" if anti else "podAffinity"
    terms = children(pod.body, "spec", "affinity", kind, _REQUIRED)
    path = f"affinity.{kind}.{_REQUIRED}"
    if anti and not terms:
        return "affinity", f"is kept away by the required anti-affinity of other pods ({told})"
    for index, term in enumerate(terms):
        key = text(term, "topologyKey")
        if nodes and not any(key in node.labels for node in nodes):
            return f"{path}[{index}].topologyKey", f"spreads by label {key}, which no node has"
        near = state.matched("Pod", pod.namespace, child(term, "labelSelector"))
        if not anti and not any(each.text("spec", "nodeName") for each in near):
            selector = evidence.shown(child(term, "labelSelector"))
            return f"{path}[{index}]", f"must run next to a pod with {selector}, but no such pod runs"
        if anti and key == _HOSTNAME:
            wanted = state.workload_of(pod).integer("spec", "replicas")
            count = f"; it wants {wanted} replicas on {len(nodes)} node(s)" if wanted and nodes else ""
            return f"{path}[{index}]", f"may run only once per node (anti-affinity by {key}){count}"
    return path, f"has required {kind} that no node satisfies ({told})"


def _spread_rule(pod: ClusterObject, told: str, nodes: tuple[ClusterObject, ...]) -> tuple[str, str]:
    for index, rule in enumerate(pod.children("spec", "topologySpreadConstraints")):
        key = text(rule, "topologyKey")
        if text(rule, "whenUnsatisfiable") == "ScheduleAnyway":
            continue
        if nodes and not any(key in node.labels for node in nodes):
            return (
                f"topologySpreadConstraints[{index}].topologyKey",
                f"must be spread by label {key}, which no node has",
            )
        if "missing required label" not in told:
            return f"topologySpreadConstraints[{index}]", f"must be spread evenly by {key}, which no free node allows"
    return "topologySpreadConstraints", f"has spread constraints that no node satisfies ({told})"


@Row(
    id="S05",
    title="The pod waits for a volume",
    severity="critical",
    kinds=("Pod",),
    needs=("PersistentVolumeClaim", "PersistentVolume"),
    reads=(*_READS, "spec.volumes[].persistentVolumeClaim", "PersistentVolumeClaim status.phase"),
    explanation="The scheduler does not place a pod before its claims are bound, and only where their volumes can be "
    "used. A claim that does not exist has to be created, or its name corrected; what keeps an existing claim from "
    "being bound is told by the rules about volumes.",
)
def waits_for_volume(state: ClusterState) -> Iterator[Fault]:
    """A missing claim is the cause; an unbound one explains the pod."""
    for found in unscheduled_for(state, "volume"):
        pod = found.pod
        claims = list(claims_of(pod))
        missing = [each for each in claims if state.is_missing("PersistentVolumeClaim", pod.namespace, each[1])]
        known = [(path, claim) for path, name in claims if (claim := _claim(state, pod, name)) is not None]
        pending = [each for each in known if each[1].text("status", "phase") != "Bound"]
        if missing:
            yield _missing_claim(state, found, *missing[0])
        elif pending:
            yield _pending_claim(state, found, *pending[0])
        else:
            yield _bound_elsewhere(state, found, dict(known))


def _claim(state: ClusterState, pod: ClusterObject, name: str) -> ClusterObject | None:
    return state.get("PersistentVolumeClaim", pod.namespace, name)


def _missing_claim(state: ClusterState, found: Unscheduled, path: str, name: str) -> Fault:
    pod = found.pod
    claim = ObjectRef(kind="PersistentVolumeClaim", namespace=pod.namespace, name=name)
    existing = [each.name for each in state.of("PersistentVolumeClaim", pod.namespace)]
    return Fault(
        subject=pod.ref,
        culprit=None if meant(name, existing) else claim,
        title="PersistentVolumeClaim is missing",
        severity=waiting_severity(state, pod),
        cause=f"{claim} does not exist, but {owner_words(pod, state)} mounts it{hint(name, existing)}",
        evidence=(spec_field(pod, state, path), found.proof),
        next_check=f"kubectl -n {pod.namespace} get persistentvolumeclaim",
        since=found.since,
    )


def _pending_claim(state: ClusterState, found: Unscheduled, path: str, claim: ClusterObject) -> Fault:
    pod, phase = found.pod, claim.text("status", "phase") or "not bound"
    storage_class = state.get("StorageClass", "", claim.text("spec", "storageClassName"))
    provisioner = (evidence.field(storage_class, "provisioner"),) if storage_class is not None else ()
    told = state.events_of(claim, "ExternalProvisioning", "ProvisioningFailed", "FailedBinding")[-1:]
    return Fault(
        subject=pod.ref,
        culprit=claim.ref,
        role="symptom",
        severity=waiting_severity(state, pod),
        cause=f"{owner_words(pod, state)} waits for {claim.ref}, which is {phase}",
        evidence=(
            evidence.field(claim, "status", "phase"),
            *provisioner,
            *(evidence.event(each) for each in told),
            spec_field(pod, state, path),
            found.proof,
        ),
        next_check=f"kubectl -n {pod.namespace} describe persistentvolumeclaim {claim.name}",
        because=(claim.ref,),
        since=found.since,
    )


def _bound_elsewhere(state: ClusterState, found: Unscheduled, claims: Mapping[str, ClusterObject]) -> Fault:
    pod = found.pod
    volumes = [
        (claim, volume)
        for claim in claims.values()
        if (volume := state.get("PersistentVolume", "", claim.text("spec", "volumeName"))) is not None
    ]
    local = [(claim, volume) for claim, volume in volumes if volume.child("spec", "nodeAffinity")]
    places = [evidence.value(volume, "spec.nodeAffinity", volume.at("spec", "nodeAffinity")) for _, volume in local]
    own = [spec_field(pod, state, path) for path in list(claims)[:_MOST]] or [spec_field(pod, state, "volumes")]
    names = ", ".join(str(volume.ref) for _, volume in local)
    limit = "max volume count" in found.message.lower()
    why = (
        f"of {names}, which can be used on other nodes only"
        if local and not limit
        else f"of its volumes: {found.main.text}"
    )
    return Fault(
        subject=pod.ref,
        title="The pod's volume cannot be used on a free node",
        severity=waiting_severity(state, pod),
        cause=f"no node takes the pods of {owner_words(pod, state)} because {why}",
        evidence=(*own, *places, found.proof),
        next_check=f"kubectl -n {pod.namespace} get persistentvolumeclaim -o wide",
        because=tuple(ref for claim, volume in volumes for ref in (claim.ref, volume.ref)),
        since=found.since,
    )


@Row(
    id="S06",
    title="The node's port is taken",
    severity="critical",
    kinds=("Pod",),
    needs=("Node",),
    reads=(*_READS, "spec.containers[].ports[].hostPort"),
    explanation="A container asks for a port of the node itself (`hostPort`), and on every node that could take the "
    "pod another pod has it. A node has each port once, so that such a workload can have one replica per node. "
    "Usually a Service makes the host port unnecessary.",
)
def port_taken(state: ClusterState) -> Iterator[Fault]:
    """The port with its holders."""
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
    by = holders.get((port, protocol), [])
    who = ", ".join(
        f"{each.ref} of {owner_words(each, state)} on {each.text('spec', 'nodeName')}" for each in by[:_MOST]
    )
    own = state.workload_of(pod)
    again = by and all(state.workload_of(each) is own for each in by)
    replicas = (evidence.field(own, "spec", "replicas"),) if again and own.kind != "Pod" else ()
    told = f"; it wants {own.integer('spec', 'replicas')} replicas, but a node has each port once" if replicas else ""
    return Fault(
        subject=pod.ref,
        severity=waiting_severity(state, pod),
        cause=f"{owner_words(pod, state)} asks for port {port}/{protocol} of the node (hostPort), "
        f"which is taken{f' by {who}' if who else ''}{told}",
        evidence=(spec_field(pod, state, path), *replicas, *_holder_evidence(by, port), found.proof),
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
        for path, own, _ in host_ports(_spec(each)):
            if own == port:
                yield evidence.value(each, f"spec.{path}", own)


def _spec(pod: ClusterObject) -> JsonObject:
    return child(pod.body, "spec")
