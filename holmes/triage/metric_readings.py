"""Reads metrics beside the first look: the conditions of alerts, and the signals of the subject.

They are evidence of what happens and since when. They name no cause. A subject whose objects are well, but whose
metrics stand out, is not called healthy.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.observability.metrics.series import selector
from holmes.triage.markdown import code, plain
from holmes.values.expressions import expression
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holmes.values.first_look import FirstLook

_MOST_ALERTS: Final = 2
_MOST_SIGNALS: Final = 3
_NOTES: Final = frozenset({"alertname", "summary", "description", "message"})
_VALUE_CHARACTERS: Final = 300
_CONTRIBUTIONS: Final = "contributions: "
_NO_RULE: Final = "has no alerting rule"
_NO_METRICS: Final = "has none of the known metrics"
_NOW: Final = "- now: "
_OWN: Final = (_NOW, "- rising: ", "- happened: ", "- before: ", "- changed: ")
_SUBJECT: Final = expression(r"(?P<kind>[A-Z]\w+) (?P<namespace>[a-z0-9-]+)/(?P<name>[a-z0-9][a-z0-9.-]*)")
_WORKLOADS: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "Pod"})
_VERDICTS: Final = frozenset({"healthy", "inconclusive", "cause_found"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenReading:
    """The result of a tool that read metrics, or its error if it `failed`. `result_id` is the id for citations."""

    text: str
    result_id: str = ""
    failed: bool = False


def alert_arguments(alerts: Sequence[Mapping[str, str]], firing: Sequence[str]) -> tuple[dict[str, str], ...]:
    """Return the arguments of the tool for each alert. Repeated names are read once.

    `alerts` contains the labels of each alert, and `firing` when it began, or an empty string.
    """
    found: dict[str, dict[str, str]] = {}
    for labels, began in zip(alerts, firing, strict=False):
        name = labels.get("alertname", "")
        if name and name not in found:
            given = {"name": name, "labels": selector(_own(labels)), "since": began}
            found[name] = {key: value for key, value in given.items() if value}
    return tuple(found.values())[:_MOST_ALERTS]


def signal_arguments(look: FirstLook) -> dict[str, str] | None:
    """Return the arguments of the tool for the workload that a look is about, or None if it is about none."""
    if look.verdict not in _VERDICTS or not look.subject:
        return None
    found = _SUBJECT.match(look.subject[0])
    if found is None or found["kind"] not in _WORKLOADS:
        return None
    return {"namespace": found["namespace"], "pods": f"{found['kind'].lower()}/{found['name']}"}


def is_about(arguments: str, look: FirstLook) -> bool:
    """Return whether a call of the tool, with these JSON arguments, was about the workload of the look."""
    try:
        given = json.loads(arguments)
    except ValueError:
        return False
    return bool(given == signal_arguments(look))


def weighed(look: FirstLook, signals: SeenReading | None) -> FirstLook:
    """Return the look, or an inconclusive look if its subject is healthy but its metrics stand out now."""
    if look.verdict != "healthy" or signals is None or signals.failed or f"\n{_NOW}" not in signals.text:
        return look
    subject = look.subject[0].split(":")[0] if look.subject else "the subject"
    summary = f"Nothing in the cluster's objects, events and logs is wrong with {subject}, but its metrics stand out."
    return replace(look, verdict="inconclusive", summary=summary)


def measured_lines(readings: Sequence[SeenReading], signals: SeenReading | None) -> list[str]:
    """Return lines of an answer about the conditions of its alerts and the signals of its subject, with citations."""
    lines = [line for reading in readings for line in _of_alert(reading)]
    return [*lines, *(_of_signals(signals) if signals is not None else ())]


def _of_alert(reading: SeenReading) -> Iterator[str]:
    if reading.failed:
        # Another system may have sent the alert, but a failed source matters.
        if _NO_RULE not in reading.text:
            yield _failure("the metrics of the alert", reading)
        return
    lines = reading.text.split("\n")
    value = plain(lines[0].partition("; measured: ")[0], _VALUE_CHARACTERS)
    since = f"; {plain(lines[1], _VALUE_CHARACTERS)}" if len(lines) > 1 else ""
    yield f"- {value}{since}{_cited(reading, '1-2')}"
    for number, line in enumerate(lines, 1):
        if line.startswith(_CONTRIBUTIONS):
            told = shortened(line.removeprefix(_CONTRIBUTIONS), _VALUE_CHARACTERS)
            yield f"- Contributions: {code(told)}{_cited(reading, str(number))}"


def _of_signals(reading: SeenReading) -> Iterator[str]:
    if reading.failed:
        if _NO_METRICS not in reading.text:
            yield _failure("metrics", reading)
        return
    numbered = [pair for pair in enumerate(reading.text.split("\n"), 1) if pair[1].startswith(_OWN)]
    for number, line in numbered[:_MOST_SIGNALS]:
        yield f"- Metrics {plain(line[2:], _VALUE_CHARACTERS)}{_cited(reading, str(number))}"


def _failure(what: str, reading: SeenReading) -> str:
    return f"Not checked: {what} ({plain(reading.text.removeprefix('Error: '), 200)})"


def _cited(reading: SeenReading, lines: str) -> str:
    return f" [[{reading.result_id}:{lines}]]" if reading.result_id else ""


def _own(labels: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    return ((name, value) for name, value in labels.items() if name not in _NOTES)
