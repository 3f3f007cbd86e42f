"""Reads logs and events of the objects in an incident.

Selects a few lines with their line numbers, so that each line can be cited. Lines are quoted, never interpreted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.triage.conversation import source_of
from holmes.triage.markdown import one_line, resource_path
from holmes.triage.matching import is_pod_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holmes.triage.conversation import Lookups, Outcome
    from holmes.values.findings import Incident, ObjectRef
    from holmes.values.json_types import JsonValue

LOGS_TOOL: Final = "kubernetes_logs"
EVENTS_TOOL: Final = "kubectl_events"
_TAIL_LINES: Final = 60
_MOST_LINES: Final = 3
_NO_LOG_YET: Final = (
    "image", "pull", "schedul", "pending", "createcontainer", "containercreating", "mount", "quota", "not created",
    "admission",
)  # fmt: skip
_SEVERE: Final = (
    "fatal", "panic", "error", "exception", "fail", "refused", "denied", "timeout", "timed out", "cannot", "no such",
    "not found", "killed", "unable", "invalid", "missing",
)  # fmt: skip
_ROUTINE_EVENTS: Final = ("Scheduled", "Pulling", "Pulled", "Created", "Started", "SuccessfulCreate")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotedLine:
    """A line of a result and its citation. The citation can be empty."""

    text: str
    marker: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """Log lines and events of one incident, each with its object.

    `failures` contains the logs and events that could not be read, each with its error.
    """

    log_lines: tuple[tuple[ObjectRef, QuotedLine], ...] = ()
    events: tuple[tuple[ObjectRef, QuotedLine], ...] = ()
    failures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """One tool call for one object. `wanted` contains the values that a rule quoted from the object's log."""

    about: ObjectRef
    tool: str
    arguments: Mapping[str, JsonValue]
    wanted: tuple[str, ...] = ()


def look_closer(lookups: Lookups, incident: Incident, named: ObjectRef | None = None) -> Details:
    """Read logs and events of the objects in `incident`, and the log of a failing pod of `named`. Raises `Waiting`."""
    looks = [look for look in _looks(incident, named) if lookups.has(look.tool)]
    for look in looks:
        lookups.want(look.tool, **look.arguments)
    read = [(look, lookups.ask(look.tool, **look.arguments)) for look in looks]
    told = [(look, outcome) for look, outcome in read if outcome.status == "success"]
    return Details(
        log_lines=tuple(
            (look.about, line)
            for look, outcome in told
            if look.tool == LOGS_TOOL
            for line in decisive_lines(outcome, look.wanted)
        ),
        events=tuple(
            (look.about, line) for look, outcome in told if look.tool == EVENTS_TOOL for line in telling_events(outcome)
        ),
        failures=tuple(
            f"{'logs' if look.tool == LOGS_TOOL else 'events'} of {look.about}: {outcome.reason}"
            for look, outcome in read
            if outcome.failed
        ),
    )


def _looks(incident: Incident, named: ObjectRef | None) -> list[_Look]:
    found = tuple(finding.subject for finding in (*incident.findings, *incident.symptoms)) or (incident.culprit,)
    pod = next((ref for ref in found if ref.kind == "Pod"), None)
    shown = pod or found[0]
    looks: list[_Look] = []
    if pod is not None and _has_log(incident):
        wanted = tuple(each.value for each in incident.evidence if each.path.startswith("log of"))
        looks.append(_log_of(pod, wanted))
    sufferer = next((ref for ref in found if named is not None and ref != pod and _is_pod_of(ref, named)), None)
    if sufferer is not None:
        looks.append(_log_of(sufferer))
    if shown.namespace:
        arguments: dict[str, JsonValue] = {"object": resource_path(shown), "namespace": shown.namespace}
        looks.append(_Look(about=shown, tool=EVENTS_TOOL, arguments=arguments))
    return looks


def _log_of(pod: ObjectRef, wanted: tuple[str, ...] = ()) -> _Look:
    arguments: dict[str, JsonValue] = {
        "name": pod.name,
        "kind": "Pod",
        "namespace": pod.namespace,
        "tail": _TAIL_LINES,
    }
    return _Look(about=pod, tool=LOGS_TOOL, arguments=arguments, wanted=wanted)


def _is_pod_of(ref: ObjectRef, named: ObjectRef) -> bool:
    same = ref.kind == "Pod" and ref.namespace == named.namespace
    return same and (ref.name == named.name or is_pod_of(ref.name, named.name))


def _has_log(incident: Incident) -> bool:
    """Return whether a container has probably run, which means that its log exists."""
    if any(each.path.startswith("log of") for each in incident.evidence):
        return True
    title = incident.title.lower()
    return not any(word in title for word in _NO_LOG_YET)


def decisive_lines(logs: Outcome, wanted: Sequence[str]) -> tuple[QuotedLine, ...]:
    """Return at most three lines of a log.

    These are the lines that a rule quoted. If the log does not contain such lines, the last errors are returned, or the
    last lines if the log contains no error.
    """
    source = source_of(logs)
    numbered = _log_lines(source.lines or tuple(logs.text.split("\n")))
    heads = [one_line(value)[:60] for value in wanted if value.strip()]
    chosen = [each for each in numbered if any(head in one_line(each[1]) for head in heads)]
    if not chosen:
        chosen = [each for each in numbered if any(word in each[1].lower() for word in _SEVERE)]
    chosen = _distinct(chosen or numbered)[-_MOST_LINES:]
    whole = bool(source.lines)
    return tuple(QuotedLine(text=line, marker=source.marker(number if whole else 1)) for number, line in chosen)


def _log_lines(lines: Sequence[str]) -> list[tuple[int, str]]:
    """Return the log lines of all containers with their line numbers, without the tool's headings."""
    found: list[tuple[int, str]] = []
    inside = False
    for number, line in enumerate(lines, start=1):
        if line.startswith("=== "):
            inside = True
        elif inside and line.strip() and not line.startswith("showing "):
            found.append((number, line))
    return found


def _distinct(lines: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    """Remove repeated messages, and keep the last occurrence of each message. Digits are ignored in the comparison."""
    kept: dict[str, tuple[int, str]] = {}
    for number, line in lines:
        message = "".join("#" if sign.isdigit() else sign for sign in line)
        kept.pop(message, None)
        kept[message] = (number, line)
    return list(kept.values())


def telling_events(events: Outcome) -> tuple[QuotedLine, ...]:
    """Return at most three of the newest warnings in an event table."""
    source = source_of(events)
    lines = source.lines or tuple(events.text.split("\n"))
    warnings = [
        (number, line)
        for number, line in enumerate(lines, start=1)
        if " Warning " in f" {line} ".replace("\t", " ") and not any(f" {word} " in line for word in _ROUTINE_EVENTS)
    ]
    chosen = _distinct(warnings)[-_MOST_LINES:]
    whole = bool(source.lines)
    return tuple(QuotedLine(text=line, marker=source.marker(number if whole else 1)) for number, line in chosen)
