"""Rules for admission webhooks, Pod Security and aggregated APIs that cause requests to fail."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.admission import (
    POD_SECURITY,
    WEBHOOK_FAILED,
    backends,
    refused_with,
    unblocked,
    webhooks,
)
from holmes.diagnosis.facts.templates import template_of, workloads_behind
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import at, child, children, moment, text
from holmes.values.expressions import expression
from holmes.values.findings import Evidence, ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.admission import Webhook
    from holmes.diagnosis.facts.templates import PodTemplate
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Severity

_ENFORCE: Final = "pod-security.kubernetes.io/enforce"
_METRICS: Final = "metrics.k8s.io"


@Row(
    id="A01",
    title="Admission webhook cannot be called",
    severity="warning",
    kinds=("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"),
    needs=("Service", "EndpointSlice", "Namespace"),
    reads=("webhooks[].clientConfig.service", "webhooks[].failurePolicy", "webhooks[].namespaceSelector"),
    explanation="The API server calls a webhook with failurePolicy Fail before it writes objects. The webhook cannot "
    "be called because its Service does not exist, lacks the port or has no ready endpoint. The API server therefore "
    "rejects every request that matches the webhook's rules. The severity is critical if it rejects pods for this "
    "reason (rule W03e). Webhooks with failurePolicy Ignore are not reported, because requests succeed without them.",
)
def webhook_outage(state: ClusterState) -> Iterator[Fault]:
    refused = {found["webhook"] for _, found in refused_with(state, WEBHOOK_FAILED)}
    for webhook in webhooks(state):
        trouble = webhook.trouble(state) if webhook.failure_policy == "Fail" else ""
        if not trouble or _is_young(state, webhook) or not _concerns(state, webhook):
            continue
        yield Fault(
            subject=webhook.configuration.ref,
            role="symptom" if webhook.name in refused else "cause",
            severity="critical" if webhook.name in refused else "warning",
            cause=f"Webhook {webhook.name} of {webhook.configuration.ref} has failurePolicy Fail and cannot be "
            f"called because {trouble}",
            evidence=webhook.evidence(state),
            next_check=f"kubectl get {webhook.configuration.kind.lower()} {webhook.configuration.name} -o yaml",
            fix=(unblocked(webhook),),
            because=backends(state, webhook),
        )


def _is_young(state: ClusterState, webhook: Webhook) -> bool:
    """Return whether the webhook or its Service was created so recently that its pods may still be starting."""
    service = state.find(webhook.service) if webhook.service is not None else None
    young = state.grace_seconds
    return state.age_seconds(webhook.configuration) < young or (
        service is not None and state.age_seconds(service) < young
    )


def _concerns(state: ClusterState, webhook: Webhook) -> bool:
    """Return whether the API server calls the webhook for any scanned namespace."""
    looked_at = state.reading.namespaces
    namespaces = [each for each in state.of("Namespace") if not looked_at or each.name in looked_at]
    return not namespaces or any(webhook.covers_namespace(each) for each in namespaces)


@Row(
    id="A02",
    title="Pod Security rejects new pods",
    severity="critical",
    kinds=("ReplicaSet", "StatefulSet", "DaemonSet", "Job"),
    needs=("Namespace",),
    reads=("event FailedCreate", "status.conditions[ReplicaFailure]", f"Namespace metadata.labels[{_ENFORCE}]"),
    explanation="The namespace enforces a Pod Security level that the workload's pods violate, so the API server does "
    "not create the pods. The error message lists the fields that violate the level. Change these fields in the pod "
    "template, or change the level in the namespace's label.",
)
def pod_security(state: ClusterState) -> Iterator[Fault]:
    for refusal, found in refused_with(state, POD_SECURITY):
        template = template_of(refusal.workload)
        namespace = state.get("Namespace", "", refusal.maker.namespace)
        label: tuple[Evidence, ...] = ()
        if namespace is not None:
            label = (
                evidence.value(namespace, f"metadata.labels[{_ENFORCE}]", namespace.labels.get(_ENFORCE, "(not set)")),
            )
        yield Fault(
            subject=refusal.maker.ref,
            severity=refusal.severity,
            cause=f"Namespace {refusal.maker.namespace} enforces the Pod Security level "
            f"{found['level']}, which the pods of {refusal.workload.ref} violate: {found['violations']}",
            evidence=(*_violating_fields(template, found["violations"]), refusal.proof, *label),
            next_check=f"kubectl get namespace {refusal.maker.namespace} --show-labels",
            since=refusal.since,
        )


_MUST: Final = expression(
    r"(?:(?P<pod>pod or )?containers? (?P<names>\"[^\"]+\"(?:, \"[^\"]+\")*)|(?P<only>pod)) must (?:not )?set"
    r" (?P<field>[\w.]+)",
)
_ENDS: Final = (
    ("hostNetwork", "hostNetwork"),
    ("hostPID", "hostPID"),
    ("hostIPC", "hostIPC"),
    ("hostPath", "volumes"),
    ("restricted volume types", "volumes"),
)


def _violating_fields(template: PodTemplate, violations: str) -> tuple[Evidence, ...]:
    """Return the fields that are mentioned in `violations`, with their current values."""
    values: list[Evidence] = []
    for key, field in _ENDS:
        if key in violations:
            found = at(template.spec, field)
            values.append(evidence.value(template.workload, f"{template.path}.{field}", found))
    for must in _MUST.finditer(violations):
        values += _of_containers(template, set(re.findall(r"\"([^\"]+)\"", must["names"] or "")), must["field"])
    return tuple(dict.fromkeys(values))


def _of_containers(template: PodTemplate, names: set[str], field: str) -> Iterator[Evidence]:
    path = field.rstrip(".").split(".")
    for key in ("containers", "initContainers"):
        for index, container in enumerate(children(template.spec, key)):
            if text(container, "name") in names:
                found = at(container, *path)
                where = ".".join((template.path, f"{key}[{index}]", *path))
                yield evidence.value(template.workload, where, "(not set)" if found is None else found)
    if not names:
        found = at(template.spec, *path)
        where = ".".join((template.path, *path))
        yield evidence.value(template.workload, where, "(not set)" if found is None else found)


@Row(
    id="A03",
    title="Aggregated API is not available",
    severity="critical",
    kinds=("APIService",),
    needs=("Service", "EndpointSlice"),
    reads=("status.conditions[Available]", "spec.service"),
    explanation="An APIService forwards part of the Kubernetes API to a Service in the cluster, and this Service does "
    "not respond. Requests to this API fail. For example, autoscaling fails without the metrics APIs, and namespaces "
    "cannot be deleted. Repair the Service, or delete the APIService if it is no longer used.",
)
def aggregated_api(state: ClusterState) -> Iterator[Fault]:
    for api in state.of("APIService"):
        condition = api.condition("Available")
        if text(condition, "status") != "False" or api.deleted is not None:
            continue
        since = moment(text(condition, "lastTransitionTime")) or api.created
        if state.now - since < state.grace_seconds:
            continue
        service = ObjectRef(
            kind="Service", namespace=api.text("spec", "service", "namespace"), name=api.text("spec", "service", "name")
        )
        reason = text(condition, "reason")
        yield Fault(
            subject=api.ref,
            severity=_api_severity(state, api),
            cause=f"{api.ref} is not available ({reason}): {text(condition, 'message') or 'no message'}",
            evidence=(
                evidence.value(api, "status.conditions[type=Available].reason", reason),
                evidence.value(api, "status.conditions[type=Available].message", text(condition, "message")),
                evidence.field(api, "spec", "service"),
            ),
            next_check=f"kubectl -n {service.namespace} get service,endpointslices",
            because=_servers(state, service),
            since=since,
        )


def _servers(state: ClusterState, service: ObjectRef) -> tuple[ObjectRef, ...]:
    found = state.find(service)
    return (service, *(each.ref for each in workloads_behind(state, found))) if found is not None else ()


def _api_severity(state: ClusterState, api: ClusterObject) -> Severity:
    """Return critical if the namespace of the API's Service was scanned.

    Otherwise, return warning if a scanned autoscaler needs the API, and info if not.
    """
    looked_at = state.reading.namespaces
    if not looked_at or api.text("spec", "service", "namespace") in looked_at:
        return "critical"
    depends = api.text("spec", "group").endswith(_METRICS) and any(
        child(each.body, "spec") for each in state.of("HorizontalPodAutoscaler")
    )
    return "warning" if depends else "info"
