"""Rules for plugins of nodes that run and are ready, but do not do their work: network plugins and device plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.evidence import event, log_line, value
from holmes.diagnosis.facts.line_kinds import kind_of
from holmes.diagnosis.facts.log_groups import stories_of
from holmes.diagnosis.facts.logs import quoted
from holmes.diagnosis.facts.nodes import AFFINITY, matches_terms
from holmes.diagnosis.facts.pods import containers_of, judged_pods
from holmes.diagnosis.facts.producers import device_plugins, network_pods
from holmes.diagnosis.facts.resources import allocatable
from holmes.diagnosis.facts.status import pod_ready
from holmes.diagnosis.facts.templates import template_of
from holmes.diagnosis.facts.unscheduled import unscheduled_for
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.cluster_state import LogKey
from holmes.kubernetes.fields import children, text, text_map
from holmes.previews.severity import WARNING, level_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.line_patterns import LineKind
    from holmes.diagnosis.facts.templates import PodTemplate
    from holmes.kubernetes.cluster_object import ClusterEvent, ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence, ObjectRef
    from holmes.values.json_types import JsonObject

_NO_FAULT_OF_THE_PLUGIN: Final[frozenset[LineKind | None]] = frozenset(
    {None, "sandbox network", "pool exhausted", "scheduling", "image pull", "node pressure", "slow"}
)
"""Kinds that repeat the failure of the pod, or tell of used up addresses, which the plugin does not choose."""
_DENIED: Final[frozenset[LineKind | None]] = frozenset({"forbidden", "auth failed", "permission denied"})
_REASON: Final = expression(
    r"(?i)(?<![\w-])(?:ips?|addresses|address|subnets?|cidrs?|ranges?|exhausted|pool|no space left)(?![\w-])"
)
"""Words of a pod's own event that tell why it gets no network, mostly because no addresses are left."""
_SANDBOX_EVENT: Final = "FailedCreatePodSandBox"
_NETWORK_WORDS: Final = ("network", "cni", 'plugin type="')
_NEAR_SECONDS: Final = 900.0
_EVERY_NODE: Final = frozenset({"kubernetes.io/os", "kubernetes.io/arch", "kubernetes.io/hostname"})
_DEVICES: Final = ("gpu", "gpus", "accelerator", "accelerators")
_NO: Final = frozenset({"false", "none", "no", "0"})
_WORD: Final = expression(r"[a-z0-9]+")
_MOST: Final = 3


@Row(
    id="N10",
    title="Network plugin of the node reports errors",
    severity="critical",
    kinds=("Pod", "DaemonSet"),
    reads=("event FailedCreatePodSandBox", "events and logs of the network plugin's pods"),
    explanation="A pod gets no network, and the network plugin on its node is ready, but its log or its own events "
    "report at that time why it cannot work. For example, the cloud refuses to assign addresses, or the API server "
    "denies access. Correct what the plugin reports. If the pod's own events tell of addresses, only a request that "
    "was denied to the plugin is reported.",
)
def network_plugin_fails(state: ClusterState) -> Iterator[Fault]:
    told: set[ObjectRef] = set()
    for pod in judged_pods(state):
        failed = state.events_of(pod, _SANDBOX_EVENT) if pod.text("status", "phase") == "Pending" else ()
        if not failed or not any(each in failed[-1].message.lower() for each in _NETWORK_WORDS):
            continue
        for ref in network_pods(state, pod.text("spec", "nodeName")):
            plugin = state.find(ref)
            found = _complaint(state, plugin, failed) if plugin is not None and ref not in told else None
            if plugin is None or found is None:
                continue
            told.add(ref)
            workload, (words, proof) = state.workload_of(plugin), found
            yield Fault(
                subject=workload.ref,
                cause=f"Pods on Node {plugin.text('spec', 'nodeName')} get no network, because its network plugin "
                f"{workload.ref} reports: {words}",
                evidence=(proof, event(failed[-1])),
                next_check=f"kubectl -n {plugin.namespace} logs {plugin.name} --tail=50",
                since=failed[-1].first,
            )


def _complaint(
    state: ClusterState, plugin: ClusterObject, failed: tuple[ClusterEvent, ...]
) -> tuple[str, Evidence] | None:
    """Return the error that the plugin reports in its own events or in its log, and its evidence.

    If the pod's own events already give a reason, only a request that was denied can be behind it.
    """
    first, told = min(each.first for each in failed), any(_REASON.search(each.message) for each in failed)
    for each in reversed(state.events_of(plugin)):
        own = each.type == "Warning" and each.component != "kubelet" and each.last >= first - _NEAR_SECONDS
        if own and _is_reason(kind_of(each.message), is_told=told):
            return each.message, event(each)
    groups = (
        (key.container, group)
        for key, story in stories_of(state, plugin)
        for group in story.groups
        if _is_reason(group.kind, is_told=told) and group.is_evidence(state.now)
        if abs(group.first - first) <= _NEAR_SECONDS and _is_loud(group.record)
    )
    found = min(groups, key=lambda each: each[1].rank, default=None)
    if found is None:
        return None
    return quoted(found[1].record), log_line(plugin, found[0], found[1].record, previous=False)


