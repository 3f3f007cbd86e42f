"""Finds requests that the API server denied, and the Role or binding that must be changed to allow them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.typos import hint, meant
from holmes.kubernetes.fields import text, texts
from holmes.values.expressions import expression
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence
    from holmes.values.json_types import JsonObject


_QUOTE: Final = r"\\{0,3}\""
_DENIED: Final = expression(
    rf"(?:[\w.-]{{1,80}} {_QUOTE}(?P<name>[^\"\\]{{1,253}}){_QUOTE} )?is forbidden: "
    rf"User {_QUOTE}system:serviceaccount:(?P<account_namespace>[^:\"\\]{{1,63}}):(?P<account>[^\"\\]{{1,253}}){_QUOTE}"
    rf" cannot (?P<verb>[\w*-]{{1,40}}) resource {_QUOTE}(?P<resource>[^\"\\]{{1,120}}){_QUOTE}"
    rf" in API group {_QUOTE}(?P<group>[^\"\\]{{0,253}}){_QUOTE}"
    rf"(?: in the namespace {_QUOTE}(?P<namespace>[^\"\\]{{1,63}}){_QUOTE})?",
    re.IGNORECASE,
)
_MARK: Final = "is forbidden: User"
_NO_TOKEN: Final = expression(
    r"secrets/kubernetes\.io/serviceaccount(?:/token)?\b.{0,80}no such file|unable to load in-cluster config"
    r"|no such file.{0,80}secrets/kubernetes\.io/serviceaccount",
    re.IGNORECASE,
)
_LONGEST_LINE_CHARACTERS: Final = 4_000


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Denial:
    """A ServiceAccount's request that the API server denied.

    `namespace` is empty for a cluster-wide request. `name` is the name of the requested object, or empty.
    """

    account_namespace: str
    account: str
    verb: str
    resource: str
    group: str
    namespace: str
    name: str

    @property
    def service_account(self) -> ObjectRef:
        return ObjectRef(kind="ServiceAccount", namespace=self.account_namespace, name=self.account)

    @property
    def request(self) -> str:
        """The request as a phrase for messages, for example `list pods in namespace shop`."""
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        return (
            f"{self.verb} {resource} {f'in namespace {self.namespace}' if self.namespace else 'in the whole cluster'}"
        )


def denials_in(text: str) -> Iterator[tuple[Denial, str]]:
    """Yield every denied request in `text`, with the line that reports it."""
    if _MARK not in text:
        return
    for line in text.splitlines():
        for found in _DENIED.finditer(line[:_LONGEST_LINE_CHARACTERS]) if _MARK in line else ():
            fields = {key: value or "" for key, value in found.groupdict().items()}
            yield Denial(**fields), line.strip()


def misses_token(line: str) -> bool:
    """Return whether the line reports that an application has no token for the Kubernetes API."""
    return _NO_TOKEN.search(line[:_LONGEST_LINE_CHARACTERS]) is not None


def accounts_blamed(line: str, pod: ClusterObject) -> tuple[ObjectRef, ...]:
    """Return the ServiceAccounts that lack permissions or a token, according to a line of the pod's log."""
    accounts = [denial.service_account for denial, _ in denials_in(line)]
    if misses_token(line):
        name = pod.text("spec", "serviceAccountName") or "default"
        accounts.append(ObjectRef(kind="ServiceAccount", namespace=pod.namespace, name=name))
    return tuple(dict.fromkeys(accounts))


_KINDS: Final = ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """The cause of a denied request.

    `why` is a clause that explains the denial. The first item of `evidence` is the decisive field.
    """

    culprit: ObjectRef
    why: str
    evidence: tuple[Evidence, ...]


