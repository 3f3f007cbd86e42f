"""Rules for pods whose containers cannot start because a volume cannot be mounted or a sandbox cannot be created."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.evidence import event, field, owner_words, pod_words, spec_field
from holmes.diagnosis.facts.pods import containers_of, judged_pods
from holmes.diagnosis.facts.producers import network_pods, volume_driver_pods
from holmes.diagnosis.facts.references import (
    OBJECT_NOT_FOUND,
    just_repaired,
    missing_key,
    missing_object,
    references_of,
)
from holmes.diagnosis.facts.status import pod_ready
from holmes.diagnosis.facts.volumes import (
    MULTI_ATTACH,
    attachment_words,
    faulted_volumes,
    silent_holders,
)
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.cluster_state import LogKey
from holmes.kubernetes.fields import child, duration, moment, text
from holmes.values.expressions import expression
from holmes.values.findings import ObjectRef
from holmes.values.texts import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.references import Missing, Reference
    from holmes.kubernetes.cluster_object import ClusterEvent, ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence

_MOUNT: Final = ("FailedMount", "FailedAttachVolume", "FailedMapVolume")
_SANDBOX: Final = ("FailedCreatePodSandBox", "FailedCreatePodContainer", "NetworkNotReady")
_STARTING: Final = frozenset({"", "ContainerCreating", "PodInitializing"})
_VOLUME: Final = expression(r"for volume \"([^\"]{1,253})\"")
_UNMOUNTED: Final = expression(r"unmounted volumes=\[([^\]]{1,1000})\]")
_NO_KEY: Final = expression(r"references non-existent (?:config|secret) key: ([^ ,;\]]{1,253})", re.IGNORECASE)
_UNREGISTERED: Final = expression(
    r"driver name ([a-z0-9][a-z0-9.-]{0,252}) not found in the list of registered CSI drivers"
)
_NODE_NETWORK: Final = (
    "cni plugin not initialized",
    "network plugin is not ready",
    "failed to assign an ip",
    "no ip addresses available",
    "no available ip",
    "no free ip",
    "cni config uninitialized",
    "failed to find plugin",
    "networkplugin",
    "network is not ready",
)
_LONG_GRACES: Final = 10
_QUOTED_CHARACTERS: Final = 400


@Row(
    id="P08a",
    title="Volume cannot be mounted",
    severity="critical",
    kinds=("Pod",),
    needs=("ConfigMap",),
    reads=(
        "status.phase, status.conditions PodScheduled",
        "events FailedMount, FailedAttachVolume, FailedMapVolume",
        "spec.volumes",
        "status of VolumeAttachments",
    ),
    explanation=(
        "A pod has a node but stays in ContainerCreating because a volume cannot be mounted. Its ConfigMap, its Secret "
        "or a key does not exist, a hostPath has the wrong type, or a claim cannot be attached. The rule quotes the "
        "newest event that reports more than a timeout."
    ),
)
def volume_not_mounted(state: ClusterState) -> Iterator[Fault]:
    for pod in _waiting_pods(state):
        found = _mount_event(pod, state)
        if found is None:
            continue
        missing = _missing(pod, _volume_name(found.message), found.message, state)
        if missing is None:
            yield _mount_fault(pod, found, state)
        elif not just_repaired(missing[0], pod.namespace, state):
            yield _missing_fault(pod, found, missing, state)


def _waiting_pods(state: ClusterState) -> Iterator[ClusterObject]:
    """Yield pods that are assigned to a node but whose containers have not started within the grace period."""
    for pod in judged_pods(state):
        if pod.text("status", "phase") != "Pending" or not pod.text("spec", "nodeName"):
            continue
        states = [child(each.status, "state") for each in containers_of(pod) if each.kind != "ephemeral"]
        if all(text(each, "waiting", "reason") in _STARTING and not set(each) - {"waiting"} for each in states):
            scheduled = moment(text(pod.condition("PodScheduled"), "lastTransitionTime")) or pod.created
            if state.now - scheduled >= state.grace_seconds:
                yield pod


def _mount_event(pod: ClusterObject, state: ClusterState) -> ClusterEvent | None:
    """Return the newest volume event, but a timeout only if no other volume event exists.

    Returns None if the kubelet has made progress since the event.
    """
    events = state.events_of(pod, *_MOUNT)
    beyond = max((each.last for each in state.events_of(pod, "Pulling", "Pulled", "Created", "Started")), default=0.0)
    events = tuple(each for each in events if each.last >= beyond)
    telling = [each for each in events if "timed out waiting" not in each.message.lower()]
    return telling[-1] if telling else events[-1] if events else None


def _missing_fault(
    pod: ClusterObject, found: ClusterEvent, missing: tuple[Reference, Missing], state: ClusterState
) -> Fault:
    reference, gone = missing
    wrong = spec_field(pod, state, gone.path)
    return Fault(
        subject=pod.ref,
        culprit=gone.culprit,
        title=gone.title,
        cause=f"{gone.what}, but {reference.user} of {owner_words(pod, state)} needs it{gone.hint}",
        evidence=(wrong, *gone.proof, event(found)),
        next_check=gone.next_check,
        since=found.first,
        fix=(gone.fix(wrong, state.workload_of(pod).ref),),
    )


def _mount_fault(pod: ClusterObject, found: ClusterEvent, state: ClusterState) -> Fault:
    name = _volume_name(found.message)
    claim = _claim(pod, name)
    host_path = "hostpath" in found.message.lower()
    driver = _UNREGISTERED.search(found.message)
    drivers = volume_driver_pods(state, driver[1], pod.text("spec", "nodeName")) if driver else ()
    broken = next((each for each in drivers if not pod_ready(each)), None)
    of_driver = f"; {broken.ref}, which provides the driver on this node, is not ready" if broken is not None else ""
    bound = _bound_claim(pod, name, state)
    attached, proofs = attachment_words(state, pod, bound) if bound is not None else ("", ())
    return Fault(
        subject=pod.ref,
        culprit=broken.ref if broken is not None else None,
        title="hostPath of the volume has the wrong type" if host_path else "Volume cannot be mounted",
        cause=(
            f"{pod_words(pod, state)} cannot start because volume {name or '(unknown)'} cannot be mounted: "
            f"{_short(found.message)}{of_driver}{attached}"
        ),
        evidence=(*_volume_evidence(pod, name, state), event(found), *proofs),
        next_check=f"kubectl -n {pod.namespace} describe pod {pod.name}",
        because=(
            *((claim,) if claim else ()),
            *(each.ref for each in drivers),
            *(faulted_volumes(state, bound) if bound is not None else ()),
            *(silent_holders(state, pod, found.message) if MULTI_ATTACH.search(found.message) else ()),
        ),
        since=found.first,
    )


def _volume_name(message: str) -> str:
    named, unmounted = _VOLUME.search(message), _UNMOUNTED.search(message)
    if named:
        return named[1]
    return unmounted[1].replace(",", " ").split()[0] if unmounted and unmounted[1].strip(" ,") else ""


def _missing(pod: ClusterObject, volume: str, message: str, state: ClusterState) -> tuple[Reference, Missing] | None:
    """Return the volume's reference to the object or key that the kubelet cannot find, or None."""
    user = f"volume {volume}"
    own = [each for each in references_of(pod.child("spec")) if each.use == "volume" and each.user == user]
    no_key, not_found = _NO_KEY.search(message), OBJECT_NOT_FOUND.search(message)
    for reference in own:
        if no_key and reference.key == no_key[1]:
            return reference, missing_key(reference, state.workload_of(pod), state)
        wanted = not_found and (reference.kind.lower(), reference.name) == (not_found[1].lower(), not_found[2])
        if wanted and not reference.optional and not reference.key:
            return reference, missing_object(reference, pod.namespace, state)
    return None