def _is_reason(kind: LineKind | None, *, is_told: bool) -> bool:
    return kind in _DENIED if is_told else kind not in _NO_FAULT_OF_THE_PLUGIN


def _is_loud(record: str) -> bool:
    """Return whether a record has no level, or at least that of a warning."""
    level = level_of(record)
    return level is None or level >= WARNING


@Row(
    id="N11",
    title="Device plugin offers no devices",
    severity="critical",
    kinds=("Pod", "DaemonSet"),
    needs=("Node",),
    reads=("status.conditions[PodScheduled]", "Node status.allocatable", "Node metadata.labels", "logs of the plugin"),
    explanation="A pod waits for devices such as nvidia.com/gpu that no node offers, although the device plugin for "
    "them is ready on nodes that are meant to have them. The plugin finds no device, often because the driver of the "
    "node is missing or does not fit. Nodes are meant to have devices if the plugin selects them by the vendor or the "
    "kind of the device, or if a label or taint of the vendor marks them. Nothing is reported if a node offers any "
    "resource of the vendor.",
)
def device_plugin_offers_nothing(state: ClusterState) -> Iterator[Fault]:
    told: set[ObjectRef] = set()
    for found in unscheduled_for(state, "resources") if state.covers("Node") else ():
        resource = found.main.resource
        if "/" not in resource or _is_offered(state, resource.partition("/")[0]):
            continue
        for ref in device_plugins(state, resource):
            plugin = state.find(ref)
            placed = _idle(state, plugin, resource) if plugin is not None and ref not in told else []
            if plugin is None or not placed:
                continue
            told.add(ref)
            line = _line_of(state, plugin)
            names = ", ".join(node.name for _, node in placed[:_MOST])
            yield Fault(
                subject=plugin.ref,
                title=f"Device plugin offers no {resource}",
                cause=f"{plugin.ref}, the device plugin for {resource}, runs on Node {names} but offers no device "
                f"there{f'; its log contains: {quoted(line.value)}' if line is not None else ''}",
                evidence=(
                    *((line,) if line is not None else ()),
                    *(value(node, f"status.allocatable.{resource}", "(none)") for _, node in placed[:_MOST]),
                    found.proof,
                ),
                next_check=f"kubectl -n {plugin.namespace} logs {placed[0][0].name} --tail=50",
                since=found.since,
                logs=tuple(
                    LogKey(pod=pod.ref, container=each.name, previous=False)
                    for pod, _ in placed[:1]
                    for each in containers_of(pod)
                    if each.running
                ),
            )


def _idle(state: ClusterState, plugin: ClusterObject, resource: str) -> list[tuple[ClusterObject, ClusterObject]]:
    """Return the ready pods of a device plugin on nodes that are meant to have its devices, each with its node."""
    template, domain = template_of(plugin), resource.partition("/")[0]
    found = []
    for pod in state.pods_of(plugin):
        node = state.get("Node", "", pod.text("spec", "nodeName"))
        settled = pod_ready(pod) and state.age_seconds(pod) >= state.patience_seconds
        if node is not None and settled and (_selects(template, node, domain) or _is_marked(node, domain)):
            found.append((pod, node))
    return sorted(found, key=lambda each: each[1].name)


def _is_offered(state: ClusterState, domain: str) -> bool:
    """Return whether a node offers any resource of a vendor. Then a pod may ask for a wrong name, or for too much."""
    return any(
        name.startswith(f"{domain}/") and allocatable(node, name)
        for node in state.of("Node")
        for name in node.child("status", "allocatable")
    )


def _selects(template: PodTemplate, node: ClusterObject, domain: str) -> bool:
    """Return whether the plugin runs on a node because of a label for the vendor or the kind of its devices."""
    wanted = {*domain.split(".")[:-1], *_DEVICES}
    terms = (each for each in children(template.spec, *AFFINITY) if matches_terms((each,), node))
    positive = {
        text(each, "key") for term in terms for each in children(term, "matchExpressions") if _is_positive(each)
    }
    return any(
        node.labels.get(key, "false").lower() not in _NO
        and wanted & {*_WORD.findall(f"{key} {node.labels[key]}".lower())}
        for key in {*text_map(template.spec, "nodeSelector"), *positive} - _EVERY_NODE
    )


def _is_positive(term: JsonObject) -> bool:
    return text(term, "operator") in ("In", "Exists")


def _is_marked(node: ClusterObject, domain: str) -> bool:
    taints = ((text(each, "key"), text(each, "value")) for each in node.children("spec", "taints"))
    marks = (*node.labels.items(), *taints)
    return any(key.startswith(f"{domain}/") and said.lower() not in _NO for key, said in marks)


def _line_of(state: ClusterState, plugin: ClusterObject) -> Evidence | None:
    """Return the line of the plugin's log that tells most about why it finds no device."""
    found = [
        (group, key)
        for key, story in stories_of(state, plugin)
        for group in story.groups
        if group.weight != "warning" or group.kind is not None
    ]
    group, key = min(found, key=lambda each: (each[0].kind is None, each[0].rank), default=(None, None))
    pod = state.find(key.pod) if key is not None else None
    if group is None or key is None or pod is None:
        return None
    return log_line(pod, key.container, group.record, previous=False)
