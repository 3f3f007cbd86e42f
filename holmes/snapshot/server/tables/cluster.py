"""The tables of nodes, namespaces, configuration, quotas and events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import boolean, child, children, integer, text, text_map
from holmes.snapshot.server.tables.layout import (
    NONE,
    UNKNOWN,
    Cells,
    Layout,
    age,
    columns,
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
# The order of the API server mixes the wide columns with the others.
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
    """The row of an event of the core API; those of events.k8s.io are turned into such first."""
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
}  # fmt: skip