def reason_of(state: ClusterState, denial: Denial) -> Reason | None:
    """Return the most specific cause of a denial.

    Returns None if Roles or bindings cannot be read, or if the request is allowed now.
    """
    places = [denial.namespace] if denial.namespace else []
    if not all(state.covers(kind) if kind.startswith("Cluster") else _covers(state, kind, places) for kind in _KINDS):
        return None
    bound = [binding for binding in _bindings(state, denial.namespace) if _names(binding, denial)]
    roles = [(binding, role_of(state, binding)) for binding in bound]
    if any(role is not None and allows(role, denial) for _, role in roles) or _allowed_to_groups(state, denial):
        return None
    return (
        _first(_without_role(state, binding) for binding, role in roles if role is None)
        or _first(_nearly_allows(role, denial) for _, role in roles if role is not None)
        or _first(_wrong_subject(state, binding, denial) for binding in _bindings(state, denial.namespace))
        or _first(_wrong_place(state, binding, denial) for binding in state.of("RoleBinding"))
        or _first(_lacks_rule(binding, role) for binding, role in roles if role is not None)
        or _not_bound(state, denial)
    )


def allowing_binding(state: ClusterState, request: Denial) -> ClusterObject | None:
    """Return a binding that allows the request for the ServiceAccount itself, or None if only a group allows it."""
    for binding in _bindings(state, request.namespace):
        role = role_of(state, binding) if _names(binding, request) else None
        if role is not None and allows(role, request):
            return binding
    return None


def grants_of(state: ClusterState, request: Denial) -> Iterator[tuple[ClusterObject, JsonObject, str]]:
    """Yield the bindings that allow a request, with each of their subjects: accounts, users and groups.

    The name is empty, or the only object for which the role allows the request.
    """
    for binding in _bindings(state, request.namespace):
        role = role_of(state, binding)
        if role is None:
            continue
        names = dict.fromkeys(name for rule in role.children("rules") for name in texts(rule, "resourceNames"))
        allowed = ("",) if allows(role, request) else () if request.name else tuple(names)
        for name in allowed:
            if not name or allows(role, replace(request, name=name)):
                yield from ((binding, subject, name) for subject in binding.children("subjects"))


def groups_of(account: ClusterObject) -> frozenset[str]:
    """Return the groups of a ServiceAccount, and its user name."""
    own = f"{account.namespace}:{account.name}"
    every = {"system:serviceaccounts", f"system:serviceaccounts:{account.namespace}", "system:authenticated"}
    return frozenset({*every, f"system:serviceaccount:{own}"})


def accounts_that_may(state: ClusterState, denial: Denial) -> tuple[str, ...]:
    """Return the names of ServiceAccounts in the denied account's namespace for which a binding allows the request."""
    names: set[str] = set()
    for binding in _bindings(state, denial.namespace):
        role = role_of(state, binding)
        if role is not None and allows(role, denial):
            names |= {
                text(subject, "name")
                for subject in binding.children("subjects")
                if (text(subject, "kind"), text(subject, "namespace")) == ("ServiceAccount", denial.account_namespace)
            }
    return tuple(sorted(names))


def _covers(state: ClusterState, kind: str, namespaces: list[str]) -> bool:
    return all(state.covers(kind, namespace) for namespace in namespaces)


def _first(reasons: Iterator[Reason | None]) -> Reason | None:
    return next((reason for reason in reasons if reason is not None), None)


def _bindings(state: ClusterState, namespace: str) -> tuple[ClusterObject, ...]:
    """Return the bindings that can allow a request in `namespace`.

    If `namespace` is empty, returns the bindings that can allow a cluster-wide request.
    """
    local = state.of("RoleBinding", namespace) if namespace else ()
    return (*local, *state.of("ClusterRoleBinding"))


def _names(binding: ClusterObject, denial: Denial) -> bool:
    return any(
        (text(subject, "kind"), text(subject, "name"), text(subject, "namespace"))
        == ("ServiceAccount", denial.account, denial.account_namespace)
        for subject in binding.children("subjects")
    )


