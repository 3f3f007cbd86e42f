"""Rules for pods that differ from their workload because of blocked updates, edits or outdated configuration."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.admission import webhooks
from holmes.diagnosis.facts.fixes import changed, command, restarted
from holmes.diagnosis.facts.pods import containers_of, judged_pods
from holmes.diagnosis.facts.resources import quantity
from holmes.diagnosis.facts.services import unready_seconds
from holmes.diagnosis.facts.stale_settings import stale_settings
from holmes.diagnosis.facts.status import pod_ready
from holmes.diagnosis.rule import Fault, Row
from holmes.diagnosis.rules.workloads_rollout import wanted_replicas
from holmes.kubernetes.fields import REVISION_LABEL, at, child, duration, integer, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.pods import Container
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence
    from holmes.values.json_types import JsonObject

_MOST_WEBHOOKS: Final = 5


@Row(
    id="W06a",
    title="Partition holds back the update",
    severity="warning",
    kinds=("StatefulSet",),
    reads=("spec.updateStrategy.rollingUpdate.partition", "spec.replicas", "status.updateRevision"),
    explanation="A StatefulSet updates only pods with an ordinal that is greater than or equal to the partition. The "
    "partition is at least as large as the number of replicas, so a change to the template reaches no pod. A staged "
    "rollout lowers the partition step by step.",
)
def held_by_partition(state: ClusterState) -> Iterator[Fault]:
    for workload in state.of("StatefulSet"):
        path = ("spec", "updateStrategy", "rollingUpdate", "partition")
        partition, wanted = workload.integer(*path), wanted_replicas(workload)
        if workload.deleted is None and wanted and partition >= wanted and _revision_waits(workload):
            yield Fault(
                subject=workload.ref,
                cause=f"{workload.ref} has a new revision that no pod receives: the partition of its update "
                f"strategy is {partition}, and spec.replicas is {wanted}",
                evidence=(
                    evidence.field(workload, *path),
                    evidence.field(workload, "spec", "replicas"),
                    *_revisions(workload),
                ),
                next_check=f"kubectl -n {workload.namespace} get statefulset {workload.name} -o yaml",
                fix=(changed(workload.ref, ".".join(path), 0),),
            )


def _revision_waits(workload: ClusterObject) -> bool:
    current, update = workload.text("status", "currentRevision"), workload.text("status", "updateRevision")
    return bool(current and update) and current != update


def _revisions(workload: ClusterObject) -> tuple[Evidence, Evidence]:
    return evidence.field(workload, "status", "updateRevision"), evidence.field(workload, "status", "currentRevision")


@Row(
    id="W06b",
    title="Update waits until pods are deleted",
    severity="warning",
    kinds=("StatefulSet", "DaemonSet", "Pod"),
    reads=("spec.updateStrategy.type", "status.updateRevision", f"Pod metadata.labels[{REVISION_LABEL}]"),
    explanation="With the update strategy OnDelete, a change to the template reaches a pod only after the pod is "
    "deleted. Pods of the older revision are still running. The severity is info while all pods are ready.",
)
def waits_for_deletion(state: ClusterState) -> Iterator[Fault]:
    for workload in (*state.of("StatefulSet"), *state.of("DaemonSet")):
        if workload.text("spec", "updateStrategy", "type") != "OnDelete" or workload.deleted is not None:
            continue
        old = _old_pods(state, workload)
        if old:
            healthy = all(pod_ready(pod) for pod in state.pods_of(workload))
            yield Fault(
                subject=workload.ref,
                severity="info" if healthy else None,
                cause=f"{workload.ref} was changed, but its update strategy is OnDelete, so pods such as "
                f"{old[0].ref} keep the old template until they are deleted",
                evidence=(
                    evidence.field(workload, "spec", "updateStrategy", "type"),
                    *(_revisions(workload) if workload.kind == "StatefulSet" else _counts(workload)),
                ),
                next_check=f"kubectl -n {workload.namespace} get pods -L {REVISION_LABEL}",
            )


def _old_pods(state: ClusterState, workload: ClusterObject) -> list[ClusterObject]:
    pods = [pod for pod in state.pods_of(workload) if pod.deleted is None]
    if workload.kind == "StatefulSet":
        newest = workload.text("status", "updateRevision")
        return [pod for pod in pods if newest and pod.labels.get(REVISION_LABEL, newest) != newest]
    counted = isinstance(workload.at("status", "updatedNumberScheduled"), int) or workload.integer(
        "status", "observedGeneration"
    )
    behind = workload.integer("status", "updatedNumberScheduled") < workload.integer("status", "currentNumberScheduled")
    return pods if counted and behind else []


@Row(
    id="W06c",
    title="Corrected template does not reach a failing pod",
    severity="critical",
    kinds=("StatefulSet", "DaemonSet", "Pod"),
    reads=(
        "status.updateRevision",
        "spec.updateStrategy.type",
        f"Pod metadata.labels[{REVISION_LABEL}]",
        "Pod status.conditions[Ready]",
    ),
    explanation="A StatefulSet replaces a pod only after the pod is ready, and with the update strategy OnDelete only "
    "after it is deleted. If the old template was wrong, its pod never becomes ready, and the corrected template is "
    "not used until the pod is deleted.",
)
def stays_old(state: ClusterState) -> Iterator[Fault]:
    for workload in (*state.of("StatefulSet"), *state.of("DaemonSet")):
        why = _keeps_old(workload)
        for pod in _old_pods(state, workload) if why and workload.deleted is None else ():
            if unready_seconds(state, pod) < 2 * state.patience_seconds or pod_ready(pod):
                continue
            look = f"kubectl -n {workload.namespace} get pods -L {REVISION_LABEL}"
            yield Fault(
                subject=pod.ref,
                cause=f"{pod.ref} is not ready and still has the old revision {pod.labels.get(REVISION_LABEL, '')} of "
                f"{workload.ref}; {why}, so the new template is used after the pod is deleted",
                evidence=(
                    evidence.value(pod, f"metadata.labels[{REVISION_LABEL}]", pod.labels.get(REVISION_LABEL, "")),
                    *(_revisions(workload) if workload.kind == "StatefulSet" else _counts(workload)),
                ),
                next_check=look,
                since=pod.created,
                fix=(replace(command(pod.ref, "delete", ""), check=look),),
            )


def _keeps_old(workload: ClusterObject) -> str:
    """Return why the controller does not replace a pod that is not ready, or an empty string if it does."""
    update = workload.child("spec", "updateStrategy")
    if text(update, "type") == "OnDelete":
        return "its update strategy OnDelete replaces only deleted pods"
    waits = integer(update, "rollingUpdate", "partition") or workload.text("spec", "podManagementPolicy") == "Parallel"
    return "" if waits or workload.kind != "StatefulSet" else "a StatefulSet replaces a pod only after it is ready"


def _counts(workload: ClusterObject) -> tuple[Evidence, Evidence]:
    return (
        evidence.value(workload, "status.updatedNumberScheduled", workload.integer("status", "updatedNumberScheduled")),
        evidence.field(workload, "status", "currentNumberScheduled"),
    )


@Row(
    id="W07",
    title="Pods differ from their template",
    severity="info",
    kinds=("Pod", "ReplicaSet"),
    needs=("MutatingWebhookConfiguration",),
    reads=("Pod spec.containers[]", "ReplicaSet spec.template.spec.containers[]"),
    explanation="The image or a resource of a running container differs from its ReplicaSet. A mutating webhook, a "
    "vertical autoscaler or a manual edit changed the pod. The severity is warning when the container's memory limit "
    "is lower than in the template and the container was OOMKilled. Injected sidecars and defaults are ignored.",
)
def differs_from_template(state: ClusterState) -> Iterator[Fault]:
    for pod in judged_pods(state, young=True):
        owner = state.by_uid(pod.owner.uid) if pod.owner is not None else None
        if owner is None or owner.kind != "ReplicaSet":
            continue
        asked = owner.children("spec", "template", "spec", "containers")
        live = pod.children("spec", "containers")
        if not asked or not _may_differ(asked, live):
            continue
        wanted = {text(container, "name"): container for container in asked}
        for container in containers_of(pod):
            template = wanted.get(container.name)
            if container.kind == "main" and template is not None:
                yield from _difference(state, pod, container, template)


def _may_differ(asked: tuple[JsonObject, ...], live: tuple[JsonObject, ...]) -> bool:
    """Return whether an image or a resource may differ between the template and the pod.

    This quick comparison makes the exact comparison unnecessary for most pods.
    """
    return [(text(each, "image"), each.get("resources")) for each in asked] != [
        (text(each, "image"), each.get("resources")) for each in live
    ]


def _difference(state: ClusterState, pod: ClusterObject, container: Container, template: JsonObject) -> Iterator[Fault]:
    paths = [
        ("image",),
        *(("resources", part, name) for part in ("limits", "requests") for name in child(template, "resources", part)),
    ]
    changed = [path for path in paths if _plain(at(template, *path)) != _plain(at(container.spec, *path))]
    if not changed:
        return
    first = changed[0]
    workload = state.workload_of(pod)
    asked, found = at(template, *first), at(container.spec, *first)
    worse = ("resources", "limits", "memory") in changed and _starves(container, template)
    mutating = sorted({each.configuration.name for each in webhooks(state) if _may_mutate(each.configuration)})
    yield Fault(
        subject=pod.ref,
        severity="warning" if worse else "info",
        cause=f"The pods of {workload.ref} have {'.'.join(first)} {found} in container {container.name}, but their "
        f"template has {asked}" + (f"; mutating webhooks: {', '.join(mutating[:_MOST_WEBHOOKS])}" if mutating else ""),
        evidence=tuple(container.evidence(*path, of="spec") for path in changed)
        + tuple(
            evidence.value(workload, f"spec.template.{container.spec_path}.{'.'.join(path)}", at(template, *path))
            for path in changed
        ),
        next_check="kubectl get mutatingwebhookconfigurations",
    )


def _may_mutate(configuration: ClusterObject) -> bool:
    return configuration.kind == "MutatingWebhookConfiguration"


def _plain(value: object) -> object:
    """Convert a quantity to a number, so that equal quantities compare equal in any notation."""
    number = quantity(value) if isinstance(value, str) else None
    return value if number is None else number


def _starves(container: Container, template: JsonObject) -> bool:
    killed = "OOMKilled" in (text(container.terminated, "reason"), text(container.last_terminated, "reason"))
    asked = quantity(text(template, "resources", "limits", "memory"))
    found = quantity(text(container.spec, "resources", "limits", "memory"))
    return killed and asked is not None and found is not None and found < asked


@Row(
    id="W13",
    title="Pods started before their configuration was changed",
    severity="info",
    kinds=("Pod", "ConfigMap", "Secret"),
    reads=(
        "ConfigMap metadata.managedFields[].time",
        "Pod status.startTime",
        "Pod spec.containers[].env",
        "Pod spec.containers[].volumeMounts[].subPath",
    ),
    explanation="Environment variables are read once, when a container starts, and files that are mounted with subPath "
    "are never updated. A ConfigMap or Secret was changed after the pods started, so they may still use old values. "
    "`kubectl rollout restart` loads the new values.",
)
def stale_configuration(state: ClusterState) -> Iterator[Fault]:
    for pod in judged_pods(state):
        stale = (each for each in stale_settings(state, pod) if each.edited < state.now - state.patience_seconds)
        found = next(stale, None)
        if found is not None:
            yield Fault(
                subject=pod.ref,
                cause=f"{found.ref} was changed {duration(state.now - found.edited)} ago, but the containers of "
                f"{_older(state, pod, found.edited)} started earlier and {found.reading}",
                evidence=(
                    evidence.value(pod, found.path, found.ref.name),
                    evidence.field(pod, "status", "startTime"),
                ),
                next_check=f"kubectl -n {pod.namespace} get {found.ref.kind.lower()} {found.ref.name} "
                "--show-managed-fields -o yaml",
                since=found.edited,
                fix=(restarted(state.workload_of(pod).ref),),
            )


def _older(state: ClusterState, pod: ClusterObject, edited: float) -> str:
    """Return the workload, or only the pod if other pods of the workload started after the change."""
    workload = state.workload_of(pod)
    others = (each for each in state.pods_of(workload) if each is not pod and each.deleted is None)
    return f"{pod.ref}, unlike its siblings," if any(each.created > edited for each in others) else str(workload.ref)
