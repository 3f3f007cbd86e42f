"""Rules for pods that do not fit on any node because of resources, labels, taints or other pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.actors import commands, runs_of
from holmes.diagnosis.facts.evictions import preemptors_of
from holmes.diagnosis.facts.evidence import owner_words, shown, spec_field
from holmes.diagnosis.facts.fixes import corrected, uncordoned
from holmes.diagnosis.facts.nodes import (
    AFFINITY,
    CORDON_TAINT,
    PROBLEM_PREFIX,
    UNINITIALIZED_TAINT,
    chooses,
    expression_holds,
    is_trouble,
    repelling_taints,
    taint_words,
)
from holmes.diagnosis.facts.producers import cloud_controllers, device_plugins
from holmes.diagnosis.facts.resources import (
    allocatable,
    asking_container,
    default_request,
    requested,
    what_is_left,
    written_amount,
)
from holmes.diagnosis.facts.typos import meant, nearest
from holmes.diagnosis.facts.unscheduled import is_kept_away, unscheduled_for, waiting_severity
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import child, children, text, text_map, texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holmes.diagnosis.facts.unscheduled import Unscheduled
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence, FixStep, ObjectRef
    from holmes.values.json_types import JsonObject


_READS: Final = ("status.conditions[PodScheduled]", "event FailedScheduling")
_MOST_NODES: Final = 5
_AFFINITY: Final = ".".join(AFFINITY)


@Row(
    id="S01",
    title="No node has room for the pod",
    severity="critical",
    kinds=("Pod",),
    needs=("Node",),
    reads=(*_READS, "spec.containers[].resources.requests", "Node status.allocatable"),
    explanation="The pod requests more of a resource (CPU, memory, GPU or another resource) than any node has left. "
    "If the pod requests more than the largest node has in total, it can never run. Correct the request, which often "
    "has a wrong unit, or the LimitRange that sets it as a default. Otherwise the nodes are full. Request less, remove "
    "other pods, or add nodes. Pods for which an autoscaler has just requested a node are ignored.",
)
def no_room(state: ClusterState) -> Iterator[Fault]:
    for found in unscheduled_for(state, "resources"):
        yield _no_room(state, found)


def _no_room(state: ClusterState, found: Unscheduled) -> Fault:
    pod, resource = found.pod, found.main.resource or "cpu"
    nodes = _allowed(state, pod)
    asked = requested(pod, resource)
    asking = asking_container(pod, resource)
    own = () if asking is None else (spec_field(pod, state, asking[1]),)
    who = owner_words(pod, state) if asking is None else f"The container {asking[0]} of {owner_words(pod, state)}"
    largest = max((allocatable(node, resource) for node in nodes), default=None)
    title, default = "No node has room for the pod", None
    if largest is None or not state.covers("Node"):
        why = f"no node has enough left ({found.main.text})"
    elif largest < asked:
        title = f"Pod requests more {resource} than any node has"
        offer = f"the largest node offers {written_amount(largest, resource)}" if largest else "no node has any"
        default = default_request(state, pod, asking[0], resource) if asking is not None else None
        setter = f"; {default.object} sets this request as a default, not the template" if default is not None else ""
        grows = found.autoscaler is not None or found.claims or state.of("NodePool.karpenter.sh")
        why = f"{offer}, so {'no present node can' if grows else 'no node can ever'} run the pod{setter}"
    else:
        why = what_is_left(state, nodes, resource, asked) or f"no node has enough left ({found.main.text})"
    pool = found.limiting(state) if largest is not None and largest >= asked else None
    wish = (
        "requires a free pod slot on a node"
        if resource == "pods"
        else f"requests {written_amount(asked, resource)} {resource}"
    )
    offers = [
        evidence.value(node, f"status.allocatable.{resource}", node.at("status", "allocatable", resource) or "(none)")
        for node in nodes[:_MOST_NODES]
    ]
    return Fault(
        subject=pod.ref,
        culprit=default.object if default is not None else pool,
        title=title,
        severity=waiting_severity(state, pod),
        cause=f"{who} {wish}, but {why}{found.others}",
        evidence=(*((default,) if default is not None else ()), *own, *found.proofs, *offers),
        next_check="kubectl describe nodes | grep -A 8 'Allocated resources'",
        because=(
            *((node.ref for node in nodes) if resource == "pods" else device_plugins(state, resource)),
            *(node.ref for node in state.of("Node") if not _is_cordoned(node) and is_kept_away(state, pod, node)),
            *preemptors_of(state, state.workload_of(pod)),
            *found.claims,
        ),
        since=found.since,
    )


def _is_cordoned(node: ClusterObject) -> bool:
    """Return whether a person closed the node. A pod that finds no room may have come long after that."""
    return node.boolean("spec", "unschedulable")


def _allowed(state: ClusterState, pod: ClusterObject) -> list[ClusterObject]:
    """Return the nodes whose labels and taints allow the pod, or all nodes if none does."""
    nodes = state.of("Node")
    spec = child(pod.body, "spec")
    chosen = [node for node in nodes if chooses(spec, node)] or list(nodes)
    return [node for node in chosen if not any(repelling_taints(spec, node))] or chosen


@Row(
    id="S02",
    title="No node has the labels that the pod requires",
    severity="critical",
    kinds=("Pod",),
    needs=("Node",),
    reads=(*_READS, "spec.nodeSelector", "spec.affinity.nodeAffinity", "Node metadata.labels"),
    explanation="The `nodeSelector` or required node affinity of the pod requires labels that no node has, so no node "
    "can run the pod. Correct the key or value in the workload, or label a node. A selector that excludes some nodes "
    "is not a fault while it matches others.",
)
def no_label(state: ClusterState) -> Iterator[Fault]:
    for found in unscheduled_for(state, "selector"):
        pod, nodes = found.pod, state.of("Node") if state.covers("Node") else ()
        path, value, why = _unmet(child(pod.body, "spec"), nodes)
        whole = () if path.startswith("nodeSelector") else (evidence.value(pod, f"spec.{path}", value),)
        own = (spec_field(pod, state, path),) if path else whole
        yield Fault(
            subject=pod.ref,
            severity=waiting_severity(state, pod),
            cause=f"{owner_words(pod, state)} requires nodes with {value}, but {why}{found.others}",
            evidence=(*own, *found.proofs, *_label_evidence(nodes, path, child(pod.body, "spec"))),
            next_check="kubectl get nodes --show-labels",
            because=found.claims,
            since=found.since,
            fix=tuple(_label_fixes(own, child(pod.body, "spec"), nodes)) if path == "nodeSelector" else (),
        )


def _label_fixes(own: Sequence[Evidence], spec: JsonObject, nodes: Sequence[ClusterObject]) -> Iterator[FixStep]:
    for key, wanted in text_map(spec, "nodeSelector").items():
        right = meant(wanted, {node.labels[key] for node in nodes if key in node.labels})
        if right and not any(node.labels.get(key) == wanted for node in nodes):
            yield corrected(own[0], right, key)


def _unmet(spec: JsonObject, nodes: Sequence[ClusterObject]) -> tuple[str, str, str]:
    """Return the path and description of the requirement that no node meets, and an explanation."""
    selector = text_map(spec, "nodeSelector")
    for key, wanted in selector.items():
        if nodes and not any(node.labels.get(key) == wanted for node in nodes):
            return "nodeSelector", f"label {key}={wanted}", _what_there_is(key, (wanted,), nodes)
    for position, term in enumerate(children(spec, *AFFINITY)):
        for index, each in enumerate(children(term, "matchExpressions")):
            if nodes and not any(expression_holds(each, node.labels) for node in nodes):
                key = text(each, "key")
                path = f"{_AFFINITY}[{position}].matchExpressions[{index}]"
                return path, _expression_words(each), _what_there_is(key, texts(each, "values"), nodes)
    if selector:
        return "nodeSelector", f"the labels {shown(dict(selector))}", "no available node has all of them"
    return _AFFINITY, "labels that match its required node affinity", "no available node has these labels"


def _expression_words(expression: JsonObject) -> str:
    values = ", ".join(texts(expression, "values"))
    return " ".join(filter(None, ("label", text(expression, "key"), text(expression, "operator"), values)))


def _what_there_is(key: str, wanted: Iterable[str], nodes: Sequence[ClusterObject]) -> str:
    values = sorted({node.labels[key] for node in nodes if key in node.labels})
    if values:
        near = next((found for each in wanted if (found := nearest(each, values))), None)
        told = f"the nodes have {key}={', '.join(values[:_MOST_NODES])}"
        return f"no node has it: {told}" + (f"; the closest value is {near!r}" if near and len(values) > 1 else "")
    near = nearest(key, {label for node in nodes for label in node.labels})
    return f"no node has a label {key}" + (f"; the closest label is {near!r}" if near else "")


def _label_evidence(nodes: Sequence[ClusterObject], path: str, spec: JsonObject) -> Iterator[Evidence]:
    """For each node, yield the labels with the required keys, or all labels if the node has none of these keys."""
    keys = set(text_map(spec, "nodeSelector"))
    if path != "nodeSelector":
        keys |= {text(each, "key") for term in children(spec, *AFFINITY) for each in children(term, "matchExpressions")}
    for node in nodes[:_MOST_NODES]:
        chosen = {key: value for key, value in node.labels.items() if key in keys}
        yield evidence.value(node, "metadata.labels", chosen or node.labels)


@Row(
    id="S03",
    title="Pod does not tolerate the taints of the nodes",
    severity="critical",
    kinds=("Pod",),
    needs=("Node",),
    reads=(*_READS, "spec.tolerations", "Node spec.taints", "Node spec.unschedulable"),
    explanation=(
        "All suitable nodes have taints that the pod does not tolerate. A custom taint (`dedicated=batch:NoSchedule`) "
        "reserves nodes on purpose. Add the toleration if the pod may run there. A taint `node.kubernetes.io/...` "
        "means that the node has a fault or is cordoned. The control-plane taint is reported only if no other taint "
        "applies."
    ),
)
def not_tolerated(state: ClusterState) -> Iterator[Fault]:
    """Report the taints that a pod does not tolerate.

    If a node could take the pod but for its fault, only the faults are reported.
    """
    for found in unscheduled_for(state, "taint"):
        spec = child(found.pod.body, "spec")
        repelling = [(node, taint) for node in state.of("Node") if chooses(spec, node) for taint in _taints(spec, node)]
        troubled = [each for each in repelling if is_trouble(each[1])]
        decisive = [each for each in troubled if is_kept_away(state, found.pod, each[0])]
        reserved = [each for each in repelling if each not in troubled]
        yield _repelled(state, found, decisive or reserved or troubled)


def _taints(spec: JsonObject, node: ClusterObject) -> Iterator[JsonObject]:
    found = list(repelling_taints(spec, node))
    if node.boolean("spec", "unschedulable") and not any(text(each, "key") == CORDON_TAINT for each in found):
        found.append({"key": CORDON_TAINT, "effect": "NoSchedule"})
    yield from found


def _tainted_by(state: ClusterState, by: Sequence[tuple[ClusterObject, JsonObject]]) -> str:
    """Return the workload whose command sets one of the taints, as the end of a cause, or an empty string."""
    for node, taint in by:
        for each in commands(state).get(node.ref, ()):
            if each.verb == "taint" and f"{text(taint, 'key')}" in each.place.value and runs_of(state, each.actor):
                return f"; {each.actor.ref} sets this taint with `kubectl taint`"
    return ""


def _repelled(state: ClusterState, found: Unscheduled, by: Sequence[tuple[ClusterObject, JsonObject]]) -> Fault:
    pod = found.pod
    troubled = [node for node, taint in by if is_trouble(taint)]
    words = list(dict.fromkeys(taint_words(taint) for _, taint in by))
    in_trouble = any(word in found.main.text for word in ("unschedulable", PROBLEM_PREFIX))
    hidden = not by and in_trouble and not state.covers("Node")
    who = owner_words(pod, state)
    if troubled:
        names = ", ".join(dict.fromkeys(node.name for node in troubled))
        cause = (
            f"No node can run the pods of {who}: {_nodes_word(troubled)} {names} cannot be used ({', '.join(words)})"
            f"{found.others}"
        )
    elif hidden:
        cause = f"No node can run the pods of {who}: {found.main.text}; the nodes could not be read"
    else:
        what = f"taint {', '.join(words)}" if words else "the taints of the nodes"
        where = {0: "all nodes", 1: "1 node"}.get(found.main.count, f"{found.main.count} nodes")
        tainter = _tainted_by(state, by)
        cause = f"{who} does not tolerate {what}, so its pods cannot run on {where}{found.others}{tainter}"
    taints = [evidence.field(node, "spec", "taints") for node in dict.fromkeys(node for node, _ in by)][:_MOST_NODES]
    cordons = [
        evidence.field(node, "spec", "unschedulable") for node in troubled if node.boolean("spec", "unschedulable")
    ]
    tolerations = spec_field(pod, state, "tolerations")
    own = (*cordons, *taints, *found.proofs) if troubled else (tolerations, *taints, *found.proofs)
    return Fault(
        subject=pod.ref,
        culprit=troubled[0].ref if troubled else None,
        role="symptom" if hidden else "cause",
        title="Faulty or cordoned nodes accept no pods" if troubled or hidden else None,
        severity=waiting_severity(state, pod),
        cause=cause,
        evidence=own,
        next_check="kubectl get nodes -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints",
        because=(*(node.ref for node in troubled), *_initializers(state, by), *found.claims),
        since=found.since,
        fix=tuple(uncordoned(node) for node in troubled[:1]),
    )


def _initializers(state: ClusterState, by: Sequence[tuple[ClusterObject, JsonObject]]) -> tuple[ObjectRef, ...]:
    """Return the cloud controllers, if they did not initialize a node."""
    uninitialized = any(text(taint, "key") == UNINITIALIZED_TAINT for _, taint in by)
    return cloud_controllers(state) if uninitialized else ()


def _nodes_word(nodes: Sequence[ClusterObject]) -> str:
    return "node" if len({node.name for node in nodes}) == 1 else "nodes"


_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_HOSTNAME: Final = "kubernetes.io/hostname"


@Row(
    id="S04",
    title="Pod affinity, anti-affinity or spread constraints exclude every node",
    severity="critical",
    kinds=("Pod",),
    needs=("Node",),
    reads=(*_READS, "spec.affinity.podAffinity", "spec.affinity.podAntiAffinity", "spec.topologySpreadConstraints"),
    explanation="Required pod anti-affinity by host name allows one pod per node, so more replicas than nodes cannot "
    "be scheduled. Required pod affinity needs a matching pod that is running. Spread constraints with DoNotSchedule "
    "need nodes with the topology key. Make the rule preferred, or correct the selector, the key or the number of "
    "replicas.",
)
def neighbours(state: ClusterState) -> Iterator[Fault]:
    for found in unscheduled_for(state, "neighbours"):
        pod = found.pod
        path, why = _neighbour_rule(state, found)
        workload = state.workload_of(pod)
        replicas = (evidence.field(workload, "spec", "replicas"),) if workload.integer("spec", "replicas") else ()
        yield Fault(
            subject=pod.ref,
            severity=waiting_severity(state, pod),
            cause=f"{owner_words(pod, state)} {why}",
            evidence=(spec_field(pod, state, path), *replicas, *found.proofs),
            next_check=f"kubectl -n {pod.namespace} get pods -o wide",
            since=found.since,
        )


def _neighbour_rule(state: ClusterState, found: Unscheduled) -> tuple[str, str]:
    """Return the path of the rule relative to `spec`, and a description of its unmet requirement."""
    pod, told = found.pod, found.main.text
    nodes = state.of("Node") if state.covers("Node") else ()
    if "spread" in told:
        return _spread_rule(pod, told, nodes)
    anti = "anti" in told.lower()
    kind = "podAntiAffinity" if anti else "podAffinity"
    terms = children(pod.body, "spec", "affinity", kind, _REQUIRED)
    path = f"affinity.{kind}.{_REQUIRED}"
    if anti and not terms:
        return "affinity", f"is excluded by the required anti-affinity of other pods ({told})"
    for index, term in enumerate(terms):
        key = text(term, "topologyKey")
        if nodes and not any(key in node.labels for node in nodes):
            return f"{path}[{index}].topologyKey", f"has the topologyKey {key}, but no node has this label"
        near = state.matched("Pod", pod.namespace, child(term, "labelSelector"))
        if not anti and not any(each.text("spec", "nodeName") for each in near):
            selector = evidence.shown(child(term, "labelSelector"))
            return f"{path}[{index}]", f"must run next to a pod with {selector}, but no such pod is scheduled"
        if anti and key == _HOSTNAME:
            wanted = state.workload_of(pod).integer("spec", "replicas")
            count = (
                f"; it requires {wanted} replicas, but the cluster has {len(nodes)} {_nodes_word(nodes)}"
                if wanted and nodes
                else ""
            )
            return f"{path}[{index}]", f"allows only one pod per node (anti-affinity by {key}){count}"
    return path, f"has required {kind} that no node satisfies ({told})"


def _spread_rule(pod: ClusterObject, told: str, nodes: tuple[ClusterObject, ...]) -> tuple[str, str]:
    for index, rule in enumerate(pod.children("spec", "topologySpreadConstraints")):
        key = text(rule, "topologyKey")
        if text(rule, "whenUnsatisfiable") == "ScheduleAnyway":
            continue
        if nodes and not any(key in node.labels for node in nodes):
            return (
                f"topologySpreadConstraints[{index}].topologyKey",
                f"must be spread by label {key}, but no node has this label",
            )
        if "missing required label" not in told:
            return f"topologySpreadConstraints[{index}]", (
                f"must be spread evenly by {key}, but no available node allows this"
            )
    return "topologySpreadConstraints", f"has spread constraints that no node satisfies ({told})"
