"""Rules for objects of any kind: failing system components, and deletions that do not finish."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.custom_resources import describe
from holmes.diagnosis.facts.fixes import instruction, scaled_up
from holmes.diagnosis.facts.pods import containers_of, judged_pods
from holmes.diagnosis.facts.producers import controllers_of
from holmes.diagnosis.facts.status import pod_ready
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import duration, moment, text, texts
from holmes.kubernetes.kinds import KINDS
from holmes.values.expressions import expression
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence, FixStep

_SYSTEM: Final = "kube-system"
_LONG_GRACES: Final = 5
_PLAIN_KINDS: Final = frozenset({"ConfigMap", "Secret", "ServiceAccount", "Role", "RoleBinding"})
"""Kinds of objects that have no resources outside the cluster."""
_MOST: Final = 5
_DEFINITE: Final = frozenset({"CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "CreateContainerConfigError"})
_OWN_RULES: Final = frozenset({"Pod", "PersistentVolumeClaim", "Namespace", "Event", "Node"})
_GROUP_VERSION: Final = expression(r"(?P<group>[a-z0-9][a-z0-9.-]*\.[a-z]+)/(?P<version>v\d\w*)")
_NAMESPACE_TROUBLES: Final = (
    "NamespaceDeletionDiscoveryFailure",
    "NamespaceDeletionGroupVersionParsingFailure",
    "NamespaceDeletionContentFailure",
    "NamespaceFinalizersRemaining",
    "NamespaceContentRemaining",
)
_PLURALS: Final = {kind.name: kind.resource for kind in KINDS}


@Row(
    id="C01",
    title="System component does not work",
    severity="critical",
    kinds=("Pod", "Deployment", "DaemonSet", "StatefulSet"),
    reads=("status.conditions[Ready]", "status.containerStatuses[].state", "metadata.namespace"),
    explanation="Pods in kube-system provide DNS, networking, metrics and scheduling for the whole cluster. Other "
    "rules report the exact fault, and this rule raises the severity of the incident. Pods that are briefly not ready "
    "during a rolling update are ignored.",
)
def system_part(state: ClusterState) -> Iterator[Fault]:
    troubled: dict[ObjectRef, list[ClusterObject]] = defaultdict(list)
    for pod in judged_pods(state):
        if pod.namespace == _SYSTEM and _is_down(state, pod):
            troubled[_part(state, pod).ref].append(pod)
    for ref, pods in troubled.items():
        part = state.find(ref)
        others = [pod for pod in state.pods_of(part) if pod not in pods] if part is not None else []
        serving = any(pod_ready(pod) for pod in others)
        yield _part_down(state, ref, pods, serving=serving)


def _part(state: ClusterState, pod: ClusterObject) -> ClusterObject:
    """Return the component of a pod: its workload, or the pod itself if it is a static pod."""
    return pod if pod.owner is not None and pod.owner.kind == "Node" else state.workload_of(pod)


def _is_down(state: ClusterState, pod: ClusterObject) -> bool:
    if pod.owner is not None and pod.owner.kind == "Job":
        return False
    if any(text(each.waiting, "reason") in _DEFINITE for each in containers_of(pod)):
        return True
    ready = pod.condition("Ready")
    if text(ready, "status") == "True":
        return False
    since = moment(text(ready, "lastTransitionTime")) or pod.created
    return state.now - since >= _LONG_GRACES * state.patience_seconds


def _part_down(state: ClusterState, ref: ObjectRef, pods: Sequence[ClusterObject], *, serving: bool) -> Fault:
    pod = pods[0]
    waiting = [each for each in containers_of(pod) if each.waiting]
    node = state.get("Node", "", pod.text("spec", "nodeName"))
    what = text(waiting[0].waiting, "reason") if waiting else text(pod.condition("Ready"), "reason") or "not ready"
    return Fault(
        subject=pod.ref,
        culprit=ref,
        role="symptom",
        severity="warning" if serving else None,
        cause=f"{ref} is a system component, and {'some' if serving else 'none'} of its pods "
        f"{'do not work' if serving else 'work'} ({what})",
        evidence=(
            *(each.evidence("state", "waiting", "reason") for each in waiting[:1]),
            evidence.value(pod, "status.conditions[type=Ready]", pod.condition("Ready")),
            evidence.field(pod, "metadata", "namespace"),
        ),
        next_check=f"kubectl -n {_SYSTEM} describe pod {pod.name}",
        because=(node.ref,) if node is not None and text(node.condition("Ready"), "status") != "True" else (),
        since=moment(text(pod.condition("Ready"), "lastTransitionTime")),
    )


@Row(
    id="A04",
    title="Namespace cannot be deleted",
    severity="warning",
    kinds=("Namespace",),
    needs=("APIService",),
    reads=("status.phase", "status.conditions", "metadata.deletionTimestamp", "spec.finalizers"),
    explanation="Kubernetes deletes the objects of a namespace before the namespace itself. The deletion waits for "
    "objects whose finalizers have not been removed. It also waits for an aggregated API that does not respond, "
    "because the objects of this API cannot be listed. The conditions of the namespace show the cause. Repair the API "
    "or the controller that owns the finalizer. Do not remove the namespace's own finalizer by force.",
)
def namespace_stuck(state: ClusterState) -> Iterator[Fault]:
    stuck = [each for each in state.of("Namespace") if _deleted_long_ago(state, each)]
    if not stuck:
        return
    held: dict[str, list[ClusterObject]] = defaultdict(list)
    for kind in state.kinds:
        for each in state.of(kind):
            if each.namespace and each.deleted is not None and texts(each.body, "metadata", "finalizers"):
                held[each.namespace].append(each)
    for namespace in stuck:
        yield _namespace_stuck(state, namespace, held.get(namespace.name, []))


def _deleted_long_ago(state: ClusterState, each: ClusterObject) -> bool:
    """Return whether the deletion has taken longer than usual for this kind of object.

    Releasing a cloud volume takes minutes, but deleting a plain object takes only seconds.
    """
    finalizers = texts(each.body, "metadata", "finalizers")
    foreign = all("/" in finalizer and "kubernetes.io/" not in finalizer for finalizer in finalizers)
    graces = 1 if foreign and not each.group and each.kind in _PLAIN_KINDS else _LONG_GRACES
    patience = (graces - 1) * state.patience_seconds + state.grace_seconds
    return each.deleted is not None and state.now - each.deleted >= patience


def _namespace_stuck(state: ClusterState, namespace: ClusterObject, held: Sequence[ClusterObject]) -> Fault:
    told = [
        (kind, text(condition, "message"))
        for kind in _NAMESPACE_TROUBLES
        for condition in [namespace.condition(kind)]
        if text(condition, "status") == "True"
    ]
    services = [each for kind, message in told if "Discovery" in kind for each in _services_in(state, message)]
    why = told[0][1] if told else "the reason is unknown"
    finalizers = [value for value in texts(namespace.body, "spec", "finalizers") if value != "kubernetes"]
    proof = [evidence.value(namespace, f"status.conditions[type={kind}].message", message) for kind, message in told]
    if finalizers:
        why = f"its own {_kept(finalizers)}; {why}"
        proof.insert(0, evidence.value(namespace, "spec.finalizers", finalizers))
    lasted = duration(state.now - (namespace.deleted or state.now))
    return Fault(
        subject=namespace.ref,
        culprit=services[0] if services else None,
        role="symptom" if held or services else "cause",
        cause=f"{namespace.ref} has been terminating for {lasted}: {why}",
        evidence=(
            *proof,
            *(evidence.field(each, "metadata", "finalizers") for each in held[:_MOST]),
            evidence.field(namespace, "metadata", "deletionTimestamp"),
        ),
        next_check=f"kubectl get namespace {namespace.name} -o yaml",
        because=(*services, *(each.ref for each in held[:_MOST])),
        since=namespace.deleted,
    )


def _services_in(state: ClusterState, message: str) -> Iterator[ObjectRef]:
    """Yield the unavailable APIServices of the API groups that are mentioned in the message."""
    for found in _GROUP_VERSION.finditer(message):
        service = state.get("APIService", "", f"{found['version']}.{found['group']}")
        if service is not None and text(service.condition("Available"), "status") != "True":
            yield service.ref


@Row(
    id="A05",
    title="Object cannot be deleted because of a finalizer",
    severity="warning",
    kinds=("CustomResourceDefinition", "Deployment", "StatefulSet", "Service", "PersistentVolume"),
    reads=("metadata.deletionTimestamp", "metadata.finalizers"),
    explanation="A deleted object remains until controllers have removed its finalizers. A controller that is "
    "missing, scaled to zero or failing never removes its finalizer. Restore the controller. If you remove the "
    "finalizer by hand, the controller's cleanup is skipped.",
)
def finalizer_stuck(state: ClusterState) -> Iterator[Fault]:
    for kind in state.kinds:
        for each in state.of(kind) if kind not in _OWN_RULES else ():
            finalizers = texts(each.body, "metadata", "finalizers")
            if finalizers and _deleted_long_ago(state, each):
                yield _finalizer_stuck(state, each, finalizers)
    for claim in state.of("PersistentVolumeClaim"):
        others = tuple(each for each in texts(claim.body, "metadata", "finalizers") if "pvc-protection" not in each)
        if others and _deleted_long_ago(state, claim):
            yield _finalizer_stuck(state, claim, others)


def _finalizer_stuck(state: ClusterState, each: ClusterObject, finalizers: Sequence[str]) -> Fault:
    controllers = _controllers(state, each, finalizers)
    waits = _waits_for(state, each, finalizers)
    who = f"; its controller may be {' or '.join(str(found.ref) for found in controllers)}" if controllers else ""
    asleep = [found for found in controllers if not found.integer("status", "readyReplicas")]
    proof: list[Evidence] = [evidence.field(found, "spec", "replicas") for found in asleep]
    place = f" -n {each.namespace}" if each.namespace else ""
    look = f"kubectl{place} get {_PLURALS.get(each.kind, each.kind.lower())} {each.name} -o yaml"
    return Fault(
        subject=each.ref,
        culprit=each.ref,
        cause=f"{each.ref} was deleted {duration(state.now - (each.deleted or state.now))} ago, but its "
        f"{_kept(finalizers)}{who}{', which is not running' if asleep else ''}",
        evidence=(
            evidence.field(each, "metadata", "finalizers"),
            evidence.field(each, "metadata", "deletionTimestamp"),
            *proof,
        ),
        next_check=describe(state, each) if each.group else look,
        because=(*(found.ref for found in controllers), *waits),
        since=each.deleted,
        fix=(
            *(scaled_up(state, found) for found in asleep if found.at("spec", "replicas") == 0),
            None if controllers or waits else _released(each, finalizers),
        ),
    )


def _released(each: ClusterObject, finalizers: Sequence[str]) -> FixStep | None:
    """A finalizer protects something outside of the object, so it is removed by hand only as the last resort."""
    own = next((name for name in finalizers if "/" in name and "kubernetes.io/" not in name), "")
    sentence = f"Start the controller that removes the finalizer {own} of {each.ref}. Remove it by hand only if that "
    step = instruction(each.ref, f"{sentence}controller does not come back.")
    return replace(step, requires=()) if own else None  # the object is being deleted, which the step expects


def _kept(finalizers: Sequence[str]) -> str:
    noun, verb = ("finalizer", "has") if len(finalizers) == 1 else ("finalizers", "have")
    return f"{noun} {', '.join(finalizers)} {verb} not been removed"


def _controllers(state: ClusterState, each: ClusterObject, finalizers: Sequence[str]) -> list[ClusterObject]:
    """Return workloads whose names suggest that they manage the object, such as `database-operator` for a Database."""
    if not each.group and all("kubernetes.io" in value for value in finalizers):
        return []
    domains = [each.group, *(value.partition("/")[0] for value in finalizers)]
    words = {each.kind.lower()} if each.group else set()
    words |= {domain.partition(".")[0].lower() for domain in domains if "." in domain}
    known = (state.find(ref) for domain in domains for ref in controllers_of(state, each.kind, domain))
    named = (
        found
        for kind in ("Deployment", "StatefulSet")
        for found in state.of(kind)
        if words & set(re.split(r"[-.]", found.name.lower()))
    )
    return [found for found in dict.fromkeys((*known, *named)) if found is not None][:_MOST]


def _waits_for(state: ClusterState, each: ClusterObject, finalizers: Sequence[str]) -> tuple[ObjectRef, ...]:
    """Return the objects that must be deleted first: dependents, instances of a CRD, or the claim of a volume."""
    if "foregroundDeletion" in finalizers:
        return tuple(found.ref for found in state.owned_by(each)[:_MOST])
    if each.kind == "CustomResourceDefinition":
        kind = f"{each.text('spec', 'names', 'kind')}.{each.text('spec', 'group')}"
        return tuple(found.ref for found in state.of(kind) if found.deleted is not None)[:_MOST]
    if each.kind == "PersistentVolume":
        claim = each.child("spec", "claimRef")
        ref = ObjectRef(kind="PersistentVolumeClaim", namespace=text(claim, "namespace"), name=text(claim, "name"))
        return (ref,) if ref.name else ()
    return ()
