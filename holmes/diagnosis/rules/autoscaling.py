"""Rules for HorizontalPodAutoscalers that cannot read metrics, scale their target or add more pods."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.fixes import corrected, instruction, scaled_up
from holmes.diagnosis.facts.templates import template_of
from holmes.diagnosis.facts.typos import hint, meant
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import at, child, children, moment, text
from holmes.kubernetes.kinds import KINDS
from holmes.values.expressions import expression
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence, FixStep
    from holmes.values.json_types import JsonObject

_MEASURED: Final = ("resource", "containerResource")
_HPA: Final = "HorizontalPodAutoscaler"
_PATIENCE_GRACES: Final = 5
_OWN_KINDS: Final = frozenset(kind.name for kind in KINDS)
_NO_REQUEST: Final = expression(
    r"missing request for (?P<resource>[\w-]+)(?: in container (?P<container>\S+))?", re.IGNORECASE
)
_RESOURCE_API: Final = "v1beta1.metrics.k8s.io"
_APIS: Final = (
    (expression(r"external metrics API|external\.metrics\.k8s\.io", re.IGNORECASE), "v1beta1.external.metrics.k8s.io"),
    (expression(r"custom metrics API|custom\.metrics\.k8s\.io", re.IGNORECASE), "v1beta1.custom.metrics.k8s.io"),
    (expression(r"resource metrics API|metrics\.k8s\.io", re.IGNORECASE), _RESOURCE_API),
)
_NO_SUCH_API: Final = "the server could not find the requested resource"
"""The answer of an API server that serves no such API. Waiting does not change it."""
_UNREADY: Final = expression(r"no metrics returned|did not receive metrics|might be unready", re.IGNORECASE)
_OTHER_RULES: Final = frozenset({"ScalingDisabled", "AmbiguousSelector"})


def _target_of(state: ClusterState, scaler: ClusterObject) -> ClusterObject | None:
    kind, group = _target_kind(scaler)
    return state.get(f"{kind}.{group}" if group else kind, scaler.namespace, _target(scaler, "name"))


def _target(scaler: ClusterObject, key: str) -> str:
    return scaler.text("spec", "scaleTargetRef", key)


def _target_kind(scaler: ClusterObject) -> tuple[str, str]:
    """Return the kind and the API group of the scale target. The group is empty for built-in kinds."""
    kind, group = _target(scaler, "kind"), _target(scaler, "apiVersion").rpartition("/")[0]
    return kind, "" if kind in _OWN_KINDS else group


def _check(scaler: ClusterObject) -> str:
    return f"kubectl -n {scaler.namespace} describe hpa {scaler.name}"


def _message(scaler: ClusterObject, condition: str) -> Evidence:
    said = text(scaler.condition(condition), "message")
    return evidence.value(scaler, f"status.conditions[type={condition}].message", said)


def _living(state: ClusterState) -> Iterator[ClusterObject]:
    return (each for each in state.of(_HPA) if each.deleted is None)


@Row(
    id="H01",
    title="Autoscaler cannot read its metrics",
    severity="warning",
    kinds=(_HPA,),
    needs=("APIService",),
    reads=("status.conditions[ScalingActive]", "APIService status.conditions[Available]"),
    explanation="The autoscaler receives no metrics, so it does not change the number of pods. The metrics API may be "
    "missing. For CPU and memory, metrics-server provides this API as the APIService v1beta1.metrics.k8s.io. A "
    "container may lack the resource request that a utilization target requires, or the pods may be too new or not "
    "ready.",
)
def cannot_read_metrics(state: ClusterState) -> Iterator[Fault]:
    for scaler in _living(state):
        condition = scaler.condition("ScalingActive")
        reason, message = text(condition, "reason"), text(condition, "message")
        if text(condition, "status") != "False" or reason in _OTHER_RULES:
            continue
        since = moment(text(condition, "lastTransitionTime")) or scaler.created
        if _NO_REQUEST.search(message) is not None:
            continue
        culprit, because, patience = _source(state, scaler, message)
        if state.now - since < patience * state.patience_seconds:
            continue
        missing = f" because {culprit} does not exist" if culprit is not None and state.find(culprit) is None else ""
        yield Fault(
            subject=scaler.ref,
            culprit=culprit,
            title="Metrics API of the autoscaler is not available" if culprit is not None else None,
            cause=f"{scaler.ref} cannot scale {_target(scaler, 'kind')} {_target(scaler, 'name')} ({reason}){missing}: "
            f"{message}{_besides(state, scaler)}",
            evidence=(
                _message(scaler, "ScalingActive"),
                *_api_evidence(state, culprit),
                evidence.field(scaler, "spec", "metrics"),
            ),
            next_check="kubectl get apiservice v1beta1.metrics.k8s.io" if culprit is not None else _check(scaler),
            because=because,
            since=since,
            fix=(_metrics_server(culprit) if culprit and missing else None,),
        )


def _metrics_server(api: ObjectRef) -> FixStep | None:
    """Only the API for CPU and memory has a usual provider. Which adapter serves the others is unknown."""
    if api.name != _RESOURCE_API:
        return None
    return instruction(api, f"Install metrics-server, which provides {api}.", exists=False)


def _source(
    state: ClusterState, scaler: ClusterObject, message: str
) -> tuple[ObjectRef | None, tuple[ObjectRef, ...], int]:
    """Return the API at fault or None, objects that may explain the fault, and the number of grace periods to wait."""
    target = _target_of(state, scaler)
    if _UNREADY.search(message) is not None:
        return None, (target.ref,) if target is not None else (), _PATIENCE_GRACES
    for pattern, name in _APIS:
        if pattern.search(message) is None:
            continue
        api = state.get("APIService", "", name)
        if api is None:
            if _NO_SUCH_API in message:
                return ObjectRef(kind="APIService", name=name), (), 0
            absent = state.is_missing("APIService", "", name)
            return (ObjectRef(kind="APIService", name=name) if absent else None), (), 1 if absent else _PATIENCE_GRACES
        available = text(api.condition("Available"), "status") != "False"
        return None if available else api.ref, (), _PATIENCE_GRACES if available else 1
    return None, (), _PATIENCE_GRACES


def _besides(state: ClusterState, scaler: ClusterObject) -> str:
    """Return that a container lacks the request of a utilization target, which matters once there are metrics."""
    target = _target_of(state, scaler)
    if target is None:
        return ""
    for resource, only in _utilizations(scaler):
        for _, name in _without_request(state, target, resource, only):
            return f"; {target.ref} also lacks the {resource} request of container {name}"
    return ""


def _lacks_metrics(state: ClusterState, scaler: ClusterObject) -> bool:
    """Return whether the autoscaler says that the metrics API is missing or down, so that no request would help."""
    condition = scaler.condition("ScalingActive")
    message = text(condition, "message")
    return text(condition, "status") == "False" and _source(state, scaler, message)[0] is not None


def _api_evidence(state: ClusterState, api: ObjectRef | None) -> tuple[Evidence, ...]:
    found = state.find(api) if api is not None else None
    if found is None:
        return ()
    return (
        evidence.value(found, "status.conditions[type=Available].status", text(found.condition("Available"), "status")),
    )


@Row(
    id="H01b",
    title="Autoscaler's target has no resource request",
    severity="warning",
    kinds=(_HPA,),
    needs=("Deployment", "StatefulSet", "Pod", "LimitRange"),
    reads=(
        "spec.metrics[].resource",
        "spec.template.spec.containers[].resources.requests",
        "status.conditions[ScalingActive]",
    ),
    explanation="Resource utilization is a percentage of the request. A container of the target has no request or "
    "limit for the resource, so the autoscaler cannot compute the utilization. Set "
    "spec.template.spec.containers[].resources.requests.",
)
def target_without_request(state: ClusterState) -> Iterator[Fault]:
    for scaler in _living(state):
        target = _target_of(state, scaler)
        said = _NO_REQUEST.search(text(scaler.condition("ScalingActive"), "message"))
        works = text(scaler.condition("ScalingActive"), "status") == "True"
        if target is None or target.deleted is not None or works or _lacks_metrics(state, scaler):
            continue
        for resource, only in _utilizations(scaler):
            lacking = list(_without_request(state, target, resource, only))
            if not lacking or _is_measured(scaler, resource):
                continue
            path, name = lacking[0]
            yield Fault(
                subject=scaler.ref,
                culprit=target.ref,
                cause=f"The container {name} of {target.ref} has no {resource} request, so {scaler.ref} cannot "
                f"compute its {resource} utilization and does not scale",
                evidence=(
                    evidence.value(target, f"{path}.resources.requests.{resource}", "(not set)"),
                    *((_message(scaler, "ScalingActive"),) if said is not None else ()),
                    evidence.field(scaler, "spec", "metrics"),
                ),
                next_check=_check(scaler),
                fix=(instruction(target.ref, f"Set {path}.resources.requests.{resource} of {target.ref}."),),
            )


def _is_measured(scaler: ClusterObject, resource: str) -> bool:
    """Return whether the autoscaler computes the utilization now, which refutes that it cannot."""
    if text(scaler.condition("ScalingActive"), "status") != "True":
        return False
    measured = (child(each, key) for each in scaler.children("status", "currentMetrics") for key in _MEASURED)
    return any(
        text(each, "name") == resource and at(each, "current", "averageUtilization") is not None for each in measured
    )


def _utilizations(scaler: ClusterObject) -> Iterator[tuple[str, str]]:
    """Yield each resource that is measured as a percentage of its request, and the name of its container.

    The name is empty if the resource is measured for all containers.
    """
    for metric in scaler.children("spec", "metrics"):
        for key in _MEASURED:
            measured = child(metric, key)
            if at(measured, "target", "averageUtilization") is not None:
                yield text(measured, "name"), text(measured, "container")


def _without_request(state: ClusterState, target: ClusterObject, resource: str, only: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the name of each container without a request.

    A request in a live pod is sufficient, because a LimitRange may have added it.
    """
    template = template_of(target)
    pods = state.pods_of(target)
    defaulting = not all(state.covers(kind, target.namespace) for kind in ("LimitRange", "ReplicaSet", "Pod"))
    if not pods and (defaulting or state.of("LimitRange", target.namespace)):
        return  # A LimitRange may add the request to new pods.
    live = {text(each, "name"): each for each in (pods[0].children("spec", "containers") if pods else ())}
    for index, container in enumerate(children(template.spec, "containers")):
        name = text(container, "name")
        if (not only or only == name) and not _asks(container, resource) and not _asks(live.get(name, {}), resource):
            yield f"{template.path}.containers[{index}]", name


