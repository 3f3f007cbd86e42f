"""Determines why pods are not scheduled, from the reasons in the scheduler message and the state of the nodes.

Each pod has one main reason, so exactly one rule reports the pod.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.evidence import serves_elsewhere
from holmes.diagnosis.facts.nodes import (
    CONTROL_PLANE_TAINTS,
    PROBLEM_PREFIX,
    UNINITIALIZED_TAINT,
    chooses,
    is_trouble,
    matches_terms,
    repelling_taints,
    taint_words,
)
from holmes.diagnosis.facts.pods import judged_pods
from holmes.diagnosis.facts.resources import allocatable, amount, free, pods_by_node, requested
from holmes.diagnosis.facts.templates import pod_templates
from holmes.kubernetes.cluster_state import once_per_state
from holmes.kubernetes.fields import child, children, moment, text, text_map, texts
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.kubernetes.cluster_object import ClusterEvent, ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence, ObjectRef, Severity

Reason: TypeAlias = Literal["volume", "resources", "selector", "taint", "neighbours", "ports", "other"]

_REASONS: Final[tuple[tuple[Reason, re.Pattern[str]], ...]] = (
    ("volume", expression(r"volume|no available.*zone|free storage", re.IGNORECASE)),
    ("resources", expression(r"insufficient|too many pods|enough .*resource", re.IGNORECASE)),
    ("taint", expression(r"\btaint|unschedulable", re.IGNORECASE)),
    ("neighbours", expression(r"pod (?:anti-?)?affinity|anti-?affinity rules|topology spread", re.IGNORECASE)),
    ("selector", expression(r"node ?affinity|node selector|affinity/selector|requested node name", re.IGNORECASE)),
    ("ports", expression(r"free ports", re.IGNORECASE)),
)
_OF_NODES: Final = frozenset({"resources", "taint", "neighbours", "selector", "ports"})
"""Reasons that another node can remove."""
_PIECE: Final = expression(r"(?P<count>\d{1,9}) (?P<text>.+?)(?=, \d+ |[.;] |[.;]?$)")
_HEAD: Final = expression(r"^.*?nodes? (?:are|is) available: ?", re.IGNORECASE | re.DOTALL)
_PREEMPTION: Final = expression(r"[.,;]?\s*\bpreemption:", re.IGNORECASE)
_SCALING: Final = frozenset({"TriggeredScaleUp", "Nominated"})
_CLAIM: Final = expression(r"\bnodeclaim/(?P<name>[a-z0-9.-]+)")
_CLAIM_KIND: Final = "NodeClaim.karpenter.sh"
_LAUNCH_FAILED: Final = frozenset({"LaunchFailed", "InsufficientCapacity", "NodeClassNotReady"})
_NOT_SCALING: Final = frozenset({"NotTriggerScaleUp", "FailedScaleUp"})
_KARPENTER: Final = "karpenter"
"""The component whose events `FailedScheduling` say why no node is added."""
_EXHAUSTED: Final = expression(r"exceed(?:s|ed)? limits for nodepool:? \"?(?P<name>[a-z0-9.-]{1,253})")
NODE_GRACES: Final = 15
"""Autoscalers give a new node 15 minutes to join (--max-node-provision-time, and Karpenter's registration)."""
_JOINING_GRACES: Final = 3
_RESOURCE: Final = expression(r"(?:^|\b\d+ |[,.] )insufficient (?P<resource>[^\s,.]+(?:\.[^\s,.]+)*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One reason in a scheduler message.

    `count` is the number of affected nodes, or 0 if the reason concerns the pod itself.
    """

    count: int
    text: str
    reason: Reason

    @property
    def resource(self) -> str:
        """The insufficient resource. The value is `pods` if a node has too many pods, and empty for other reasons."""
        found = _RESOURCE.search(self.text)
        if found is not None:
            return found["resource"]
        return "pods" if "too many pods" in self.text.lower() else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unscheduled:
    """A pod that is waiting for a node.

    `pieces` contains the reasons, the main reason first, and `later` those that the scheduler gives only since another
    reason. `since` is in seconds since the epoch. `autoscaler` is the event in which an autoscaler refused to add a
    node, or requested one that did not come. `first` is the event with the reason of the beginning if it still holds.
    `claims` is the NodeClaim of the requested node if it could not be launched.
    """

    pod: ClusterObject
    message: str
    pieces: tuple[Piece, ...]
    later: tuple[Piece, ...]
    proof: Evidence
    first: ClusterEvent | None
    since: float | None
    autoscaler: ClusterEvent | None
    claims: tuple[ObjectRef, ...]

    @property
    def main(self) -> Piece:
        return self.pieces[0]

    @property
    def others(self) -> str:
        """The other reasons with their numbers of nodes, and why no node is added, as the end of a sentence."""
        counted = [f"{piece.count} {piece.text}" for piece in self.pieces[1:] if piece.count]
        rest = f"; of the other nodes, {', '.join(counted)}" if counted and self.main.count else ""
        if self.later:
            rest += f"; the scheduler meanwhile reports as well: {', '.join(_counted(each) for each in self.later)}"
        if self.autoscaler is None:
            return rest
        came = "the requested node has not come" if self.autoscaler.reason in _SCALING else "no node is added"
        return f"{rest}; {came} ({self.autoscaler.message})"

    def limiting(self, state: ClusterState) -> ObjectRef | None:
        """Return the NodePool of Karpenter whose limit is reached, as its event says, or None."""
        message = self.autoscaler.message if self.autoscaler is not None else ""
        told = _EXHAUSTED.search(message) if "incompatible" not in message else None
        pool = state.get("NodePool.karpenter.sh", "", told["name"]) if told is not None else None
        return pool.ref if pool is not None else None

    @property
    def proofs(self) -> tuple[Evidence, ...]:
        """The messages of the scheduler, and that of the autoscaler."""
        told = (each for each in (self.first, self.autoscaler) if each is not None)
        return (self.proof, *map(evidence.event, told))


def _counted(piece: Piece) -> str:
    return f"{piece.count} {piece.text}" if piece.count else piece.text


def unscheduled_for(state: ClusterState, reason: Reason) -> Iterator[Unscheduled]:
    """Yield the unscheduled pods with this main reason."""
    for found in unscheduled_pods(state):
        if found.main.reason == reason:
            yield found


@once_per_state
def unscheduled_pods(state: ClusterState) -> tuple[Unscheduled, ...]:
    """Return the pods that the scheduler could not place.

    Pods for which a cluster autoscaler has just requested a node are excluded. The result is cached for each state.
    """
    return tuple(_unscheduled_pods(state))


def _unscheduled_pods(state: ClusterState) -> Iterator[Unscheduled]:
    for pod in judged_pods(state):
        if pod.text("spec", "nodeName") or pod.text("status", "phase") != "Pending":
            continue
        condition = pod.condition("PodScheduled")
        if text(condition, "status") != "False" or text(condition, "reason") == "SchedulingGated":
            continue
        if coming_node(state, pod) is not None or _joins(state, pod):
            continue
        yield _unscheduled(state, pod, " ".join(text(condition, "message").split()))


def _unscheduled(state: ClusterState, pod: ClusterObject, told: str) -> Unscheduled:
    every = [each for each in state.events_of(pod, "FailedScheduling") if each.message]
    events = [each for each in every if each.component != _KARPENTER]
    message = told
    proof = evidence.value(pod, "status.conditions[type=PodScheduled].message", told)
    if not told and events:
        message, proof = events[-1].message, evidence.event(events[-1])
    pieces = sorted(pieces_of(message), key=lambda piece: _weight(state, pod, piece))
    pieces = pieces or [Piece(count=0, text=message, reason="other")]
    first, standing = _from_the_beginning(state, pod, events, {each.reason for each in pieces})
    told_by = _last_of_autoscaler(state, pod)
    return Unscheduled(
        pod=pod,
        message=message,
        pieces=standing or tuple(pieces),
        later=tuple(pieces) if standing else (),
        proof=proof,
        first=first,
        since=moment(text(pod.condition("PodScheduled"), "lastTransitionTime")) or pod.created or None,
        autoscaler=told_by if pieces[0].reason in _OF_NODES else None,
        claims=_claims(state, pod, pieces[0], told_by),
    )


def _from_the_beginning(
    state: ClusterState, pod: ClusterObject, events: Sequence[ClusterEvent], named: set[Reason]
) -> tuple[ClusterEvent | None, tuple[Piece, ...]]:
    """Return the first event of the scheduler and its reasons that still hold but are hidden by a newer obstacle.

    The scheduler names only the first check that a node fails, and it checks taints before labels and resources. A
    taint that came later hides the reason why the pod waits since before.
    """
    first = min(events, key=lambda each: each.first, default=None)
    told = tuple(pieces_of(first.message)) if first is not None else ()
    if first is None or not state.covers("Node") or named & {each.reason for each in told}:
        return None, ()
    standing = tuple(each for each in told if _still_holds(state, pod, each))
    return (first, standing) if standing else (None, ())


def _still_holds(state: ClusterState, pod: ClusterObject, piece: Piece) -> bool:
    """Return whether no node has the labels or the resources that the scheduler missed earlier."""
    spec = child(pod.body, "spec")
    chosen = [node for node in state.of("Node") if chooses(spec, node)]
    if piece.reason == "selector":
        return not chosen
    if piece.reason != "resources" or piece.resource in {"", "pods"} or not chosen:
        return False
    return not any(_has_room(state, pod, node, piece.resource) for node in chosen)


def waiting_severity(state: ClusterState, pod: ClusterObject) -> Severity:
    """Return warning if the workload of an unscheduled pod has enough ready pods without it, otherwise critical.

    For example, a workload usually has enough ready pods during an update.
    """
    return "warning" if serves_elsewhere(pod, state) else "critical"


def pieces_of(message: str) -> Iterator[Piece]:
    """Yield the reasons in a scheduler message. Ignores the part about preemption."""
    body = _PREEMPTION.split(_HEAD.sub("", message), maxsplit=1)[0]
    found = [(int(each["count"]), each["text"].strip()) for each in _PIECE.finditer(body)]
    for count, told in found or [(0, body.strip())]:
        if told:
            yield Piece(count=count, text=told, reason=_reason_of(told))


def _reason_of(told: str) -> Reason:
    return next((reason for reason, pattern in _REASONS if pattern.search(told)), "other")


def _weight(state: ClusterState, pod: ClusterObject, piece: Piece) -> tuple[int, int, str]:
    """Return a sort key that puts the main reason of an unscheduled pod first.

    The main reason is a requirement that no node can meet, then the fault of a node that could take the pod otherwise,
    then the reason that affects the most nodes. Reasons that affect only nodes that are not intended for the pod come
    last. These nodes are control plane nodes, and nodes that do not match the pod's selector while other nodes do.
    """
    nodes = state.of("Node") if state.covers("Node") else ()
    spec = child(pod.body, "spec")
    place = 2
    if piece.reason == "resources" and nodes and piece.resource not in {"", "pods"}:
        wanted = requested(pod, piece.resource)
        place = 0 if all(allocatable(node, piece.resource) < wanted for node in nodes) else 2
    elif piece.reason == "selector" and nodes:
        place = 3 if any(chooses(spec, node) for node in nodes) else 0
    elif piece.reason == "taint" and any(taint in piece.text for taint in CONTROL_PLANE_TAINTS):
        place = 4
    elif piece.reason == "taint" and any(word in piece.text for word in _TROUBLE_WORDS):
        place = 1 if any(is_kept_away(state, pod, node) for node in nodes) else 2
    elif piece.reason == "volume" and not piece.count:
        place = 0
    return (place, -piece.count, piece.text)


_TROUBLE_WORDS: Final = ("unschedulable", PROBLEM_PREFIX, UNINITIALIZED_TAINT)


def is_kept_away(state: ClusterState, pod: ClusterObject, node: ClusterObject) -> bool:
    """Return whether the pod could run on the node if the node had no fault and was not cordoned.

    If it could not, for example because of another taint or of the requests of the pod, the fault does not matter.
    """
    spec = child(pod.body, "spec")
    taints = list(repelling_taints(spec, node))
    troubled = node.boolean("spec", "unschedulable") or any(map(is_trouble, taints))
    if not troubled or not chooses(spec, node) or not all(map(is_trouble, taints)):
        return False
    return all(_has_room(state, pod, node, resource) for resource in _RESOURCES)


def closed_nodes(
    state: ClusterState, pod: ClusterObject, volumes: Sequence[ClusterObject]
) -> dict[ClusterObject, tuple[str, ...]]:
    """Return the nodes that can use all volumes, with the taints that the pod does not tolerate.

    Empty if one of these nodes has no such taint, because then another reason keeps the pod away from it.
    """
    terms = [children(volume.body, "spec", "nodeAffinity", "required", "nodeSelectorTerms") for volume in volumes]
    nodes = [node for node in state.of("Node") if all(matches_terms(each, node) for each in terms)]
    found = {node: tuple(map(taint_words, repelling_taints(child(pod.body, "spec"), node))) for node in nodes}
    return found if all(found.values()) else {}


def _has_room(state: ClusterState, pod: ClusterObject, node: ClusterObject, resource: str) -> bool:
    """Return whether the node has as much of a resource left as the pod requests."""
    wanted = requested(pod, resource)
    return wanted <= 0 or free((node,), pods_by_node(state), resource)[node.name] >= wanted


_RESOURCES: Final = ("cpu", "memory")


def coming_node(state: ClusterState, pod: ClusterObject) -> ClusterEvent | None:
    """Return the event in which an autoscaler recently requested a node for the pod, or None."""
    told = _last_of_autoscaler(state, pod)
    comes = told is not None and told.reason in _SCALING and _is_recent(state, told)
    return told if comes and not _failed_claim(state, told) else None


def _failed_claim(state: ClusterState, told: ClusterEvent | None) -> tuple[ObjectRef, ...]:
    """Return the NodeClaim that the event of Karpenter names if its condition says that it cannot be launched."""
    named = _CLAIM.search(told.message) if told is not None else None
    claim = state.get(_CLAIM_KIND, "", named["name"]) if named is not None else None
    return (claim.ref,) if claim is not None and _cannot_launch(claim) else ()


def _cannot_launch(claim: ClusterObject) -> bool:
    launched = claim.condition("Launched")
    return text(launched, "status") != "True" and text(launched, "reason") in _LAUNCH_FAILED


def _claims(
    state: ClusterState, pod: ClusterObject, main: Piece, told_by: ClusterEvent | None
) -> tuple[ObjectRef, ...]:
    named = _failed_claim(state, told_by) if main.reason in _OF_NODES else ()
    return named or (_only_failed_claim(state, pod) if main.reason == "resources" and told_by is None else ())


def _only_failed_claim(state: ClusterState, pod: ClusterObject) -> tuple[ObjectRef, ...]:
    """Return the NodeClaim that fails since a pod waits, if it is the only one and no other pod waits for a node.

    The event that names it is kept for an hour only. A claim for fewer resources than the pod requests is for another.
    """
    found = [each for each in state.of(_CLAIM_KIND) if _cannot_launch(each)]
    waiting = {
        state.workload_of(each).ref
        for each in state.of("Pod")
        if each.text("status", "phase") == "Pending" and not each.text("spec", "nodeName")
    }
    if len(found) != 1 or len(waiting) != 1 or found[0].created < pod.created:
        return ()
    asked = child(found[0].body, "spec", "resources", "requests")
    small = any(requested(pod, each) > amount(text(asked, each)) for each in _RESOURCES if text(asked, each))
    selected = text_map(pod.body, "spec", "nodeSelector").items()
    other = any(found[0].labels.get(key, value) != value for key, value in selected)
    return () if small or other else (found[0].ref,)


def _last_of_autoscaler(state: ClusterState, pod: ClusterObject) -> ClusterEvent | None:
    every = state.events_of(pod, *_SCALING, *_NOT_SCALING, "FailedScheduling")
    told = [each for each in every if each.reason != "FailedScheduling" or each.component == _KARPENTER]
    return told[-1] if told else None


def _is_recent(state: ClusterState, told: ClusterEvent) -> bool:
    return state.now - told.last <= NODE_GRACES * state.patience_seconds


def _joins(state: ClusterState, pod: ClusterObject) -> bool:
    """Return whether a node that joined the cluster moments ago could take the pod when it is ready."""
    young = [node for node in state.of("Node") if state.age_seconds(node) < _JOINING_GRACES * state.patience_seconds]
    return any(not node.boolean("spec", "unschedulable") and is_kept_away(state, pod, node) for node in young)


def claims_of(pod: ClusterObject) -> Iterator[tuple[str, str]]:
    """Yield the path and name of every PersistentVolumeClaim of a pod.

    The name of a claim for an ephemeral volume starts with the pod name.
    """
    for index, volume in enumerate(children(pod.body, "spec", "volumes")):
        name = text(volume, "persistentVolumeClaim", "claimName")
        if name:
            yield f"volumes[{index}].persistentVolumeClaim.claimName", name
        elif child(volume, "ephemeral"):
            yield f"volumes[{index}].name", f"{pod.name}-{text(volume, 'name')}"


def scheduler_named(state: ClusterState, name: str) -> ObjectRef | None:
    """Return the workload that seems to run a scheduler, by its own name or by the name in its arguments."""
    for template in pod_templates(state):
        words = [
            word
            for container in children(template.spec, "containers")
            for argument in (*texts(container, "command"), *texts(container, "args"))
            for word in argument.replace("=", " ").split()
        ]
        if template.workload.kind in ("Deployment", "StatefulSet", "DaemonSet") and name in (
            template.workload.name,
            *words,
        ):
            return template.workload.ref
    return None
