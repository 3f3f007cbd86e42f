"""Responds to `kubectl auth can-i`. Its POST requests are accepted, because they change nothing.

The client itself may read everything and change nothing, because this is a recording. For another subject (`--as`,
`SubjectAccessReview`), the recorded roles and bindings decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import child, children, text, texts
from holmes.snapshot.server.responses import READ_ONLY, bad_request

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.snapshot.recording import Recording
    from holmes.values.json_types import JsonObject, JsonValue

RBAC: Final = "rbac.authorization.k8s.io"
_READ_VERBS: Final = ("get", "list", "watch")
_ACCOUNT: Final = "system:serviceaccount:"
_AUTHENTICATED: Final = "system:authenticated"
REVIEWS: Final = frozenset(
    {
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
        ("authorization.k8s.io", "subjectaccessreviews"),
        ("authorization.k8s.io", "localsubjectaccessreviews"),
        ("authentication.k8s.io", "selfsubjectreviews"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The subject of a review. An empty `user` means the client of this recording."""

    user: str = ""
    groups: tuple[str, ...] = ()

    @classmethod
    def of(cls, user: str, groups: tuple[str, ...]) -> Subject:
        """Create a subject with the groups that Kubernetes adds."""
        added = [_AUTHENTICATED] if user else []
        if user.startswith(_ACCOUNT):
            namespace = user.removeprefix(_ACCOUNT).partition(":")[0]
            added += ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
        return cls(user=user, groups=(*groups, *added))


def review(recording: Recording, plural: str, body: JsonObject, caller: Subject) -> JsonObject:
    """Return the posted review with its result. Raises `ApiFailure` if it contains no attributes to check."""
    spec = child(body, "spec")
    match plural:
        case "selfsubjectreviews":
            user = {"username": caller.user or "reader-of-a-recording", "groups": caller.groups or (_AUTHENTICATED,)}
            status: JsonObject = {"userInfo": user}
        case "selfsubjectrulesreviews":
            status = _rules_status(recording, caller, text(spec, "namespace"))
        case "selfsubjectaccessreviews":
            status = _access_status(recording, caller, spec)
        case _:
            status = _access_status(recording, Subject.of(text(spec, "user"), texts(spec, "groups")), spec)
    return {**body, "metadata": {}, "status": status}


def _access_status(recording: Recording, subject: Subject, spec: JsonObject) -> JsonObject:
    wanted, path = child(spec, "resourceAttributes"), child(spec, "nonResourceAttributes")
    if not wanted and not path:
        raise bad_request("exactly one of nonResourceAttributes or resourceAttributes must be specified")
    if not subject.user:
        allowed = text(wanted or path, "verb") in _READ_VERBS
        return {"allowed": True} if allowed else {"allowed": False, "reason": READ_ONLY}
    if "system:masters" in subject.groups:
        return {"allowed": True}
    unknown = [name for name in ("clusterroles", "clusterrolebindings") if (RBAC, name) not in recording.objects]
    if unknown:
        return {"allowed": False, "reason": f"{' and '.join(unknown)} are not part of this recording"}
    for rule in _rules(recording, subject, text(wanted, "namespace")):
        if _allows(rule, wanted) if wanted else _allows_path(rule, path):
            return {"allowed": True}
    return {"allowed": False}


def _allows(rule: JsonObject, wanted: JsonObject) -> bool:
    resource, below = text(wanted, "resource"), text(wanted, "subresource")
    full = f"{resource}/{below}" if below else resource
    names = texts(rule, "resourceNames")
    return (
        _covers(texts(rule, "verbs"), text(wanted, "verb"))
        and _covers(texts(rule, "apiGroups"), text(wanted, "group"))
        and (_covers(texts(rule, "resources"), full) or (bool(below) and f"*/{below}" in texts(rule, "resources")))
        and (not names or text(wanted, "name") in names)
    )


def _allows_path(rule: JsonObject, wanted: JsonObject) -> bool:
    path = text(wanted, "path")
    return _covers(texts(rule, "verbs"), text(wanted, "verb")) and any(
        url in {path, "*"} or (url.endswith("*") and path.startswith(url[:-1]))
        for url in texts(rule, "nonResourceURLs")
    )


def _covers(named: tuple[str, ...], wanted: str) -> bool:
    return "*" in named or wanted in named


def _rules(recording: Recording, subject: Subject, namespace: str) -> Iterator[JsonObject]:
    """Find all rules that bindings grant to `subject` in `namespace`, or cluster-wide if `namespace` is empty."""
    cluster_roles = {
        text(role, "metadata", "name"): children(role, "rules") for role in recording.items(RBAC, "clusterroles")
    }
    for binding in recording.items(RBAC, "clusterrolebindings"):
        if _binds(binding, subject):
            yield from cluster_roles.get(text(binding, "roleRef", "name"), ())
    if not namespace:
        return
    roles = {
        text(role, "metadata", "name"): children(role, "rules")
        for role in recording.items(RBAC, "roles")
        if text(role, "metadata", "namespace") == namespace
    }
    for binding in recording.items(RBAC, "rolebindings"):
        if text(binding, "metadata", "namespace") == namespace and _binds(binding, subject):
            known = cluster_roles if text(binding, "roleRef", "kind") == "ClusterRole" else roles
            yield from known.get(text(binding, "roleRef", "name"), ())


def _binds(binding: JsonObject, subject: Subject) -> bool:
    for bound in children(binding, "subjects"):
        kind, name = text(bound, "kind"), text(bound, "name")
        if kind == "ServiceAccount":
            namespace = text(bound, "namespace") or text(binding, "metadata", "namespace")
            kind, name = "User", f"{_ACCOUNT}{namespace}:{name}"
        if name == subject.user if kind == "User" else name in subject.groups:
            return True
    return False


def _rules_status(recording: Recording, subject: Subject, namespace: str) -> JsonObject:
    if not subject.user:
        return {
            "resourceRules": [{"verbs": _READ_VERBS, "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["*"]}],
            "incomplete": False,
        }
    rules: list[JsonValue] = []
    paths: list[JsonValue] = []
    for rule in _rules(recording, subject, namespace):
        (paths if "nonResourceURLs" in rule else rules).append(rule)
    return {"resourceRules": rules, "nonResourceRules": paths, "incomplete": False}
