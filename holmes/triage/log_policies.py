"""Finds the policy of a service mesh that denies the requests of which a log reports.

The proxy names the policy, or only one policy that selects the server does not let its client in. Another status 403 is
an answer of the application, which no policy of the mesh explains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.evidence import edited_at
from holmes.diagnosis.facts.templates import template_of
from holmes.kubernetes.fields import at, children, matches_map, text, text_map, texts, written
from holmes.triage.log_links import behind_service, named_services, own_services
from holmes.triage.log_reasons import Reason
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.log_troubles import Trouble
    from holmes.values.json_types import JsonObject

_DENIED: Final = expression(r"\brbac_access_denied|\bRBAC: access denied\b")
_MATCHED: Final = expression(r"matched_policy\[ns\[([a-z0-9-]+)\]-policy\[([a-z0-9.-]+)\]")
_GROUP, _ROOT = "security.istio.io", "istio-system"
_SHORTLY_SECONDS: Final = 900.0
_MOST: Final = 3


def denying_policy(state: ClusterState, trouble: Trouble) -> Reason | None:
    """Return the AuthorizationPolicy that denies the requests, if the lines are those of the mesh's proxy."""
    record = trouble.group.record
    if not _DENIED.search(record):
        return None
    inbound = "rbac_access_denied" in record
    behind = [each for service in named_services(state, trouble) for each in behind_service(state, service)]
    servers = [trouble.workload] if inbound else list(dict.fromkeys(behind))
    if len(servers) != 1:
        return None
    (server,) = servers
    told = _MATCHED.search(record)
    applied = [each for each in _policies(state) if _selects(state, each, server)]
    if told is not None:
        found = [each for each in applied if (each.namespace, each.name) == told.groups()]
    else:
        clients = [trouble.workload] if not inbound else []
        found = [each for each in applied if all(_keeps_out(each, client) for client in clients)]
    if len(found) > 1:
        changed = (max(each.created, edited_at(each)) for each in found)
        begun = trouble.group.first
        found = [each for each, at_ in zip(found, changed, strict=True) if 0 <= begun - at_ <= _SHORTLY_SECONDS]
    return _reason(found[0], server, trouble) if len(found) == 1 else None


def _policies(state: ClusterState) -> Iterator[ClusterObject]:
    yield from (each for each in state.custom_resources if each.kind == "AuthorizationPolicy" and each.group == _GROUP)


def _selects(state: ClusterState, policy: ClusterObject, server: ClusterObject) -> bool:
    """Return whether a policy applies to the pods of a workload: by its selector, its targets, or its namespace."""
    if policy.namespace not in (server.namespace, _ROOT):
        return False
    targets = policy.children("spec", "targetRefs")
    if targets:
        services = {ref.name for ref in own_services(state, server)}
        return any(text(each, "kind") == "Service" and text(each, "name") in services for each in targets)
    return matches_map(text_map(policy.body, "spec", "selector", "matchLabels"), template_of(server).labels)


def _keeps_out(policy: ClusterObject, client: ClusterObject) -> bool:
    """Return whether a policy denies the requests of a client, as far as its sources tell."""
    rules = policy.children("spec", "rules")
    named = any(_is_source(each, client) for each in rules)
    return named if policy.text("spec", "action") == "DENY" else not named


def _is_source(rule: JsonObject, client: ClusterObject) -> bool:
    sources = children(rule, "from")
    account = text(template_of(client).spec, "serviceAccountName") or "default"
    who = f"/ns/{client.namespace}/sa/{account}"
    return not sources or any(
        any(each == "*" or each.endswith(who) for each in texts(source, "source", "principals"))
        or client.namespace in texts(source, "source", "namespaces")
        for source in sources
    )


def _reason(policy: ClusterObject, server: ClusterObject, trouble: Trouble) -> Reason:
    action = policy.text("spec", "action") or "ALLOW"
    allowed = [
        each
        for rule in policy.children("spec", "rules")
        for source in children(rule, "from")
        for each in (*texts(source, "source", "principals"), *texts(source, "source", "namespaces"))
    ]
    what = "denies" if action == "DENY" else "allows only"
    whom = ", ".join(allowed[:_MOST]) or ("these requests" if action == "DENY" else "what its rules name")
    words = f"{policy.ref}, which selects {server.ref}, {what} {whom}"
    changed = max(policy.created, edited_at(policy))
    soon = 0 <= trouble.group.first - changed <= _SHORTLY_SECONDS
    when = f"; it was changed at {written(changed)}, just before" if soon else ""
    shown = (f"{policy.ref}, spec.action: {action}", f"{policy.ref}, spec.rules: {_brief(policy)}")
    return Reason(culprit=policy.ref, words=f"{words}{when}", evidence=shown)


def _brief(policy: ClusterObject) -> str:
    rules = at(policy.body, "spec", "rules")
    number = len(rules) if isinstance(rules, list) else 0
    return f"{number} rule{'' if number == 1 else 's'}"