def _volume_index(pod: ClusterObject, name: str, state: ClusterState) -> int | None:
    """Return the index of the volume with this name or with a PersistentVolume of this name, or None.

    Messages about claims contain the name of the PersistentVolume.
    """
    for index, volume in enumerate(pod.children("spec", "volumes")):
        claim = text(volume, "persistentVolumeClaim", "claimName")
        bound = state.get("PersistentVolumeClaim", pod.namespace, claim) if claim else None
        if text(volume, "name") == name or (bound is not None and bound.text("spec", "volumeName") == name):
            return index
    return None


def _bound_claim(pod: ClusterObject, name: str, state: ClusterState) -> ClusterObject | None:
    index = _volume_index(pod, name, state)
    volume = pod.children("spec", "volumes")[index] if index is not None else {}
    return state.get("PersistentVolumeClaim", pod.namespace, text(volume, "persistentVolumeClaim", "claimName"))


def _volume_evidence(pod: ClusterObject, name: str, state: ClusterState) -> tuple[Evidence, ...]:
    index = _volume_index(pod, name, state)
    return (spec_field(pod, state, f"volumes[{index}]"),) if index is not None else ()


def _claim(pod: ClusterObject, name: str) -> ObjectRef | None:
    for volume in pod.children("spec", "volumes"):
        claim = text(volume, "persistentVolumeClaim", "claimName")
        if claim and (text(volume, "name") == name or name.startswith("pvc-") or not name):
            return ObjectRef(kind="PersistentVolumeClaim", namespace=pod.namespace, name=claim)
    return None


