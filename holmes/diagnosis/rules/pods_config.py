"""Rules for pod references that cannot be resolved, before and after the kubelet reports them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.evidence import spec_field, value
from holmes.diagnosis.facts.pods import container_field, container_words, containers_of, troubled_pods
from holmes.diagnosis.facts.references import (
    OBJECT_NOT_FOUND,
    just_repaired,
    lacks_key,
    missing_key,
    missing_object,
    references_of,
)
from holmes.diagnosis.facts.templates import pod_templates
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import at, boolean, integer, text
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.pods import Container
    from holmes.diagnosis.facts.references import Missing, Reference
    from holmes.diagnosis.facts.templates import PodTemplate
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence, Severity

_NO_KEY: Final = expression(
    r"couldn't find key ([^ ]{1,253}) in (configmap|secret) [^ /]{0,253}/([^ ,;]{1,253})", re.IGNORECASE
)
_KINDS: Final = {"configmap": "ConfigMap", "secret": "Secret"}
_REASON: Final = "CreateContainerConfigError"


@Row(
    id="P05",
    title="Container configuration cannot be created",
    severity="critical",
    kinds=("Pod",),
    needs=("ConfigMap",),
    reads=(
        "status.containerStatuses[].state.waiting",
        "spec.containers[].env[].valueFrom",
        "spec.containers[].envFrom",
        "spec.containers[].securityContext",
        "data of ConfigMaps",
    ),
    explanation=(
        "The kubelet cannot create a container (CreateContainerConfigError). A ConfigMap or Secret for the "
        "container's variables does not exist or lacks the required key, or runAsNonRoot forbids the image's user. "
        "References with optional: true are ignored. If the name is clearly misspelled, correct the workload. "
        "Otherwise create the missing object."
    ),
)
def config_error(state: ClusterState) -> Iterator[Fault]:
    for pod in troubled_pods(state):
        for container in containers_of(pod):
            if text(container.waiting, "reason") != _REASON:
                continue
            reference = _refused(container, text(container.waiting, "message"))
            if reference is None:
                yield _other_fault(container, state)
            elif not just_repaired(reference, pod.namespace, state):
                yield _reference_fault(container, reference, state)


def _reference_fault(container: Container, reference: Reference, state: ClusterState) -> Fault:
    message, pod = text(container.waiting, "message"), container.pod
    missing = (
        missing_key(reference, state.workload_of(pod), state)
        if _NO_KEY.search(message)
        else missing_object(reference, pod.namespace, state)
    )
    wrong = spec_field(pod, state, missing.path)
    return Fault(
        subject=pod.ref,
        culprit=missing.culprit,
        title=missing.title,
        cause=_sentence(missing, reference, str(state.workload_of(pod).ref)),
        evidence=(
            wrong,
            *missing.proof,
            container.evidence("state", "waiting", "message"),
            container.evidence("state", "waiting", "reason"),
        ),
        next_check=missing.next_check,
        since=pod.created,
        fix=(missing.fix(wrong, state.workload_of(pod).ref),),
    )


def _refused(container: Container, message: str) -> Reference | None:
    """Return the container's reference that the kubelet's message is about, or None."""
    own = [each for each in references_of(container.pod.child("spec")) if each.container == container.name]
    no_key, not_found = _NO_KEY.search(message), OBJECT_NOT_FOUND.search(message)
    if no_key:
        key, kind, name = no_key[1], _KINDS[no_key[2].lower()], no_key[3]
        return next((each for each in own if (each.kind, each.name, each.key) == (kind, name, key)), None)
    if not_found:
        kind, name = _KINDS[not_found[1].lower()], not_found[2]
        return next((each for each in own if (each.kind, each.name) == (kind, name) and not each.optional), None)
    return None


def _sentence(missing: Missing, reference: Reference, workload: str) -> str:
    takes = "requires this key" if reference.key else "refers to it"
    takes = "reads its variables from it" if reference.use == "variables" else takes
    return f"{missing.what}, but {reference.user} of {workload} {takes}{missing.hint}"


def _other_fault(container: Container, state: ClusterState) -> Fault:
    message, who = text(container.waiting, "message"), container_words(container, state)
    root = "root" in message.lower()
    cause = f"The {who} cannot be configured: {message or 'the kubelet gives no reason'}"
    if root:
        cause = f"The {who} must not run as root (runAsNonRoot), but {_user_words(container, message)}"
    return Fault(
        subject=container.pod.ref,
        title="Container must not run as root" if root else "Container configuration cannot be created",
        cause=cause,
        evidence=(
            *(_non_root_evidence(container, state) if root else ()),
            container.evidence("state", "waiting", "message"),
            container.evidence("state", "waiting", "reason"),
        ),
        next_check=f"kubectl -n {container.pod.namespace} describe pod {container.pod.name}",
        since=container.pod.created,
    )


def _user_words(container: Container, message: str) -> str:
    if "non-numeric" in message:
        return "the kubelet cannot check the user name in the image; set securityContext.runAsUser to a numeric user ID"
    own, of_pod = at(container.spec, "securityContext", "runAsUser"), container.pod.at("spec", "securityContext")
    if own == 0 or (own is None and at(of_pod, "runAsUser") == 0):
        return "securityContext.runAsUser is 0"
    return "its image runs as root; set securityContext.runAsUser to another user, or change the image"


def _non_root_evidence(container: Container, state: ClusterState) -> Iterator[Evidence]:
    """Yield the runAsNonRoot field and the runAsUser field, if they are set."""
    for name in ("runAsNonRoot", "runAsUser"):
        if at(container.spec, "securityContext", name) is not None:
            yield container_field(container, state, f"securityContext.{name}")
        elif container.pod.at("spec", "securityContext", name) is not None:
            yield spec_field(container.pod, state, f"securityContext.{name}")


_MADE_BY_KUBERNETES: Final = frozenset({
    ("ServiceAccount", "default"),
    ("PriorityClass", "system-cluster-critical"),
    ("PriorityClass", "system-node-critical"),
})  # fmt: skip
"""Objects that Kubernetes creates again when they are missing. Pods that are refused meanwhile have events."""


@Row(
    id="P07",
    title="Referenced object does not exist",
    severity="warning",
    kinds=("Pod", "Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job"),
    needs=("ConfigMap", "Secret", "PersistentVolumeClaim", "ServiceAccount"),
    reads=(
        "names and keys in spec.template.spec: env, envFrom, volumes, projected volumes",
        "serviceAccountName, imagePullSecrets, priorityClassName, runtimeClassName",
    ),
    explanation=(
        "A pod template names a ConfigMap, Secret, key, claim, account or class that does not exist. Running pods are "
        "not affected, but new pods cannot start. References with optional: true are ignored. Rules P05 and P08a "
        "report references that already prevent a pod from starting. Only the names of Secrets are read, not their "
        "keys."
    ),
)
def missing_reference(state: ClusterState) -> Iterator[Fault]:
    for template in pod_templates(state):
        if _done(template) or state.age_seconds(template.workload) < state.grace_seconds:
            continue
        for reference in references_of(template.spec):
            if reference.optional:
                continue
            missing = _missing(reference, template, state)
            if missing is not None and not _bitten(reference, template, state):
                yield _static_fault(missing, reference, template)


def _done(template: PodTemplate) -> bool:
    """Return whether a workload needs no new pods: it is over, or a Job whose pods run."""
    workload = template.workload
    if workload.kind == "Job" and integer(workload.body, "status", "ready"):
        return True
    over = any(text(workload.condition(kind), "status") == "True" for kind in ("Complete", "Failed"))
    return over or workload.text("status", "phase") in {"Succeeded", "Failed"}


def _missing(reference: Reference, template: PodTemplate, state: ClusterState) -> Missing | None:
    namespace = template.workload.namespace
    if (reference.kind, reference.name) in _MADE_BY_KUBERNETES:
        return None
    if lacks_key(reference, namespace, state):
        return missing_key(reference, template.workload, state)
    picked = reference.key and reference.use == "volume"
    if picked or not state.is_missing(reference.kind, namespace if reference.namespaced else "", reference.name):
        return None
    return missing_object(reference, namespace, state)


def _bitten(reference: Reference, template: PodTemplate, state: ClusterState) -> bool:
    """Return whether a pod already fails because of the reference. Another rule then reports the fault."""
    pods = state.pods_of(template.workload)
    if reference.use == "pull secret":
        return any("Image" in text(each.waiting, "reason") for pod in pods for each in containers_of(pod))
    return any(
        reference.name in said or (reference.key and reference.key in said)
        for pod in pods
        for said in (
            text(pod.condition("PodScheduled"), "message"),
            *(text(each.waiting, "message") for each in containers_of(pod)),
            *(
                each.message
                for each in state.events_of(pod, "FailedMount", "FailedAttachVolume")
                if pod.text("status", "phase") == "Pending"
            ),
        )
    )


def _static_fault(missing: Missing, reference: Reference, template: PodTemplate) -> Fault:
    workload = template.workload
    named = reference.key if missing.path == reference.key_path else reference.name
    wrong = value(workload, f"{template.path}.{missing.path}", named)
    return Fault(
        subject=workload.ref,
        culprit=missing.culprit,
        title=missing.title,
        severity=_severity(reference, template),
        cause=f"{_sentence(missing, reference, str(workload.ref))}; new pods of the workload cannot start",
        evidence=(
            wrong,
            *missing.proof,
        ),
        next_check=missing.next_check,
        fix=(missing.fix(wrong, workload.ref),),
    )


def _severity(reference: Reference, template: PodTemplate) -> Severity:
    """Return info for a workload without pods or for a pull secret (which might not be required), otherwise warning."""
    workload = template.workload
    idle = workload.at("spec", "replicas") == 0 or boolean(workload.body, "spec", "suspend")
    return "info" if idle or reference.use == "pull secret" else "warning"
