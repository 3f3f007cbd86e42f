"""Reads metrics beside the first look: the conditions of alerts, and the signals of the subject.

They are evidence of what happens and since when. They name no cause. A subject whose objects are well, but whose
metrics stand out, is not called healthy. Then the workloads that it calls are read as well: what changed first there is
a candidate, and the answer says that being earlier proves nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.observability.metrics.series import selector
from holmes.triage.markdown import code, plain
from holmes.values.expressions import expression
from holmes.values.on_demand import called
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holmes.values.first_look import FirstLook
    from holmes.values.messages import ToolCall

_MOST_ALERTS: Final = 2
_MOST_SIGNALS: Final = 3
_NOTES: Final = frozenset({"alertname", "summary", "description", "message"})
_VALUE_CHARACTERS: Final = 300
_CONTRIBUTIONS: Final = "contributions: "
_INCOMPLETE: Final = "incomplete: "
_NO_RULE: Final = "has no alerting rule"
_NO_METRICS: Final = "has none of the known metrics"
_TROUBLE: Final = ("now: ", "raised: ", "rising: ")
"""The standings of a signal that is not normal at the end of the range."""
_STANDINGS: Final = (*_TROUBLE, "growing: ", "happened: ", "before: ", "changed: ")
_OWNERS: Final = {
    "": "its metrics",
    "on the node: ": "metrics of its node",
    "in the cluster: ": "metrics of the whole cluster",
}
"""The places whose trouble is that of the subject, and whose metrics they are."""
_PLACES: Final = (*filter(None, _OWNERS), "elsewhere in the namespace: ")
_MOST_CALLED: Final = 6
_MOST_NAMESPACES: Final = 2
_CALLS: Final = "calls:"
_CALLED: Final = expression(r"(?P<kind>[A-Z]\w+) (?P<namespace>[a-z0-9-]+)/(?P<name>[a-z0-9][a-z0-9.-]*)")
_HIDDEN: Final = expression(r"\A(?:  .*\n)*  … and (\d+) more")
_TIME: Final = expression(r"(?:since|at) (?P<before>before )?(?P<time>\d{4}-\d\d-\d\dT[\d:]+Z)")
_SUBJECT: Final = expression(r"(?P<kind>[A-Z]\w+) (?P<namespace>[a-z0-9-]+)/(?P<name>[a-z0-9][a-z0-9.-]*)")
_WORKLOADS: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "Pod"})
_VERDICTS: Final = frozenset({"healthy", "inconclusive", "cause_found"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenReading:
    """The result of a tool that read metrics, or its error if it `failed`. `result_id` is the id for citations."""

    text: str
    result_id: str = ""
    failed: bool = False

    def numbered(self, *beginnings: str) -> list[tuple[int, str]]:
        """Return the lines with these beginnings after their dash, with their numbers and without the dash.

        An error has none.
        """
        if self.failed:
            return []
        starts = tuple(f"- {each}" for each in beginnings)
        return [(place, line[2:]) for place, line in enumerate(self.text.split("\n"), 1) if line.startswith(starts)]


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


def related_arguments(look: FirstLook, signals: SeenReading | None) -> dict[str, str] | None:
    """Return the arguments of the tool for what the workload calls, or None before its own metrics were read."""
    given = signal_arguments(look)
    if given is None or signals is None or (signals.failed and _NO_METRICS not in signals.text):
        return None
    return {"resource": given["pods"], "namespace": given["namespace"]}


def called_arguments(related: SeenReading) -> tuple[dict[str, str], ...]:
    """Return the arguments of `workload_signals` for the workloads that a workload calls, one for each namespace."""
    return tuple(
        {"namespace": namespace, "pods": ", ".join(names[:_MOST_CALLED])}
        for namespace, names in [*_called_names(related).items()][:_MOST_NAMESPACES]
    )


def _called_names(related: SeenReading) -> dict[str, list[str]]:
    """Return the workloads that a workload calls, by namespace."""
    lines = related.text.split("\n")
    start = lines.index(_CALLS) + 1 if _CALLS in lines else len(lines)
    found: dict[str, dict[str, None]] = {}
    for line in lines[start:]:
        if not line.startswith("  "):
            break
        for each in _CALLED.finditer(line.partition(": ")[2]):
            found.setdefault(each["namespace"], {})[f"{each['kind'].lower()}/{each['name']}"] = None
    return {namespace: [*names] for namespace, names in found.items()}


def has_arguments(call: ToolCall, *given: Mapping[str, str] | None) -> bool:
    """Return whether a call has one of these arguments."""
    try:
        return json.loads(called(call).arguments) in given
    except ValueError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenMetrics:
    """The conditions of the alerts, the signals of the subject, and those of the workloads that it calls."""

    alerts: tuple[SeenReading, ...] = ()
    signals: SeenReading | None = None
    related: SeenReading | None = None
    called: tuple[SeenReading, ...] = ()


def weighed(look: FirstLook, metrics: SeenMetrics) -> FirstLook:
    """Return the look, or an inconclusive look if its subject is healthy but metrics stand out now."""
    signals = metrics.signals
    if look.verdict != "healthy" or signals is None:
        return look
    found = [whose for place, whose in _OWNERS.items() if signals.numbered(*(f"{place}{each}" for each in _TROUBLE))]
    if any(each.numbered(*_TROUBLE) for each in metrics.called):
        found.append("metrics of what it calls")
    if not found:
        return look
    subject = look.subject[0].split(":")[0] if look.subject else "the subject"
    nothing = f"Nothing in the cluster's objects, events and logs is wrong with {subject}"
    return replace(look, verdict="inconclusive", summary=f"{nothing}, but {found[0]} stand out.")


def measured_lines(metrics: SeenMetrics) -> list[str]:
    """Return lines of an answer about the metrics, with citations."""
    lines = [line for reading in metrics.alerts for line in _of_alert(reading)]
    if metrics.signals is None:
        return lines
    lines += _of_signals(metrics.signals)
    lines += [line for reading in metrics.called for line in _of_called(reading)]
    lines += _not_read(metrics)
    return [*lines, *_earliest(metrics.signals, metrics.called)]


def _of_alert(reading: SeenReading) -> Iterator[str]:
    if reading.failed:
        # Another system may have sent the alert, but a failed source matters.
        if _NO_RULE not in reading.text or _INCOMPLETE in reading.text:
            yield _failure("the metrics of the alert", reading)
        return
    yield from _incomplete(reading)
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
        if _NO_METRICS not in reading.text or _INCOMPLETE in reading.text:
            yield _failure("metrics", reading)
        return
    yield from _incomplete(reading)
    for number, line in reading.numbered(*_STANDINGS)[:_MOST_SIGNALS]:
        yield _signal_line("", reading, number, line)
    places = [f"{place}{standing}" for place in _PLACES for standing in _TROUBLE]
    for number, line in reading.numbered(*places)[:_MOST_SIGNALS]:
        yield _signal_line("", reading, number, line)


def _of_called(reading: SeenReading) -> Iterator[str]:
    if reading.failed and _NO_METRICS not in reading.text:
        yield _failure("metrics of what it calls", reading)
    yield from _incomplete(reading)
    for number, line in reading.numbered(*_TROUBLE, "changed: ")[:_MOST_SIGNALS]:
        yield _signal_line("of what it calls, ", reading, number, line)


def _not_read(metrics: SeenMetrics) -> Iterator[str]:
    """Yield of how many called workloads the metrics were read, if not of all."""
    if metrics.related is None or not metrics.called:
        return
    counts = [len(names) for names in _called_names(metrics.related).values()]
    read = sum(min(each, _MOST_CALLED) for each in counts[:_MOST_NAMESPACES])
    unread = [f"{sum(counts) - read} of the {sum(counts)} workloads that it calls"] if read < sum(counts) else []
    hidden = _HIDDEN.search(metrics.related.text.partition(f"\n{_CALLS}\n")[2])
    unread += [f"the workloads behind {hidden[1]} further Services"] if hidden is not None else []
    if unread:
        yield f"Not checked: metrics of {' and '.join(unread)}"


def _signal_line(of: str, reading: SeenReading, number: int, line: str) -> str:
    return f"- Metrics {of}{plain(line, _VALUE_CHARACTERS)}{_cited(reading, str(number))}"


def _earliest(signals: SeenReading, called_readings: Sequence[SeenReading]) -> Iterator[str]:
    """Yield which change came first, if it is one of the workloads that the subject calls."""
    own = [line for _, line in signals.numbered(*_TROUBLE, "changed: ")]
    began = [time for line in own if (time := _began(line))]
    places = [
        (time, line, number, each)
        for each in called_readings
        for number, line in each.numbered(*_TROUBLE, "changed: ")
        if (time := _began(line))
    ]
    if not places or not began or len(began) < len(own):  # what began before the range may have been first
        return
    first = min(places, key=lambda each: each[0])
    if first[0] < min(began):
        yield (
            f"- Earliest change: {plain(first[1].split(': ')[1], _VALUE_CHARACTERS)}. It is a candidate, because the "
            f"workload calls it; being earlier proves nothing.{_cited(first[3], str(first[2]))}"
        )


def _began(line: str) -> str:
    """Return when the signal of a line began, as text that sorts by time. Before the range is not a time."""
    found = _TIME.search(line)
    return found["time"] if found is not None and not found["before"] else ""


def _incomplete(reading: SeenReading) -> Iterator[str]:
    """Yield that a source had only a part of its data, because what is missing there can matter."""
    for number, line in enumerate(reading.text.split("\n"), 1):
        if line.startswith(_INCOMPLETE) and not reading.failed:
            told = plain(line.removeprefix(_INCOMPLETE), _VALUE_CHARACTERS)
            yield f"- Metrics are incomplete: {told}{_cited(reading, str(number))}"


def _failure(what: str, reading: SeenReading) -> str:
    return f"Not checked: {what} ({plain(reading.text.removeprefix('Error: '), 200)})"


def _cited(reading: SeenReading, lines: str) -> str:
    return f" [[{reading.result_id}:{lines}]]" if reading.result_id else ""


def _own(labels: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    return ((name, value) for name, value in labels.items() if name not in _NOTES)
