"""Checks which toolsets of a catalogue can run here.

All checks run in parallel under one deadline. Commands that succeeded are remembered for an hour. Tool names must be
unique. A toolset fails if the name of one of its tools is reserved or is used in an earlier toolset.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from holmes.toolsets.check_cache import SuccessCache, check_key
from holmes.toolsets.registry import ToolsetStatus
from holmes.values.errors import HolmesError, ToolError, masked
from holmes.values.first_look import OWN_TOOLS

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping
    from pathlib import Path

    from holmes.toolsets.catalogue import Catalogue, PythonToolset
    from holmes.toolsets.mcp.servers import McpServer
    from holmes.toolsets.mcp.toolset import McpToolset
    from holmes.toolsets.registry import ToolsetContext
    from holmes.toolsets.yaml.definition import YamlToolsetDefinition
    from holmes.toolsets.yaml.prerequisites import Obstacle
    from holmes.values.tools import Toolset

_DEFAULT_DEADLINE_SECONDS = 20.0

# Time limit within which a cancelled check must end its processes.
_CLEAN_UP_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyToolset:
    """A toolset that can run. Tools that match one of `approval_patterns` (globs) require approval.

    `redaction` is false if the configuration disables masking for this toolset.
    """

    toolset: Toolset
    approval_patterns: tuple[str, ...] = ()
    redaction: bool = True
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
    checker = _Checker(context=context, cache=None if policy.refresh else cache, policy=policy)
    pending = [
        *((_yaml_status(each), _started(checker.check_yaml(each))) for each in catalogue.definitions),
        *((_python_status(each), _started(checker.check_python(each))) for each in catalogue.python),
        *((_server_status(each), _started(checker.check_server(each))) for each in catalogue.servers),
    ]
    checked = await _results(pending, policy.deadline_seconds)
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

    async def check_yaml(self, definition: YamlToolsetDefinition) -> _Checked:
        # Imported here, because `builtin/triage` has no YAML toolsets.
        from holmes.toolsets.yaml.prerequisites import command_obstacle, has_commands, quick_obstacle
        from holmes.toolsets.yaml.toolset import YamlToolset

        environment = self.context.environment
        status = _yaml_status(definition)
        if refused := self._refused(status):
            return refused
        is_decided = self.policy.decided is not None
        obstacle = None if is_decided else quick_obstacle(definition, environment)
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
        redactor = self.context.redactor if definition.redaction else None
        toolset = YamlToolset(
            definition=definition,
            environment=environment,
            memory_limit_mb=self.context.memory_limit_mb,
            redactor=redactor,
        )
        ready = ReadyToolset(
            toolset=toolset,
            approval_patterns=definition.approval_patterns,
            redaction=definition.redaction,
            tags=definition.tags,
        )
        return _Checked(status=status, ready=ready, key=key, checked_at_seconds=checked_at_seconds)

    async def check_python(self, python: PythonToolset) -> _Checked:
        redactor = self.context.redactor if python.redaction else None
        context = replace(self.context, config=python.config, redactor=redactor)
        factory = python.factory
        status = _python_status(python)
        # Checks of Python toolsets are not remembered, because their inputs are unknown and they start no processes.
        if refused := self._refused(status):
            return refused
        try:
            detail = "" if self.policy.decided is not None else await factory.check(context)
        except HolmesError as error:
            return _Checked(status=replace(status, state="failed", reason=str(error)))
        toolset = factory.create(context)
        ready = ReadyToolset(
            toolset=toolset, approval_patterns=python.approval_patterns, redaction=python.redaction, tags=factory.tags
        )
        return _Checked(status=replace(status, tool_count=len(toolset.tools), detail=detail), ready=ready)

    async def check_server(self, server: McpServer) -> _Checked:
        """Connect to an MCP server, also if another process has checked it, because its tools are known only to it."""
        from holmes.toolsets.mcp.toolset import McpToolset

        status = _server_status(server)
        if refused := self._refused(status):
            return refused
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
    return ReadyToolset(toolset=toolset, approval_patterns=toolset.gated, redaction=server.redaction, tags=server.tags)


def _with_unique_names(checked: tuple[_Checked, ...], reserved: Mapping[str, str]) -> tuple[_Checked, ...]:
    """Rename the tools of MCP servers whose names are also used elsewhere."""
    from holmes.toolsets.mcp.toolset import McpToolset, with_unique_names

    ready = [each.ready.toolset for each in checked if each.ready is not None]
    served = [toolset for toolset in ready if isinstance(toolset, McpToolset)]
    taken = {tool.name for toolset in ready if not isinstance(toolset, McpToolset) for tool in toolset.tools}
    renamed = {each.name: _served(each) for each in with_unique_names(served, taken | set(reserved) | OWN_TOOLS)}
    return tuple(replace(each, ready=renamed.get(each.status.name, each.ready)) for each in checked)


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
    )


def _server_status(server: McpServer) -> ToolsetStatus:
    return ToolsetStatus(
        name=server.name, state="enabled", source=server.source, tags=server.tags, description=server.description
    )


def _python_status(python: PythonToolset) -> ToolsetStatus:
    factory = python.factory
    return ToolsetStatus(
        name=factory.name,
        state="enabled",
        source=python.source,
        tags=factory.tags,
        description=factory.description,
        is_chosen=not factory.enabled_by_default,
    )
