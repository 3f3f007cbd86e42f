"""Checks which toolsets of a catalogue can run here.

All checks run in parallel under one deadline, and ask the cluster for its kinds at most once. Commands that succeeded
are remembered for an hour. Tool names must be unique. A toolset fails if the name of one of its tools is reserved or is
used in an earlier toolset.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from holmes.toolsets.check_cache import SuccessCache, check_key
from holmes.toolsets.cluster_checks import ClusterChecks
from holmes.toolsets.registry import ToolsetStatus
from holmes.toolsets.source_clusters import config_for_cluster, configs_for_cluster, serves, why_not
from holmes.values.errors import ConfigError, HolmesError, ToolError, masked
from holmes.values.first_look import OWN_TOOLS

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence
    from pathlib import Path

    from holmes.toolsets.catalogue import Catalogue, OptionalToolset, PythonToolset
    from holmes.toolsets.mcp.servers import McpServer
    from holmes.toolsets.mcp.toolset import McpToolset
    from holmes.toolsets.registry import ToolsetContext
    from holmes.toolsets.yaml.definition import YamlToolsetDefinition
    from holmes.toolsets.yaml.prerequisites import Obstacle
    from holmes.values.json_types import JsonValue
    from holmes.values.tools import Toolset

_DEFAULT_DEADLINE_SECONDS = 20.0

# Time limit within which a cancelled check must end its processes.
_CLEAN_UP_SECONDS = 2.0
_RENEW_SECONDS = 8.0
_FOUND_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyToolset:
    """A toolset that can run. Tools that match one of `approval_patterns` (globs) require approval.

    `redaction` is false if the configuration disables masking for this toolset. Tools of a toolset `on_demand` are not
    in every request.
    """

    toolset: Toolset
    approval_patterns: tuple[str, ...] = ()
    redaction: bool = True
    on_demand: bool = False
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """The toolsets that can run, in a fixed order, and the status of every toolset, sorted by name."""

    ready: tuple[ReadyToolset, ...]
    statuses: tuple[ToolsetStatus, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckPolicy:
    """Options of a check.

    If `cache_directory` is None, successful checks are not remembered. If `refresh` is true, remembered successes are
    ignored.

    `reserved_tools` maps tools outside the catalogue to their toolsets. If `decided` (statuses by name) is given, no
    check runs, and only toolsets that are `enabled` in `decided` can run.
    """

    deadline_seconds: float = _DEFAULT_DEADLINE_SECONDS
    cache_directory: Path | None = None
    refresh: bool = False
    reserved_tools: Mapping[str, str] = field(default_factory=dict)
    decided: Mapping[str, ToolsetStatus] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checked:
    status: ToolsetStatus
    ready: ReadyToolset | None = None
    # Cache key of the check, set only if the check succeeded now or within the last hour.
    key: str | None = None
    checked_at_seconds: float = 0.0


async def check_toolsets(catalogue: Catalogue, context: ToolsetContext, policy: CheckPolicy | None = None) -> Readiness:
    """Run all checks in parallel.

    A failed check becomes a status. Cancellation ends all checks and their processes.
    """
    policy = policy or CheckPolicy()
    remembers = policy.cache_directory is not None and policy.decided is None
    cache = SuccessCache.read(policy.cache_directory) if policy.cache_directory and remembers else None
    configured = {each.factory.name: each.config for each in catalogue.python if not each.is_found}
    context = replace(context, others=configs_for_cluster(configured, context))
    cluster = ClusterChecks(context.environment)
    checker = _Checker(context=context, cache=None if policy.refresh else cache, policy=policy, cluster=cluster)
    pending = [
        *((_yaml_status(each), _started(checker.check_yaml(each))) for each in catalogue.definitions),
        *((_yaml_status(each.outline), _started(checker.check_optional(each))) for each in catalogue.optional),
        *((each.status, checker.start_python(each)) for each in catalogue.python),
        *((_server_status(each), _started(checker.check_server(each))) for each in catalogue.servers),
    ]
    try:
        checked = await _results(pending, policy.deadline_seconds)
    finally:
        await cluster.close()
    if catalogue.servers:
        checked = _with_unique_names(checked, policy.reserved_tools)
    if cache is not None:
        _remember(cache, checked)
    unique = _without_repeated_tools(checked, policy.reserved_tools)
    statuses = (*catalogue.statuses, *(each.status for each in unique))
    return Readiness(
        ready=tuple(each.ready for each in unique if each.ready is not None),
        statuses=tuple(sorted(statuses, key=lambda status: status.name)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checker:
    context: ToolsetContext
    cache: SuccessCache | None
    policy: CheckPolicy
    cluster: ClusterChecks
    found: dict[str, tuple[asyncio.Task[_Checked], Mapping[str, JsonValue]]] = field(default_factory=dict)
    """The checks of systems that were found in the cluster, by toolset, with the configuration of each."""

    async def check_yaml(self, definition: YamlToolsetDefinition) -> _Checked:
        # Imported here, because `builtin/triage` has no YAML toolsets.
        from holmes.toolsets.yaml.prerequisites import command_obstacle, has_commands, quick_obstacle

        environment = self.context.environment
        status = _yaml_status(definition)
        if refused := self._refused(status):
            return refused
        is_decided = self.policy.decided is not None
        obstacle = None if is_decided else quick_obstacle(definition, environment)
        if obstacle is None and not is_decided:
            obstacle = await self.cluster.obstacle(definition.prerequisites)
        key: str | None = None
        checked_at_seconds = 0.0
        if obstacle is None and has_commands(definition) and not is_decided:
            key = check_key((definition.prerequisites, definition.config), environment)
            known = self._known(definition.name, key)
            checked_at_seconds = known or time.time()
            if known is None:
                obstacle = await command_obstacle(
                    definition,
                    environment,
                    timeout_seconds=self.policy.deadline_seconds,
                    memory_limit_mb=self.context.memory_limit_mb,
                )
        if obstacle is not None:
            return _Checked(status=_hindered(status, obstacle))
        ready = self._ready(definition)
        return _Checked(status=status, ready=ready, key=key, checked_at_seconds=checked_at_seconds)

    def _ready(self, definition: YamlToolsetDefinition) -> ReadyToolset:
        from holmes.toolsets.yaml.toolset import YamlToolset

        toolset = YamlToolset(
            definition=definition,
            environment=self.context.environment,
            memory_limit_mb=self.context.memory_limit_mb,
            redactor=self.context.redactor if definition.redaction else None,
        )
        return ReadyToolset(
            toolset=toolset,
            approval_patterns=definition.approval_patterns,
            redaction=definition.redaction,
            on_demand=definition.on_demand,
            tags=definition.tags,
        )

    async def check_optional(self, optional: OptionalToolset) -> _Checked:
        """Check the outline first, because compiling the commands of absent software would slow down each start."""
        checked = await self.check_yaml(optional.outline)
        if checked.ready is None:
            return checked
        try:
            definition = optional.complete()
        except ConfigError as error:
            return _Checked(status=replace(checked.status, state="failed", reason=str(error)))
        return replace(checked, status=_yaml_status(definition), ready=self._ready(definition))

    def start_python(self, python: PythonToolset) -> asyncio.Task[_Checked]:
        if not python.is_found:
            return _started(self.check_python(python))
        task = _started(self._check_found(python))
        self.found[python.factory.name] = task, python.config
        return task

    async def _check_found(self, python: PythonToolset) -> _Checked:
        """Check a system that was found, in a short time, because other toolsets wait for the result."""
        seconds = min(_FOUND_SECONDS, self.policy.deadline_seconds / 2)
        try:
            async with asyncio.timeout(seconds):
                return await self.check_python(python)
        except TimeoutError:
            reason = f"no response within {seconds:g} s"
            return _Checked(status=replace(python.status, state="failed", reason=reason))

    async def check_python(self, python: PythonToolset) -> _Checked:
        redactor = self.context.redactor if python.redaction else None
        factory = python.factory
        status = python.status
        try:
            config = config_for_cluster(python.config, self.context)
        except ConfigError as error:
            return _Checked(status=replace(status, state="failed", reason=str(error)))
        if config is None:
            return _Checked(status=replace(status, state="disabled", reason=why_not(self.context)))
        context = replace(self.context, config=config, redactor=redactor)
        # Checks of Python toolsets are not remembered, because their inputs are unknown and they start no processes.
        if refused := self._refused(status):
            return refused
        try:
            detail = "" if self.policy.decided is not None else await factory.check(context)
        except HolmesError as error:
            return _Checked(status=replace(status, state="failed", reason=str(error)))
        others = {} if python.is_found else await self._working()
        toolset = factory.create(replace(context, others={**context.others, **others}))
        ready = ReadyToolset(
            toolset=toolset,
            approval_patterns=python.approval_patterns,
            redaction=python.redaction,
            on_demand=python.on_demand,
            tags=factory.tags,
        )
        return _Checked(status=replace(status, tool_count=len(toolset.tools), detail=detail), ready=ready)

    async def _working(self) -> dict[str, Mapping[str, JsonValue]]:
        """Return the configurations of systems that were found, without those whose check failed."""
        if self.found:
            await asyncio.wait([task for task, _ in self.found.values()])
        done = {name: (task, config) for name, (task, config) in self.found.items() if not task.cancelled()}
        return {name: config for name, (task, config) in done.items() if not task.exception() and task.result().ready}

    async def check_server(self, server: McpServer) -> _Checked:
        """Connect to an MCP server, also if another process has checked it, because its tools are known only to it."""
        from holmes.toolsets.mcp.toolset import McpToolset

        status = _server_status(server)
        if refused := self._refused(status):
            return refused
        try:
            if not serves(server.cluster, self.context):
                return _Checked(status=replace(status, state="disabled", reason=why_not(self.context)))
        except ConfigError as error:
            return _Checked(status=replace(status, state="failed", reason=str(error)))
        sessions = self.context.sessions
        assert sessions is not None, "a catalogue with MCP servers requires sessions"  # noqa: S101
        try:
            session = await sessions.session(server, self.context.environment)
            toolset = McpToolset(server, session, await session.listing())
        except ToolError as error:
            return _Checked(status=replace(status, state="failed", reason=str(error)))
        status = replace(status, tool_count=len(toolset.tools), detail=toolset.detail, revision=toolset.revision)
        return _Checked(status=status, ready=_served(toolset))

    def _refused(self, status: ToolsetStatus) -> _Checked | None:
        """Return the status if another process found that the toolset cannot run, else None."""
        if self.policy.decided is None:
            return None
        told = self.policy.decided.get(status.name)
        if told is not None and told.state == "enabled":
            return None
        return _Checked(status=told or replace(status, state="failed", reason="not checked yet"))

    def _known(self, name: str, key: str) -> float | None:
        if self.cache is None or not self.cache.holds(name, key):
            return None
        return self.cache.entries[name][1]


def _served(toolset: McpToolset) -> ReadyToolset:
    server = toolset.server
    return ReadyToolset(
        toolset=toolset,
        approval_patterns=toolset.gated,
        redaction=server.redaction,
        on_demand=server.on_demand,
        tags=server.tags,
    )


async def renewed_servers(ready: tuple[ReadyToolset, ...], reserved: Mapping[str, str]) -> tuple[ReadyToolset, ...]:
    """Return the toolsets with the tools that their MCP servers list now. A server that is away keeps its tools."""
    from holmes.toolsets.mcp.toolset import McpToolset

    async def current(each: ReadyToolset) -> ReadyToolset:
        with contextlib.suppress(ToolError, TimeoutError):
            if isinstance(each.toolset, McpToolset):
                async with asyncio.timeout(_RENEW_SECONDS):
                    return _served(await each.toolset.renewed())
        return each

    now = await asyncio.gather(*(current(each) for each in ready))
    renamed = _uniquely_named([each.toolset for each in now], reserved)
    return tuple(renamed.get(each.toolset.name, each) for each in now)


def _with_unique_names(checked: tuple[_Checked, ...], reserved: Mapping[str, str]) -> tuple[_Checked, ...]:
    renamed = _uniquely_named([each.ready.toolset for each in checked if each.ready is not None], reserved)
    return tuple(replace(each, ready=renamed.get(each.status.name, each.ready)) for each in checked)


def _uniquely_named(toolsets: Sequence[Toolset], reserved: Mapping[str, str]) -> dict[str, ReadyToolset]:
    """Rename the tools of MCP servers whose names are also used elsewhere. Returns the servers by name."""
    from holmes.toolsets.mcp.toolset import McpToolset, with_unique_names

    served = [toolset for toolset in toolsets if isinstance(toolset, McpToolset)]
    taken = {tool.name for toolset in toolsets if not isinstance(toolset, McpToolset) for tool in toolset.tools}
    return {each.name: _served(each) for each in with_unique_names(served, taken | set(reserved) | OWN_TOOLS)}


def _started(check: Coroutine[None, None, _Checked]) -> asyncio.Task[_Checked]:
    return asyncio.create_task(check)


async def _results(
    pending: list[tuple[ToolsetStatus, asyncio.Task[_Checked]]], deadline_seconds: float
) -> tuple[_Checked, ...]:
    tasks = [task for _, task in pending]
    if not tasks:
        return ()
    try:
        await asyncio.wait(tasks, timeout=deadline_seconds)
    finally:
        late = [task for task in tasks if not task.done()]
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=_CLEAN_UP_SECONDS)
    return tuple(_result(status, task, deadline_seconds) for status, task in pending)


def _result(status: ToolsetStatus, task: asyncio.Task[_Checked], deadline_seconds: float) -> _Checked:
    if not task.done() or task.cancelled():
        limit = f"{deadline_seconds:g} s (HOLMES_TOOLSET_PREREQ_TIMEOUT_SECONDS)"
        return _Checked(status=replace(status, state="failed", reason=f"the check took longer than {limit}"))
    error = task.exception()
    if error is not None:
        reason = f"the check failed: {type(error).__name__}: {masked(str(error))}"
        return _Checked(status=replace(status, state="failed", reason=reason))
    return task.result()


def _without_repeated_tools(checked: tuple[_Checked, ...], reserved: Mapping[str, str]) -> tuple[_Checked, ...]:
    owners = dict(reserved)
    kept: list[_Checked] = []
    for each in checked:
        names = [tool.name for tool in each.ready.toolset.tools] if each.ready is not None else []
        repeated = next((name for name in names if name in owners), None)
        if repeated is None:
            owners |= dict.fromkeys(names, each.status.name)
            kept.append(each)
            continue
        owner = owners[repeated]
        advice = "rename the tool" if repeated in reserved else f"rename the tool, or disable {owner!r}"
        reason = f"the toolset {owner!r} already has a tool {repeated!r}; {advice}"
        kept.append(_Checked(status=replace(each.status, state="failed", reason=reason)))
    return tuple(kept)


def _remember(cache: SuccessCache, checked: tuple[_Checked, ...]) -> None:
    succeeded = {each.status.name: (each.key, each.checked_at_seconds) for each in checked if each.key is not None}
    if succeeded != dict(cache.entries):
        cache.write(succeeded)


def _hindered(status: ToolsetStatus, obstacle: Obstacle) -> ToolsetStatus:
    return replace(status, state=obstacle.state, reason=obstacle.reason)


def _yaml_status(definition: YamlToolsetDefinition) -> ToolsetStatus:
    return ToolsetStatus(
        name=definition.name,
        state="enabled",
        tool_count=len(definition.tools),
        source=definition.source,
        tags=definition.tags,
        description=definition.description,
        on_demand=definition.on_demand,
    )


def _server_status(server: McpServer) -> ToolsetStatus:
    return ToolsetStatus(
        name=server.name, state="enabled", source=server.source, tags=server.tags, description=server.description
    )
