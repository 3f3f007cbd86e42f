"""Defines the tables of nodes, namespaces, ConfigMaps, Secrets, quotas, events and API server configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import boolean, child, children, integer, text, text_map
from holmes.snapshot.server.selectors import shown_selector
from holmes.snapshot.server.table_layout import (
    NONE,
    UNKNOWN,
    UNSET,
    Cells,
    Layout,
    age,
    columns,
    human_duration,
    name_of,
    scalar,
    since,
)

if TYPE_CHECKING:
    from datetime import datetime

    from holmes.values.json_types import JsonObject

_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
_EVENT_COLUMNS: Final = columns(
    "Last Seen", "Type", "Reason", "Object", "Message", wide=("Subobject", "Source", "First Seen", "Count", "Name")
)
# The API server inserts wide columns between the other columns.
_EVENT_ORDER: Final = (0, 1, 2, 3, 5, 6, 4, 7, 8, 9)


def _node(item: JsonObject, now: datetime) -> Cells:
    conditions = {text(each, "type"): text(each, "status") for each in children(item, "status", "conditions")}
    ready = conditions.get("Ready")
    status = ["Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"]
    status += ["SchedulingDisabled"] if boolean(item, "spec", "unschedulable") else []
    info = child(item, "status", "nodeInfo")
    return [
        name_of(item),
        ",".join(status),
        ",".join(sorted(_roles(item))) or NONE,
        age(item, now),
        text(info, "kubeletVersion"),
        _address(item, "InternalIP"),
        _address(item, "ExternalIP"),
        *(text(info, field) or UNKNOWN for field in ("osImage", "kernelVersion", "containerRuntimeVersion")),
    ]


def _roles(item: JsonObject) -> set[str]:
    labels = text_map(item, "metadata", "labels")
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    return (roles | {labels.get("kubernetes.io/role", "")}) - {""}


def _address(item: JsonObject, kind: str) -> str:
    addresses = children(item, "status", "addresses")
    return next((text(each, "address") for each in addresses if text(each, "type") == kind), NONE)


def _namespace(item: JsonObject, now: datetime) -> Cells:
    return [name_of(item), text(item, "status", "phase"), age(item, now)]


def _config_map(item: JsonObject, now: datetime) -> Cells:
    return [name_of(item), len(child(item, "data")) + len(child(item, "binaryData")), age(item, now)]


def _secret(item: JsonObject, now: datetime) -> Cells:
    return [name_of(item), text(item, "type"), len(child(item, "data")), age(item, now)]


def _service_account(item: JsonObject, now: datetime) -> Cells:
    return [name_of(item), len(children(item, "secrets")), age(item, now)]


def _quota(item: JsonObject, now: datetime) -> Cells:
    hard, used = child(item, "status", "hard"), child(item, "status", "used")
    requests: list[str] = []
    limits: list[str] = []
    for resource in sorted(hard):
        shown = f"{resource}: {scalar(used, resource, default='0')}/{scalar(hard, resource)}"
        (limits if resource.startswith("limits.") else requests).append(shown)
    return [name_of(item), ", ".join(requests), ", ".join(limits), age(item, now)]


def _priority_class(item: JsonObject, now: datetime) -> Cells:
    policy = text(item, "preemptionPolicy")
    return [name_of(item), integer(item, "value"), boolean(item, "globalDefault"), age(item, now), policy]


def _runtime_class(item: JsonObject, now: datetime) -> Cells:
    return [name_of(item), text(item, "handler"), age(item, now)]


def _lease(item: JsonObject, now: datetime) -> Cells:
    return [name_of(item), text(item, "spec", "holderIdentity"), age(item, now)]


def _component_status(item: JsonObject, _: datetime) -> Cells:
    for condition in children(item, "conditions"):
        if text(condition, "type") == "Healthy":
            status = "Healthy" if text(condition, "status") == "True" else "Unhealthy"
            return [name_of(item), status, text(condition, "message"), text(condition, "error")]
    return [name_of(item), "Unknown", "", ""]


def _event(item: JsonObject, now: datetime) -> Cells:
    """Create the table row of a core event. Events of events.k8s.io are converted first."""
    first = since(text(item, "firstTimestamp") or text(item, "eventTime"), now)
    last = since(text(item, "lastTimestamp"), now) if text(item, "lastTimestamp") else first
    count = integer(item, "count") or 1
    series = child(item, "series")
    if series:
        last, count = since(text(series, "lastObservedTime"), now), integer(series, "count")
    involved = child(item, "involvedObject")
    target = "/".join(part for part in (text(involved, "kind").lower(), text(involved, "name")) if part)
    host = text(item, "source", "host") or text(item, "reportingInstance")
    component = text(item, "source", "component") or text(item, "reportingComponent")
    return [
        last,
        text(item, "type"),
        text(item, "reason"),
        target,
        text(involved, "fieldPath"),
        f"{component}, {host}" if host else component,
        text(item, "message").strip(),
        first,
        count,
        name_of(item),
    ]


EVENTS: Final = Layout(columns=tuple(_EVENT_COLUMNS[index] for index in _EVENT_ORDER), cells=_event)


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
    ("", "nodes"): Layout(
        columns=columns(
            "Name", "Status", "Roles", "Age", "Version",
            wide=("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"),
        ),
        cells=_node,
    ),
    ("", "namespaces"): Layout(columns=columns("Name", "Status", "Age"), cells=_namespace),
    ("", "configmaps"): Layout(columns=columns("Name", "Data", "Age"), cells=_config_map),
    ("", "secrets"): Layout(columns=columns("Name", "Type", "Data", "Age"), cells=_secret),
    ("", "serviceaccounts"): Layout(columns=columns("Name", "Secrets", "Age"), cells=_service_account),
    ("", "resourcequotas"): Layout(columns=columns("Name", "Request", "Limit", "Age"), cells=_quota),
    ("", "componentstatuses"): Layout(columns=columns("Name", "Status", "Message", "Error"), cells=_component_status),
    ("", "events"): EVENTS,
    ("events.k8s.io", "events"): EVENTS,
    ("scheduling.k8s.io", "priorityclasses"): Layout(
        columns=columns("Name", "Value:integer", "Global-Default:boolean", "Age", "PreemptionPolicy"),
        cells=_priority_class,
    ),
    ("node.k8s.io", "runtimeclasses"): Layout(columns=columns("Name", "Handler", "Age"), cells=_runtime_class),
    ("coordination.k8s.io", "leases"): Layout(columns=columns("Name", "Holder", "Age"), cells=_lease),
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
}  # fmt: skip
