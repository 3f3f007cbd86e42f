"""Rules for PersistentVolumeClaims that are not bound."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.fixes import changed, instruction
from holmes.diagnosis.facts.producers import provisioners_of
from holmes.diagnosis.facts.typos import hint, meant
from holmes.diagnosis.facts.unscheduled import unscheduled_pods
from holmes.diagnosis.facts.volumes import (
    NO_PROVISIONER,
    claim_field,
    class_name,
    classless_volumes,
    is_default,
    mismatches,
    pending_claims,
    pods_by_claim,
    template_of_claim,
    waits_for_consumer,
)
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import children, duration, text, texts
from holmes.values.expressions import expression
from holmes.values.findings import FixStep, ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holmes.kubernetes.cluster_object import ClusterEvent, ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence, Severity

_LONG_GRACES: Final = 5
_MOST: Final = 5
_DEFAULT: Final = "metadata.annotations[storageclass.kubernetes.io/is-default-class]"
_STALE: Final = expression(r"storageclass\S* \S+ not found", re.IGNORECASE)
_CLASS_AT_FAULT: Final = expression(r"invalid|unknown|unsupported|parameter|no such (?:pool|type)", re.IGNORECASE)
_MODE_AT_FAULT: Final = expression(
    r"access ?modes?\b|volume capabilit|(?<!\{mode:)\b(?:MULTI|SINGLE)_NODE_\w+", re.IGNORECASE
)
_SIZE_AT_FAULT: Final = expression(
    r"(?<!message )\b(?:size|capacity|bytes?|\d+[KMGT]i?)\b(?!\": certificate).{0,60}?"
    r"\b(?:less|smaller|lower|greater|larger|bigger) than\b(?!.*\bdisk is full)",
    re.IGNORECASE,
)
"""Refusals of what the claim asks for, not of what its class sets."""


def _severity(claim: ClusterObject, users: Mapping[tuple[str, str], list[ClusterObject]]) -> Severity:
    """Return critical if a pod uses the claim, otherwise warning."""
    return "critical" if users.get((claim.namespace, claim.name)) else "warning"


def _look(claim: ClusterObject) -> str:
    return f"kubectl -n {claim.namespace} describe persistentvolumeclaim {claim.name}"


@Row(
    id="V01",
    title="StorageClass of the claim does not exist",
    severity="critical",
    kinds=("PersistentVolumeClaim",),
    needs=("StorageClass", "PersistentVolume"),
    reads=("spec.storageClassName", "status.phase", "event ProvisioningFailed"),
    explanation="The claim names a StorageClass that does not exist, and no volume has that class name, so no volume "
    "is provisioned. Correct the name (this requires a new claim, and for a StatefulSet a new claim template), or "
    "create the class. The severity is critical when a pod waits for the claim.",
)
def class_missing(state: ClusterState) -> Iterator[Fault]:
    """Report the claim as the culprit if its class name is misspelled, otherwise the missing class."""
    users = pods_by_claim(state)
    for claim in pending_claims(state):
        name = class_name(claim)
        if not name or not state.is_missing("StorageClass", "", name) or classless_volumes(state, name):
            continue
        if not state.covers("PersistentVolume") and not state.events_of(claim, "ProvisioningFailed"):
            continue  # A manually created volume may use this class name, which then needs no StorageClass.
        existing = [each.name for each in state.of("StorageClass")]
        template = template_of_claim(state, claim)
        writer = claim if template is None else template.workload
        missing, right = ObjectRef(kind="StorageClass", name=name), meant(name, existing)
        yield Fault(
            subject=claim.ref,
            culprit=writer.ref if right else missing,
            severity=_severity(claim, users),
            cause=f"{missing} does not exist, but {claim.ref} requests "
            f"it{'' if template is None else f' as {writer.ref} specifies'}{hint(name, existing) or _choice(existing)}",
            evidence=(
                claim_field(state, claim, "storageClassName", name),
                evidence.field(claim, "status", "phase"),
                *map(evidence.event, state.events_of(claim, "ProvisioningFailed")[-1:]),
            ),
            next_check="kubectl get storageclass",
            since=claim.created or None,
            fix=(_recreation(claim, right),) if right and template is None else (),
        )


def _recreation(claim: ClusterObject, right: str) -> FixStep:
    """Say that the claim must be created again, because the API server refuses to change its class."""
    return instruction(
        claim.ref,
        f"Delete {claim.ref}, and create it again with storageClassName {right}. The field cannot be changed.",
    )


def _choice(existing: Sequence[str]) -> str:
    return f"; existing classes: {', '.join(existing[:_MOST])}" if existing else "; no StorageClass exists"


@Row(
    id="V02",
    title="Claim has no StorageClass, and the cluster has no default",
    severity="critical",
    kinds=("PersistentVolumeClaim",),
    needs=("StorageClass", "PersistentVolume"),
    reads=("spec.storageClassName", "StorageClass metadata.annotations", "event FailedBinding"),
    explanation="A claim without `storageClassName` gets the default class, but no class is marked as default. Set "
    "a class in the claim, or mark one as default.",
)
def no_default_class(state: ClusterState) -> Iterator[Fault]:
    if not state.covers("StorageClass") or any(is_default(each) for each in state.of("StorageClass")):
        return
    users = pods_by_claim(state)
    for claim in pending_claims(state):
        if class_name(claim) is not None or claim.text("spec", "volumeName"):
            continue
        classes = state.of("StorageClass")
        names = ", ".join(each.name for each in classes[:_MOST])
        template = template_of_claim(state, claim)
        yield Fault(
            subject=claim.ref,
            culprit=None if template is None else template.workload.ref,
            severity=_severity(claim, users),
            cause=f"{claim.ref} has no storageClassName and no StorageClass is the default, so no volume is "
            f"provisioned; {f'existing classes: {names}' if names else 'no StorageClass exists'}",
            evidence=(
                claim_field(state, claim, "storageClassName", "(not set)"),
                *(evidence.value(each, _DEFAULT, "(not set)") for each in classes[:_MOST]),
                *map(evidence.event, state.events_of(claim, "FailedBinding")[-1:]),
            ),
            next_check="kubectl get storageclass",
            since=claim.created or None,
            fix=(changed(claim.ref, "spec.storageClassName", classes[0].name),) if len(classes) == 1 else (),
        )


@Row(
    id="V03",
    title="Claim waits for its pod, which cannot be scheduled",
    severity="info",
    kinds=("PersistentVolumeClaim", "Pod"),
    needs=("StorageClass",),
    reads=("StorageClass volumeBindingMode", "event WaitForFirstConsumer"),
    explanation="If the StorageClass uses WaitForFirstConsumer, a volume is provisioned only after a pod that uses the "
    "claim is scheduled. This is normal. The claim is reported only when its pod cannot be scheduled for another "
    "reason.",
)
def waits_for_pod(state: ClusterState) -> Iterator[Fault]:
    stuck = {found.pod.uid: found for found in unscheduled_pods(state) if found.main.reason != "volume"}
    if not stuck:
        return
    users = pods_by_claim(state)
    for claim in pending_claims(state):
        pods = [pod for pod in users.get((claim.namespace, claim.name), ()) if pod.uid in stuck]
        if not pods or not waits_for_consumer(state, claim):
            continue
        yield Fault(
            subject=claim.ref,
            culprit=claim.ref,
            role="symptom",
            cause=f"{claim.ref} is bound only after {pods[0].ref} is scheduled, but no node can run that pod",
            evidence=(evidence.field(claim, "status", "phase"), stuck[pods[0].uid].proof),
            next_check=_look(claim),
            because=tuple(state.workload_of(pod).ref for pod in pods),
        )


@Row(
    id="V04",
    title="Volume is not provisioned",
    severity="critical",
    kinds=("PersistentVolumeClaim",),
    needs=("StorageClass",),
    reads=("status.phase", "event ProvisioningFailed", "event ExternalProvisioning", "StorageClass provisioner"),
    explanation=(
        "The class exists, but its provisioner has created no volume for longer than five grace periods. Either the "
        "provisioner cannot create the volume and its event shows why (quota, parameters, permissions), or no "
        "provisioner with this name is running. Check the provisioner's pods, and the class fields `provisioner` and "
        "`parameters`."
    ),
)
def not_provisioned(state: ClusterState) -> Iterator[Fault]:
    """Report the class as the culprit if its provisioner is down or rejects its parameters, otherwise the claim."""
    users = pods_by_claim(state)
    for claim in pending_claims(state, _LONG_GRACES):
        storage_class = _class_of(state, claim)
        if storage_class is None or claim.text("spec", "volumeName") or waits_for_consumer(state, claim):
            continue
        if storage_class.text("provisioner") in {"", NO_PROVISIONER}:
            continue
        refusals = [each for each in state.events_of(claim, "ProvisioningFailed") if not _STALE.search(each.message)]
        yield _not_provisioned(state, claim, storage_class, refusals[-1:], _severity(claim, users))


def _class_of(state: ClusterState, claim: ClusterObject) -> ClusterObject | None:
    name = class_name(claim)
    return state.get("StorageClass", "", name) if name else None


def _not_provisioned(
    state: ClusterState,
    claim: ClusterObject,
    storage_class: ClusterObject,
    refusals: list[ClusterEvent],
    severity: Severity,
) -> Fault:
    provisioner = storage_class.text("provisioner")
    waiting = state.events_of(claim, "ExternalProvisioning")[-1:]
    makers = _provisioner_pods(state, provisioner)
    workloads = tuple(dict.fromkeys(state.workload_of(pod).ref for pod in makers))
    workloads = workloads or provisioners_of(state, provisioner)
    own = claim_field(state, claim, "storageClassName", storage_class.name)
    made_by = evidence.field(storage_class, "provisioner")
    refused = _refused(state, claim, refusals[0].message) if refusals else None
    blames_class = refused is None and (not refusals or bool(_CLASS_AT_FAULT.search(refusals[0].message)))
    values: tuple[Evidence, ...] = (own, made_by)
    if refused is not None:
        why = f"provisioner {provisioner} refuses its {refused.path} ({refused.value}): {refusals[0].message}"
        values = (refused, own, made_by)
    elif refusals:
        why = f"provisioner {provisioner} cannot create the volume: {refusals[0].message}"
        parameters = evidence.field(storage_class, "parameters")
        values = (parameters, own, made_by) if blames_class and storage_class.at("parameters") else values
    elif workloads:
        why = f"provisioner {provisioner} does not respond, although {workloads[0]} exists"
        values = (made_by, own)
    else:
        why = f"provisioner {provisioner} of StorageClass {storage_class.name} does not respond"
        values = (made_by, own)
    return Fault(
        subject=claim.ref,
        culprit=storage_class.ref if blames_class else None,
        severity=severity,
        cause=f"{claim.ref} has had no volume for {duration(state.age_seconds(claim))}: {why}",
        evidence=(*values, evidence.field(claim, "status", "phase"), *map(evidence.event, (*refusals, *waiting))),
        next_check=_look(claim),
        because=workloads,
        since=claim.created or None,
    )


def _refused(state: ClusterState, claim: ClusterObject, message: str) -> Evidence | None:
    """Return the field of the claim that the driver cannot fulfil, or None."""
    if _MODE_AT_FAULT.search(message):
        return claim_field(state, claim, "accessModes", claim.at("spec", "accessModes"))
    size = claim.text("spec", "resources", "requests", "storage")
    return claim_field(state, claim, "resources.requests.storage", size) if _SIZE_AT_FAULT.search(message) else None


def _provisioner_pods(state: ClusterState, provisioner: str) -> list[ClusterObject]:
    """Return pods that seem to be the provisioner, because their arguments or variables contain its name."""
    return [
        pod
        for pod in state.of("Pod")
        if any(
            any(provisioner in argument for argument in (*texts(each, "args"), *texts(each, "command")))
            or any(provisioner == text(variable, "value") for variable in children(each, "env"))
            for each in pod.children("spec", "containers")
        )
    ][:_MOST]


@Row(
    id="V05",
    title="No PersistentVolume fits the claim",
    severity="critical",
    kinds=("PersistentVolumeClaim", "PersistentVolume"),
    needs=("StorageClass",),
    reads=("spec", "PersistentVolume spec", "PersistentVolume status.phase", "event FailedBinding"),
    explanation="The claim requires a manually created volume, and no existing volume fits. The volumes are too "
    "small, have another access mode, class or labels, or are still reserved for a deleted claim (Released). The "
    "closest volume is shown with the differences. A Released volume becomes available when its `spec.claimRef` is "
    "removed.",
)
def no_volume_fits(state: ClusterState) -> Iterator[Fault]:
    if not state.covers("PersistentVolume"):
        return
    users = pods_by_claim(state)
    for claim in pending_claims(state):
        if _is_static(state, claim):
            yield _no_fit(state, claim, _severity(claim, users))


def _is_static(state: ClusterState, claim: ClusterObject) -> bool:
    """Return whether the claim can be bound only to an existing volume."""
    name = class_name(claim)
    if claim.text("spec", "volumeName"):
        return state.age_seconds(claim) >= _LONG_GRACES * state.patience_seconds or state.is_missing(
            "PersistentVolume", "", claim.text("spec", "volumeName")
        )
    if name is None or waits_for_consumer(state, claim):
        return False
    if not name:
        return True
    storage_class = state.get("StorageClass", "", name)
    if storage_class is not None:
        return storage_class.text("provisioner") == NO_PROVISIONER
    return state.covers("StorageClass") and bool(classless_volumes(state, name))


def _no_fit(state: ClusterState, claim: ClusterObject, severity: Severity) -> Fault:
    wanted = claim.text("spec", "volumeName")
    volumes = [each for each in state.of("PersistentVolume") if wanted in {"", each.name}]
    ranked = sorted(
        ((mismatches(claim, each), each) for each in volumes),
        key=lambda each: (each[1].text("status", "phase") == "Bound", len(each[0]), each[1].name),
    )
    asked = claim.text("spec", "resources", "requests", "storage")
    modes = ", ".join(texts(claim.at("spec"), "accessModes"))
    culprit, own = claim.ref, claim_field(state, claim, "storageClassName", claim.at("spec", "storageClassName"))
    values: list[Evidence] = [own]
    if wanted and not volumes:
        existing = [each.name for each in state.of("PersistentVolume")]
        why = f"PersistentVolume {wanted} does not exist{hint(wanted, existing)}"
        values = [claim_field(state, claim, "volumeName", wanted)]
    elif not ranked:
        why = "no PersistentVolume exists"
    else:
        reasons, near = ranked[0]
        differences = "; ".join(each for _, each in reasons) or "its binding is not finished"
        why = f"the closest volume is {near.name}: {differences}"
        values = [_claim_side(state, claim, path) for path, _ in reasons] or values
        values += [evidence.value(near, path, near.at(*path.split("."))) for path, _ in reasons]
        if [path for path, _ in reasons] == ["spec.claimRef"] and near.text("status", "phase") == "Released":
            culprit, values = near.ref, values[::-1]
    return Fault(
        subject=claim.ref,
        culprit=culprit,
        severity=severity,
        cause=f"No PersistentVolume fits {claim.ref} ({asked}, {modes}): {why}",
        evidence=(*values, *map(evidence.event, state.events_of(claim, "FailedBinding", "VolumeMismatch")[-1:])),
        next_check="kubectl get persistentvolume",
        since=claim.created or None,
    )


_CLAIM_FIELDS: Final = {
    "spec.accessModes": "accessModes",
    "spec.capacity.storage": "resources.requests.storage",
    "spec.volumeMode": "volumeMode",
    "metadata.labels": "selector",
    "spec.claimRef": "volumeName",
}


def _claim_side(state: ClusterState, claim: ClusterObject, path: str) -> Evidence:
    """Return the claim's field that conflicts with the volume's field at `path`."""
    field = _CLAIM_FIELDS.get(path, "storageClassName")
    found = claim.at("spec", *field.split("."))
    return claim_field(state, claim, field, "(not set)" if found is None else found)
