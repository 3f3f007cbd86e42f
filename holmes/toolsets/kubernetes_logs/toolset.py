"""The toolset `kubernetes/logs` and its factory.

The tool `kubernetes_logs` reads the logs of a pod or of all pods of a workload. Each call opens a new connection. Only
the login is kept, so that an exec plugin does not run for every call.
"""

from __future__ import annotations

import asyncio
import difflib
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from holmes.kubernetes.client import ClusterClient
from holmes.kubernetes.credentials import ClusterLogin
from holmes.kubernetes.errors import NotFound
from holmes.kubernetes.workloads import FoundPods, find_pods
from holmes.toolsets.kubernetes_logs.reader import LogReader, ReadLimits, refusal_of_all
from holmes.toolsets.kubernetes_logs.report import LogReport, report_text
from holmes.toolsets.kubernetes_logs.request import (
    DEFAULT_MAX_PODS,
    DEFAULT_TAIL_LINES,
    MAX_TAIL_LINES,
    TailLines,
    kubectl_command,
    log_request,
)
from holmes.toolsets.old_sources import LOGS
from holmes.values.errors import ConfigError, ToolError
from holmes.values.tools import Parameter, ParameterSchema, Tool, ToolResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.kubernetes.workloads import ContainerView, PodView
    from holmes.observability.logs.source import LogAccess
    from holmes.toolsets.kubernetes_logs.request import LogRequest
    from holmes.toolsets.kubernetes_logs.stored import StoredLogs
    from holmes.toolsets.registry import ToolsetContext
    from holmes.values.environment import Environment
    from holmes.values.json_types import JsonObject, JsonValue
    from holmes.values.tools import JsonType, ToolInvocation, Toolset

MAX_TIMEOUT_SECONDS = 3_600
_MOST_TAIL_LINES = 200_000
_OF_DELETED = " It also reads the logs of pods that no longer exist."
_CONFIG_KEYS = ("timeout_seconds", "default_tail_lines", "max_tail_lines")


def _optional(name: str, kind: JsonType, description: str, default: JsonValue = None) -> Parameter:
    schema = ParameterSchema(types=(kind,), description=description)
    return Parameter(name=name, schema=schema, required=False, default=default)


KUBERNETES_LOGS = Tool(
    name="kubernetes_logs",
    description=(
        "Read container logs of a pod, or of all pods of a workload, oldest line first. Includes init containers, and "
        "explains why a container has no log (e.g. ImagePullBackOff)."
    ),
    parameters=(
        Parameter(
            name="name",
            schema=ParameterSchema(types=("string",), description="Name of a pod or workload"),
        ),
        _optional("namespace", "string", "Default: the namespace of the kubeconfig context"),
        _optional("kind", "string", "Pod, Deployment, StatefulSet, DaemonSet, Job, CronJob or ReplicaSet"),
        _optional("container", "string", "Only this container"),
        _optional("previous", "boolean", "If true, read only the instance before the last restart. Default: automatic"),
        _optional("since", "string", "Start of the range: an age such as 10m, 1h, 2d, or an RFC 3339 time"),
        _optional("until", "string", "End of the range, in the same formats as since"),
        _optional("include", "string", "Only lines that match this regex (ignores case)"),
        _optional("exclude", "string", "Drop lines that match this regex"),
        _optional("tail", "integer", "Number of newest lines per container", DEFAULT_TAIL_LINES),
        _optional("max_pods", "integer", "Maximum number of pods to read", DEFAULT_MAX_PODS),
    ),
)


