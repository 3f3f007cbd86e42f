"""Rules for volumes that are lost, attached to another node, not resized, full, or not deleted."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.edges import workload_hosts
from holmes.diagnosis.facts.evidence import owner_words, spec_field
from holmes.diagnosis.facts.nodes import matches_terms
from holmes.diagnosis.facts.pods import containers_of, judged_pods
from holmes.diagnosis.facts.resources import amount
from holmes.diagnosis.facts.typos import nearest
from holmes.diagnosis.facts.unscheduled import claims_of, unscheduled_pods
from holmes.diagnosis.facts.volumes import (
    MULTI_ATTACH,
    files_in,
    full_lines,
    full_mount,
    is_silent,
    node_terms,
    pods_by_claim,
)
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import children, duration, moment, text, text_map, texts
from holmes.values.expressions import expression
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.diagnosis.facts.pods import Container
    from holmes.diagnosis.facts.volumes import FullMount
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence


_LONG_GRACES: Final = 5
_MOST: Final = 5
_RWOP: Final = expression(r"ReadWriteOncePod", re.IGNORECASE)
_RWO_MODES: Final = frozenset({"ReadWriteOnce", "ReadWriteOncePod"})


@Row(
    id="V06",
    title="Volume is lost",
    severity="critical",
    kinds=("PersistentVolumeClaim", "PersistentVolume"),
    reads=("PersistentVolumeClaim status.phase", "PersistentVolume status.phase", "PersistentVolume status.message"),
    explanation=(
        "A claim is Lost when the PersistentVolume that it was bound to no longer exists. The binding cannot be "
        "restored, and the data still exists only if the storage system retained it. A volume is Failed when it could "
        "not be reclaimed after its claim was deleted. Clean up this volume manually."
    ),
)
def lost(state: ClusterState) -> Iterator[Fault]:
    for claim in state.of("PersistentVolumeClaim"):
        if claim.text("status", "phase") != "Lost" or claim.deleted is not None:
            continue
        volume = claim.text("spec", "volumeName")
        gone = ", which no longer exists" if state.is_missing("PersistentVolume", "", volume) else ""
        yield Fault(
            subject=claim.ref,
            cause=f"{claim.ref} is Lost: it was bound to PersistentVolume {volume}{gone}",
            evidence=(
                evidence.field(claim, "spec", "volumeName"),
                evidence.field(claim, "status", "phase"),
                *map(evidence.event, state.events_of(claim, "ClaimLost")[-1:]),
            ),
            next_check=f"kubectl -n {claim.namespace} describe persistentvolumeclaim {claim.name}",
        )
    for volume_object in state.of("PersistentVolume"):
        if volume_object.text("status", "phase") == "Failed" and volume_object.deleted is None:
            yield Fault(
                subject=volume_object.ref,
                title="Volume could not be reclaimed",
                severity="warning",
                cause=f"{volume_object.ref} is Failed: "
                f"{volume_object.text('status', 'message') or 'it could not be reclaimed after its claim was deleted'}",
                evidence=(
                    evidence.field(volume_object, "status", "phase"),
                    evidence.field(volume_object, "spec", "persistentVolumeReclaimPolicy"),
                    *map(evidence.event, state.events_of(volume_object, "VolumeFailedDelete")[-1:]),
                ),
                next_check=f"kubectl describe persistentvolume {volume_object.name}",
            )


@Row(
    id="V07",
    title="Volume is in use on another node",
    severity="critical",
    kinds=("Pod", "PersistentVolumeClaim"),
    reads=("event FailedAttachVolume", "PersistentVolumeClaim spec.accessModes", "spec.replicas", "spec.strategy.type"),
    explanation="A ReadWriteOnce volume can be used on one node at a time (ReadWriteOncePod: by one pod). A second "
    "replica on another node, or the new pod of a rolling update, waits until the first pod releases the volume. With "
    "RollingUpdate, the first pod never releases it. Use `strategy: Recreate`, one replica, a StatefulSet with a "
    "claim for each pod, or ReadWriteMany. If the node of the first pod is down, the volume stays attached until the "
    "node returns or is deleted.",
)
def held_elsewhere(state: ClusterState) -> Iterator[Fault]:
    users = pods_by_claim(state)
    gated = {found.pod.uid: found.proof for found in unscheduled_pods(state) if _RWOP.search(found.message)}
    for pod in judged_pods(state):
        if pod.text("status", "phase") != "Pending":
            continue
        events = [each for each in state.events_of(pod, "FailedAttachVolume") if MULTI_ATTACH.search(each.message)]
        proof = evidence.event(events[-1]) if events else gated.get(pod.uid)
        if proof is not None:
            fault = _held(state, pod, proof, users)
            if fault is not None:
                yield fault


def _held(
    state: ClusterState,
    pod: ClusterObject,
    proof: Evidence,
    users: dict[tuple[str, str], list[ClusterObject]],
) -> Fault | None:
    for path, name in claims_of(pod):
        claim = state.get("PersistentVolumeClaim", pod.namespace, name)
        if claim is None or not _RWO_MODES & set(texts(claim.at("spec"), "accessModes")):
            continue
        holders = [
            each
            for each in users.get((pod.namespace, name), ())
            if (each is not pod and each.text("spec", "nodeName") not in {"", pod.text("spec", "nodeName")})
            or (each is not pod and "ReadWriteOncePod" in texts(claim.at("spec"), "accessModes"))
        ]
        if holders:
            return _held_by(state, pod, claim, holders, (spec_field(pod, state, path), proof))
    return None


def _held_by(
    state: ClusterState,
    pod: ClusterObject,
    claim: ClusterObject,
    holders: Sequence[ClusterObject],
    proofs: tuple[Evidence, Evidence],
) -> Fault | None:
    nodes = [state.get("Node", "", each.text("spec", "nodeName")) for each in holders]
    down = [node.ref for node in nodes if node is not None and is_silent(node)]
    leaving = all(each.deleted is not None for each in holders)
    if leaving and not down and state.age_seconds(pod) < _LONG_GRACES * state.patience_seconds:
        return None
    holder, workload = holders[0], state.workload_of(pod)
    modes = evidence.field(claim, "spec", "accessModes")
    own: list[Evidence] = []
    if workload.integer("spec", "replicas") > 1:
        own.append(evidence.field(workload, "spec", "replicas"))
    elif workload.text("spec", "strategy", "type") == "RollingUpdate":
        own.append(evidence.field(workload, "spec", "strategy", "type"))
    where = f"on node {holder.text('spec', 'nodeName')}" + (", which is not ready" if down else "")
    return Fault(
        subject=pod.ref,
        cause=f"{owner_words(pod, state)} cannot use {claim.ref}: its volume is "
        f"{'/'.join(texts(claim.at('spec'), 'accessModes'))}, and {holder.ref} of {owner_words(holder, state)} "
        f"uses the volume {where}",
        evidence=(*own, modes, *proofs),
        next_check=f"kubectl -n {pod.namespace} get pods -o wide",
        because=(*down, *((holder.ref,) if leaving else ())),
        since=pod.created or None,
    )


@Row(
    id="V08",
    title="Volume is not resized",
    severity="warning",
    kinds=("PersistentVolumeClaim",),
    needs=("StorageClass",),
    reads=("status.conditions", "status.allocatedResourceStatuses", "event VolumeResizeFailed", "status.capacity"),
    explanation="The claim requests more storage than its volume has, and the resize failed or does not progress. The "
    "driver might not support the resize, the class might not allow it (`allowVolumeExpansion`), or the file system "
    "grows only when the pod restarts. A resize that has just begun is ignored.",
)
def not_resized(state: ClusterState) -> Iterator[Fault]:
    for claim in state.of("PersistentVolumeClaim"):
        asked = claim.text("spec", "resources", "requests", "storage")
        size = claim.text("status", "capacity", "storage")
        if claim.deleted is not None or claim.text("status", "phase") != "Bound" or amount(asked) <= amount(size):
            continue
        trouble = _resize_trouble(state, claim)
        if trouble is None:
            continue
        why, proof = trouble
        storage_class = state.get("StorageClass", "", claim.text("spec", "storageClassName"))
        fixed = storage_class is not None and not storage_class.boolean("allowVolumeExpansion")
        allowed = (
            (evidence.value(storage_class, "allowVolumeExpansion", "(not set)"),) if fixed and storage_class else ()
        )
        yield Fault(
            subject=claim.ref,
            cause=f"{claim.ref} requests {asked}, but its volume still has {size}: "
            f"{why}{'; its StorageClass does not allow volume expansion' if fixed else ''}",
            evidence=(
                evidence.field(claim, "spec", "resources", "requests", "storage"),
                evidence.field(claim, "status", "capacity", "storage"),
                *proof,
                *allowed,
            ),
            next_check=f"kubectl -n {claim.namespace} describe persistentvolumeclaim {claim.name}",
        )


def _resize_trouble(state: ClusterState, claim: ClusterObject) -> tuple[str, tuple[Evidence, ...]] | None:
    """Explain why the resize fails, with evidence. Returns None while the resize may still progress."""
    failed = state.events_of(claim, "VolumeResizeFailed")[-1:]
    if failed:
        return failed[0].message, (evidence.event(failed[0]),)
    for status in claim.child("status", "allocatedResourceStatuses").values():
        if isinstance(status, str) and "Infeasible" in status:
            return status, (evidence.field(claim, "status", "allocatedResourceStatuses"),)
    for condition in claim.children("status", "conditions"):
        kind = text(condition, "type")
        if text(condition, "status") != "True":
            continue
        proof = evidence.value(claim, f"status.conditions[type={kind}]", condition)
        since = state.now - (moment(text(condition, "lastTransitionTime")) or state.now)
        if kind in {"ControllerResizeError", "NodeResizeError"}:
            return text(condition, "message") or kind, (proof,)
        waiting = "has waited for the pod to be recreated" if kind == "FileSystemResizePending" else "has not continued"
        if kind in {"FileSystemResizePending", "Resizing"} and since >= _LONG_GRACES * state.patience_seconds:
            return f"the resize {waiting} for {duration(since)}", (proof,)
    return None


@Row(
    id="V09",
    title="Volume is on a node that does not exist",
    severity="critical",
    kinds=("PersistentVolume",),
    needs=("Node",),
    reads=("spec.nodeAffinity", "Node metadata.labels", "status.phase"),
    explanation="A local or zonal volume can be used only on the nodes in its `nodeAffinity`, and none of these nodes "
    "exists. The node was removed or renamed, or the label is misspelled. No pod that uses the claim can be "
    "scheduled. Only volumes that a pod uses are checked.",
)
def on_no_node(state: ClusterState) -> Iterator[Fault]:
    nodes = state.of("Node")
    if not nodes or not state.covers("Node"):
        return
    users = pods_by_claim(state)
    for volume in state.of("PersistentVolume"):
        terms = children(volume.body, "spec", "nodeAffinity", "required", "nodeSelectorTerms")
        claim = (volume.text("spec", "claimRef", "namespace"), volume.text("spec", "claimRef", "name"))
        waiting = [pod for pod in users.get(claim, ()) if pod.text("status", "phase") != "Running"]
        if not terms or volume.deleted is not None or not waiting or any(matches_terms(terms, node) for node in nodes):
            continue
        wanted = "; ".join(f"{key} in {', '.join(values)}" for key, values in node_terms(volume))
        yield Fault(
            subject=volume.ref,
            cause=f"{volume.ref} of PersistentVolumeClaim {'/'.join(claim)} can be used only on nodes with "
            f"{wanted}, and no such node exists{_near_value(volume, nodes)}; {owner_words(waiting[0], state)} "
            "needs this volume",
            evidence=(
                evidence.field(volume, "spec", "nodeAffinity"),
                *(evidence.value(node, "metadata.labels", node.labels) for node in nodes[:_MOST]),
            ),
            next_check="kubectl get nodes --show-labels",
            since=waiting[0].created or None,
        )


def _near_value(volume: ClusterObject, nodes: Sequence[ClusterObject]) -> str:
    for key, values in node_terms(volume):
        there = {node.labels[key] for node in nodes if key in node.labels}
        near = next((found for each in values if (found := nearest(each, there))), None)
        if near:
            return f" (the closest {key} is {near!r})"
    return ""


@Row(
    id="V10",
    title="Claim is being deleted, but pods still use it",
    severity="warning",
    kinds=("PersistentVolumeClaim", "Pod"),
    reads=("metadata.deletionTimestamp", "metadata.finalizers", "Pod spec.volumes"),
    explanation=(
        "The finalizer kubernetes.io/pvc-protection keeps a claim until the last pod that uses it is deleted. The "
        "volume works until then. New pods cannot use the claim. The deletion cannot be reverted. If the deletion is "
        "intended, scale down the workload."
    ),
)
def deletion_waits(state: ClusterState) -> Iterator[Fault]:
    users: dict[tuple[str, str], list[ClusterObject]] | None = None
    for claim in state.of("PersistentVolumeClaim"):
        if claim.deleted is None or state.now - claim.deleted < _LONG_GRACES * state.patience_seconds:
            continue
        users = pods_by_claim(state) if users is None else users
        pods = users.get((claim.namespace, claim.name), [])
        if not pods:
            continue
        users_of = dict.fromkeys(owner_words(pod, state) for pod in pods[:_MOST])
        yield Fault(
            subject=claim.ref,
            cause=f"{claim.ref} was deleted {duration(state.now - claim.deleted)} ago, but {', '.join(users_of)} still "
            f"{'uses' if len(users_of) == 1 else 'use'} it",
            evidence=(
                evidence.field(claim, "metadata", "deletionTimestamp"),
                evidence.field(claim, "metadata", "finalizers"),
                *(
                    spec_field(pod, state, path)
                    for pod in pods[:1]
                    for path, name in claims_of(pod)
                    if name == claim.name
                ),
            ),
            next_check=f"kubectl -n {claim.namespace} describe persistentvolumeclaim {claim.name}",
            because=tuple(pod.ref for pod in pods if pod.deleted is not None),
            since=claim.deleted,
        )


_SHARED_MEMORY: Final = "/dev/shm/"  # noqa: S108  the path is compared with logs and never opened


@Row(
    id="V11",
    title="Volume is full",
    severity="critical",
    kinds=("Pod",),
    needs=("PersistentVolumeClaim",),
    reads=("log lines with No space left on device", "spec.containers[].volumeMounts"),
    explanation="The log of a failing container reports 'no space left' for a file on one of its mounts. The "
    "Kubernetes API does not show how full a volume is, so the rule detects full volumes only from such log lines. "
    "Enlarge the claim, or delete data from the volume. `/dev/shm` has 64 MiB unless a volume is mounted there.",
)
def full(state: ClusterState) -> Iterator[Fault]:
    """Report the volume of the file that could not be written."""
    told = {key: full_lines(log) for key, log in state.logs.items()}
    pods = [state.find(key.pod) for key, lines in told.items() if lines]
    owners = {state.workload_of(pod).ref for pod in pods if pod is not None}
    for key, lines in told.items():
        pod = state.find(key.pod)
        container = next((each for each in containers_of(pod) if each.name == key.container), None) if pod else None
        if pod is None or container is None or not lines:
            continue
        proof = evidence.log_line(pod, key.container, lines[-1], previous=key.previous)
        mount = next((found for line in reversed(lines) if (found := full_mount(container, line))), None)
        if mount is None:
            own = (
                ObjectRef(kind="PersistentVolumeClaim", namespace=pod.namespace, name=name)
                for _, name in claims_of(pod)
            )
            because = (*_full_servers(state, pod, owners), *own)  # an enlargement that is not finished
            yield replace(_no_mount(state, container, lines, proof), because=because)
        else:
            yield _full(state, container, mount, proof)


def _full_servers(state: ClusterState, client: ClusterObject, full: set[ObjectRef]) -> Iterator[ObjectRef]:
    """Yield the workloads behind the Services of a client that report a full disk, too: the client repeats them."""
    for use, _ in workload_hosts(state, state.workload_of(client)):
        service = state.find(use.service)
        selector = text_map(service.body, "spec", "selector") if service is not None else {}
        for pod in state.selected("Pod", use.service.namespace, selector) if selector else ():
            owner = state.workload_of(pod).ref
            if owner in full and owner != state.workload_of(client).ref:
                yield owner


def _no_mount(state: ClusterState, container: Container, lines: Sequence[str], proof: Evidence) -> Fault:
    pod = container.pod
    shared = next((file for line in lines for file in files_in(line) if file.startswith(_SHARED_MEMORY)), "")
    return Fault(
        subject=pod.ref,
        title="Shared memory is full" if shared else "Disk of the container is full",
        severity="warning",
        cause=f"The container {container.name} of {owner_words(pod, state)} has no space "
        f"left{f' in {shared}, which has 64 MiB unless a volume is mounted there' if shared else f': {proof.value}'}",
        evidence=(proof,),
        next_check=f"kubectl -n {pod.namespace} exec {pod.name} -c {container.name} -- df -h",
    )


def _full(state: ClusterState, container: Container, mount: FullMount, proof: Evidence) -> Fault:
    pod, claim = container.pod, mount.claim
    known = state.find(claim) if claim is not None else None
    size = () if known is None else (evidence.field(known, "status", "capacity"),)
    mounted = f"{container.spec_path.removeprefix('spec.')}.volumeMounts[{mount.index}].mountPath"
    return Fault(
        subject=pod.ref,
        culprit=claim,
        cause=f"Volume {mount.volume}{f' ({claim})' if claim else ''} at {mount.path} of container "
        f"{container.name} of {owner_words(pod, state)} has no space left for {mount.file}",
        evidence=(
            *size,
            proof,
            spec_field(pod, state, mounted),
            spec_field(pod, state, f"volumes[{mount.position}]"),
        ),
        next_check=f"kubectl -n {pod.namespace} exec {pod.name} -c {container.name} -- df -h {mount.path}",
    )
