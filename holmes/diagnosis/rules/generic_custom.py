"""Rules for custom resources, which are judged by their status."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.access_review import denials_in, reason_of, role_of
from holmes.diagnosis.facts.admission import QUOTA
from holmes.diagnosis.facts.chaos import action_of, explains, is_over, kraken_image, kraken_runs, targets_of
from holmes.diagnosis.facts.custom_health import Trouble
from holmes.diagnosis.facts.custom_links import made_by, named_in
from holmes.diagnosis.facts.custom_reasons import with_reason
from holmes.diagnosis.facts.custom_resources import (
    describe,
    failed_later,
    intent_of,
    is_paused,
    is_superseded,
    missing_object,
    resource_of,
    trouble_of,
)
from holmes.diagnosis.facts.custom_table import row_of
from holmes.diagnosis.facts.custom_words import SAYS_WHY, gist, specificity
from holmes.diagnosis.facts.fixes import corrected, provided
from holmes.diagnosis.facts.producers import controllers_of, producers_of
from holmes.diagnosis.facts.typos import hint, meant
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import child, children, duration, integer, text, texts
from holmes.values.expressions import expression
from holmes.values.findings import FixStep, ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence
    from holmes.values.json_types import JsonObject

_GATEWAY: Final = "gateway.networking.k8s.io"
_NAMED: Final = expression(r"(?:^|\.)(?:cert-manager\.io|argoproj\.io|toolkit\.fluxcd\.io)$")
_READS: Final = ("status.conditions", "status.phase", "status.observedGeneration", "metadata.ownerReferences")
_LONG_GRACES: Final = 5
_CERTIFICATES: Final = "cert-manager.io"
_ARGO: Final = "argoproj.io"
_ARGO_ERRORS: Final = expression(r"Error$")


@Row(
    id="G01",
    title="Custom resource reports a fault",
    severity="critical",
    kinds=("CustomResourceDefinition",),
    reads=_READS,
    explanation="Operators report the health of their objects in the status. After a grace period, the rule reports a "
    "condition such as Ready that is False, a condition such as Stalled that is True, and a phase such as Failed. It "
    "also reports an object that stays in progress for too long. A table contains the fields of well-known operators. "
    "Conditions with unknown names are ignored because their meaning is unknown. Suspended and paused objects are "
    "reported by G03. If the message names an object that does not exist, the missing object is the culprit. If an "
    "object and its owner both fail, the owner is reported as a symptom.",
)
def custom_resource(state: ClusterState) -> Iterator[Fault]:
    others = [each for each in state.custom_resources if each.group != _GATEWAY and not _NAMED.search(each.group)]
    yield from _faults(state, others)


@Row(
    id="G02",
    title="Argo CD, Flux or cert-manager resource reports a fault",
    severity="critical",
    kinds=("CustomResourceDefinition",),
    reads=(*_READS, "Application status.health.status", "Application status.operationState", "spec.dependsOn"),
    explanation="The rule checks the status and dependencies of cert-manager Certificates, Argo CD Applications, and "
    "Flux Kustomizations and HelmReleases. A Certificate depends on its request and its issuer. A Kustomization "
    "depends on its source and on the objects in `dependsOn`. An object that fails because of a failing dependency is "
    "reported as a symptom. An Application that is only OutOfSync has severity info.",
)
def delivery(state: ClusterState) -> Iterator[Fault]:
    named = [each for each in state.custom_resources if _NAMED.search(each.group)]
    yield from _faults(state, named)


@Row(
    id="G03",
    title="Custom resource is suspended, or a chaos experiment is running",
    severity="info",
    kinds=("CustomResourceDefinition",),
    reads=("spec.suspend", "spec.paused", "metadata.annotations", "status.conditions", "status.phase"),
    explanation="Operators do not process suspended and paused objects, so changes have no effect and their "
    "faults are not repaired. Chaos experiments, and runs of Kraken, make other objects fail on purpose. Both are "
    "information and not faults. An experiment is the cause of the faults of a workload only if it selects its pods, "
    "began shortly before the faults, and makes faults of this kind.",
)
def intended(state: ClusterState) -> Iterator[Fault]:
    for each in state.custom_resources:
        trouble = intent_of(state, each)
        if trouble is not None:
            yield _fault(state, each, trouble, (), behind=False)
            yield from _disturbed(state, each, (*trouble.proof, evidence.field(each, "spec")))
    for pod in kraken_runs(state):
        yield from _disturbed(state, pod, (evidence.value(pod, "spec.containers[].image", kraken_image(pod)),))


def _disturbed(state: ClusterState, experiment: ClusterObject, proof: tuple[Evidence, ...]) -> Iterator[Fault]:
    """Report the workloads that a running chaos experiment disturbs. A run of Kraken is that of its Job.

    This is information unless the experiment explains the faults of the workload.
    """
    culprit = state.workload_of(experiment).ref if experiment.kind == "Pod" else experiment.ref
    for ref in targets_of(state, experiment) if not is_over(state, experiment) else ():
        workload = state.find(ref)
        sick = workload is not None and explains(state, experiment, workload)
        action = action_of(experiment)
        yield Fault(
            subject=ref,
            culprit=culprit,
            title="Chaos experiment disturbs the workload",
            severity="critical" if sick else "info",
            cause=f"The chaos experiment {culprit}{f' ({action})' if action else ''} is running against {ref}",
            evidence=proof,
            next_check=_log_of(experiment) if experiment.kind == "Pod" else describe(state, experiment),
            since=experiment.created,
        )


def _log_of(pod: ClusterObject) -> str:
    return f"kubectl -n {pod.namespace} logs {pod.name} --tail=50"


def _unprocessed(state: ClusterState, objects: Iterable[ClusterObject]) -> Iterator[Fault]:
    """Report objects without a status whose operator is not running, or lacks a permission.

    Objects without a known operator are ignored.
    """
    for each in objects:
        young = state.age_seconds(each) < _LONG_GRACES * state.patience_seconds
        if young or each.child("status") or each.deleted is not None or is_paused(each):
            continue
        operators = [found for ref in controllers_of(state, each.kind, each.group) if (found := state.find(ref))]
        if not operators:
            yield from _hindered(state, each)
        if operators and not any(found.integer("status", "readyReplicas") for found in operators):
            yield Fault(
                subject=each.ref,
                role="symptom",
                title="Custom resource is not processed",
                cause=f"{each.ref} has no status after {duration(state.age_seconds(each))}, because its operator "
                f"{operators[0].ref} is not running",
                evidence=(
                    evidence.value(each, "status", "(none)"),
                    evidence.value(operators[0], "status.readyReplicas", 0),
                ),
                next_check=describe(state, each),
                because=tuple(found.ref for found in operators),
                since=each.created,
            )


def _hindered(state: ClusterState, each: ClusterObject) -> Iterator[Fault]:
    """Report an object without a status if the API server denies requests of the account that may write its status."""
    denied = {
        denial.service_account: (key.pod, denial)
        for key, log in state.logs.items()
        for denial, _ in denials_in(log)
        if reason_of(state, denial) is not None
    }
    for account, (ref, denial) in denied.items():
        pod = state.find(ref)
        if pod is not None and _may_write_status(state, account, each):
            operator = state.workload_of(pod)
            yield Fault(
                subject=each.ref,
                role="symptom",
                title="Custom resource is not processed",
                cause=f"{each.ref} has no status after {duration(state.age_seconds(each))}; {operator.ref}, which may "
                f"write it, is not allowed to {denial.request}",
                evidence=(evidence.value(each, "status", "(none)"),),
                next_check=describe(state, each),
                because=(account,),
                since=each.created,
            )


def _may_write_status(state: ClusterState, account: ObjectRef, each: ClusterObject) -> bool:
    """Return whether a Role allows exactly this kind's status, which only an operator of the kind needs."""
    status = f"{resource_of(state, each.kind, each.group)}/status"
    for binding in (*state.of("RoleBinding", each.namespace), *state.of("ClusterRoleBinding")):
        subjects = ((text(one, "namespace"), text(one, "name")) for one in binding.children("subjects"))
        role = role_of(state, binding) if (account.namespace, account.name) in subjects else None
        for rule in role.children("rules") if role is not None else ():
            writes = {"update", "patch", "*"} & set(texts(rule, "verbs"))
            if writes and each.group in texts(rule, "apiGroups") and status in texts(rule, "resources"):
                return True
    return False


