"""Rules for PodDisruptionBudgets that block evictions, and for quotas and LimitRanges that block new pods."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.admission import QUOTA, refused_with
from holmes.diagnosis.facts.edges import edges
from holmes.diagnosis.facts.nodes import CORDON_TAINT
from holmes.diagnosis.facts.quotas import exhausted_for, hard_of
from holmes.diagnosis.facts.references import references_of
from holmes.diagnosis.facts.resources import quantity, violations
from holmes.diagnosis.facts.services import nearest_workload
from holmes.diagnosis.facts.status import pod_ready
from holmes.diagnosis.facts.templates import pod_templates
from holmes.diagnosis.facts.typos import meant
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import matches_selector, moment, text, text_map
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence

_PDB: Final = "PodDisruptionBudget"
_NEARLY_TENTHS: Final = 9
_MOST_BECAUSE: Final = 5
_DRAIN_SECONDS: Final = 600.0


def _living(state: ClusterState) -> Iterator[ClusterObject]:
    return (each for each in state.of(_PDB) if each.deleted is None)


def _counts(budget: ClusterObject) -> tuple[Evidence, ...]:
    keys = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    return tuple(evidence.value(budget, f"status.{key}", budget.integer("status", key)) for key in keys)


def _demand(budget: ClusterObject) -> Evidence:
    """Return the maxUnavailable or minAvailable field of the budget."""
    key = "maxUnavailable" if budget.at("spec", "maxUnavailable") is not None else "minAvailable"
    return evidence.field(budget, "spec", key)


def _check(budget: ClusterObject) -> str:
    return f"kubectl -n {budget.namespace} describe pdb {budget.name}"


@Row(
    id="B01",
    title="Disruption budget never allows an eviction",
    severity="warning",
    kinds=(_PDB,),
    reads=("spec.minAvailable", "spec.maxUnavailable", "status.disruptionsAllowed", "status.expectedPods"),
    explanation="All pods are healthy, but the budget allows no eviction because it requires all of them. Draining a "
    "node therefore never finishes. Require fewer pods or run more replicas. A budget that selects no pod blocks no "
    "eviction.",
)
def too_strict(state: ClusterState) -> Iterator[Fault]:
    for budget in _living(state):
        expected, desired = budget.integer("status", "expectedPods"), budget.integer("status", "desiredHealthy")
        healthy = budget.integer("status", "currentHealthy")
        if budget.integer("status", "disruptionsAllowed") or not expected or healthy < desired or desired < expected:
            continue
        if state.age_seconds(budget) < state.grace_seconds:
            continue
        demand = _demand(budget)
        yield Fault(
            subject=budget.ref,
            cause=f"{budget.ref} never allows an eviction: {demand.path} is {demand.value} for "
            f"{expected} selected {'pod' if expected == 1 else 'pods'}, so no node with a selected pod can be drained",
            evidence=(demand, *_counts(budget)),
            next_check=_check(budget),
        )


@Row(
    id="B01f",
    title="Disruption budget blocks the drain of a node",
    severity="warning",
    kinds=(_PDB, "Node", "Pod"),
    reads=("status.disruptionsAllowed", "Node spec.unschedulable", "Node spec.taints[].timeAdded", "Pod spec.nodeName"),
    explanation="A node is cordoned for longer than ten minutes, and a pod on it cannot be evicted, because its budget "
    "allows no disruption. Tools that drain the node wait for it. Run more replicas, relax the budget, or delete the "
    "pod by hand.",
)
def blocks_drain(state: ClusterState) -> Iterator[Fault]:
    nodes = {node.name: node for node in state.of("Node") if _cordoned_seconds(state, node) >= _DRAIN_SECONDS}
    for budget in _living(state) if nodes else ():
        if budget.integer("status", "disruptionsAllowed") or not budget.integer("status", "expectedPods"):
            continue
        for pod in state.matched("Pod", budget.namespace, budget.child("spec", "selector")):
            node = nodes.pop(pod.text("spec", "nodeName"), None) if pod.deleted is None else None
            if node is None:
                continue
            refused = [each for each in state.events_of(pod) if "disruption budget" in each.message][-1:]
            yield Fault(
                subject=node.ref,
                culprit=budget.ref,
                cause=f"{budget.ref} allows no eviction of {pod.ref} ({state.workload_of(pod).ref}), so {node.ref}, "
                f"which is cordoned, cannot be drained: {_demand(budget).path} is {_demand(budget).value}, and "
                f"{budget.integer('status', 'currentHealthy')} of {budget.integer('status', 'expectedPods')} pods are "
                "healthy",
                evidence=(_demand(budget), *_counts(budget), *map(evidence.event, refused)),
                next_check=_check(budget),
            )


def _cordoned_seconds(state: ClusterState, node: ClusterObject) -> float:
    """Return for how long the node is cordoned, or its age if the time is unknown, or 0 if it is not."""
    if not node.boolean("spec", "unschedulable"):
        return 0.0
    taints = (each for each in node.children("spec", "taints") if text(each, "key") == CORDON_TAINT)
    return state.now - next(filter(None, (moment(text(each, "timeAdded")) for each in taints)), node.created)


@Row(
    id="B01b",
    title="Disruption budget allows no eviction while pods are not healthy",
    severity="warning",
    kinds=(_PDB, "Pod"),
    reads=("status.currentHealthy", "status.desiredHealthy", "status.conditions[DisruptionAllowed]"),
    explanation="Fewer pods are healthy than the budget requires, so the budget blocks evictions. This is a symptom "
    "of the fault that affects the pods.",
)
def pods_are_sick(state: ClusterState) -> Iterator[Fault]:
    for budget in _living(state):
        desired, healthy = budget.integer("status", "desiredHealthy"), budget.integer("status", "currentHealthy")
        if not budget.integer("status", "expectedPods") or healthy >= desired:
            continue
        pods = state.matched("Pod", budget.namespace, budget.child("spec", "selector"))
        sick = [pod for pod in pods if not pod_ready(pod)]
        old = [pod for pod in sick if state.now - _unready_since(pod) >= state.patience_seconds]
        if old:
            yield Fault(
                subject=budget.ref,
                culprit=state.workload_of(old[0]).ref,
                role="symptom",
                cause=f"{budget.ref} allows no eviction: only {healthy} of {desired} required pods are healthy",
                evidence=(_demand(budget), *_counts(budget)),
                next_check=_check(budget),
                because=tuple(dict.fromkeys(state.workload_of(pod).ref for pod in old))[:_MOST_BECAUSE],
            )


def _unready_since(pod: ClusterObject) -> float:
    return moment(text(pod.condition("Ready"), "lastTransitionTime")) or pod.created


@Row(
    id="B01c",
    title="Two disruption budgets select the same pods",
    severity="warning",
    kinds=(_PDB, "Pod"),
    reads=("spec.selector", "Pod metadata.labels"),
    explanation=(
        "The API server never evicts a pod that two budgets select, so the pod's node cannot be drained. Delete one of "
        "the budgets, or change their selectors so that they do not overlap."
    ),
)
def same_pods(state: ClusterState) -> Iterator[Fault]:
    by_namespace: dict[str, list[ClusterObject]] = defaultdict(list)
    for budget in _living(state):
        by_namespace[budget.namespace].append(budget)
    for namespace, budgets in by_namespace.items():
        if len(budgets) > 1:
            budgets.sort(key=lambda each: (each.created, each.name))
            yield from _sharing(state, budgets, state.of("Pod", namespace))


def _sharing(state: ClusterState, budgets: list[ClusterObject], pods: tuple[ClusterObject, ...]) -> Iterator[Fault]:
    """Report each PodDisruptionBudget that selects the same pod as an older PodDisruptionBudget in the namespace."""
    by_label: dict[tuple[str, str], list[ClusterObject]] = defaultdict(list)
    for pod in pods:
        for label in pod.labels.items():
            by_label[label].append(pod)
    first_of: dict[str, ClusterObject] = {}
    told: set[tuple[str, str]] = set()
    for budget in budgets:
        selector = budget.child("spec", "selector")
        labels = text_map(selector, "matchLabels").items()
        candidates = min((by_label[label] for label in labels), key=len) if labels else pods
        for pod in candidates:
            if not matches_selector(selector, pod.labels):
                continue
            other = first_of.setdefault(pod.uid, budget)
            if other is not budget and (budget.name, other.name) not in told:
                told.add((budget.name, other.name))
                yield _shared(state, budget, other, pod)


def _shared(state: ClusterState, budget: ClusterObject, other: ClusterObject, pod: ClusterObject) -> Fault:
    return Fault(
        subject=budget.ref,
        cause=f"{budget.ref} and {other.ref} both select the pods of {state.workload_of(pod).ref}, so none of these "
        "pods can be evicted",
        evidence=(evidence.field(budget, "spec", "selector"), evidence.field(other, "spec", "selector")),
        next_check=f"kubectl -n {budget.namespace} get pdb -o wide",
    )


@Row(
    id="B01d",
    title="Pods of the disruption budget cannot be counted",
    severity="warning",
    kinds=(_PDB,),
    reads=("status.conditions[DisruptionAllowed]",),
    explanation=(
        "The budget selects pods whose controller is unknown. Kubernetes cannot compute the expected number of pods, "
        "so the budget allows no eviction."
    ),
)
def cannot_count(state: ClusterState) -> Iterator[Fault]:
    for budget in _living(state):
        condition = budget.condition("DisruptionAllowed")
        if text(condition, "reason") == "SyncFailed" and text(condition, "status") == "False":
            said = text(condition, "message")
            yield Fault(
                subject=budget.ref,
                cause=f"{budget.ref} allows no eviction because its pods cannot be counted: {said}",
                evidence=(
                    evidence.field(budget, "spec", "selector"),
                    evidence.value(budget, "status.conditions[type=DisruptionAllowed].message", said),
                ),
                next_check=_check(budget),
            )


@Row(
    id="B01e",
    title="Disruption budget selects no pods",
    severity="info",
    kinds=(_PDB, "Pod"),
    needs=("Deployment", "StatefulSet"),
    reads=("spec.selector", "status.expectedPods", "spec.template.metadata.labels"),
    explanation=(
        "The budget selects no pod, so it protects no workload. The severity is warning when the selector clearly "
        "misspells a workload's labels, otherwise info."
    ),
)
def selects_nothing(state: ClusterState) -> Iterator[Fault]:
    for budget in _living(state):
        labels = text_map(budget.body, "spec", "selector", "matchLabels")
        if not labels or budget.integer("status", "expectedPods") or not state.covers("Pod", budget.namespace):
            continue
        if state.age_seconds(budget) < state.grace_seconds or state.selected("Pod", budget.namespace, labels):
            continue
        near = nearest_workload(state, budget.name, budget.namespace, labels)
        if near is not None and not near.keys:
            continue
        slip = near is not None and all(
            meant(labels[key], [near.template.labels.get(key, "")]) is not None for key in near.keys
        )
        said = (
            f"; the closest match is {near.workload.ref}: {near.differences(labels)}"
            if near is not None and slip
            else ""
        )
        yield Fault(
            subject=budget.ref,
            severity="warning" if said else "info",
            cause=f"{budget.ref} protects nothing, because its selector matches no pod{said}",
            evidence=(
                evidence.field(budget, "spec", "selector"),
                evidence.value(budget, "status.expectedPods", 0),
                *((evidence.field(near.workload, "spec", "template", "metadata", "labels"),) if near and said else ()),
            ),
            next_check=f"kubectl -n {budget.namespace} get pods --show-labels",
        )


@Row(
    id="Q01",
    title="ResourceQuota is almost or fully used",
    severity="info",
    kinds=("ResourceQuota",),
    needs=("ReplicaSet", "StatefulSet", "DaemonSet", "Job"),
    reads=("status.used", "status.hard"),
    explanation=(
        "At least 90% of a quota is used. The severity is warning if the API server rejects a pod because of the "
        "quota, otherwise info. Rule W03a reports the rejected pods."
    ),
)
def used_up(state: ClusterState) -> Iterator[Fault]:
    refused = {(refusal.maker.namespace, found["quota"]) for refusal, found in refused_with(state, QUOTA)}
    for quota in state.of("ResourceQuota"):
        hard = hard_of(quota)
        used = text_map(quota.body, "status", "used")
        full = [name for name in sorted(hard) if _is_nearly_used(used.get(name, "0"), hard[name])]
        if not full or quota.deleted is not None:
            continue
        refuses = (quota.namespace, quota.name) in refused
        yield Fault(
            subject=quota.ref,
            role="symptom" if refuses else "cause",
            severity="warning" if refuses else "info",
            cause=f"{quota.ref} is almost or fully used: "
            + "; ".join(f"{name} {used.get(name, '0')} of {hard[name]}" for name in full),
            evidence=tuple(
                each
                for name in full
                for each in (
                    evidence.value(quota, f"spec.hard.{name}", hard[name]),
                    evidence.value(quota, f"status.used.{name}", used.get(name, "0")),
                )
            ),
            next_check=f"kubectl -n {quota.namespace} describe resourcequota {quota.name}",
        )


def _is_nearly_used(used: str, hard: str) -> bool:
    taken, allowed = quantity(used), quantity(hard)
    return taken is not None and allowed is not None and allowed > 0 and taken * 10 >= allowed * _NEARLY_TENTHS


@Row(
    id="Q03",
    title="Quota leaves no room for an object that is missing",
    severity="critical",
    kinds=("ResourceQuota",),
    needs=("Deployment", "StatefulSet", "DaemonSet", "Secret", "ConfigMap", "PersistentVolumeClaim", "Service"),
    reads=("status.used", "status.hard", "references in spec.template.spec"),
    explanation=(
        "A workload needs an object that does not exist, and a quota of the namespace allows no further object of "
        "this kind, so the object cannot be created. Raise the quota, or delete objects that are no longer needed."
    ),
)
def no_room_for_missing(state: ClusterState) -> Iterator[Fault]:
    if not state.of("ResourceQuota"):
        return
    told: set[ObjectRef] = set()
    for template in pod_templates(state):
        workload = template.workload
        if workload.at("spec", "replicas") == 0 or state.age_seconds(workload) < state.grace_seconds:
            continue
        for reference in references_of(template.spec):
            ref = ObjectRef(kind=reference.kind, namespace=workload.namespace, name=reference.name)
            if not reference.optional and not reference.key and reference.namespaced and ref not in told:
                told.add(ref)
                yield from _no_room(state, ref, workload)
    for service, uses in edges(state).items():
        if not uses[0].use.doubtful:
            yield from _no_room(state, service, uses[0].consumer)


def _no_room(state: ClusterState, ref: ObjectRef, workload: ClusterObject) -> Iterator[Fault]:
    if not state.is_missing(ref.kind, ref.namespace, ref.name):
        return
    for quota, resource in list(exhausted_for(state, ref))[:1]:
        used, hard = text(quota.body, "status", "used", resource), hard_of(quota)[resource]
        yield Fault(
            subject=ref,
            culprit=quota.ref,
            cause=f"{quota.ref} leaves no room for {ref}, which {workload.ref} needs: {resource} {used} of {hard}",
            evidence=(
                evidence.value(quota, f"status.used.{resource}", used),
                evidence.value(quota, f"spec.hard.{resource}", hard),
            ),
            next_check=f"kubectl -n {quota.namespace} describe resourcequota {quota.name}",
        )


@Row(
    id="Q02",
    title="Pod template violates the LimitRange",
    severity="warning",
    kinds=("LimitRange", "Deployment", "StatefulSet", "DaemonSet", "CronJob"),
    reads=("LimitRange spec.limits[].min", "LimitRange spec.limits[].max", "spec.template.spec.containers[].resources"),
    explanation=(
        "A container of a workload requests more or less than the LimitRange of the namespace allows. Running pods "
        "are not affected, but the API server will reject the next pod."
    ),
)
def does_not_fit(state: ClusterState) -> Iterator[Fault]:
    if not state.of("LimitRange"):
        return
    for template in pod_templates(state):
        workload = template.workload
        if workload.kind in {"Pod", "Job", "ReplicaSet"} or workload.at("spec", "replicas") == 0:
            continue
        broken = violations(state, template)
        if broken:
            first = broken[0]
            yield Fault(
                subject=workload.ref,
                cause=f"The API server will reject the next pod of {workload.ref}: {first.found.path} is "
                f"{first.found.value}, but {first.limit_range.ref} has {first.bound.path} {first.bound.value}",
                evidence=tuple(each for violation in broken for each in (violation.found, violation.bound)),
                next_check=f"kubectl -n {workload.namespace} describe limitrange {first.limit_range.name}",
            )