def _allowed_to_groups(state: ClusterState, denial: Denial) -> bool:
    """Return whether a binding allows the request for a group or for the user name of the ServiceAccount."""
    account = f"{denial.account_namespace}:{denial.account}"
    groups = {"system:serviceaccounts", f"system:serviceaccounts:{denial.account_namespace}", "system:authenticated"}
    for binding in _bindings(state, denial.namespace):
        named = {
            text(subject, "name")
            for subject in binding.children("subjects")
            if text(subject, "kind") != "ServiceAccount"
        }
        if named & (groups | {f"system:serviceaccount:{account}"}):
            role = role_of(state, binding)
            if role is not None and allows(role, denial):
                return True
    return False


def role_of(state: ClusterState, binding: ClusterObject) -> ClusterObject | None:
    """Return the role to which a binding refers, or None if the role does not exist."""
    kind = binding.text("roleRef", "kind")
    return state.get(kind, binding.namespace if kind == "Role" else "", binding.text("roleRef", "name"))


def allows(role: ClusterObject, denial: Denial) -> bool:
    """Return whether a rule of the role allows the request."""
    return any(
        _has(rule, "verbs", denial.verb)
        and _has(rule, "apiGroups", denial.group)
        and _has_resource(rule, denial.resource)
        and _has_name(rule, denial)
        for rule in role.children("rules")
    )


def _has(rule: JsonObject, key: str, wanted: str) -> bool:
    return bool({wanted, "*"} & set(texts(rule, key)))


def _has_resource(rule: JsonObject, resource: str) -> bool:
    wanted = {resource, "*"}
    if "/" in resource:
        wanted.add(f"*/{resource.partition('/')[2]}")
    return bool(wanted & set(texts(rule, "resources")))


def _has_name(rule: JsonObject, denial: Denial) -> bool:
    names = texts(rule, "resourceNames")
    return not names or (bool(denial.name) and denial.name in names)


def _without_role(state: ClusterState, binding: ClusterObject) -> Reason:
    kind, name = binding.text("roleRef", "kind"), binding.text("roleRef", "name")
    namespace = binding.namespace if kind == "Role" else ""
    existing = [each.name for each in state.of(kind, namespace or None)]
    missing = ObjectRef(kind=kind, namespace=namespace, name=name)
    return Reason(
        culprit=binding.ref if meant(name, existing) else missing,
        why=f"{binding.ref} grants {missing}, which does not exist{hint(name, existing)}",
        evidence=(evidence.field(binding, "roleRef", "name"),),
    )


def _nearly_allows(role: ClusterObject, denial: Denial) -> Reason | None:
    """Return why the most similar rule of the role does not allow the request.

    Considers only rules that contain the resource name or a misspelling of it. Returns None for a built-in role, or if
    no such rule exists.
    """
    if is_built_in(role):
        return None
    needed = {
        "resources": denial.resource,
        "apiGroups": denial.group or '""',
        "verbs": denial.verb,
        "resourceNames": denial.name or "access to all object names",
    }
    near = [
        (len(wrong), index, rule, wrong)
        for index, rule in enumerate(role.children("rules"))
        if _has_resource(rule, denial.resource) or _is_slip(rule, denial.resource)
        for wrong in (_wrong_in(rule, denial),)
    ]
    if not near:
        return None
    _, index, rule, wrong = min(near, key=lambda entry: entry[:2])
    found = tuple(evidence.value(role, f"rules[{index}].{key}", list(texts(rule, key))) for key in wrong)
    lacks = " and ".join(
        f"{needed[key]} in {each.path}, which is {each.value}" for key, each in zip(wrong, found, strict=True)
    )
    return Reason(
        culprit=role.ref,
        why=f"{role.ref} lacks {lacks}",
        evidence=(*found, evidence.value(role, f"rules[{index}]", rule)),
    )


def _wrong_in(rule: JsonObject, denial: Denial) -> tuple[str, ...]:
    """Return the keys of a rule that do not match the request, the most serious mismatch first."""
    holds = {
        "resources": _has_resource(rule, denial.resource),
        "apiGroups": _has(rule, "apiGroups", denial.group),
        "verbs": _has(rule, "verbs", denial.verb),
        "resourceNames": _has_name(rule, denial),
    }
    return tuple(key for key, held in holds.items() if not held)