def _faults(state: ClusterState, objects: Iterable[ClusterObject]) -> Iterator[Fault]:
    objects = tuple(objects)
    troubled = {
        each.ref: (each, trouble)
        for each in objects
        if (trouble := _special(state, each) or trouble_of(state, each)) and not is_superseded(state, each)
    }
    yield from _unprocessed(state, [each for each in objects if each.ref not in troubled])
    for each, reported in troubled.values():
        trouble = with_reason(state, each, row_of(each.kind, each.group), reported)
        needed = tuple(dict.fromkeys(_behind(state, each, trouble)))
        yield _fault(state, each, trouble, needed, behind=any(ref in troubled for ref in needed))


_STORES: Final = frozenset({"SecretStore", "ClusterSecretStore"})


def _behind(state: ClusterState, each: ClusterObject, trouble: Trouble) -> Iterator[ObjectRef]:
    """Yield the objects whose faults would explain the trouble, but no products, which suffer from it.

    An object that is only named counts if the words of the trouble name it, too, or if they do not say why. A store of
    secrets counts anyway, because whatever reads from it fails with it.
    """
    owned = (found.ref for found in _owned(state, each))
    yield from (ref for ref in owned if each.ref not in producers_of(state, ref))
    yield from made_by(state, each)
    yield from (ref for ref in _needs(each) if ref != each.ref)
    unclear = specificity(trouble.words, each) < SAYS_WHY
    for ref in named_in(state, each):
        if ref.kind in _STORES and failed_later(state, ref, trouble):
            continue
        if unclear or ref.kind in _STORES or re.search(rf"(?<![\w.-]){re.escape(ref.name)}(?![\w-])", trouble.words):
            yield ref