def _asks(container: JsonObject, resource: str) -> bool:
    return any(at(container, "resources", part, resource) is not None for part in ("requests", "limits"))


@Row(
    id="H02",
    title="Autoscaler's target does not exist",
    severity="warning",
    kinds=(_HPA,),
    needs=("Deployment", "StatefulSet"),
    reads=("spec.scaleTargetRef", "status.conditions[AbleToScale]"),
    explanation="The autoscaler cannot find its target, usually because spec.scaleTargetRef contains a wrong name or "
    "kind.",
)
def target_missing(state: ClusterState) -> Iterator[Fault]:
    for scaler in _living(state):
        condition = scaler.condition("AbleToScale")
        failed = text(condition, "status") == "False" and text(condition, "reason") == "FailedGetScale"
        kind, group = _target_kind(scaler)
        name = _target(scaler, "name")
        listed = not group and kind in _OWN_KINDS
        absent = (
            listed
            and state.is_missing(kind, scaler.namespace, name)
            and state.age_seconds(scaler) > state.grace_seconds
        )
        if not (failed or absent) or (failed and _target_of(state, scaler) is not None):
            continue
        message = text(condition, "message")
        gone = absent or "not found" in message
        existing = [each.name for each in state.of(kind, scaler.namespace)] if listed and gone else []
        near, right = hint(name, existing), meant(name, existing)
        wrong = evidence.field(scaler, "spec", "scaleTargetRef", "name")
        why = f"does not exist{near}" if gone else f"cannot be scaled: {message or 'its controller gives no reason'}"
        yield Fault(
            subject=scaler.ref,
            title=None if gone else "Autoscaler cannot scale its target",
            cause=f"{scaler.ref} has no effect because its target {kind} {scaler.namespace}/{name} {why}",
            evidence=(
                wrong,
                *((_message(scaler, "AbleToScale"),) if failed else ()),
            ),
            next_check=f"kubectl -n {scaler.namespace} get {kind.lower()}",
            since=moment(text(condition, "lastTransitionTime")) if failed else None,
            fix=(corrected(wrong, right) if right else None,),
        )


