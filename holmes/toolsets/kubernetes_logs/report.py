"""Formats logs as text for the model: a summary, unread logs, the trouble in the logs, and one section per container.

Each section states how many of its matching lines it shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.toolsets.kubernetes_logs.troubles import readable, troubles
from holmes.values.texts import excerpt

if TYPE_CHECKING:
    from holmes.kubernetes.workloads import ContainerState, ContainerView, FoundPods, PodView
    from holmes.toolsets.kubernetes_logs.reader import Section
    from holmes.toolsets.kubernetes_logs.request import LogRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class LogReport:
    """The logs of one tool call. `left_out` are the pods that were not read because of `max_pods`.

    `notes` tell what sources of logs added, or why they could not be read.
    """

    request: LogRequest
    found: FoundPods
    left_out: tuple[PodView, ...]
    sections: tuple[Section, ...]
    notes: tuple[str, ...] = ()

    @property
    def shown_lines(self) -> int:
        return sum(len(section.lines) for section in self.sections)


def report_text(report: LogReport) -> str:
    read = [section for section in report.sections if not section.unread]
    parts = [_summary(report, read), *report.notes, *_unread(report)]
    if report.left_out:
        names = ", ".join(pod.name for pod in report.left_out[:20])
        more = f" and {len(report.left_out) - 20} more" if len(report.left_out) > 20 else ""
        parts.append(f"Omitted pods (max_pods is {report.request.max_pods}): {names}{more}")
    parts += troubles((_title(section), [*map(readable, section.recent)]) for section in read)
    parts += [_section(section, report.request) for section in read]
    return "\n".join(parts)


def _summary(report: LogReport, read: list[Section]) -> str:
    found, request = report.found, report.request
    what = f"Logs of {found.kind} {found.name!r} in namespace {found.namespace!r}"
    if not found.pods:
        return f"{what}: no pods currently exist"
    pods = len({section.pod.name for section in read})
    matching, total = sum(s.matching_lines for s in read), sum(s.total_lines for s in read)
    at_least = "" if all(section.exact for section in read) else "at least "
    filtered = f" matching lines ({total:,} lines read)" if _is_filtered(request) else " lines"
    counts = f"showing {report.shown_lines:,} of {at_least}{matching:,}{filtered}"
    if not report.shown_lines:
        what = f"No log lines found. {what}"
    hint = ""
    if report.shown_lines < matching:
        cut_by_tail = any(len(section.lines) == request.tail_lines for section in read)
        raise_tail = "raise tail or " if cut_by_tail else ""
        hint = f"; to see other lines, {raise_tail}narrow the search with include, since, until or container"
    pods_text = f"{pods} of {len(found.pods)}{'' if found.complete else ' or more'} pods"
    logs_text = f"{len(read)} container log{'' if len(read) == 1 else 's'}"
    return f"{what}: {pods_text}, {logs_text}, {counts}{_searched(request)}{hint}"


def _is_filtered(request: LogRequest) -> bool:
    return bool(request.include or request.exclude or request.until)


def _searched(request: LogRequest) -> str:
    """List the filters of the search, so that the model can judge an empty result."""
    terms = [
        f"{name} {value!r}"
        for name, value in (
            ("container", request.container),
            ("since", request.since),
            ("until", request.until),
            ("include", request.include),
            ("exclude", request.exclude),
        )
        if value
    ]
    if request.previous is not None:
        terms.append("previous instances only" if request.previous else "current instances only")
    return f"; searched with {', '.join(terms)}" if terms else ""


def _unread(report: LogReport) -> list[str]:
    unread = [section for section in report.sections if section.unread]
    lines = ["Not read:"] if unread else []
    lines += [f"- {_title(section)}: {section.unread}" for section in unread]
    read_pods = [pod for pod in report.found.pods if pod.problem and pod not in {s.pod for s in unread}]
    return lines + [f"Note: pod {pod.name}: {pod.problem}" for pod in read_pods]


def _title(section: Section) -> str:
    role = "container" if section.container.role == "container" else f"{section.container.role} container"
    previous = " (previous instance)" if section.previous else ""
    source = f", from log source {section.source}" if section.source else ""
    return f"pod {section.pod.name}, {role} {section.container.name}{previous}{source}"


def _section(section: Section, request: LogRequest) -> str:
    if not section.pod.phase and section.source:
        state = "the pod no longer exists"
    else:
        state = _previous_state(section.container) if section.previous else _state(section.container)
    count = f"{'' if section.exact else 'at least '}{section.matching_lines:,}"
    filtered = f" matching lines ({section.total_lines:,} lines read)" if _is_filtered(request) else " lines"
    notes = "".join(f"; {note}" for note in section.notes)
    header = f"=== {_title(section)}: {state}\nshowing {len(section.lines):,} of {count}{filtered}{notes}"
    return "\n".join([header, *(readable(line) for line in section.lines)])


def _state(container: ContainerView) -> str:
    state = container.state
    parts = [_plain_state(state)]
    if state.status == "running":
        parts.append("ready" if container.ready or container.role != "container" else "not ready")
    if container.restarts:
        parts.append(f"{container.restarts} restart{'s' if container.restarts > 1 else ''}")
    if container.last is not None:
        parts.append(f"previous instance {_plain_state(container.last)}")
        if state.status == "waiting":
            parts.append("its log follows")
    return ", ".join(parts)


def _previous_state(container: ContainerView) -> str:
    return _plain_state(container.last) if container.last is not None else "ended"


def _plain_state(state: ContainerState) -> str:
    match state.status:
        case "running":
            return f"running since {state.started_at}" if state.started_at else "running"
        case "terminated":
            reason = f" ({state.reason})" if state.reason else ""
            message = f": {excerpt(state.message, 300)}" if state.message else ""
            return f"exited {state.exit_code}{reason} at {state.finished_at}{message}"
        case "waiting":
            return f"waiting ({state.reason or 'unknown reason'})"
        case "unknown":
            return "state unknown"
