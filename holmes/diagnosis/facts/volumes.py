"""Finds PersistentVolumeClaims that wait for a volume, and volumes that are full."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.line_kinds import kind_of
from holmes.diagnosis.facts.pods import containers_of
from holmes.diagnosis.facts.resources import amount
from holmes.diagnosis.facts.unscheduled import claims_of
from holmes.kubernetes.cluster_state import once_per_state
from holmes.kubernetes.fields import (
    DEFAULT_STORAGE_CLASS,
    STORAGE_CLASS,
    child,
    children,
    matches_selector,
    text,
    texts,
)
from holmes.values.expressions import expression
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.pods import Container
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence


_LONGHORN_VOLUME: Final = "Volume.longhorn.io"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
MULTI_ATTACH: Final = expression(r"multi-?attach error|already (?:exclusively )?(?:attached|used)", re.IGNORECASE)
_ORDINAL: Final = expression(r"\d+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """The claim template of a StatefulSet from which a claim was created. `path` is its field in the StatefulSet."""

    workload: ClusterObject
    path: str


def class_name(claim: ClusterObject) -> str | None:
    """Return the name of the storage class.

    Returns None if the claim uses the default class, and an empty string if it requests no class.
    """
    found = claim.at("spec", "storageClassName")
    return found if isinstance(found, str) else claim.annotations.get(STORAGE_CLASS)


def is_default(storage_class: ClusterObject) -> bool:
    return any(storage_class.annotations.get(key) == "true" for key in DEFAULT_STORAGE_CLASS)


def pending_claims(state: ClusterState, graces: float = 1) -> Iterator[ClusterObject]:
    """Yield the claims that have been waiting for a volume for at least `graces` grace periods."""
    for claim in state.of("PersistentVolumeClaim"):
        pending = claim.deleted is None and claim.text("status", "phase") == "Pending"
        if pending and state.age_seconds(claim) >= (graces - 1) * state.patience_seconds + state.grace_seconds:
            yield claim


@once_per_state
def pods_by_claim(state: ClusterState) -> dict[tuple[str, str], list[ClusterObject]]:
    """Return the unfinished pods that use each claim, grouped by the claim's namespace and name."""
    found: dict[tuple[str, str], list[ClusterObject]] = defaultdict(list)
    for pod in state.of("Pod"):
        if pod.text("status", "phase") not in {"Succeeded", "Failed"}:
            for _, name in claims_of(pod):
                found[pod.namespace, name].append(pod)
    return found


def template_of_claim(state: ClusterState, claim: ClusterObject) -> Template | None:
    """Return the template from which the claim was created, or None.

    The claim's name (`data-catalog-0`) identifies the template.
    """
    for workload in state.of("StatefulSet", claim.namespace):
        for index, template in enumerate(workload.children("spec", "volumeClaimTemplates")):
            head = f"{text(template, 'metadata', 'name')}-{workload.name}-"
            if claim.name.startswith(head) and _ORDINAL.fullmatch(claim.name[len(head) :]):
                return Template(workload=workload, path=f"spec.volumeClaimTemplates[{index}]")
    return None


def claim_field(state: ClusterState, claim: ClusterObject, path: str, found: object) -> Evidence:
    """Return evidence for a field of the claim's spec.

    The evidence refers to the claim template if the claim has one.
    """
    template = template_of_claim(state, claim)
    if template is None:
        return evidence.value(claim, f"spec.{path}", found)
    return evidence.value(template.workload, f"{template.path}.spec.{path}", found)


