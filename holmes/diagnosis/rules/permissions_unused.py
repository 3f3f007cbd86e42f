"""Roles and bindings that cannot give what they seem to give, seen without waiting for a denial."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.access_review import is_built_in, role_of
from holmes.diagnosis.facts.nearest import hint
from holmes.diagnosis.facts.typos import meant
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import text, texts
from holmes.kubernetes.kinds import EVENT, KINDS
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState

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
    explanation="The Role or ClusterRole of a binding does not exist, so the binding gives nothing. roleRef cannot be "
    "changed: the role has to be created, or the binding made anew.",
)
def binding_without_role(state: ClusterState) -> Iterator[Fault]:
    """Bindings whose role is certainly missing."""
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
            cause=f"{binding.ref} gives nothing, because {missing} does not exist{hint(name, existing)}",
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
    explanation="The subject of a binding does not exist, and its name or namespace looks like a slip of one that "
    "does: that ServiceAccount does not get the role. A missing subject that looks like nothing is no fault.",
)
def binding_without_subject(state: ClusterState) -> Iterator[Fault]:
    """Bindings for a ServiceAccount that is evidently misspelt or in another namespace."""
    for binding in (*state.of("RoleBinding"), *state.of("ClusterRoleBinding")):
        if _is_of_system(binding) or role_of(state, binding) is None:
            continue
        for index, subject in enumerate(binding.children("subjects")):
            name, namespace = text(subject, "name"), text(subject, "namespace")
            if text(subject, "kind") != "ServiceAccount" or not state.is_missing("ServiceAccount", namespace, name):
                continue
            key, right = _slip(state, binding, name, namespace)
            if right:
                yield Fault(
                    subject=binding.ref,
                    cause=f"{binding.ref} gives its role to ServiceAccount {namespace}/{name}, which does not exist; "
                    f"{right} does",
                    evidence=(evidence.value(binding, f"subjects[{index}].{key}", text(subject, key)),),
                    next_check=f"kubectl -n {namespace} get serviceaccount",
                )


def _slip(state: ClusterState, binding: ClusterObject, name: str, namespace: str) -> tuple[str, str]:
    """The wrong field and the ServiceAccount that was meant, if that is evident."""
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
    explanation="A rule names a resource of Kubernetes in the singular or misspelt: it allows nothing. Resources are "
    "written in the plural and in lower case (pods, configmaps, deployments).",
)
def role_with_slip(state: ClusterState) -> Iterator[Fault]:
    """Roles with a misspelt resource of a group that Kubernetes itself brings."""
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
                        cause=f"{role.ref} allows nothing for {resource!r}, which is no resource; {right!r} is one",
                        evidence=(found, evidence.value(role, f"rules[{index}]", rule)),
                        next_check=f"kubectl api-resources | grep -i {right}",
                    )


def _right_name(resource: str) -> str:
    """The resource of which this is the singular or another case."""
    plain = resource.lower()
    if resource in _RESOURCES or "/" in resource or "*" in resource:
        return ""
    return next((each for each in (plain, f"{plain}s", f"{plain}es", f"{plain[:-1]}ies") if each in _RESOURCES), "")
