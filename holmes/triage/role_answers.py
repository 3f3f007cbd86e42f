"""Answers what a role allows, who has it, and which roles a user or a group has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.access_review import role_of
from holmes.kubernetes.fields import text, texts
from holmes.triage.facts import fact, table_of
from holmes.triage.users import users_of

if TYPE_CHECKING:
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.values.first_look import FirstLook
    from holmes.values.json_types import JsonObject

WHO: Final = ("who", "where", "through")
MOST_RULES: Final = 4


def holder_of(subject: JsonObject) -> str:
    """Return who a binding gives its role to. Accounts of several namespaces can have the same name."""
    kind, name = text(subject, "kind"), text(subject, "name")
    return f"{kind} {text(subject, 'namespace')}/{name}" if kind == "ServiceAccount" else f"{kind} {name}"


def of_role(asked: Asked, role: ClusterObject) -> FirstLook:
    """List the rules of a role, and who has it."""
    rules = [
        (f"{', '.join(texts(rule, 'verbs'))}", rule_told(rule).removeprefix(f"{', '.join(texts(rule, 'verbs'))} "))
        for rule in role.children("rules")
    ]
    told = "; ".join(f"{verbs} {resources}" for verbs, resources in rules[:MOST_RULES]) or "nothing"
    holders = ", ".join(str(user.object.ref) for user in users_of(asked.state, role)) or "no binding"
    if role.kind not in asked.question.kinds:  # "who is cluster-admin"
        rows = [
            (holder_of(one), binding.namespace or "the whole cluster", str(binding.ref))
            for binding in (user.object for user in users_of(asked.state, role))
            for one in binding.children("subjects")
        ]
        names = ", ".join(dict.fromkeys(row[0] for row in rows)) or "nobody"
        return fact(asked, f"{role.ref} is given to {names}.", table_of(WHO, rows))
    return fact(asked, f"{role.ref} allows: {told}. It is bound by {holders}.", table_of(("verbs", "resources"), rules))


def who_may_all(asked: Asked) -> FirstLook:
    """List who may do everything: the subjects of roles with all verbs for all resources."""
    rows = [
        (holder_of(subject), binding.namespace or "the whole cluster", str(binding.ref))
        for kind in ("ClusterRoleBinding", "RoleBinding")
        for binding in asked.state.of(kind)
        for role in [role_of(asked.state, binding)]
        if role is not None and any(map(_is_everything, role.children("rules")))
        for subject in binding.children("subjects")
    ]
    holders = tuple(dict.fromkeys(f"{who} in {where}" for who, where, _ in rows))
    told = ", ".join(holders[:MOST_RULES]) + (f" and {len(holders) - MOST_RULES} more" if holders[MOST_RULES:] else "")
    return fact(asked, f"{len(holders)} may do everything{f': {told}' if rows else ''}.", table_of(WHO, rows))


def _is_everything(rule: JsonObject) -> bool:
    """Return whether a rule allows all verbs for all resources of all API groups, and not only for some names."""
    return all("*" in texts(rule, key) for key in ("verbs", "resources", "apiGroups")) and not texts(
        rule, "resourceNames"
    )


def of_principal(asked: Asked, name: str) -> FirstLook:
    """List the rules of the roles that are bound to a user or a group."""
    bindings = [
        (binding, text(subject, "kind"))
        for kind in ("ClusterRoleBinding", "RoleBinding")
        for binding in asked.state.of(kind)
        if asked.subject.contains(binding) or not binding.namespace
        for subject in binding.children("subjects")
        if text(subject, "name").lower() == name
    ]
    rows = [
        (
            f"{text(binding.body, 'roleRef', 'kind')} {text(binding.body, 'roleRef', 'name')}",
            binding.namespace or "the whole cluster",
            "; ".join(rule_told(rule) for rule in (role.children("rules") if role is not None else ())) or "not read",
        )
        for binding, _ in bindings
        for role in [role_of(asked.state, binding)]
    ]
    if not rows:
        return fact(asked, f"No binding for `{name}` was found {asked.subject.place}.", None, "inconclusive")
    told = "; ".join(f"{role} in {place}: {rules}" for role, place, rules in rows[:MOST_RULES])
    return fact(asked, f"{bindings[0][1]} {name} has {told}.", table_of(("role", "where", "allows"), rows))


def rule_told(rule: JsonObject) -> str:
    """Return the verbs and the resources of a rule, with the groups of "*" and the only names that it allows."""
    resources, groups = texts(rule, "resources"), [each for each in texts(rule, "apiGroups") if each]
    of_groups = f" of {', '.join(groups)}" if "*" in resources and groups and "*" not in groups else ""
    names = texts(rule, "resourceNames")
    only = f" named {', '.join(names)}" if names else ""
    return f"{', '.join(texts(rule, 'verbs'))} {', '.join(resources)}{of_groups}{only}"