def _short(message: str) -> str:
    """Shorten a message and remove the prefix that all mount messages share."""
    said = re.sub(r"^MountVolume\.\w+ failed for volume \"[^\"]{1,253}\" ?: ?", "", message)
    return excerpt(said, _QUOTED_CHARACTERS)


@Row(
    id="P08b",
    title="Pod sandbox cannot be created",
    severity="critical",
    kinds=("Pod",),
    reads=(
        "status.containerStatuses[].state.waiting",
        "events FailedCreatePodSandBox, NetworkNotReady, Pulling",
        "spec.runtimeClassName",
    ),
    explanation=(
        "A pod has a node, but its network or sandbox cannot be created. The network plugin of the node is not ready, "
        "no IP addresses are left, or the runtime of the RuntimeClass is not installed. A pod that stays in "
        "ContainerCreating for a long time is reported even without an event."
    ),
)
def sandbox_not_made(state: ClusterState) -> Iterator[Fault]:
    for pod in _waiting_pods(state):
        if _mount_event(pod, state) is not None:
            continue
        events = state.events_of(pod, *_SANDBOX)
        if events:
            yield _sandbox_fault(pod, events[-1], state)
        elif state.age_seconds(pod) >= _LONG_GRACES * state.patience_seconds:
            yield _silent_fault(pod, state)


def _sandbox_fault(pod: ClusterObject, found: ClusterEvent, state: ClusterState) -> Fault:
    lower, node = found.message.lower(), ObjectRef(kind="Node", name=pod.text("spec", "nodeName"))
    network = any(each in lower for each in _NODE_NETWORK)
    runtime = pod.text("spec", "runtimeClassName") if "runtime" in lower and "handler" in lower else ""
    about = (spec_field(pod, state, "runtimeClassName"),) if runtime else ()
    plugins = network_pods(state, node.name) if _is_about_network(lower) else ()
    addresses = "ip" in lower.split() or "addresses" in lower
    title = "No IP addresses are left for pods" if network and addresses else "Network of the node is not ready"
    return Fault(
        subject=pod.ref,
        culprit=node if network else None,
        title=title if network else "Pod sandbox cannot be created",
        cause=(
            f"{pod_words(pod, state)} cannot start on {node} because its sandbox cannot be created: "
            f"{excerpt(found.message, _QUOTED_CHARACTERS)}"
        ),
        evidence=(*about, event(found), field(pod, "spec", "nodeName")),
        next_check=f"kubectl describe node {node.name}",
        because=(*(() if network else (node,)), *plugins),
        since=found.first,
        logs=_logs_of(state, plugins),
    )


def _logs_of(state: ClusterState, pods: tuple[ObjectRef, ...]) -> tuple[LogKey, ...]:
    """Return the logs of the containers that run in the pods."""
    found = (state.find(ref) for ref in pods)
    containers = (each for pod in found if pod is not None for each in containers_of(pod) if each.running)
    return tuple(LogKey(pod=each.pod.ref, container=each.name, previous=False) for each in containers)


def _is_about_network(message: str) -> bool:
    return "network" in message or "cni" in message or 'plugin type="' in message


def _silent_fault(pod: ClusterObject, state: ClusterState) -> Fault:
    node = ObjectRef(kind="Node", name=pod.text("spec", "nodeName"))
    pulling = state.events_of(pod, "Pulling")
    silence = "no event gives the reason" if state.covers("Event", pod.namespace) else "its events could not be read"
    what = "its image is still being pulled" if pulling else silence
    return Fault(
        subject=pod.ref,
        title="Container is not created",
        severity="warning",
        role="symptom",
        cause=(
            f"{pod_words(pod, state)} has been in ContainerCreating on {node} for "
            f"{duration(state.age_seconds(pod))}, and {what}"
        ),
        evidence=(
            field(pod, "status", "phase"),
            *(event(each) for each in pulling[-1:]),
            field(pod, "spec", "nodeName"),
        ),
        next_check=f"kubectl -n {pod.namespace} describe pod {pod.name}",
        because=(node,),
        since=pod.created,
    )
