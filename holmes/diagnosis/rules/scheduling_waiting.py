"""Rules for pods that wait for a volume, a scheduling gate, a scheduler or a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.evidence import owner_words, spec_field
from holmes.diagnosis.facts.fixes import changed, corrected, provided
from holmes.diagnosis.facts.pods import judged_pods
from holmes.diagnosis.facts.templates import pod_templates
from holmes.diagnosis.facts.typos import hint, meant
from holmes.diagnosis.facts.unscheduled import (
    claims_of,
    closed_nodes,
    scheduler_named,
    unscheduled_for,
    waiting_severity,
)
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import at, duration, text
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holmes.diagnosis.facts.templates import PodTemplate
    from holmes.diagnosis.facts.unscheduled import Unscheduled
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState


_READS: Final = ("status.conditions[PodScheduled]", "event FailedScheduling")
_MOST: Final = 5


@Row(
    id="S05",
    title="Pod waits for a volume",
    severity="critical",
    kinds=("Pod",),
    needs=("PersistentVolumeClaim", "PersistentVolume"),
    reads=(*_READS, "spec.volumes[].persistentVolumeClaim", "PersistentVolumeClaim status.phase"),
    explanation="The scheduler assigns a pod to a node only after the pod's claims are bound, and only to a node that "
    "can use their volumes. Create a missing claim, or correct its name. The rules about volumes report why an "
    "existing claim is not bound.",
)
def waits_for_volume(state: ClusterState) -> Iterator[Fault]:
    """Report a missing claim, an unbound claim, or bound volumes that no available node can use."""
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
    wrong, right = spec_field(pod, state, path), meant(name, existing)
    return Fault(
        subject=pod.ref,
        culprit=None if right else claim,
        title="PersistentVolumeClaim is missing",
        severity=waiting_severity(state, pod),
        cause=f"{claim} does not exist, but {owner_words(pod, state)} mounts it{hint(name, existing)}",
        evidence=(wrong, *found.proofs),
        next_check=f"kubectl -n {pod.namespace} get persistentvolumeclaim",
        since=found.since,
        fix=(corrected(wrong, right) if right else provided(claim, state.workload_of(pod).ref),),
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
            *found.proofs,
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
    limit = "max volume count" in found.message.lower()
    local = [] if limit else [each for each in volumes if each[1].child("spec", "nodeAffinity")]
    places = [evidence.value(volume, "spec.nodeAffinity", volume.at("spec", "nodeAffinity")) for _, volume in local]
    own = [spec_field(pod, state, path) for path in list(claims)[:_MOST]] or [spec_field(pod, state, "volumes")]
    names = ", ".join(str(volume.ref) for _, volume in local)
    tainted = closed_nodes(state, pod, [volume for _, volume in local]) if local else {}
    why = f"of {names}, which can be used only on other nodes" if local else f"of its volumes: {found.main.text}"
    if tainted:
        taints = ", ".join(dict.fromkeys(taint for each in tainted.values() for taint in each))
        nodes = ", ".join(node.name for node in tainted)
        why = f"{names} can be used only on {nodes}, whose taint {taints} they do not tolerate"
    return Fault(
        subject=pod.ref,
        culprit=next((node.ref for node in tainted), local[0][1].ref if local else None),
        title="No available node can use the volume of the pod",
        severity=waiting_severity(state, pod),
        cause=f"No node can run the pods of {owner_words(pod, state)} because {why}",
        evidence=(*(evidence.field(node, "spec", "taints") for node in tainted), *own, *places, *found.proofs),
        next_check=f"kubectl -n {pod.namespace} get persistentvolumeclaim -o wide",
        because=tuple(ref for claim, volume in volumes for ref in (claim.ref, volume.ref)),
        since=found.since,
    )


_DEFAULT: Final = "default-scheduler"
_QUEUES: Final = ("kueue.x-k8s.io/",)
_LONG_GRACES: Final = 5


@Row(
    id="S07",
    title="Scheduling gate holds back the pod",
    severity="warning",
    kinds=("Pod",),
    reads=("spec.schedulingGates", "status.conditions[PodScheduled].reason"),
    explanation=(
        "The scheduler ignores a pod until all its `schedulingGates` are removed by the component that set them. The "
        "severity is info for gates of batch queues, because these gates may hold pods for a long time."
    ),
)
def gated(state: ClusterState) -> Iterator[Fault]:
    for pod in judged_pods(state):
        gates = [text(each, "name") for each in pod.children("spec", "schedulingGates")]
        if not gates or pod.text("spec", "nodeName") or state.age_seconds(pod) < _LONG_GRACES * state.patience_seconds:
            continue
        queued = all(gate.startswith(_QUEUES) for gate in gates)
        yield Fault(
            subject=pod.ref,
            severity="info" if queued else None,
            cause=f"{owner_words(pod, state)} is held back by scheduling gate {', '.join(gates)}, which has not "
            f"been removed for {duration(state.age_seconds(pod))}",
            evidence=(
                spec_field(pod, state, "schedulingGates"),
                evidence.value(pod, "status.conditions[type=PodScheduled].reason", "SchedulingGated"),
            ),
            next_check=f"kubectl -n {pod.namespace} get pod {pod.name} -o yaml",
            since=pod.created or None,
        )


@Row(
    id="S08a",
    title="No scheduler handles the pod",
    severity="critical",
    kinds=("Pod",),
    reads=("spec.schedulerName", "status.conditions[PodScheduled]"),
    explanation="The pod has no node and no event from a scheduler. `schedulerName` specifies a scheduler that is not "
    "running or not working. Correct the name, or repair the scheduler.",
)
def no_scheduler(state: ClusterState) -> Iterator[Fault]:
    active = {pod.text("spec", "schedulerName") for pod in state.of("Pod") if _was_placed(pod)}
    for pod in judged_pods(state):
        if pod.text("spec", "nodeName") or pod.text("status", "phase") != "Pending" or pod.condition("PodScheduled"):
            continue
        unknown = bool(pod.children("spec", "schedulingGates")) or not state.covers("Event", pod.namespace)
        if unknown or state.events_of(pod, "FailedScheduling", "Scheduled"):
            continue
        foreign = (name := pod.text("spec", "schedulerName") or _DEFAULT) != _DEFAULT
        if foreign and name in active and state.age_seconds(pod) < _LONG_GRACES * state.patience_seconds:
            continue
        scheduler = scheduler_named(state, name) if foreign else _own_scheduler(state)
        who = scheduler if foreign else "the default scheduler"
        yield Fault(
            subject=pod.ref,
            culprit=scheduler,
            cause=f"No scheduler has handled the pods of {owner_words(pod, state)} for "
            f"{duration(state.age_seconds(pod))}: schedulerName is {name}, and "
            f"{f'{who} is not working' if who else f'no scheduler with this name is running{hint(name, active)}'}",
            evidence=(
                spec_field(pod, state, "schedulerName"),
                evidence.value(pod, "status.conditions", pod.at("status", "conditions") or "(none)"),
            ),
            next_check="kubectl get pods -A | grep -i scheduler",
            because=(scheduler,) if scheduler is not None else (),
            since=pod.created or None,
        )


def _was_placed(pod: ClusterObject) -> bool:
    """Return whether a scheduler assigned the pod to a node."""
    return bool(pod.condition("PodScheduled")) and pod.text("spec", "nodeName") != ""


def _own_scheduler(state: ClusterState) -> ObjectRef | None:
    """Return the pod of the default scheduler.

    If the pod is not visible, return the scheduler's lease, or None if it has no lease.
    """
    for pod in state.of("Pod", "kube-system"):
        if pod.labels.get("component") == "kube-scheduler":
            return pod.ref
    lease = state.get("Lease", "kube-system", "kube-scheduler")
    return None if lease is None else lease.ref


@Row(
    id="S08b",
    title="Pod is bound to a node that does not exist",
    severity="critical",
    kinds=("Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicaSet", "Pod"),
    needs=("Node",),
    reads=("spec.template.spec.nodeName", "Node metadata.name"),
    explanation="`nodeName` in a template assigns pods to a node without the scheduler. If the node does not exist, "
    "no kubelet starts the pods. The pods are deleted and created again without an event. Remove the field, or "
    "correct the name.",
)
def unknown_node(state: ClusterState) -> Iterator[Fault]:
    if not state.covers("Node") or not state.of("Node"):
        return
    for template in pod_templates(state):
        name = text(template.spec, "nodeName")
        if not name or state.get("Node", "", name) is not None or _asleep(template, state):
            continue
        nodes = [node.name for node in state.of("Node")]
        workload, right = template.workload, meant(name, nodes)
        yield Fault(
            subject=workload.ref,
            cause=f"{workload.ref} assigns its pods to node {name}, which does not exist{hint(name, nodes)}",
            evidence=(
                evidence.value(workload, f"{template.path}.nodeName", name),
                *(evidence.value(node, "metadata.name", node.name) for node in state.of("Node")[:_LONG_GRACES]),
            ),
            next_check="kubectl get nodes",
            since=workload.created or None,
            fix=(changed(workload.ref, f"{template.path}.nodeName", right) if right else None,),
        )


def _asleep(template: PodTemplate, state: ClusterState) -> bool:
    """Return whether the workload needs no pods now.

    For a single pod, returns whether it is too young or no longer Pending.
    """
    workload = template.workload
    if workload.kind == "Pod":
        return workload.text("status", "phase") != "Pending" or state.age_seconds(workload) < state.grace_seconds
    done = any(text(workload.condition(kind), "status") == "True" for kind in ("Complete", "Failed"))
    return done or at(workload.body, "spec", "replicas") == 0 or workload.boolean("spec", "suspend")