class KubernetesLogsToolset:
    def __init__(
        self, environment: Environment, limits: ReadLimits | None = None, sources: Sequence[LogAccess] = ()
    ) -> None:
        self._environment = environment
        self._limits = limits or ReadLimits()
        self._sources = sources
        self._login: ClusterLogin | None = None

    @property
    def name(self) -> str:
        return "kubernetes/logs"

    @property
    def instructions(self) -> str:
        return (
            "For logs use kubernetes_logs, not kubectl. Without filters, it shows the newest lines. If a result "
            'contains "showing n of m lines", search the rest with include. An empty result lists the filters of the '
            f"search.{_OF_DELETED if self._sources else ''}"
        )

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tool `kubernetes_logs`, with the configured default for `tail`."""
        tail = min(self._limits.tail.default, self._limits.tail.most)
        parameters = (
            replace(each, default=tail) if each.name == "tail" else each for each in KUBERNETES_LOGS.parameters
        )
        return (replace(KUBERNETES_LOGS, parameters=tuple(parameters)),)

    def describe(self, invocation: ToolInvocation) -> str:
        """Return one line for the user, for example `Read logs of checkout in shop, include 'error'`."""
        given = {name: value for name, value in invocation.arguments.items() if isinstance(value, str) and value}
        kind = f"{given['kind']} " if "kind" in given else ""
        place = f" in {given['namespace']}" if "namespace" in given else ""
        rest = "".join(f", {name} {given[name]!r}" for name in ("container", "since", "include") if name in given)
        previous = ", previous instance" if invocation.arguments.get("previous") is True else ""
        return f"Read logs of {kind}{given.get('name', '?')}{place}{rest}{previous}"

    async def call(self, invocation: ToolInvocation) -> ToolResult:
        """Read the logs.

        Raises `ToolError` for invalid arguments and rejected requests. Raises `ClusterUnreachable` if the connection
        fails.
        """
        self._login = await ClusterLogin.load(self._environment, previous=self._login)
        async with ClusterClient(self._login) as client:
            now = await _now(client, invocation.arguments)
            request = log_request(invocation.arguments, now=now, tail=self._limits.tail)
            stored = self._stored(client, request, now)
            try:
                found = await self._find(client, request)
            except NotFound as error:
                if stored is None:
                    raise
                return await _gone(request, stored, request.namespace or client.namespace, error)
            chosen, left_out = _choice(found, request.max_pods)
            sections = await LogReader(client, request, self._limits).read(_targets(found, chosen, request))
            command = kubectl_command(request, found, context=client.context)
            report = LogReport(request=request, found=found, left_out=left_out, sections=sections)
            if stored is not None and stored.is_needed(sections):
                completed = await stored.completed(found, sections)
                report = replace(report, found=completed.found, sections=completed.sections, notes=completed.notes)
        failure = refusal_of_all(report.sections)
        if failure is not None:
            told = "; ".join((str(failure), *report.notes))
            return ToolResult(status="error", error=told, invocation=command)
        return await _result(report, command)

    def _stored(self, client: ClusterClient, request: LogRequest, now: datetime) -> StoredLogs | None:
        if not self._sources:
            return None
        from holmes.toolsets.kubernetes_logs.stored import StoredLogs

        return StoredLogs(self._sources, client, request, self._limits, now)

    async def _find(self, client: ClusterClient, request: LogRequest) -> FoundPods:
        namespace, limit = request.namespace or client.namespace, self._limits.timeout_seconds
        try:
            async with asyncio.timeout(limit):
                return await find_pods(client, kind=request.kind, name=request.name, namespace=namespace)
        except TimeoutError as error:
            raise ToolError(
                f"finding the pods of {request.name!r} in namespace {namespace!r} took longer than {limit:g} s; "
                "the API server is slow: try again, or read one pod by its name"
            ) from error


async def _gone(request: LogRequest, stored: StoredLogs, namespace: str, error: NotFound) -> ToolResult:
    """Return the logs of pods that no longer exist. Raises `error` if no source has any."""
    completed = await stored.gone(namespace, error)
    report = LogReport(
        request=request, found=completed.found, left_out=(), sections=completed.sections, notes=completed.notes
    )
    return await _result(report, f"logs of {completed.found.name} in namespace {namespace} from log sources")


async def _result(report: LogReport, command: str) -> ToolResult:
    text = await asyncio.to_thread(report_text, report)
    return ToolResult(status="success" if report.shown_lines else "no_data", data=text, invocation=command)


async def _now(client: ClusterClient, arguments: JsonObject) -> datetime:
    """Return the time of the cluster, which is fixed in a recording.

    Without `since` and `until`, return the local time.
    """
    if not any(arguments.get(name) for name in ("since", "until")):
        return datetime.now(UTC)
    with suppress(ToolError):
        await client.get("/version")
    seconds = client.server_seconds
    return datetime.now(UTC) if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _choice(found: FoundPods, max_pods: int) -> tuple[tuple[PodView, ...], tuple[PodView, ...]]:
    """Return the pods to read and the pods to omit. Pods that are not ready are read first."""
    ordered = sorted(found.pods, key=lambda pod: (pod.ready, -pod.restarts, pod.name))
    return tuple(ordered[:max_pods]), tuple(ordered[max_pods:])


def _targets(
    found: FoundPods, pods: tuple[PodView, ...], request: LogRequest
) -> tuple[tuple[PodView, ContainerView], ...]:
    targets = tuple(
        (pod, container) for pod in pods for container in pod.containers if request.container in ("", container.name)
    )
    if not targets and pods:
        names = list(dict.fromkeys(container.name for pod in found.pods for container in pod.containers))
        near = difflib.get_close_matches(request.container, names, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ToolError(
            f"{found.kind} {found.name!r} in namespace {found.namespace!r} has no container {request.container!r}; "
            f"{hint}available containers: {', '.join(names)}"
        )
    return targets


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesLogsFactory:
    name: str = "kubernetes/logs"
    description: str = "Reads container logs by pod or workload: all containers, previous instances, time range, regex"
    tags: tuple[str, ...] = ("core",)
    enabled_by_default: bool = True

    async def check(self, context: ToolsetContext) -> str:
        """Check `config`, and that a cluster is configured. The first tool call tests the connection."""
        _limits(context)
        await ClusterLogin.load(context.environment)
        return ""

    def create(self, context: ToolsetContext) -> Toolset:
        return KubernetesLogsToolset(context.environment, _limits(context), _sources(context))


def _sources(context: ToolsetContext) -> Sequence[LogAccess]:
    if LOGS not in context.others:
        return ()
    from holmes.toolsets.logs.config import configured_sources

    return configured_sources(context)


def _limits(context: ToolsetContext) -> ReadLimits:
    """Read the limits from `config`, with defaults for missing keys. Raises `ConfigError`."""
    for key in context.config:
        if key not in _CONFIG_KEYS:
            known = ", ".join(map(repr, _CONFIG_KEYS))
            raise ConfigError(f"config of toolset 'kubernetes/logs': unknown key {key!r}; valid keys: {known}")
    seconds = _number(context, "timeout_seconds", ReadLimits().timeout_seconds, MAX_TIMEOUT_SECONDS)
    default = _number(context, "default_tail_lines", DEFAULT_TAIL_LINES, _MOST_TAIL_LINES)
    most = _number(context, "max_tail_lines", MAX_TAIL_LINES, _MOST_TAIL_LINES)
    return ReadLimits(timeout_seconds=seconds, tail=TailLines(default=int(default), most=int(most)))


def _number(context: ToolsetContext, key: str, default: float, maximum: int) -> float:
    value = context.config.get(key)
    if value is None:
        return default
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= maximum:
        raise ConfigError(
            f"config of toolset 'kubernetes/logs': {key} is {value!r}; expected a number above 0 and at most {maximum}"
        )
    return value
