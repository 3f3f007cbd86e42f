"""Writes the signals of a workload for models and `builtin/triage`: those that stand out, and the names of the others.

Each line begins with the word for its standing, and `elsewhere` marks a signal that the named pods need not have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.toolsets.metrics.texts import labels_text
from holmes.values.charts import clock, number

if TYPE_CHECKING:
    from holmes.observability.metrics.signal_reading import Outstanding, SignalReadings, Window
    from holmes.observability.metrics.signals import Scope, SignalSubject

_MOST: Final = 12
_MOST_OTHERS: Final = 4
_PLACES: Final[dict[Scope, str]] = {
    "pods": "",
    "namespace": "elsewhere in the namespace: ",
    "node": "on the node: ",
    "cluster": "in the cluster: ",
}


def signals_text(readings: SignalReadings, subject: SignalSubject, span: Window) -> str:
    """Describe the signals that stand out, the most serious first, then the names of all signals that were read."""
    own = [each for each in readings.outstanding if _is_own(each, subject)]
    others = [each for each in readings.outstanding if not _is_own(each, subject)]
    # Trouble of the node must not be cut off by many harmless events of the pods.
    room = _MOST - min(len(others), _MOST_OTHERS)
    lines = [f"- {each.standing}: {_described(each, span)}" for each in own[:room]]
    lines += [f"- {_PLACES[each.signal.scope]}{each.standing}: {_described(each, span)}" for each in others]
    place = f"{', '.join(subject.pods) or 'all pods'} in namespace {subject.namespace}"
    counted = f"{len(own)} series differ from normal" if own else "no series differs from normal"
    shown = f", showing {_MOST}" if len(own) + len(others) > _MOST else ""
    head = f"{place} from {clock(span.start)} to {clock(span.end)}: {counted}{shown}"
    names = [f"read: {', '.join(readings.read)}"]
    names += [f"without data: {', '.join(readings.empty)}"] if readings.empty else []
    return "\n".join([head, *lines[:_MOST], *names, *(f"not read: {each}" for each in readings.failures[:3])])


def _is_own(each: Outstanding, subject: SignalSubject) -> bool:
    """Return whether the signal is one of the subject: the named pods, or anything in the namespace."""
    return each.signal.scope == "pods" or (each.signal.scope == "namespace" and not subject.pods)


def _described(each: Outstanding, span: Window) -> str:
    parts = [f"{each.signal.name} of {labels_text(each.labels)} {_told(each, span)}"]
    if each.seconds_left is not None:
        parts.append(f"100 % in {each.seconds_left / 60:,.0f} minutes at this rate")
    return "; ".join([*parts, *([each.signal.meaning] if each.signal.meaning else [])])


def _told(each: Outstanding, span: Window) -> str:
    trend, is_share = each.trend, each.signal.kind == "share"

    def value(measured: float) -> str:
        return f"{measured * 100:.0f} %" if is_share else number(measured)

    change = next((change for change in trend.changes if change.time == each.since), None)
    if each.standing in ("changed", "raised") and change is not None:
        return f"{value(change.before)} → {value(change.after)} at {clock(each.since)}"
    if each.standing == "raised":
        return f"{value(trend.first)} → {value(trend.last)}, growing since before {clock(each.since)}"
    if each.standing in ("rising", "growing"):
        return value(trend.last)
    # The state at the start of the range may be older.
    before = "before " if each.since <= span.start + span.step_seconds else ""
    return f"{value(trend.last)}, up to {value(trend.maximum)}, since {before}{clock(each.since)}"