def mismatches(claim: ClusterObject, volume: ClusterObject) -> tuple[tuple[str, str], ...]:
    """Return the mismatches that prevent binding the volume to the claim.

    Each item is the path of a field in the volume and a description of the mismatch.
    """
    found: list[tuple[str, str]] = []
    wanted_class, own_class = class_name(claim) or "", volume.text("spec", "storageClassName")
    if wanted_class != own_class:
        found.append(("spec.storageClassName", f"its class is {own_class or '(none)'}, not {wanted_class or '(none)'}"))
    lacking = set(texts(claim.at("spec"), "accessModes")) - set(texts(volume.at("spec"), "accessModes"))
    if lacking:
        found.append(("spec.accessModes", f"it does not support access mode {', '.join(sorted(lacking))}"))
    asked = claim.text("spec", "resources", "requests", "storage")
    size = volume.text("spec", "capacity", "storage")
    if amount(asked) > amount(size):
        found.append(("spec.capacity.storage", f"it has {size}, but the claim requests {asked}"))
    if (claim.text("spec", "volumeMode") or "Filesystem") != (volume.text("spec", "volumeMode") or "Filesystem"):
        found.append(("spec.volumeMode", f"its volume mode is {volume.text('spec', 'volumeMode') or 'Filesystem'}"))
    if not matches_selector(claim.child("spec", "selector"), volume.labels):
        found.append(("metadata.labels", "its labels do not match the claim's selector"))
    if _is_taken(claim, volume):
        holder = volume.child("spec", "claimRef")
        phase = volume.text("status", "phase") or "unknown"
        name = f"{text(holder, 'namespace')}/{text(holder, 'name')}"
        found.append(("spec.claimRef", f"it is reserved for {name} (phase {phase})"))
    return tuple(found)


def _is_taken(claim: ClusterObject, volume: ClusterObject) -> bool:
    holder = child(volume.body, "spec", "claimRef")
    if not holder:
        return False
    same = (text(holder, "namespace"), text(holder, "name")) == (claim.namespace, claim.name)
    return not same or text(holder, "uid") not in {"", claim.uid}


def waits_for_consumer(state: ClusterState, claim: ClusterObject) -> bool:
    """Return whether the claim is bound only after a pod is scheduled, and no node has been selected yet."""
    storage_class = state.get("StorageClass", "", class_name(claim) or "")
    if storage_class is None or storage_class.text("volumeBindingMode") != "WaitForFirstConsumer":
        return False
    return "volume.kubernetes.io/selected-node" not in claim.annotations


def classless_volumes(state: ClusterState, name: str) -> tuple[ClusterObject, ...]:
    """Return the PersistentVolumes with this class name. A StorageClass with this name might not exist."""
    return tuple(each for each in state.of("PersistentVolume") if each.text("spec", "storageClassName") == name)