@Row(
    id="H02b",
    title="Autoscaling is disabled because the target is scaled to zero",
    severity="warning",
    kinds=(_HPA,),
    needs=("Deployment", "StatefulSet"),
    reads=("status.conditions[ScalingActive]", "spec.replicas of the target"),
    explanation="An autoscaler ignores a workload if spec.replicas is 0. The cause is the change that scaled the "
    "workload to zero. KEDA autoscalers are not reported, because KEDA scales workloads to zero on purpose.",
)
def target_scaled_to_zero(state: ClusterState) -> Iterator[Fault]:
    for scaler in _living(state):
        target = _target_of(state, scaler)
        disabled = text(scaler.condition("ScalingActive"), "reason") == "ScalingDisabled"
        if scaler.owner is not None and scaler.owner.kind == "ScaledObject":
            continue  # KEDA itself scales workloads to zero and back.
        if disabled and target is not None and target.at("spec", "replicas") == 0:
            yield Fault(
                subject=scaler.ref,
                culprit=target.ref,
                role="symptom",
                cause=f"{scaler.ref} has no effect because {target.ref} has spec.replicas 0",
                evidence=(evidence.field(target, "spec", "replicas"), _message(scaler, "ScalingActive")),
                next_check=_check(scaler),
                because=(target.ref,),
                fix=(scaled_up(state, target),),
            )