def _owned(state: ClusterState, each: ClusterObject) -> tuple[ClusterObject, ...]:
    return state.owned_by(each) if each.uid else ()


def _fault(
    state: ClusterState, each: ClusterObject, trouble: Trouble, needed: tuple[ObjectRef, ...], *, behind: bool
) -> Fault:
    missing = missing_object(state, each, trouble.why)
    culprit, title, more, proof = _quota(state, each, trouble.why) or each.ref, trouble.title, "", trouble.proof
    fix: FixStep | None = None
    if missing is not None:
        existing = [found.name for found in state.of(missing.ref.kind, missing.ref.namespace)]
        right = meant(missing.ref.name, existing)
        fix = corrected(missing.written, right) if missing.written and right else provided(missing.ref, each.ref)
        more = f"; {missing.ref} does not exist{hint(missing.ref.name, existing)}"
        culprit = each.ref if right else missing.ref
        proof = proof if missing.written is None else (missing.written, *proof)
    return Fault(
        subject=each.ref,
        culprit=culprit,
        title=title,
        severity=trouble.severity,
        role="symptom" if behind else "cause",
        cause=f"{each.ref}: {trouble.why.rstrip('.')}{more}",
        evidence=proof,
        next_check=describe(state, each),
        because=needed,
        since=trouble.since,
        fix=(fix,),
    )


def _quota(state: ClusterState, each: ClusterObject, why: str) -> ObjectRef | None:
    """Return the quota that refused what the controller wanted to create, or None."""
    named = QUOTA.search(why)
    places = (each.namespace, each.text("spec", "destination", "namespace"), each.text("spec", "targetNamespace"))
    found = (state.get("ResourceQuota", place, named["quota"]) for place in places) if named else ()
    return next((quota.ref for quota in found if quota is not None), None)


def _needs(each: ClusterObject) -> Iterator[ObjectRef]:
    """Yield the objects that `each` depends on, such as an issuer or a source."""
    if each.group == _CERTIFICATES:
        yield from _issuer(each)
    elif each.group == _ARGO:
        yield from _unhealthy_parts(each)
    elif each.group.endswith("toolkit.fluxcd.io"):
        for other in children(each.body, "spec", "dependsOn"):
            yield _ref(each, other, each.kind, each.group)
        for source in (each.child("spec", "sourceRef"), each.child("spec", "chart", "spec", "sourceRef")):
            if source:
                yield _ref(each, source, text(source, "kind"), "source.toolkit.fluxcd.io")


def _issuer(each: ClusterObject) -> Iterator[ObjectRef]:
    issuer = each.child("spec", "issuerRef")
    kind = text(issuer, "kind") or "Issuer"
    if text(issuer, "name") and text(issuer, "group") in {"", _CERTIFICATES}:
        place = "" if kind == "ClusterIssuer" else each.namespace
        yield ObjectRef(kind=kind, name=text(issuer, "name"), namespace=place, group=_CERTIFICATES)


