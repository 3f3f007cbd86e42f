"""Rules for pods that the API server rejects because of quotas, LimitRanges, ServiceAccounts, webhooks or policies."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.admission import (
    BOUNDS,
    MUST_SPECIFY,
    POLICY_DENIED,
    QUOTA,
    RATIO,
    SERVICE_ACCOUNT,
    WEBHOOK_DENIED,
    WEBHOOK_FAILED,
    backends,
    refusals,
    refused_with,
    slow_webhooks,
    unblocked,
    webhook_named,
)
from holmes.diagnosis.facts.fixes import corrected, instruction, provided
from holmes.diagnosis.facts.quotas import largest_users
from holmes.diagnosis.facts.resources import Violation, violations
from holmes.diagnosis.facts.templates import template_of
from holmes.diagnosis.facts.typos import hint, meant
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import at, children, text
from holmes.values.expressions import expression
from holmes.values.findings import Evidence, ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.admission import Refusal
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.json_types import JsonObject

_KINDS: Final = ("ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob")
_READS: Final = ("status.conditions[ReplicaFailure]", "event FailedCreate", "spec.replicas", "status.replicas")


def _pairs(written: str) -> dict[str, str]:
    """Parse `requests.cpu=100m,pods=1` into values by name."""
    parts = (part.partition("=") for part in written.split(","))
    return {name.strip(): value.strip() for name, _, value in parts}


@Row(
    id="W03a",
    title="ResourceQuota rejects new pods",
    severity="critical",
    kinds=_KINDS,
    needs=("ResourceQuota",),
    reads=(*_READS, "ResourceQuota status.hard", "ResourceQuota status.used"),
    explanation="The quota of the namespace has no room for the next pod, so the controller cannot create the pod. "
    "Raise the quota, remove other objects from the namespace, or reduce the requests of the pod. The severity is "
    "warning while other pods of the workload are ready.",
)
def quota_exceeded(state: ClusterState) -> Iterator[Fault]:
    for refusal, found in refused_with(state, QUOTA):
        namespace, name = refusal.maker.namespace, found["quota"]
        quota = state.get("ResourceQuota", namespace, name)
        ref = ObjectRef(kind="ResourceQuota", namespace=namespace, name=name)
        requested, used, limited = (_pairs(found[part]) for part in ("requested", "used", "limited"))
        told = "; ".join(
            f"{resource}: requested {amount}, used {used.get(resource, '?')} of {limited.get(resource, '?')}"
            for resource, amount in requested.items()
        )
        values = [
            Evidence(object=ref, path=f"spec.hard.{resource}", value=limited.get(resource, "?"))
            for resource in requested
        ]
        if quota is not None:
            values += [evidence.field(quota, "status", "used")]
        users = [largest_users(state, namespace, resource, limited.get(resource, "")) for resource in requested]
        by = next((f"; most of it is used by {each}" for each in users if each), "")
        yield Fault(
            subject=refusal.maker.ref,
            culprit=ref,
            severity=refusal.severity,
            cause=f"{ref} has no room for another {refusal.what} of {refusal.workload.ref} ({told}){by}",
            evidence=(*values, refusal.proof),
            next_check=f"kubectl -n {namespace} describe resourcequota {name}",
            since=refusal.since,
            fix=(instruction(ref, f"Raise {values[0].path} of {ref}, or remove {refusal.what}s that use it."),)
            if requested
            else (),
        )


@Row(
    id="W03b",
    title="Pod has no requests or limits, but a quota requires them",
    severity="critical",
    kinds=_KINDS,
    needs=("ResourceQuota",),
    reads=(*_READS, "spec.template.spec.containers[].resources"),
    explanation=(
        "If a quota covers requests or limits, every container of the namespace must set these values. The API server "
        "rejects a pod without these values. Set them in the workload's containers, or create a LimitRange with "
        "defaults."
    ),
)
def quota_demands_resources(state: ClusterState) -> Iterator[Fault]:
    for refusal, found in refused_with(state, MUST_SPECIFY):
        template = template_of(refusal.workload)
        lacking = [entry.strip().partition(" for: ")[::2] for entry in found["what"].split(";")]
        values: list[Evidence] = []
        for resource, names in lacking:
            part, _, plain = resource.rpartition(".")
            for path, container in _named_containers(template.spec, names):
                where = f"{template.path}.{path}.resources.{part or 'requests'}.{plain}"
                found_value = at(container, "resources", part or "requests", plain)
                values.append(
                    evidence.value(refusal.workload, where, "(not set)" if found_value is None else found_value)
                )
        quota = ObjectRef(kind="ResourceQuota", namespace=refusal.maker.namespace, name=found["quota"])
        known = state.find(quota)
        hard = (evidence.field(known, "spec", "hard"),) if known is not None else ()
        yield Fault(
            subject=refusal.maker.ref,
            culprit=refusal.workload.ref,
            severity=refusal.severity,
            cause=f"{quota} requires {' and '.join(dict.fromkeys((resource for resource, _ in lacking)))} for every "
            f"container, but the pods of {refusal.workload.ref} do not set them",
            evidence=(*values, refusal.proof, *hard),
            next_check=f"kubectl -n {refusal.maker.namespace} describe resourcequota {found['quota']}",
            since=refusal.since,
        )


def _named_containers(spec: JsonObject, names: str) -> Iterator[tuple[str, JsonObject]]:
    """Yield the path and spec of each named container, or of all main containers if `names` is empty."""
    wanted = {name.strip() for name in names.split(",") if name.strip()}
    for key in ("containers", "initContainers"):
        for index, container in enumerate(children(spec, key)):
            if text(container, "name") in wanted or (not wanted and key == "containers"):
                yield f"{key}[{index}]", container


@Row(
    id="W03c",
    title="LimitRange rejects new pods",
    severity="critical",
    kinds=_KINDS,
    needs=("LimitRange",),
    reads=(*_READS, "LimitRange spec.limits[].min", "LimitRange spec.limits[].max"),
    explanation="A container requests more or less than the LimitRange of the namespace allows, so the API server "
    "rejects the pod. Change the resources of the workload or the LimitRange.",
)
def limit_range_refuses(state: ClusterState) -> Iterator[Fault]:
    """Report the workload as the culprit if it sets the value, otherwise the LimitRange that sets the default."""
    for pattern in (BOUNDS, RATIO):
        for refusal, found in refused_with(state, pattern):
            yield _out_of_bounds(state, refusal, found[0])


def _out_of_bounds(state: ClusterState, refusal: Refusal, told: str) -> Fault:
    template = template_of(refusal.workload)
    broken = violations(state, template)
    own = [violation.found for violation in broken]
    ranges = [violation.bound for violation in broken] or [
        evidence.field(each, "spec", "limits") for each in state.of("LimitRange", refusal.maker.namespace)
    ]
    culprit = refusal.workload.ref
    if not own and ranges and not any(_sets_resources(each) for each in children(template.spec, "containers")):
        culprit = ranges[0].object
        values = (*ranges, refusal.proof)
    else:
        values = (*own, *ranges, refusal.proof) if own else (refusal.proof, *ranges)
    field = f": {_field(broken[0])}" if broken else ""
    return Fault(
        subject=refusal.maker.ref,
        culprit=culprit,
        severity=refusal.severity,
        cause=f"The LimitRange of namespace {refusal.maker.namespace} does not allow the pods of "
        f"{refusal.workload.ref} ({told.rstrip(',')}){field}",
        evidence=values,
        next_check=f"kubectl -n {refusal.maker.namespace} describe limitrange",
        since=refusal.since,
    )


def _field(violation: Violation) -> str:
    return f"{violation.found.path} is {violation.found.value}, and {violation.bound.path} is {violation.bound.value}"


def _sets_resources(container: JsonObject) -> bool:
    return bool(at(container, "resources"))


@Row(
    id="W03d",
    title="ServiceAccount is missing",
    severity="critical",
    kinds=_KINDS,
    needs=("ServiceAccount",),
    reads=(*_READS, "spec.template.spec.serviceAccountName"),
    explanation=(
        "The ServiceAccount of a pod must exist before the pod can be created. Create the ServiceAccount, or correct "
        "the name in the workload."
    ),
)
def service_account_missing(state: ClusterState) -> Iterator[Fault]:
    """Report the missing ServiceAccount as the culprit, or the workload if its reference is misspelled."""
    for refusal, found in refused_with(state, SERVICE_ACCOUNT):
        namespace, name = refusal.maker.namespace, found["plain"] or found["quoted"]
        if state.get("ServiceAccount", namespace, name) is not None:
            continue
        existing = [each.name for each in state.of("ServiceAccount", namespace)]
        missing = ObjectRef(kind="ServiceAccount", namespace=namespace, name=name)
        slip = meant(name, existing)
        path = f"{template_of(refusal.workload).path}.serviceAccountName"
        wrong = evidence.value(refusal.workload, path, name)
        yield Fault(
            subject=refusal.maker.ref,
            culprit=refusal.workload.ref if slip else missing,
            severity=refusal.severity,
            cause=f"{missing} does not exist, but {refusal.workload.ref} names it in {path}{hint(name, existing)}",
            evidence=(wrong, refusal.proof),
            next_check=f"kubectl -n {namespace} get serviceaccount",
            since=refusal.since,
            fix=(corrected(wrong, slip) if slip else provided(missing, refusal.workload.ref),),
        )


@Row(
    id="W03e",
    title="Admission webhook cannot be called, so pods are rejected",
    severity="critical",
    kinds=_KINDS,
    needs=("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "Service"),
    reads=(*_READS, "webhooks[].clientConfig", "webhooks[].failurePolicy"),
    explanation="A webhook with failurePolicy Fail must be called before a pod is created, but the API server cannot "
    "reach it. Its Service is missing or has no ready pod, or its certificate is not trusted. Repair the workload "
    "behind the webhook, or delete the webhook configuration.",
)
def webhook_unreachable(state: ClusterState) -> Iterator[Fault]:
    """Report the webhook configuration as the culprit.

    Faults of the webhook's Service or workloads explain this fault.
    """
    for refusal, found in refused_with(state, WEBHOOK_FAILED):
        name, why = found["webhook"], found["why"].strip()
        webhook = webhook_named(state, name, why)
        if webhook is None:
            yield _unknown_webhook(refusal, name, why)
            continue
        yield Fault(
            subject=refusal.maker.ref,
            culprit=webhook.configuration.ref,
            severity=refusal.severity,
            cause=f"Webhook {name} of {webhook.configuration.ref} must be called before a pod of "
            f"{refusal.workload.ref} is created (failurePolicy {webhook.failure_policy}) and fails: "
            f"{webhook.trouble(state) or why}",
            evidence=(*webhook.evidence(state), refusal.proof),
            next_check=f"kubectl get {webhook.configuration.kind.lower()} {webhook.configuration.name} -o yaml",
            because=backends(state, webhook),
            since=refusal.since,
            fix=(unblocked(webhook),),
        )


def _unknown_webhook(refusal: Refusal, name: str, why: str) -> Fault:
    return Fault(
        subject=refusal.maker.ref,
        severity=refusal.severity,
        cause=f"Webhook {name}, which must be called before a pod of {refusal.workload.ref} is created, fails: {why}",
        evidence=(refusal.proof,),
        next_check="kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations",
        since=refusal.since,
    )


@Row(
    id="W03f",
    title="Admission policy denies new pods",
    severity="critical",
    kinds=_KINDS,
    reads=_READS,
    explanation="An admission webhook or a ValidatingAdmissionPolicy denied the pod. The message states the "
    "requirement. Usually the template of the workload must be changed.",
)
def policy_denies(state: ClusterState) -> Iterator[Fault]:
    for pattern, noun in ((WEBHOOK_DENIED, "webhook"), (POLICY_DENIED, "policy")):
        for refusal, found in refused_with(state, pattern):
            yield Fault(
                subject=refusal.maker.ref,
                severity=refusal.severity,
                cause=f"Admission {noun} {found[noun]} denies the pods of {refusal.workload.ref}: "
                f"{found['why'] or 'no reason is given'}",
                evidence=(refusal.proof,),
                next_check=f"kubectl -n {refusal.maker.namespace} get {refusal.workload.kind.lower()} "
                f"{refusal.workload.name} -o yaml",
                since=refusal.since,
            )


@Row(
    id="W03g",
    title="Pods cannot be created",
    severity="critical",
    kinds=_KINDS,
    reads=_READS,
    explanation="The API server rejects the pods of a workload for a reason that no other rule covers, such as a "
    "missing PriorityClass or RuntimeClass. The message of the API server is the evidence.",
)
def refused_otherwise(state: ClusterState) -> Iterator[Fault]:
    for refusal in refusals(state):
        if refusal.is_known or slow_webhooks(state, refusal):
            continue
        yield Fault(
            subject=refusal.maker.ref,
            culprit=_missing_class(state, refusal.message),
            severity=refusal.severity,
            cause=f"The API server rejects the pods of {refusal.workload.ref}: {refusal.message}",
            evidence=(*_class_evidence(refusal.workload, refusal.message), refusal.proof),
            next_check=f"kubectl -n {refusal.maker.namespace} describe {refusal.maker.kind.lower()} "
            f"{refusal.maker.name}",
            since=refusal.since,
        )


_CLASSES: Final = (
    ("PriorityClass", "priorityClassName", expression(r"no PriorityClass with name (\S+) was found", re.IGNORECASE)),
    ("RuntimeClass", "runtimeClassName", expression(r"RuntimeClass \"?([^\s\"]+)\"? not found", re.IGNORECASE)),
)


def _missing_class(state: ClusterState, message: str) -> ObjectRef | None:
    """Return the missing PriorityClass or RuntimeClass, or None if its name is probably misspelled."""
    for kind, _, pattern in _CLASSES:
        found = pattern.search(message)
        if found is not None and not meant(found[1], (each.name for each in state.of(kind))):
            return ObjectRef(kind=kind, name=found[1])
    return None


def _class_evidence(workload: ClusterObject, message: str) -> tuple[Evidence, ...]:
    for _, key, pattern in _CLASSES:
        found = pattern.search(message)
        if found is not None:
            return (evidence.value(workload, f"{template_of(workload).path}.{key}", found[1]),)
    return ()
