"""The tables of what governs the API server: bindings of roles, webhooks, admission policies, flow control."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import child, children, integer, text
from holmes.snapshot.server.selectors import shown_selector
from holmes.snapshot.server.tables.layout import (
    NONE,
    UNSET,
    Cells,
    Layout,
    age,
    columns,
    human_duration,
    name_of,
    scalar,
)

if TYPE_CHECKING:
    from datetime import datetime

    from holmes.values.json_types import JsonObject


def _binding(item: JsonObject, now: datetime) -> Cells:
    subjects: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in children(item, "subjects"):
        kind, name = text(subject, "kind"), text(subject, "name")
        shown_name = f"{text(subject, 'namespace')}/{name}" if kind == "ServiceAccount" else name
        subjects.setdefault(kind, []).append(shown_name)
    role = f"{text(item, 'roleRef', 'kind')}/{text(item, 'roleRef', 'name')}"
    shown = (", ".join(subjects[kind]) for kind in ("User", "Group", "ServiceAccount"))
    return [name_of(item), role, age(item, now), *shown]


def _webhooks(item: JsonObject, now: datetime) -> Cells:
    return [name_of(item), len(children(item, "webhooks")), age(item, now)]


def _policy(item: JsonObject, now: datetime) -> Cells:
    parameter = child(item, "spec", "paramKind")
    shown = f"{text(parameter, 'apiVersion')}/{text(parameter, 'kind')}" if parameter else UNSET
    return [name_of(item), len(children(item, "spec", "validations")), shown, age(item, now)]


def _policy_binding(item: JsonObject, now: datetime) -> Cells:
    parameter = child(item, "spec", "paramRef")
    shown = UNSET
    if text(parameter, "name"):
        shown = f"{text(parameter, 'namespace') or '*'}/{text(parameter, 'name')}"
    elif "selector" in parameter:
        shown = shown_selector(parameter["selector"])
    return [name_of(item), text(item, "spec", "policyName"), shown, age(item, now)]


def _flow_schema(item: JsonObject, now: datetime) -> Cells:
    conditions = {text(each, "type"): text(each, "status") for each in children(item, "status", "conditions")}
    return [
        name_of(item),
        text(item, "spec", "priorityLevelConfiguration", "name"),
        integer(item, "spec", "matchingPrecedence"),
        text(item, "spec", "distinguisherMethod", "type") or NONE,
        age(item, now),
        conditions.get("Dangling", "?"),
    ]


def _priority_level(item: JsonObject, now: datetime) -> Cells:
    limited = child(item, "spec", "limited")
    queuing = child(limited, "limitResponse", "queuing")
    return [
        name_of(item),
        text(item, "spec", "type"),
        scalar(limited, "nominalConcurrencyShares", default=NONE),
        *(scalar(queuing, field, default=NONE) for field in ("queues", "handSize", "queueLengthLimit")),
        age(item, now),
    ]


def _signing_request(item: JsonObject, now: datetime) -> Cells:
    conditions = {text(each, "type") for each in children(item, "status", "conditions")}
    state = "Denied" if "Denied" in conditions else "Approved" if "Approved" in conditions else "Pending"
    state += ",Failed" if "Failed" in conditions else ""
    state += ",Issued" if text(item, "status", "certificate") else ""
    seconds = integer(item, "spec", "expirationSeconds")
    return [
        name_of(item),
        age(item, now),
        text(item, "spec", "signerName") or NONE,
        text(item, "spec", "username"),
        human_duration(seconds) if seconds else NONE,
        state,
    ]


def _api_service(item: JsonObject, now: datetime) -> Cells:
    service = child(item, "spec", "service")
    where = f"{text(service, 'namespace')}/{text(service, 'name')}" if service else "Local"
    available = "Unknown"
    for condition in children(item, "status", "conditions"):
        if text(condition, "type") == "Available":
            status, reason = text(condition, "status"), text(condition, "reason")
            available = f"{status} ({reason})" if status != "True" and reason else status
    return [name_of(item), where, available, age(item, now)]


_BINDING: Final = Layout(
    columns=columns("Name", "Role", "Age", wide=("Users", "Groups", "ServiceAccounts")), cells=_binding
)
_WEBHOOKS: Final = Layout(columns=columns("Name", "Webhooks:integer", "Age"), cells=_webhooks)

LAYOUTS: Final = {
    ("rbac.authorization.k8s.io", "rolebindings"): _BINDING,
    ("rbac.authorization.k8s.io", "clusterrolebindings"): _BINDING,
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): Layout(
        columns=columns("Name", "Validations:integer", "ParamKind", "Age"), cells=_policy
    ),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"): Layout(
        columns=columns("Name", "PolicyName", "ParamRef", "Age"), cells=_policy_binding
    ),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): Layout(
        columns=columns("Name", "PriorityLevel", "MatchingPrecedence", "DistinguisherMethod", "Age", "MissingPL"),
        cells=_flow_schema,
        order=lambda item: (integer(item, "spec", "matchingPrecedence"), name_of(item)),
    ),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): Layout(
        columns=columns("Name", "Type", "NominalConcurrencyShares", "Queues", "HandSize", "QueueLengthLimit", "Age"),
        cells=_priority_level,
    ),
    ("certificates.k8s.io", "certificatesigningrequests"): Layout(
        columns=columns("Name", "Age", "SignerName", "Requestor", "RequestedDuration", "Condition"),
        cells=_signing_request,
    ),
    ("apiregistration.k8s.io", "apiservices"): Layout(
        columns=columns("Name", "Service", "Available", "Age"), cells=_api_service
    ),
}
