"""Defines the tables of workloads (such as Deployments and Jobs), autoscalers and disruption budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import at, boolean, child, children, instant, integer, text
from holmes.snapshot.server.selectors import shown_labels, shown_selector
from holmes.snapshot.server.table_layout import (
    NONE,
    UNSET,
    Cells,
    Layout,
    age,
    columns,
    container_cells,
    flag,
    human_duration,
    name_of,
    scalar,
    since,
)

if TYPE_CHECKING:
    from datetime import datetime

    from holmes.values.json_types import JsonObject

_WIDE: Final = ("Containers", "Images", "Selector")
_JOB_STATES: Final = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def _template_cells(item: JsonObject, *, selector: bool = True) -> Cells:
    cells = container_cells(children(item, "spec", "template", "spec", "containers"))
    return [*cells, shown_selector(at(item, "spec", "selector"))] if selector else cells


def _deployment(item: JsonObject, now: datetime) -> Cells:
    return [
        name_of(item),
        f"{integer(item, 'status', 'readyReplicas')}/{_replicas(item)}",
        integer(item, "status", "updatedReplicas"),
        integer(item, "status", "availableReplicas"),
        age(item, now),
        *_template_cells(item),
    ]


def _replicas(item: JsonObject) -> int:
    """Return the desired number of replicas. A manifest without a number means one replica."""
    return integer(item, "spec", "replicas") if "replicas" in child(item, "spec") else 1


def _replica_set(item: JsonObject, now: datetime) -> Cells:
    return [*_replica_counts(item, now), *_template_cells(item)]


def _replication_controller(item: JsonObject, now: datetime) -> Cells:
    labels = shown_labels(at(item, "spec", "selector"))
    return [*_replica_counts(item, now), *_template_cells(item, selector=False), labels]


def _replica_counts(item: JsonObject, now: datetime) -> Cells:
    counts = [integer(item, "status", field) for field in ("replicas", "readyReplicas")]
    return [name_of(item), _replicas(item), *counts, age(item, now)]


def _stateful_set(item: JsonObject, now: datetime) -> Cells:
    ready = f"{integer(item, 'status', 'readyReplicas')}/{_replicas(item)}"
    return [name_of(item), ready, age(item, now), *_template_cells(item, selector=False)]


def _daemon_set(item: JsonObject, now: datetime) -> Cells:
    counts = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    return [
        name_of(item),
        *(integer(item, "status", count) for count in counts),
        shown_labels(at(item, "spec", "template", "spec", "nodeSelector")),
        age(item, now),
        *_template_cells(item),
    ]


def _job(item: JsonObject, now: datetime) -> Cells:
    succeeded, parallelism = integer(item, "status", "succeeded"), integer(item, "spec", "parallelism")
    if "completions" in child(item, "spec"):
        completions = f"{succeeded}/{integer(item, 'spec', 'completions')}"
    else:
        completions = f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"
    return [
        name_of(item),
        _job_state(item),
        completions,
        _job_duration(item, now),
        age(item, now),
        *_template_cells(item),
    ]


def _job_duration(item: JsonObject, now: datetime) -> str:
    started = instant(text(item, "status", "startTime"))
    if started is None:
        return ""
    ended = instant(text(item, "status", "completionTime")) or now
    return human_duration((ended - started).total_seconds())


def _job_state(item: JsonObject) -> str:
    conditions = {text(each, "type"): text(each, "status") for each in children(item, "status", "conditions")}
    for condition, state in _JOB_STATES:
        if conditions.get(condition) == "True" or (not condition and "deletionTimestamp" in child(item, "metadata")):
            return state
    return "Running"


def _cron_job(item: JsonObject, now: datetime) -> Cells:
    last = text(item, "status", "lastScheduleTime")
    template = child(item, "spec", "jobTemplate")
    return [
        name_of(item),
        text(item, "spec", "schedule"),
        text(item, "spec", "timeZone") or NONE,
        flag(at(item, "spec", "suspend")),
        len(children(item, "status", "active")),
        since(last, now) if last else NONE,
        age(item, now),
        *_template_cells(template),
    ]


def _controller_revision(item: JsonObject, now: datetime) -> Cells:
    owners = [each for each in children(item, "metadata", "ownerReferences") if boolean(each, "controller")]
    controller = NONE
    if owners:
        group = text(owners[0], "apiVersion").rpartition("/")[0]
        kind = f"{text(owners[0], 'kind')}.{group}" if group else text(owners[0], "kind")
        controller = f"{kind.lower()}/{text(owners[0], 'name')}"
    return [name_of(item), controller, integer(item, "revision"), age(item, now)]


def _disruption_budget(item: JsonObject, now: datetime) -> Cells:
    limits = (str(scalar(item, "spec", field, default="N/A")) for field in ("minAvailable", "maxUnavailable"))
    return [name_of(item), *limits, integer(item, "status", "disruptionsAllowed"), age(item, now)]


def _autoscaler(item: JsonObject, now: datetime) -> Cells:
    target = child(item, "spec", "scaleTargetRef")
    return [
        name_of(item),
        f"{text(target, 'kind')}/{text(target, 'name')}",
        _metrics(item),
        str(scalar(item, "spec", "minReplicas", default=UNSET)),
        integer(item, "spec", "maxReplicas"),
        integer(item, "status", "currentReplicas"),
        age(item, now),
    ]


def _metrics(item: JsonObject) -> str:
    current = children(item, "status", "currentMetrics")
    shown = [
        _metric(metric, current[index] if index < len(current) else {})
        for index, metric in enumerate(children(item, "spec", "metrics"))
    ]
    if len(shown) > 2:
        return f"{', '.join(shown[:2])} + {len(shown) - 2} more..."
    return ", ".join(shown) or NONE


def _metric(wanted: JsonObject, current: JsonObject) -> str:
    kind = text(wanted, "type")
    field = kind[:1].lower() + kind[1:]
    target, now = child(wanted, field, "target"), child(current, field, "current")
    average = "averageValue" in target
    if kind in {"External", "Object"}:
        value, suffix = ("averageValue", " (avg)") if average else ("value", "")
        return f"{scalar(now, value, default='<unknown>')}/{scalar(target, value, default='0')}{suffix}"
    if kind == "Pods":
        return f"{scalar(now, 'averageValue', default='<unknown>')}/{scalar(target, 'averageValue', default='0')}"
    if kind not in {"Resource", "ContainerResource"}:
        return "<unknown type>"
    name = text(wanted, field, "name")
    if average:
        return f"{name}: {scalar(now, 'averageValue', default='<unknown>')}/{scalar(target, 'averageValue')}"
    return f"{name}: {_percent(now, '<unknown>')}/{_percent(target, '<auto>')}"


def _percent(value: JsonObject, missing: str) -> str:
    return f"{integer(value, 'averageUtilization')}%" if "averageUtilization" in value else missing


LAYOUTS: Final = {
    ("apps", "deployments"): Layout(
        columns=columns("Name", "Ready", "Up-to-date", "Available", "Age", wide=_WIDE), cells=_deployment
    ),
    ("apps", "replicasets"): Layout(
        columns=columns("Name", "Desired:integer", "Current:integer", "Ready:integer", "Age", wide=_WIDE),
        cells=_replica_set,
    ),
    ("", "replicationcontrollers"): Layout(
        columns=columns("Name", "Desired:integer", "Current:integer", "Ready:integer", "Age", wide=_WIDE),
        cells=_replication_controller,
    ),
    ("apps", "statefulsets"): Layout(
        columns=columns("Name", "Ready", "Age", wide=("Containers", "Images")), cells=_stateful_set
    ),
    ("apps", "daemonsets"): Layout(
        columns=columns(
            "Name", "Desired:integer", "Current:integer", "Ready:integer", "Up-to-date:integer", "Available:integer",
            "Node Selector", "Age", wide=_WIDE,
        ),
        cells=_daemon_set,
    ),
    ("apps", "controllerrevisions"): Layout(
        columns=columns("Name", "Controller", "Revision", "Age"), cells=_controller_revision
    ),
    ("batch", "jobs"): Layout(
        columns=columns("Name", "Status", "Completions", "Duration", "Age", wide=_WIDE), cells=_job
    ),
    ("batch", "cronjobs"): Layout(
        columns=columns(
            "Name", "Schedule", "Timezone", "Suspend:boolean", "Active:integer", "Last Schedule", "Age", wide=_WIDE
        ),
        cells=_cron_job,
    ),
    ("policy", "poddisruptionbudgets"): Layout(
        columns=columns("Name", "Min Available", "Max Unavailable", "Allowed Disruptions:integer", "Age"),
        cells=_disruption_budget,
    ),
    ("autoscaling", "horizontalpodautoscalers"): Layout(
        columns=columns("Name", "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"), cells=_autoscaler
    ),
}  # fmt: skip
