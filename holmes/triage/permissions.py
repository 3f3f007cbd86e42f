"""Answers whether a ServiceAccount may do something, from the roles and bindings of the cluster."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.access_review import Denial, accounts_that_may, allowing_binding, reason_of
from holmes.kubernetes.kinds import KINDS
from holmes.triage.inventory import fact, table_of
from holmes.triage.users import users_of

if TYPE_CHECKING:
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.causes import Asked
    from holmes.values.first_look import FirstLook

_VERBS: Final = {
    "get": ("get", "read", "see", "view", "lesen", "leer", "ver", "lire", "voir"),
    "list": ("list", "auflisten", "listar", "lister"),
    "watch": ("watch", "beobachten"),
    "create": ("create", "make", "start", "erstellen", "anlegen", "crear", "creer"),
    "delete": ("delete", "remove", "kill", "loschen", "loeschen", "borrar", "eliminar", "supprimer", "effacer"),
    "update": (
        "update",
        "change",
        "edit",
        "modify",
        "write",
        "andern",
        "aendern",
        "schreiben",
        "actualizar",
        "modificar",
        "cambiar",
        "modifier",
    ),
    "patch": ("patch", "scale", "skalieren", "escalar"),
}
_RESOURCES: Final = {kind.name: (kind.resource, kind.group) for kind in KINDS}
_WORD: Final = re.compile(r"[a-z]+")


def permission(asked: Asked) -> FirstLook:
    """Answer "can X do Y", or list the roles of an account, or the accounts that may do something."""
    account = _account(asked)
    verb = next((verb for verb, said in _VERBS.items() for word in asked.question.words if word in said), "")
    kind = next(
        (kind for kind in asked.question.kinds if kind in _RESOURCES and kind not in ("ServiceAccount", "Namespace")),
        "",
    )
    subresource = (
        "/log"
        if kind == "Pod" and asked.question.asks("logs")
        else "/exec"
        if kind == "Pod" and asked.question.asks("exec")
        else ""
    )
    unread = [
        one for one in ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding") if not asked.state.covers(one)
    ]
    if unread:
        return fact(
            asked, f"Cannot determine permissions: {', '.join(unread)} could not be read.", None, "inconclusive"
        )
    if account is None and verb and kind:
        return _who(asked, verb, kind)
    if account is None:
        return fact(
            asked,
            "Not understood: name the ServiceAccount, the verb and the resource, for example `can ServiceAccount web list pods in namespace shop`.",
            None,
            "not_understood",
        )
    if not verb or not kind:
        rows = [
            (str(user.object.ref), f"{user.object.text('roleRef', 'kind')} {user.object.text('roleRef', 'name')}")
            for user in users_of(asked.state, account)
            if "Binding" in user.object.kind
        ]
        return fact(
            asked,
            f"{account.ref} has {len(rows)} role binding{'s' if len(rows) != 1 else ''}.",
            table_of(("binding", "role"), rows),
        )
    return _may(asked, account, verb, (kind, subresource))


def _account(asked: Asked) -> ClusterObject | None:
    """Return the named ServiceAccount, or the account of the named workload."""
    for each in asked.subject.objects:
        if each.kind == "ServiceAccount":
            return each
    for each in asked.subject.objects:
        account = asked.state.get("ServiceAccount", each.namespace, each.name)
        if account is not None:
            return account
        for pod in asked.state.pods_of(each):
            return asked.state.get("ServiceAccount", pod.namespace, pod.text("spec", "serviceAccountName") or "default")
    return None


def _request(asked: Asked, account: tuple[str, str], verb: str, what: tuple[str, str]) -> Denial:
    kind, subresource = what
    resource, group = _RESOURCES[kind]
    namespaced = next(each.namespaced for each in KINDS if each.name == kind)
    space = asked.subject.namespaces[0] if asked.subject.namespaces else account[0]
    return Denial(
        account_namespace=account[0],
        account=account[1],
        verb=verb,
        resource=f"{resource}{subresource}",
        group=group,
        namespace="" if asked.question.whole_cluster or not namespaced else space,
        name="",
    )


def _may(asked: Asked, account: ClusterObject, verb: str, what: tuple[str, str]) -> FirstLook:
    request = _request(asked, (account.namespace, account.name), verb, what)
    reason = reason_of(asked.state, request)
    if reason is None:
        granted = allowing_binding(asked.state, request)
        through = f" {granted.ref} allows it." if granted is not None else ""
        return fact(asked, f"Yes: {account.ref} may {request.request}.{through}")
    return fact(asked, f"No: {account.ref} may not {request.request}: {reason.why}.")


def _who(asked: Asked, verb: str, kind: str) -> FirstLook:
    spaces = asked.subject.namespaces or tuple(each.name for each in asked.state.of("Namespace"))
    rows: list[tuple[str, str]] = []
    for space in spaces:
        request = _request(asked, (space, ""), verb, (kind, ""))
        rows += [
            (f"ServiceAccount {space}/{name}", request.request) for name in accounts_that_may(asked.state, request)
        ]
    return fact(
        asked,
        f"{len(rows)} ServiceAccount{'s' if len(rows) != 1 else ''} may {verb} {_RESOURCES[kind][0]} {asked.subject.place}.",
        table_of(("account", "may"), rows),
    )
