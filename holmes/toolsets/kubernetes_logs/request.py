"""Validates the arguments of `kubernetes_logs`, and creates the closest equivalent kubectl command.

An invalid time or pattern is an error. The module never guesses a value.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.toolsets.patterns import bounded_pattern
from holmes.toolsets.times import age_or_time
from holmes.values.errors import ToolError
from holmes.values.tool_arguments import text_argument

if TYPE_CHECKING:
    from datetime import datetime

    import regex

    from holmes.kubernetes.workloads import FoundPods
    from holmes.values.json_types import JsonObject

DEFAULT_TAIL_LINES = 200
MAX_TAIL_LINES = 5_000
DEFAULT_MAX_PODS = 10
_MOST_PODS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class TailLines:
    """The default number and the maximum number of newest lines to read from each container."""

    default: int = DEFAULT_TAIL_LINES
    most: int = MAX_TAIL_LINES


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRequest:
    """Validated arguments of one tool call.

    `since` and `until` are the original arguments from the model. `since_seconds`, `since_time` and `until_time` are
    the parsed values. If `previous` is None, the state of each container decides whether the previous instance is read.
    `tail_lines` applies to each container.
    """

    name: str
    kind: str = ""
    namespace: str = ""
    container: str = ""
    previous: bool | None = None
    since: str = ""
    since_seconds: int | None = None
    since_time: datetime | None = None
    until: str = ""
    until_time: datetime | None = None
    include: str = ""
    exclude: str = ""
    tail_lines: int = DEFAULT_TAIL_LINES
    max_pods: int = DEFAULT_MAX_PODS


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFilter:
    """Selects lines that match `include` but not `exclude`, up to and including the time `until`."""

    include: regex.Pattern[str] | None = None
    exclude: regex.Pattern[str] | None = None
    until: datetime | None = None

    @property
    def takes_all(self) -> bool:
        """Whether every line matches, because no filter is set."""
        return self.include is None and self.exclude is None and self.until is None


def log_request(arguments: JsonObject, *, now: datetime, tail: TailLines | None = None) -> LogRequest:
    """Validate `arguments`. Raises `ToolError` for invalid values."""
    tail = tail or TailLines()
    name = text_argument(arguments, "name")
    if not name:
        raise ToolError("name is empty; expected the name of a pod or workload")
    since, until = text_argument(arguments, "since"), text_argument(arguments, "until")
    since_age, since_time = age_or_time("since", since)
    until_age, until_time = age_or_time("until", until)
    if until_age is not None:
        until_time = now - until_age
    begin = now - since_age if since_age is not None else since_time
    if begin is not None and until_time is not None and begin >= until_time:
        raise ToolError(f"since {since!r} is not before until {until!r}; swap the times or widen the range")
    previous = arguments.get("previous")
    return LogRequest(
        name=name,
        kind=text_argument(arguments, "kind"),
        namespace=text_argument(arguments, "namespace"),
        container=text_argument(arguments, "container"),
        previous=previous if isinstance(previous, bool) else None,
        since=since,
        since_seconds=max(1, round(since_age.total_seconds())) if since_age is not None else None,
        since_time=since_time,
        until=until,
        until_time=until_time,
        include=text_argument(arguments, "include"),
        exclude=text_argument(arguments, "exclude"),
        tail_lines=min(tail.most, _count(arguments, "tail", tail.default)),
        max_pods=min(_MOST_PODS, _count(arguments, "max_pods", DEFAULT_MAX_PODS)),
    )


def line_filter(request: LogRequest) -> LineFilter:
    """Compile the filters of `request`. Raises `ToolError` for an invalid or rejected pattern."""
    return LineFilter(
        include=_pattern("include", request.include),
        exclude=_pattern("exclude", request.exclude),
        until=request.until_time,
    )


def _count(arguments: JsonObject, name: str, default: int) -> int:
    value = arguments.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        return default
    if value < 1:
        raise ToolError(f"{name} is {value}; expected at least 1")
    return value


def _pattern(name: str, written: str) -> regex.Pattern[str] | None:
    return bounded_pattern(written, name=name, ignore_case=True) if written else None


def kubectl_command(request: LogRequest, found: FoundPods, *, context: str) -> str:
    """Return the closest equivalent kubectl command on one line.

    Omits `until` and the automatic choice of `previous`, because kubectl does not support them.
    """
    words = ["kubectl", "logs", "--context", context, "-n", found.namespace]
    words.append(f"{found.kind.lower()}/{found.name}")
    words += ["-c", request.container] if request.container else ["--all-containers"]
    if found.kind != "Pod":
        words += ["--all-pods", "--prefix"]
    words.append("--timestamps")
    if request.previous:
        words.append("--previous")
    if request.since_seconds is not None:
        words.append(f"--since={request.since_seconds}s")
    if request.since_time is not None:
        words.append(f"--since-time={request.since_time.isoformat(timespec='seconds')}")
    filters = [("grep -iP", request.include), ("grep -viP", request.exclude)]
    searches = [f"{command} {shlex.quote(pattern)}" for command, pattern in filters if pattern]
    if not searches:
        words.append(f"--tail={request.tail_lines}")
        return shlex.join(words)
    return " | ".join([shlex.join([*words, "--tail=-1"]), *searches, f"tail -n {request.tail_lines}"])
