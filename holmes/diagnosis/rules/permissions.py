"""ServiceAccounts that may not do what their pods need, and pods that have no token for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.access_review import accounts_that_may, reason_of
from holmes.diagnosis.facts.denials import denials_in, misses_token
from holmes.diagnosis.facts.templates import template_of
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import at, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.access_review import Reason
    from holmes.diagnosis.facts.denials import Denial
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence, ObjectRef

_RECENT_SECONDS: Final = 3_600


@Row(
    id="R01",
    title="ServiceAccount lacks a permission",
    severity="critical",
    kinds=("Pod", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"),
    reads=(
        "logs and events: is forbidden: User system:serviceaccount:…",
        "Role rules[]", "RoleBinding subjects[]", "RoleBinding roleRef",
    ),
    explanation="The API server denied a request of a pod's ServiceAccount. The roles and bindings say why: a rule "
    "lacks the verb, the resource or the API group or has a slip in it, a binding names another subject, namespace or "
    "a role that does not exist, or there is no binding at all. Seen in logs that were read for other faults, and in "
    "events. A denial that would be allowed by now is not reported.",
)  # fmt: skip
def denied(state: ClusterState) -> Iterator[Fault]:
    """Denied requests of ServiceAccounts, each once."""
    told: set[Denial] = set()
    for denial, proof, pod in _denials(state):
        if denial in told or not denial.account:
            continue
        told.add(denial)
        reason = reason_of(state, denial)
        if reason is None and _may_judge(state):
            continue
        culprit, values = _culprit(state, denial, reason, pod)
        unseen = "; whether its roles allow it by now could not be looked at"
        why = f": {reason.why}" if reason is not None else unseen
        yield Fault(
            subject=denial.service_account,
            culprit=culprit,
            cause=f"{denial.service_account} may not {denial.request}{why}",
            evidence=(*values, *(reason.evidence if reason is not None else ()), proof),
            next_check=_check(denial),
        )


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
    """The workload when it runs as `default` and another account was made for it, else what the review says."""
    unbound = reason is None or reason.culprit == denial.service_account
    others = accounts_that_may(state, denial) if unbound and denial.account == "default" else ()
    if pod is not None and others:
        workload = state.workload_of(pod)
        path = f"{template_of(workload).path}.serviceAccountName"
        written = text(template_of(workload).spec, "serviceAccountName") or "(not set)"
        return workload.ref, (evidence.value(workload, path, f"{written}; {others[0]} may do it"),)
    return (reason.culprit if reason is not None else denial.service_account), ()


def _check(denial: Denial) -> str:
    resource = f"{denial.resource}.{denial.group}" if denial.group else denial.resource
    where = f"-n {denial.namespace}" if denial.namespace else "-A"
    account = f"system:serviceaccount:{denial.account_namespace}:{denial.account}"
    return f"kubectl auth can-i {denial.verb} {resource} {where} --as={account}"


@Row(
    id="R02",
    title="Pod has no token of its ServiceAccount",
    severity="critical",
    kinds=("Pod", "ServiceAccount"),
    reads=("spec.automountServiceAccountToken", "ServiceAccount automountServiceAccountToken", "logs"),
    explanation="The application asks the Kubernetes API and looks for a token that was not mounted, because "
    "automountServiceAccountToken is false in the pod or in its ServiceAccount. A false that nothing complains about "
    "is good practice and no fault.",
)
def without_token(state: ClusterState) -> Iterator[Fault]:
    """Pods that complain about a missing token while mounting it is switched off."""
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
                cause=f"container {key.container} of {state.workload_of(pod).ref} asks the Kubernetes API but has no "
                f"token: {switch.path} of {switch.object} is false",
                evidence=(switch, evidence.log_line(pod, key.container, line, previous=key.previous)),
                next_check=f"kubectl -n {pod.namespace} get pod {pod.name} -o yaml",
            )


def _switched_off(state: ClusterState, pod: ClusterObject) -> Evidence | None:
    """Where mounting is switched off; the pod's own word counts before its account's."""
    own = pod.at("spec", "automountServiceAccountToken")
    if own is False:
        workload = state.workload_of(pod)
        path = f"{template_of(workload).path}.automountServiceAccountToken"
        return evidence.value(workload, path, at(template_of(workload).spec, "automountServiceAccountToken"))
    account = state.get("ServiceAccount", pod.namespace, pod.text("spec", "serviceAccountName") or "default")
    if own is None and account is not None and account.at("automountServiceAccountToken") is False:
        return evidence.value(account, "automountServiceAccountToken", account.at("automountServiceAccountToken"))
    return None
