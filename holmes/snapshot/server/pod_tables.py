"""Defines the table of pods with the status that kubectl shows, such as Init:0/1, Completed or Terminating."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import at, boolean, child, children, integer, text
from holmes.snapshot.server.selectors import shown_labels
from holmes.snapshot.server.table_layout import NONE, Cells, Layout, age, columns, container_cells, name_of, since

if TYPE_CHECKING:
    from datetime import datetime

    from holmes.values.json_types import JsonObject


@dataclass(slots=True, kw_only=True)
class _Restarts:
    """The number of restarts, and the time at which the last terminated instance ended."""

    count: int = 0
    last: str = ""

    def add(self, status: JsonObject) -> None:
        self.count += integer(status, "restartCount")
        self.last = max(self.last, text(status, "lastState", "terminated", "finishedAt"))

    def shown(self, now: datetime) -> str:
        return f"{self.count} ({since(self.last, now)} ago)" if self.count and self.last else str(self.count)


@dataclass(slots=True, kw_only=True)
class _Summary:
    """Collects the status of a pod while its containers are examined.

    `initializing` is true if an init container has not finished.
    """

    reason: str
    ready: int = 0
    initializing: bool = False
    restarts: _Restarts
    sidecar_restarts: _Restarts


def pod_cells(pod: JsonObject, now: datetime) -> Cells:
    sidecars = {
        text(each, "name")
        for each in children(pod, "spec", "initContainers")
        if text(each, "restartPolicy") == "Always"
    }
    summary = _Summary(reason=_first_reason(pod), restarts=_Restarts(), sidecar_restarts=_Restarts())
    _look_at_init_containers(pod, sidecars, summary)
    if not summary.initializing or _condition(pod, "Initialized") == "True":
        summary.restarts = summary.sidecar_restarts
        _look_at_containers(pod, summary)
    if "deletionTimestamp" in child(pod, "metadata"):
        if text(pod, "status", "reason") == "NodeLost":
            summary.reason = "Unknown"
        elif text(pod, "status", "phase") not in {"Succeeded", "Failed"}:
            summary.reason = "Terminating"
    total = len(children(pod, "spec", "containers")) + len(sidecars)
    return [
        name_of(pod),
        f"{summary.ready}/{total}",
        summary.reason,
        summary.restarts.shown(now),
        age(pod, now),
        next((text(each, "ip") for each in children(pod, "status", "podIPs")), "") or NONE,
        text(pod, "spec", "nodeName") or NONE,
        text(pod, "status", "nominatedNodeName") or NONE,
        _readiness_gates(pod),
    ]


def _first_reason(pod: JsonObject) -> str:
    for condition in children(pod, "status", "conditions"):
        if text(condition, "type") == "PodScheduled" and text(condition, "reason") == "SchedulingGated":
            return "SchedulingGated"
    return text(pod, "status", "reason") or text(pod, "status", "phase")


def _look_at_init_containers(pod: JsonObject, sidecars: set[str], summary: _Summary) -> None:
    total = len(children(pod, "spec", "initContainers"))
    for index, status in enumerate(children(pod, "status", "initContainerStatuses")):
        summary.restarts.add(status)
        is_sidecar = text(status, "name") in sidecars
        if is_sidecar:
            summary.sidecar_restarts.add(status)
        ended = at(status, "state", "terminated")
        if ended is not None and integer(ended, "exitCode") == 0:
            continue
        if is_sidecar and boolean(status, "started"):
            summary.ready += boolean(status, "ready")
            continue
        waiting = text(status, "state", "waiting", "reason")
        if ended is not None:
            summary.reason = f"Init:{_end_of(child(ended))}"
        elif waiting and waiting != "PodInitializing":
            summary.reason = f"Init:{waiting}"
        else:
            summary.reason = f"Init:{index}/{total}"
        summary.initializing = True
        return


def _look_at_containers(pod: JsonObject, summary: _Summary) -> None:
    has_running = False
    for status in reversed(children(pod, "status", "containerStatuses")):
        summary.restarts.add(status)
        state = child(status, "state")
        if text(state, "waiting", "reason"):
            summary.reason = text(state, "waiting", "reason")
        elif "terminated" in state:
            summary.reason = _end_of(child(state, "terminated"))
        elif boolean(status, "ready") and "running" in state:
            has_running = True
            summary.ready += 1
    if summary.reason == "Completed" and has_running:
        summary.reason = "Running" if _condition(pod, "Ready") == "True" else "NotReady"


def _end_of(ended: JsonObject) -> str:
    if text(ended, "reason"):
        return text(ended, "reason")
    if integer(ended, "signal"):
        return f"Signal:{integer(ended, 'signal')}"
    return f"ExitCode:{integer(ended, 'exitCode')}"


def _condition(pod: JsonObject, kind: str) -> str:
    conditions = children(pod, "status", "conditions")
    return next((text(each, "status") for each in conditions if text(each, "type") == kind), "")


def _readiness_gates(pod: JsonObject) -> str:
    gates = children(pod, "spec", "readinessGates")
    passed = sum(_condition(pod, text(gate, "conditionType")) == "True" for gate in gates)
    return f"{passed}/{len(gates)}" if gates else NONE


def _template_cells(item: JsonObject, _: datetime) -> Cells:
    template = child(item, "template")
    return [
        name_of(item),
        *container_cells(children(template, "spec", "containers")),
        shown_labels(at(template, "metadata", "labels")),
    ]


LAYOUTS: Final = {
    ("", "pods"): Layout(
        columns=columns(
            "Name", "Ready", "Status", "Restarts", "Age", wide=("IP", "Node", "Nominated Node", "Readiness Gates")
        ),
        cells=pod_cells,
    ),
    ("", "podtemplates"): Layout(columns=columns("Name", "Containers", "Images", "Pod Labels"), cells=_template_cells),
}