def node_terms(volume: ClusterObject) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the label keys and values of the nodes that can use the volume."""
    return tuple(
        (text(each, "key"), texts(each, "values"))
        for term in children(volume.body, "spec", "nodeAffinity", "required", "nodeSelectorTerms")
        for each in children(term, "matchExpressions")
    )


_NO_SPACE: Final = expression(
    r"no space left on device|(?<!code: ')\bENOSPC\b(?!: system)|disk quota exceeded", re.IGNORECASE
)
_FILE: Final = expression(r"(?<![\w/.:])/[\w.@+-]+(?:/[\w.@+-]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class FullMount:
    """A volume mount without free space.

    `index` is the position of the mount in the container. `position` is the position of the volume in the pod. `claim`
    is None if the volume does not use a claim.
    """

    file: str
    path: str
    index: int
    volume: str
    position: int
    claim: ObjectRef | None


def _says_full(line: str) -> bool:
    """Return whether the line reports a full disk. A line that only repeats these words reports no trouble."""
    return _NO_SPACE.search(line) is not None and kind_of(line) is not None


def full_lines(log: str) -> tuple[str, ...]:
    """Return the lines of a log that report a full disk, without spaces around them."""
    if _NO_SPACE.search(log) is None:
        return ()
    return tuple(line.strip() for line in log.splitlines() if _says_full(line))


def files_in(line: str) -> tuple[str, ...]:
    return tuple(_FILE.findall(line))


def full_claims(line: str, pod: ClusterObject) -> tuple[ObjectRef, ...]:
    """Return the claims whose mounts contain a file that appears in a log line about a full disk."""
    if not _says_full(line):
        return ()
    found = (full_mount(container, line) for container in containers_of(pod))
    return tuple(dict.fromkeys(mount.claim for mount in found if mount is not None and mount.claim is not None))


def full_mount(container: Container, line: str) -> FullMount | None:
    """Return the innermost mount of a file whose path appears in the line, or None."""
    for file in files_in(line):
        found = [
            (len(path), index, path, text(mount, "name"))
            for index, mount in enumerate(children(container.spec, "volumeMounts"))
            for path in [text(mount, "mountPath").rstrip("/")]
            if path and (file == path or file.startswith(f"{path}/"))
        ]
        if found:
            _, index, path, name = max(found)
            return _mount(container.pod, name, (file, path, index))
    return None


def _mount(pod: ClusterObject, name: str, place: tuple[str, str, int]) -> FullMount:
    volumes = pod.children("spec", "volumes")
    position = next((at for at, each in enumerate(volumes) if text(each, "name") == name), 0)
    claim = text(volumes[position], "persistentVolumeClaim", "claimName") if volumes else ""
    file, path, index = place
    return FullMount(
        file=file,
        path=path,
        index=index,
        volume=name,
        position=position,
        claim=ObjectRef(kind="PersistentVolumeClaim", namespace=pod.namespace, name=claim) if claim else None,
    )


def silent_holders(state: ClusterState, pod: ClusterObject, message: str) -> tuple[ObjectRef, ...]:
    """Return the nodes that are not ready and still hold the volume of a pod that the message about it names.

    Such a node runs another pod with the claim, or the volume is still attached to it after its pod was force deleted.
    Other nodes may use a volume at the same time if its access modes allow this.
    """
    found: dict[ObjectRef, None] = {}
    users = pods_by_claim(state)
    for _, name in claims_of(pod):
        holders = {each.text("spec", "nodeName") for each in users.get((pod.namespace, name), ()) if each is not pod}
        claim = state.get("PersistentVolumeClaim", pod.namespace, name)
        volume = state.get("PersistentVolume", "", claim.text("spec", "volumeName")) if claim is not None else None
        if claim is None or f'"{claim.text("spec", "volumeName")}"' not in message or not _is_exclusive(claim):
            continue
        holders |= {text(each.body, "spec", "nodeName") for each in attachments(state, claim) if _is_attached(each)}
        source = volume.child("spec", "csi") if volume is not None else {}
        attached = f"kubernetes.io/csi/{text(source, 'driver')}^{text(source, 'volumeHandle')}"
        for node in state.of("Node"):
            listed = (text(each, "name") for each in node.children("status", "volumesAttached"))
            holds = node.name in holders or (bool(source) and attached in listed)
            if holds and node.name != pod.text("spec", "nodeName") and is_silent(node):
                found[node.ref] = None
    return tuple(found)


def attachments(state: ClusterState, claim: ClusterObject) -> tuple[ClusterObject, ...]:
    """Return the VolumeAttachments of the volume of a claim: what is attached to a node, or shall be."""
    name = claim.text("spec", "volumeName")
    every = state.of("VolumeAttachment") if name else ()
    return tuple(each for each in every if each.text("spec", "source", "persistentVolumeName") == name)


def attachment_words(state: ClusterState, pod: ClusterObject, claim: ClusterObject) -> tuple[str, tuple[Evidence, ...]]:
    """Return where the volume of a claim is attached instead, or why it is not attached to the pod's node."""
    for each in attachments(state, claim):
        node, error = each.text("spec", "nodeName"), each.text("status", "attachError", "message")
        if node != pod.text("spec", "nodeName") and _is_attached(each) and _is_exclusive(claim):
            words = f"; {each.ref} still attaches it to Node {node}"
            return words, (evidence.field(each, "spec", "nodeName"), evidence.field(each, "status", "attached"))
        if node == pod.text("spec", "nodeName") and error:
            path = ("status", "attachError", "message")
            return f"; {each.ref} reports for Node {node}: {error}", (evidence.field(each, *path),)
    return "", ()


def faulted_volumes(state: ClusterState, claim: ClusterObject) -> tuple[ObjectRef, ...]:
    """Return the Longhorn volume of a claim if all of its replicas have failed."""
    volume = state.get("PersistentVolume", "", claim.text("spec", "volumeName"))
    handle = volume.text("spec", "csi", "volumeHandle") if volume is not None else ""
    return tuple(
        each.ref
        for each in state.of(_LONGHORN_VOLUME)
        if each.name == handle and each.text("status", "robustness") == "faulted"
    )


def _is_attached(attachment: ClusterObject) -> bool:
    return attachment.boolean("status", "attached")


def _is_exclusive(claim: ClusterObject) -> bool:
    modes = {*texts(claim.at("spec"), "accessModes")}
    return bool(modes) and modes <= {"ReadWriteOnce", "ReadWriteOncePod"}


def is_silent(node: ClusterObject | None) -> bool:
    """Return whether the node is not ready, so that it releases no volume."""
    return node is not None and text(node.condition("Ready"), "status") != "True"
