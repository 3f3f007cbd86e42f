"""Rules for StatefulSets and DaemonSets with missing or unready pods, and for selectors that overlap."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.edges import consumer_logs, failures
from holmes.diagnosis.facts.fixes import changed
from holmes.diagnosis.facts.starts import are_starting
from holmes.diagnosis.facts.status import pod_ready
from holmes.diagnosis.facts.templates import template_of
from holmes.diagnosis.facts.typos import hint, meant
from holmes.diagnosis.rule import Fault, Row
from holmes.diagnosis.rules.workloads_rollout import sick_pods, wanted_replicas
from holmes.kubernetes.fields import child, matches_selector, moment, text, text_map
from holmes.values.expressions import expression
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence

_ORDINAL: Final = expression(r"-(\d{1,9})$")

_VENDOR_DOMAINS: Final = (
    "kubernetes.io k8s.io k8s.aws amazonaws.com eksctl.io google.com azure.com microsoft.com digitalocean.com "
    "linode.com oraclecloud.com oracle.com ibm.com alibabacloud.com aliyun.com tencent.com huawei.com "
    "hetzner.cloud scaleway.com ovh.com vmware.com nvidia.com amd.com intel.com habana.ai xilinx.com "
    "qualcomm.com openshift.io cattle.io k3s.io rke2.io k0sproject.io cilium.io projectcalico.org tigera.io "
    "longhorn.io rook.io ceph.com openebs.io topolvm.io kubevirt.io karpenter.sh universe.tf istio.io"
)
_VENDORS: Final = frozenset(_VENDOR_DOMAINS.split())
"""Labels in these domains are set by vendor software, not by users of the cluster."""
_NOWHERE: Final = expression(r"(?i)non-?exist|no-?such|disabled?|never|none\b|nowhere|suspend|paused?\b|\boff\b")


@Row(
    id="W08",
    title="StatefulSet is not complete",
    severity="critical",
    kinds=("StatefulSet", "Pod"),
    reads=("status.readyReplicas", "spec.replicas", "spec.podManagementPolicy", "Pod status.conditions[Ready]"),
    explanation="A StatefulSet creates each pod only after the previous pod is ready, so the first pod that is not "
    "ready blocks all later pods. This is a symptom of the fault of that pod. The severity is warning while other "
    "pods are ready.",
)
def incomplete(state: ClusterState) -> Iterator[Fault]:
    for workload in state.of("StatefulSet"):
        wanted, ready = wanted_replicas(workload), workload.integer("status", "readyReplicas")
        if workload.deleted is not None or ready >= wanted or state.age_seconds(workload) < state.grace_seconds:
            continue
        first = _first_not_ready(state, workload, wanted)
        if first is None or are_starting(state, workload):
            continue
        name, pod, since = first
        if state.now - since < state.patience_seconds:
            continue
        yield Fault(
            subject=pod.ref if pod is not None else workload.ref,
            culprit=workload.ref,
            role="symptom",
            severity="warning" if ready else "critical",
            cause=f"{ready} of {wanted} pods of {workload.ref} are ready: "
            f"{name} {'is not ready' if pod else 'is missing'}{_blocked(workload, name, wanted)}",
            evidence=(
                evidence.value(workload, "status.readyReplicas", ready),
                evidence.value(workload, "spec.replicas", wanted),
                *((_ready_condition(pod),) if pod is not None else ()),
            ),
            next_check=f"kubectl -n {workload.namespace} describe pod {name}",
            because=(*sick_pods(state, workload), *_host_names(workload)),
            since=since,
        )


def _host_names(workload: ClusterObject) -> Iterator[ObjectRef]:
    """Yield the Service that gives the pods their host names."""
    if workload.text("spec", "serviceName"):
        yield ObjectRef(kind="Service", namespace=workload.namespace, name=workload.text("spec", "serviceName"))


def _first_not_ready(
    state: ClusterState, workload: ClusterObject, wanted: int
) -> tuple[str, ClusterObject | None, float] | None:
    """Return the first pod that is missing or not ready: its name, the pod or None, and when the fault began.

    Returns None if all pods are ready, or if the pods cannot be read.
    """
    start = workload.integer("spec", "ordinals", "start")
    pods = {pod.name: pod for pod in state.pods_of(workload)}
    for ordinal in range(start, start + wanted):
        name = f"{workload.name}-{ordinal}"
        pod = pods.get(name)
        if pod is None:
            return (name, None, workload.created) if state.covers("Pod", workload.namespace) else None
        condition = pod.condition("Ready")
        if text(condition, "status") != "True":
            return name, pod, moment(text(condition, "lastTransitionTime")) or pod.created
    return None


def _blocked(workload: ClusterObject, name: str, wanted: int) -> str:
    """Describe the pods that are not created or updated because the pod `name` is not ready."""
    ordinal = int(found[1]) if (found := _ORDINAL.search(name)) else 0
    last = workload.integer("spec", "ordinals", "start") + wanted - 1
    if workload.text("spec", "podManagementPolicy") == "Parallel" or ordinal >= last:
        return ""
    return f", which blocks the later pods up to {workload.name}-{last}"


def _ready_condition(pod: ClusterObject) -> Evidence:
    condition = pod.condition("Ready")
    said = text(condition, "message") or text(condition, "reason") or text(condition, "status")
    return evidence.value(pod, "status.conditions[type=Ready].message", said)


@Row(
    id="W08b",
    title="Headless Service of the StatefulSet is missing",
    severity="warning",
    kinds=("StatefulSet",),
    needs=("Service",),
    reads=("spec.serviceName",),
    explanation=(
        "The Service that gives the pods of a StatefulSet their host names does not exist, so these names cannot be "
        "resolved. The severity is warning when the name is misspelled or when a workload in the namespace uses these "
        "host names. Otherwise it is info."
    ),
)
def headless_service_missing(state: ClusterState) -> Iterator[Fault]:
    for workload in state.of("StatefulSet"):
        name, namespace = workload.text("spec", "serviceName"), workload.namespace
        if not name or workload.deleted is not None or not state.is_missing("Service", namespace, name):
            continue
        existing = [each.name for each in state.of("Service", namespace)]
        slip = meant(name, existing)
        missing = ObjectRef(kind="Service", namespace=namespace, name=name)
        lines = [each.line for each in failures(state).get(missing, ()) if each.consumer is workload]
        matters = slip or lines or _is_named(state, namespace, name)
        yield Fault(
            subject=workload.ref,
            culprit=workload.ref if slip else missing,
            severity="critical" if lines else "warning" if matters else "info",
            cause=f"{missing} does not exist, but {workload.ref} names it in spec.serviceName for the host names of "
            f"its pods{hint(name, existing)}",
            evidence=(evidence.field(workload, "spec", "serviceName"), *lines[:1]),
            next_check=f"kubectl -n {namespace} get service",
            logs=consumer_logs(state, [workload]) if not all(map(pod_ready, state.pods_of(workload))) else (),
        )


def _is_named(state: ClusterState, namespace: str, service: str) -> bool:
    """Return whether a workload in the namespace mentions a host name of the Service, such as `db-0.db`."""
    host = re.compile(rf"-\d+\.{re.escape(service)}(?![\w-])")
    return any(
        host.search(json.dumps(workload.body.get("spec"), default=str))
        for kind in ("Deployment", "StatefulSet")
        for workload in state.of(kind, namespace)
    )


@Row(
    id="W09",
    title="DaemonSet is not complete",
    severity="critical",
    kinds=("DaemonSet", "Pod"),
    reads=("status.desiredNumberScheduled", "status.numberReady", "status.numberUnavailable"),
    explanation="On some nodes, the DaemonSet's pod is missing or not ready. This is a symptom of the fault that "
    "affects these pods. The severity is warning while the DaemonSet is ready on other nodes.",
)
def daemon_set_incomplete(state: ClusterState) -> Iterator[Fault]:
    for workload in state.of("DaemonSet"):
        desired, ready = workload.integer("status", "desiredNumberScheduled"), workload.integer("status", "numberReady")
        if workload.deleted is not None or ready >= desired or state.age_seconds(workload) < state.grace_seconds:
            continue
        bad = [pod for pod in state.pods_of(workload) if not pod_ready(pod)]
        if bad and not any(state.age_seconds(pod) >= state.patience_seconds for pod in bad):
            continue
        if are_starting(state, workload):
            continue
        yield Fault(
            subject=bad[0].ref if bad else workload.ref,
            culprit=workload.ref,
            role="symptom",
            severity="warning" if ready else "critical",
            cause=f"{workload.ref} is ready on {ready} of {desired} nodes",
            evidence=(
                evidence.value(workload, "status.numberReady", ready),
                evidence.value(workload, "status.desiredNumberScheduled", desired),
                *(_ready_condition(pod) for pod in bad[:1]),
            ),
            next_check=f"kubectl -n {workload.namespace} describe daemonset {workload.name}",
            because=sick_pods(state, workload),
        )


@Row(
    id="W09b",
    title="DaemonSet matches no nodes",
    severity="warning",
    kinds=("DaemonSet", "Node"),
    reads=("status.desiredNumberScheduled", "spec.template.spec.nodeSelector", "Node metadata.labels"),
    explanation=(
        "No node has the labels of the DaemonSet's nodeSelector, so the DaemonSet has no pods. This is normal until a "
        "node has the label, for example for nodes with a GPU, and the severity is info. It is warning if the label "
        "of the selector is clearly misspelled, or if its domain shows that users of the cluster set it."
    ),
)
def daemon_set_without_nodes(state: ClusterState) -> Iterator[Fault]:
    nodes = state.of("Node")
    if not nodes or not state.covers("Node"):
        return
    for workload in state.of("DaemonSet"):
        selector = text_map(workload.body, "spec", "template", "spec", "nodeSelector")
        fits = any(all(node.labels.get(key) == value for key, value in selector.items()) for node in nodes)
        if not selector or fits or workload.deleted is not None or workload.integer("status", "desiredNumberScheduled"):
            continue
        key, value = _missing_label(selector, nodes)
        values = sorted({node.labels[key] for node in nodes if key in node.labels})
        right = meant(value, values)
        slip = right or (not values and meant(key, {label for node in nodes for label in node.labels}))
        known = (
            f"; the nodes have {key}={', '.join(values)}"
            if values
            else hint(key, {label for node in nodes for label in node.labels})
        )
        yield Fault(
            subject=workload.ref,
            severity="warning" if slip or _is_own_label(key, value) else "info",
            cause=f"{workload.ref} runs on no node: no node has the label {key}={value} of its nodeSelector{known}",
            evidence=(
                evidence.value(workload, f"spec.template.spec.nodeSelector.{key}", value),
                evidence.value(workload, "status.desiredNumberScheduled", 0),
            ),
            next_check=f"kubectl get nodes -L {key}",
            fix=(changed(workload.ref, "spec.template.spec.nodeSelector", right, key) if right else None,),
        )


def _is_own_label(key: str, value: str) -> bool:
    """Return whether the domain of the label shows that users set it, unless the label means "off"."""
    domain, slash, name = key.rpartition("/")
    own = bool(slash) and not any(domain == each or domain.endswith(f".{each}") for each in _VENDORS)
    return own and not _NOWHERE.search(f"{name} {value}")


def _missing_label(selector: dict[str, str], nodes: tuple[ClusterObject, ...]) -> tuple[str, str]:
    """Return the label of the selector that the fewest nodes have."""
    return min(sorted(selector.items()), key=lambda item: sum(node.labels.get(item[0]) == item[1] for node in nodes))


@Row(
    id="W12",
    title="Selectors of two workloads overlap",
    severity="warning",
    kinds=("Deployment", "StatefulSet", "DaemonSet"),
    reads=("spec.selector", "spec.template.metadata.labels"),
    explanation="The selector of a workload matches the pods of another workload in the namespace. Controllers "
    "identify their pods by owner, but autoscalers, disruption budgets, Services and `kubectl logs` include the pods "
    "of both workloads. The severity is warning when both selectors are equal, otherwise info.",
)
def overlapping_selectors(state: ClusterState) -> Iterator[Fault]:
    by_label: dict[tuple[str, str, str], list[ClusterObject]] = defaultdict(list)
    workloads = [
        each
        for kind in ("Deployment", "StatefulSet", "DaemonSet")
        for each in state.of(kind)
        if each.deleted is None and each.owner is None
    ]
    for each in workloads:
        for key, value in template_of(each).labels.items():
            by_label[each.namespace, key, value].append(each)
    for each in workloads:
        labels = text_map(each.body, "spec", "selector", "matchLabels")
        candidates = [by_label[each.namespace, key, value] for key, value in labels.items()]
        for other in min(candidates, key=len, default=[]):
            if other is not each and matches_selector(child(each.body, "spec", "selector"), template_of(other).labels):
                yield from _overlap(each, other)


def _overlap(each: ClusterObject, other: ClusterObject) -> Iterator[Fault]:
    same = each.at("spec", "selector") == other.at("spec", "selector")
    if same and (each.created, each.name) < (other.created, other.name):
        return
    yield Fault(
        subject=each.ref,
        severity="warning" if same else "info",
        cause=f"The selector of {each.ref} also matches the pods of {other.ref}",
        evidence=(
            evidence.field(each, "spec", "selector"),
            evidence.field(other, "spec", "template", "metadata", "labels"),
        ),
        next_check=f"kubectl -n {each.namespace} get {each.kind.lower()},{other.kind.lower()} --show-labels",
    )