def _ref(each: ClusterObject, named: JsonObject, kind: str, group: str) -> ObjectRef:
    return ObjectRef(
        kind=kind, name=text(named, "name"), namespace=text(named, "namespace") or each.namespace, group=group
    )


def _unhealthy_parts(each: ClusterObject) -> Iterator[ObjectRef]:
    """Yield the objects of an Application that are degraded, missing or progressing."""
    for part in each.children("status", "resources"):
        if text(part, "health", "status") in {"Degraded", "Missing", "Progressing"}:
            group = text(part, "group")
            custom = "." in group and not group.endswith(".k8s.io")
            yield ObjectRef(
                kind=text(part, "kind"),
                name=text(part, "name"),
                namespace=text(part, "namespace"),
                group=group if custom else "",
            )


def _special(state: ClusterState, each: ClusterObject) -> Trouble | None:
    """Return the fault of an Application or a Certificate, or None if it has no fault."""
    if each.deleted is not None or is_paused(each) or state.age_seconds(each) < state.grace_seconds:
        return None
    if each.group == _ARGO and each.kind == "Application":
        return _application(each)
    return _missing_issuer(state, each) if each.group == _CERTIFICATES and each.kind == "Certificate" else None


def _application(each: ClusterObject) -> Trouble | None:
    health, sync = each.child("status", "health"), each.text("status", "sync", "status")
    operation = each.child("status", "operationState")
    errors = [found for found in each.children("status", "conditions") if _ARGO_ERRORS.search(text(found, "type"))]
    phase, message = text(operation, "phase"), text(operation, "message")
    retried = phase == "Running" and integer(operation, "retryCount") and specificity(message, each) >= SAYS_WHY
    if phase in {"Failed", "Error"} or retried:
        head = "the running sync is retried" if retried else f"the last sync ended in phase {phase}"
        proof = evidence.field(each, "status", "operationState", "message")
        return _told(each, "Application cannot be synced", head, message, proof)
    if errors:
        kind, message = text(errors[0], "type"), text(errors[0], "message")
        proof = evidence.value(each, f"status.conditions[type={kind}].message", message)
        return _told(each, f"Application has {kind}", kind, message, proof)
    if text(health, "status") in {"Degraded", "Missing"}:
        status = text(health, "status")
        proof = evidence.field(each, "status", "health", "status")
        return _told(
            each, f"Application is {status.lower()}", f"its health is {status}", text(health, "message"), proof
        )
    if sync == "OutOfSync":
        return Trouble(
            title="Application is out of sync",
            head="its live objects differ from its source (OutOfSync)",
            severity="info",
            proof=(evidence.field(each, "status", "sync", "status"),),
        )
    return None


def _told(each: ClusterObject, title: str, head: str, words: str, proof: Evidence) -> Trouble:
    parts = (evidence.value(each, "status.resources", part) for part in _bad_parts(each))
    return Trouble(title=title, head=head, words=gist(words), severity="critical", proof=(proof, *parts))


def _bad_parts(each: ClusterObject) -> Iterator[JsonObject]:
    for part in each.children("status", "resources"):
        if text(part, "health", "status") in {"Degraded", "Missing"}:
            yield {**{key: part[key] for key in ("kind", "namespace", "name") if key in part}, **child(part, "health")}


def _missing_issuer(state: ClusterState, each: ClusterObject) -> Trouble | None:
    """Return the fault of a Certificate with a missing issuer, or None.

    The Certificate cannot become ready without its issuer.
    """
    if text(each.condition("Ready"), "status") == "True":
        return None
    for issuer in _issuer(each):
        kind = f"{issuer.kind}.{issuer.group}"
        if not state.is_missing(kind, issuer.namespace, issuer.name) or not _is_known(state, issuer):
            continue
        existing = [found.name for found in state.of(kind, issuer.namespace)]
        return Trouble(
            title=f"{issuer.kind} for a certificate is missing",
            head=f"its issuer {issuer} does not exist{hint(issuer.name, existing)}",
            severity="critical",
            proof=(
                evidence.field(each, "spec", "issuerRef", "name"),
                evidence.value(each, "status.conditions[type=Ready]", each.condition("Ready")),
            ),
        )
    return None


def _is_known(state: ClusterState, ref: ObjectRef) -> bool:
    """Return whether a CustomResourceDefinition for the kind of `ref` exists."""
    return any(
        found.text("spec", "group") == ref.group and found.text("spec", "names", "kind") == ref.kind
        for found in state.of("CustomResourceDefinition")
    )