@Row(
    id="H03",
    title="Autoscaler is at its maximum",
    severity="warning",
    kinds=(_HPA,),
    reads=("status.conditions[ScalingLimited]", "status.currentReplicas", "spec.maxReplicas"),
    explanation="For several minutes, the autoscaler has needed more pods than spec.maxReplicas allows. Raise the "
    "maximum, or find the cause of the load. An autoscaler is not reported if it is at its minimum, or if its minimum "
    "equals its maximum.",
)
def at_maximum(state: ClusterState) -> Iterator[Fault]:
    for scaler in _living(state):
        condition = scaler.condition("ScalingLimited")
        most, now = scaler.integer("spec", "maxReplicas"), scaler.integer("status", "currentReplicas")
        least = scaler.integer("spec", "minReplicas") or 1
        since = moment(text(condition, "lastTransitionTime")) or scaler.created
        if text(condition, "status") != "True" or text(condition, "reason") != "TooManyReplicas":
            continue
        if least < most <= now and state.now - since >= _PATIENCE_GRACES * state.patience_seconds:
            yield Fault(
                subject=scaler.ref,
                cause=f"{scaler.ref} needs more pods for {_target(scaler, 'kind')} {_target(scaler, 'name')} "
                f"than its maximum of {most}",
                evidence=(
                    evidence.field(scaler, "spec", "maxReplicas"),
                    evidence.field(scaler, "status", "currentReplicas"),
                    _message(scaler, "ScalingLimited"),
                    evidence.field(scaler, "status", "currentMetrics"),
                ),
                next_check=_check(scaler),
                since=since,
            )


@Row(
    id="H04",
    title="Two autoscalers have the same target",
    severity="warning",
    kinds=(_HPA,),
    reads=("spec.scaleTargetRef", "status.conditions[ScalingActive]"),
    explanation="Two autoscalers scale the same workload or select the same pods. They stop scaling (reason "
    "AmbiguousSelector) or work against each other. Delete one of the autoscalers. KEDA creates autoscalers "
    "automatically, with names that begin with keda-hpa-.",
)
def same_target(state: ClusterState) -> Iterator[Fault]:
    by_target: dict[tuple[str, str, str], list[ClusterObject]] = defaultdict(list)
    for scaler in _living(state):
        by_target[scaler.namespace, _target(scaler, "kind"), _target(scaler, "name")].append(scaler)
    for (_, kind, name), scalers in by_target.items():
        scalers.sort(key=lambda each: (each.created, each.name))
        first, last = scalers[0], scalers[-1]
        if first is not last:
            yield Fault(
                subject=last.ref,
                cause=f"{last.ref} and {first.ref} both scale {kind} {name}",
                evidence=(
                    evidence.field(last, "spec", "scaleTargetRef"),
                    evidence.field(first, "spec", "scaleTargetRef"),
                ),
                next_check=f"kubectl -n {last.namespace} get hpa",
            )
        elif text(first.condition("ScalingActive"), "reason") == "AmbiguousSelector":
            target = _target_of(state, first)
            yield Fault(
                subject=first.ref,
                cause=f"{first.ref} does not scale: {text(first.condition('ScalingActive'), 'message')}",
                evidence=(_message(first, "ScalingActive"),),
                next_check=f"kubectl -n {first.namespace} get hpa",
                because=(target.ref,) if target is not None else (),
            )
