"""Rules for requests that RBAC denies, missing tokens, and bindings or Roles that grant nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.access_review import (
    accounts_that_may,
    allows,
    denials_in,
    is_built_in,
    misses_token,
    reason_of,
    role_of,
)
from holmes.diagnosis.facts.actors import who_changed
from holmes.diagnosis.facts.fixes import changed, corrected
from holmes.diagnosis.facts.status import pod_ready
from holmes.diagnosis.facts.templates import template_of
from holmes.diagnosis.facts.typos import hint, meant
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.cluster_state import LOG_TIME, LogKey
from holmes.kubernetes.fields import at, moment, text, texts
from holmes.kubernetes.kinds import EVENT, KINDS
from holmes.values.expressions import expression
from holmes.values.findings import FixStep, ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.access_review import Denial, Reason
    from holmes.diagnosis.facts.actors import Actor
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence


_RECENT_SECONDS: Final = 3_600
_LATE_PERIODS: Final = 10


@Row(
    id="R01",
    title="ServiceAccount lacks a permission",
    severity="critical",
    kinds=("Pod", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"),
    reads=(
        "Lease spec.renewTime",
        'logs and events that contain "is forbidden: User system:serviceaccount:…"',
        "Role rules[]", "RoleBinding subjects[]", "RoleBinding roleRef",
    ),
    explanation="The API server denied a request of a pod's ServiceAccount. The Roles and bindings show why. A Role "
    "rule may lack or misspell the verb, the resource or the API group. A binding may be missing, or name another "
    "subject, another namespace or a Role that does not exist. Holmes finds denials in events, and in logs that were "
    "read for other faults. Denied requests that are now allowed are not reported. If the program says that it works "
    "without the permission, the severity is info, unless the request is about a Lease that is no longer renewed.",
)  # fmt: skip
def denied(state: ClusterState) -> Iterator[Fault]:
    told: set[Denial] = set()
    for denial, proof, pod in _denials(state):
        if denial in told or not denial.account:
            continue
        told.add(denial)
        reason = reason_of(state, denial)
        if reason is None and _may_judge(state):
            continue
        culprit, values = _culprit(state, denial, reason, pod)
        unseen = "; its current permissions could not be read"
        why = f": {reason.why}" if reason is not None else unseen
        since = _first_denial(state, denial, proof, pod)
        actor = _taken_by(state, denial, since) if reason is not None and not values else None
        yield Fault(
            subject=denial.service_account,
            culprit=culprit,
            severity="info"
            if pod is not None and _does_without(proof.value, pod) and not _lost_lease(state, denial)
            else None,
            cause=f"{denial.service_account} is not allowed to {denial.request}{why}"
            f"{f'; {actor.words}' if actor is not None else ''}",
            evidence=(
                *values,
                *(reason.evidence if reason is not None else ()),
                *(actor.evidence if actor is not None else ()),
                proof,
            ),
            next_check=_check(denial),
            since=since,
            fix=() if values or reason is None else (_permission_fix(state, denial, reason),),
        )


_WITHOUT: Final = expression(
    r"(?i)\b(?:disabled|skip(?:s|ped|ping)?|ignor(?:es|ed|ing)|optional|fall(?:s|ing)? back|fallback|without it)\b"
)


def _does_without(line: str, pod: ClusterObject) -> bool:
    """Return whether the program says that it works without the permission, and its pod is ready."""
    return _WITHOUT.search(line) is not None and pod_ready(pod)


def _lost_lease(state: ClusterState, denial: Denial) -> bool:
    """Return whether the request is about a Lease that is no longer renewed, so that the program does not lead."""
    lease = state.get("Lease", denial.namespace, denial.name) if denial.resource == "leases" else None
    renewed = moment(lease.text("spec", "renewTime")) if lease is not None else None
    period = lease.integer("spec", "leaseDurationSeconds") if lease is not None else 0
    return renewed is not None and state.now - renewed > _LATE_PERIODS * max(1, period)


def _first_denial(state: ClusterState, denial: Denial, proof: Evidence, pod: ClusterObject | None) -> float | None:
    """Return when the request was denied first, if the log has times and a time without denials before it."""
    container = proof.path.removeprefix("log of container ")
    log = state.timed_logs.get(LogKey(pod=pod.ref, container=container, previous=False), "") if pod is not None else ""
    for number, line in enumerate(log.splitlines()):
        stamp = LOG_TIME.match(line)
        if denial.resource in line and any(found == denial for found, _ in denials_in(line)):
            return moment(stamp[1]) if stamp is not None and number else None
    return None


def _taken_by(state: ClusterState, denial: Denial, since: float | None) -> Actor | None:
    """Return who changed or deleted the Role or binding of the ServiceAccount just before its first denied request."""
    if since is None:
        return None
    roles = (*state.of("Role", denial.namespace), *state.of("ClusterRole"))
    names = {denial.account, *(role.name for role in roles if not is_built_in(role) and allows(role, denial))}
    kinds = {"RoleBinding": denial.namespace, "ClusterRoleBinding": "", "Role": denial.namespace, "ClusterRole": ""}
    targets = (ObjectRef(kind=kind, namespace=kinds[kind], name=name) for name in sorted(names) for kind in kinds)
    found = (who_changed(state, each, since, ("delete", "patch", "replace")) for each in targets)
    return next((each for each in found if each is not None), None)


def _may_judge(state: ClusterState) -> bool:
    return all(state.covers(kind) for kind in ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"))


def _denials(state: ClusterState) -> Iterator[tuple[Denial, Evidence, ClusterObject | None]]:
    for key, log in state.logs.items():
        pod = state.find(key.pod)
        if pod is not None:
            for denial, line in denials_in(log):
                yield denial, evidence.log_line(pod, key.container, line, previous=key.previous), pod
    for event in state.events:
        if "is forbidden: User" in event.message and state.now - event.last <= _RECENT_SECONDS:
            for denial, _ in denials_in(event.message):
                if not denial.account_namespace.startswith("kube-"):
                    yield denial, evidence.event(event), state.by_uid(event.uid)


def _culprit(
    state: ClusterState, denial: Denial, reason: Reason | None, pod: ClusterObject | None
) -> tuple[ObjectRef, tuple[Evidence, ...]]:
    """Return the object at fault and additional evidence.

    The evidence is empty unless the workload uses the ServiceAccount `default` but should use another ServiceAccount.
    """
    unbound = reason is None or reason.culprit == denial.service_account
    others = accounts_that_may(state, denial) if unbound and denial.account == "default" else ()
    if pod is not None and others:
        workload = state.workload_of(pod)
        path = f"{template_of(workload).path}.serviceAccountName"
        written = text(template_of(workload).spec, "serviceAccountName") or "(not set)"
        return workload.ref, (evidence.value(workload, path, f"{written}; {others[0]} has the permission"),)
    return (reason.culprit if reason is not None else denial.service_account), ()


def _permission_fix(state: ClusterState, denial: Denial, reason: Reason) -> FixStep | None:
    """Correct the subject of the binding, or add a rule to the bound Role that grants the denied request alone."""
    role = state.find(reason.culprit)
    check = _check(denial)
    if reason.culprit.kind in {"RoleBinding", "ClusterRoleBinding"} and reason.evidence[0].path.startswith("subjects["):
        key = reason.evidence[0].path.rpartition(".")[2]
        right = {"namespace": denial.account_namespace, "name": denial.account, "kind": "ServiceAccount"}[key]
        return replace(corrected(reason.evidence[0], right), check=check) if key != "kind" else None
    if role is None or role.kind not in {"Role", "ClusterRole"} or role.owner is not None:
        return None
    granted = {"apiGroups": [denial.group], "resources": [denial.resource], "verbs": [denial.verb]}
    return replace(changed(role.ref, "rules.-", granted), check=check)


def _check(denial: Denial) -> str:
    resource = f"{denial.resource}.{denial.group}" if denial.group else denial.resource
    where = f"-n {denial.namespace}" if denial.namespace else "-A"
    account = f"system:serviceaccount:{denial.account_namespace}:{denial.account}"
    return f"kubectl auth can-i {denial.verb} {resource} {where} --as={account}"


@Row(
    id="R02",
    title="Pod has no ServiceAccount token",
    severity="critical",
    kinds=("Pod", "ServiceAccount"),
    reads=("spec.automountServiceAccountToken", "ServiceAccount automountServiceAccountToken", "logs"),
    explanation="The application cannot call the Kubernetes API because no token is mounted. The field "
    "automountServiceAccountToken is false in the pod or in its ServiceAccount. For applications that do not call the "
    "API, this value is good practice and is not reported.",
)
def without_token(state: ClusterState) -> Iterator[Fault]:
    for key, log in state.logs.items():
        pod = state.find(key.pod)
        line = next((line for line in log.splitlines() if misses_token(line)), None)
        if pod is None or line is None:
            continue
        switch = _switched_off(state, pod)
        if switch is not None:
            yield Fault(
                subject=switch.object,
                culprit=switch.object,
                cause=f"The container {key.container} of {state.workload_of(pod).ref} calls the Kubernetes API but "
                f"has no token because {switch.path} of {switch.object} is false",
                evidence=(switch, evidence.log_line(pod, key.container, line, previous=key.previous)),
                next_check=f"kubectl -n {pod.namespace} get pod {pod.name} -o yaml",
                fix=(corrected(switch, right=True),),
            )


def _switched_off(state: ClusterState, pod: ClusterObject) -> Evidence | None:
    """Return the field that disables the mounting of the token, or None.

    The pod's field overrides the ServiceAccount's field.
    """
    own = pod.at("spec", "automountServiceAccountToken")
    if own is False:
        workload = state.workload_of(pod)
        path = f"{template_of(workload).path}.automountServiceAccountToken"
        return evidence.value(workload, path, at(template_of(workload).spec, "automountServiceAccountToken"))
    account = state.get("ServiceAccount", pod.namespace, pod.text("spec", "serviceAccountName") or "default")
    if own is None and account is not None and account.at("automountServiceAccountToken") is False:
        return evidence.value(account, "automountServiceAccountToken", account.at("automountServiceAccountToken"))
    return None


_RESOURCES: Final = frozenset(kind.resource for kind in (*KINDS, EVENT))
_GROUPS: Final = frozenset(kind.group for kind in KINDS)
_SYSTEM: Final = "kube-"


@Row(
    id="R01b",
    title="Binding refers to a role that does not exist",
    severity="warning",
    kinds=("RoleBinding", "ClusterRoleBinding"),
    needs=("Role", "ClusterRole"),
    reads=("roleRef.name",),
    explanation="The Role or ClusterRole of a binding does not exist, so the binding grants nothing. Because roleRef "
    "is immutable, create the role, or delete and recreate the binding.",
)
def binding_without_role(state: ClusterState) -> Iterator[Fault]:
    for binding in (*state.of("RoleBinding"), *state.of("ClusterRoleBinding")):
        kind, name = binding.text("roleRef", "kind"), binding.text("roleRef", "name")
        namespace = binding.namespace if kind == "Role" else ""
        if _is_of_system(binding) or kind not in {"Role", "ClusterRole"} or not state.is_missing(kind, namespace, name):
            continue
        existing = [each.name for each in state.of(kind, namespace)]
        missing = ObjectRef(kind=kind, namespace=namespace, name=name)
        yield Fault(
            subject=binding.ref,
            culprit=binding.ref if meant(name, existing) else missing,
            cause=f"{binding.ref} grants nothing, because {missing} does not exist{hint(name, existing)}",
            evidence=(evidence.field(binding, "roleRef", "name"), evidence.field(binding, "subjects")),
            next_check=f"kubectl {f'-n {namespace} ' if namespace else ''}get {kind.lower()}",
        )


def _is_of_system(each: ClusterObject) -> bool:
    return is_built_in(each) or each.namespace.startswith(_SYSTEM) or each.name.startswith("system:")


@Row(
    id="R01c",
    title="Binding names a ServiceAccount that does not exist",
    severity="warning",
    kinds=("RoleBinding", "ClusterRoleBinding"),
    needs=("ServiceAccount",),
    reads=("subjects[].name", "subjects[].namespace"),
    explanation="The subject of a binding does not exist, and its name or namespace is probably wrong. The intended "
    "ServiceAccount therefore does not get the role. A missing subject is not reported if the intended ServiceAccount "
    "cannot be determined.",
)
def binding_without_subject(state: ClusterState) -> Iterator[Fault]:
    for binding in (*state.of("RoleBinding"), *state.of("ClusterRoleBinding")):
        if _is_of_system(binding) or role_of(state, binding) is None:
            continue
        for index, subject in enumerate(binding.children("subjects")):
            name, namespace = text(subject, "name"), text(subject, "namespace")
            if text(subject, "kind") != "ServiceAccount" or not state.is_missing("ServiceAccount", namespace, name):
                continue
            key, right = _slip(state, binding, name, namespace)
            wrong = evidence.value(binding, f"subjects[{index}].{key}", text(subject, key))
            if right:
                yield Fault(
                    subject=binding.ref,
                    cause=f"{binding.ref} grants its role to ServiceAccount {namespace}/{name}, which does not "
                    f"exist; did you mean {right}?",
                    evidence=(wrong,),
                    next_check=f"kubectl -n {namespace} get serviceaccount",
                    fix=(corrected(wrong, right.split("/")[key == "name"]),),
                )


def _slip(state: ClusterState, binding: ClusterObject, name: str, namespace: str) -> tuple[str, str]:
    """Return the wrong field and the intended ServiceAccount, or empty strings if the intention is unclear."""
    slip = meant(name, [each.name for each in state.of("ServiceAccount", namespace)])
    if slip:
        return "name", f"{namespace}/{slip}"
    if name != "default" and state.get("ServiceAccount", binding.namespace, name) is not None:
        return "namespace", f"{binding.namespace}/{name}"
    return "", ""


@Row(
    id="R01d",
    title="Role names a resource that does not exist",
    severity="warning",
    kinds=("Role", "ClusterRole"),
    reads=("rules[].resources", "rules[].apiGroups"),
    explanation="A Role rule names a built-in resource in the singular or with uppercase letters, so the rule grants "
    "nothing. Resource names are plural and lowercase (pods, configmaps, deployments).",
)
def role_with_slip(state: ClusterState) -> Iterator[Fault]:
    for role in (*state.of("Role"), *state.of("ClusterRole")):
        if _is_of_system(role):
            continue
        named = {each for rule in role.children("rules") for each in texts(rule, "resources")}
        for index, rule in enumerate(role.children("rules")):
            if not set(texts(rule, "apiGroups")) <= _GROUPS:
                continue
            for resource in texts(rule, "resources"):
                right = _right_name(resource)
                if right and right not in named:
                    found = evidence.value(role, f"rules[{index}].resources", list(texts(rule, "resources")))
                    yield Fault(
                        subject=role.ref,
                        cause=f"{role.ref} grants nothing for {resource!r}, which is not a resource name; "
                        f"did you mean {right!r}?",
                        evidence=(found, evidence.value(role, f"rules[{index}]", rule)),
                        next_check=f"kubectl api-resources | grep -i {right}",
                        fix=(
                            corrected(
                                found, [right if each == resource else each for each in texts(rule, "resources")]
                            ),
                        ),
                    )


def _right_name(resource: str) -> str:
    """Return the correct name of a built-in resource that is written in the singular or in another case.

    Returns an empty string for all other resource names.
    """
    plain = resource.lower()
    if resource in _RESOURCES or "/" in resource or "*" in resource:
        return ""
    return next((each for each in (plain, f"{plain}s", f"{plain}es", f"{plain[:-1]}ies") if each in _RESOURCES), "")
