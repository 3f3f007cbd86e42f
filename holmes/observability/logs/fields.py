"""Finds the names under which collectors store the namespace, pod and container of a line, and merges their lines.

Several collectors can fill one source. A log that two of them stored is one log. A line that they stored with the same
time is shown once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.observability.logs.source import FoundLogs, LogFields, ReadLines
from holmes.values.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from holmes.observability.logs.source import LogAccess, LogLine, StoredLog, WantedLines

_DOTTED: Final = (
    ("kubernetes.namespace_name", "kubernetes.pod_name", "kubernetes.container_name"),  # Fluent Bit, Fluentd
    ("kubernetes.pod_namespace", "kubernetes.pod_name", "kubernetes.container_name"),  # Vector
    ("kubernetes.namespace", "kubernetes.pod.name", "kubernetes.container.name"),  # Filebeat, Elastic Agent
    ("k8s.namespace.name", "k8s.pod.name", "k8s.container.name"),  # OpenTelemetry, in various stores
    *(
        tuple(f"resource.attributes.{name}" for name in names)
        for names in (
            ("k8s.namespace.name", "k8s.pod.name", "k8s.container.name"),
            ("k8s@namespace@name", "k8s@pod@name", "k8s@container@name"),
        )
    ),
)
_COLLECTORS: Final = (
    *_DOTTED,
    *(tuple(name.replace(".", "_") for name in names) for names in _DOTTED),  # in Loki
    ("namespace", "pod", "container"),  # Promtail, Alloy
    ("namespace", "pod_name", "container_name"),
    ("namespace_name", "pod_name", "container_name"),
)
MESSAGES: Final = ("message", "log", "msg", "body", "body.text", "event.original")
TIMES: Final = ("@timestamp", "time", "timestamp", "observedTimestamp")
KNOWN_FIELDS: Final = tuple(dict.fromkeys((*(name for names in _COLLECTORS for name in names), *MESSAGES, *TIMES)))
_SHOWN: Final = 20


def found_fields(access: LogAccess, known: Mapping[str, int]) -> tuple[LogFields, ...]:
    """Return the names of each collector that wrote to the source, most lines first. Configured names win.

    `known` maps the fields of the source to the numbers of their lines. Raises `ToolError` if no names of the namespace
    and the pod are known.
    """
    own = access.fields
    complete = [each for each in _COLLECTORS if each[0] in known and each[1] in known]
    complete.sort(key=lambda each: -min(known[each[0]], known[each[1]]))
    sets: dict[tuple[str, str], LogFields] = {}
    for namespace, pod, container in complete or [("", "", "")]:
        fields = LogFields(
            namespace=own.namespace or namespace,
            pod=own.pod or pod,
            container=own.container or (container if container in known else ""),
            message=own.message or _first(MESSAGES, known),
            time=own.time or _first(TIMES, known),
        )
        if fields.namespace and fields.pod:
            sets.setdefault((fields.namespace, fields.pod), fields)
    if not sets:
        raise ToolError(f"{access.name}: no fields for the namespace and the pod of a line are known; {_advice(known)}")
    return tuple(sets.values())


def merged_logs(found: Iterable[FoundLogs]) -> FoundLogs:
    """Return one log for each container. Of one that several collectors stored, the number of lines is a minimum."""
    logs: dict[tuple[str, str], StoredLog] = {}
    found = tuple(found)
    for each in (log for part in found for log in part.logs):
        known = logs.setdefault((each.pod, each.container), each)
        if known is not each:
            fields, lines = (*known.fields, *each.fields), max(known.lines, each.lines)
            logs[each.pod, each.container] = replace(known, fields=fields, lines=lines)
    return FoundLogs(logs=tuple(logs.values()), is_cut=any(part.is_cut for part in found))


def merged_lines(read: Sequence[ReadLines], wanted: WantedLines) -> ReadLines:
    """Return the lines of several collectors in the order of time. Equal lines with the same time are one line.

    A line is repeated if collectors stored it with times of their own instead of that of the container runtime. Such
    lines cannot be distinguished from those of a program that writes the same text again.
    """
    if len(read) == 1:
        return read[0]
    every: Counter[LogLine] = Counter()
    for each in read:
        every |= Counter(each.lines)
    lines = sorted(every.elements(), key=lambda line: _moment(line.time))
    kept = lines[: wanted.limit] if wanted.oldest else lines[-wanted.limit :]
    return ReadLines(
        lines=tuple(kept),
        is_cut=any(each.is_cut for each in read),
        is_searched=all(each.is_searched for each in read),
    )


def _moment(time: str) -> str:
    """Return a time as a text in whose order times sort. Sources leave out zeros at the end of a fraction."""
    whole, _, fraction = time.removesuffix("Z").partition(".")
    return f"{whole}.{fraction.rstrip('0')}"


def _first(names: Sequence[str], known: Mapping[str, int]) -> str:
    return next((each for each in names if each in known), "")


def _advice(known: Mapping[str, int]) -> str:
    if not known:
        return "the source has no lines in this range: check the collector, or widen the range"
    names = sorted(known, key=lambda name: (-known[name], name))
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"set fields.namespace and fields.pod of the source to two of: {', '.join(names[:_SHOWN])}{more}"