def _is_slip(rule: JsonObject, resource: str) -> bool:
    """Return whether the rule names the resource in the singular, with a typo, or without its subresource."""
    plain = resource.partition("/")[0]
    return any(
        each.lower() in {plain, plain.removesuffix("s"), plain.removesuffix("es")}
        or meant(each.lower(), [plain]) is not None
        for each in texts(rule, "resources")
    )


def _wrong_subject(state: ClusterState, binding: ClusterObject, denial: Denial) -> Reason | None:
    """Return the cause if the binding would allow the request but has a wrong subject, otherwise None.

    A subject is wrong if its namespace or kind differs, or if its name is misspelled.
    """
    role = role_of(state, binding)
    if role is None or not allows(role, denial):
        return None
    for index, subject in enumerate(binding.children("subjects")):
        kind, name, namespace = (text(subject, key) for key in ("kind", "name", "namespace"))
        key, said = "", ""
        if kind == "ServiceAccount" and name == denial.account and namespace != denial.account_namespace:
            key, said = "namespace", f"the ServiceAccount of namespace {namespace}"
        elif kind == "ServiceAccount" and namespace == denial.account_namespace and meant(name, [denial.account]):
            key, said = "name", f"ServiceAccount {name}"
        elif kind in {"User", "Group"} and name == denial.account:
            key, said = "kind", f"a {kind}"
        if key and not (key == "name" and state.get("ServiceAccount", namespace, name) is not None):
            return Reason(
                culprit=binding.ref,
                why=f"{binding.ref} would allow the request, but its subject is {said}, not {denial.service_account}",
                evidence=(evidence.value(binding, f"subjects[{index}].{key}", text(subject, key)),),
            )
    return None


def _wrong_place(state: ClusterState, binding: ClusterObject, denial: Denial) -> Reason | None:
    """Return the cause if the binding allows the request only in another namespace, otherwise None."""
    role = role_of(state, binding)
    if role is None or binding.namespace == denial.namespace or not _names(binding, denial) or not allows(role, denial):
        return None
    needed = (
        f"namespace {denial.namespace}"
        if denial.namespace
        else ("the whole cluster, which requires a ClusterRoleBinding")
    )
    return Reason(
        culprit=binding.ref,
        why=f"{binding.ref} allows the request only in namespace {binding.namespace}, not in {needed}",
        evidence=(evidence.field(binding, "metadata", "namespace"), evidence.field(binding, "roleRef", "name")),
    )


def is_built_in(role: ClusterObject) -> bool:
    """Return whether the role is built into Kubernetes, such as `view`.

    A built-in role must be replaced, not changed.
    """
    return role.labels.get("kubernetes.io/bootstrapping") == "rbac-defaults"


def _lacks_rule(binding: ClusterObject, role: ClusterObject) -> Reason:
    if is_built_in(role):
        return Reason(
            culprit=binding.ref,
            why=f"{binding.ref} grants {role.ref}, which does not allow the request",
            evidence=(evidence.field(binding, "roleRef", "name"),),
        )
    return Reason(
        culprit=role.ref,
        why=f"its {role.ref} has no rule that allows the request",
        evidence=(evidence.field(role, "rules"),),
    )


def _not_bound(state: ClusterState, denial: Denial) -> Reason:
    roles = (*(state.of("Role", denial.namespace) if denial.namespace else ()), *state.of("ClusterRole"))
    able = [role.ref for role in roles if not is_built_in(role) and allows(role, denial)]
    kind = "RoleBinding" if denial.namespace else "ClusterRoleBinding"
    offer = f", for example {able[0]}" if able else ""
    return Reason(
        culprit=denial.service_account,
        why=f"no {kind} grants it a role that allows the request{offer}",
        evidence=(),
    )
