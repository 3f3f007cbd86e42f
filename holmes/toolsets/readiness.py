"""Checks which toolsets of a catalogue can run here.

All checks run in parallel under one deadline. Commands that succeeded are remembered for an hour. Tool names must be
unique. A toolset fails if the name of one of its tools is reserved or is used in an earlier toolset.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from holmes import __version__
from holmes.toolsets.registry import ToolsetStatus
from holmes.values.errors import masked

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from holmes.toolsets.catalogue import Catalogue, PythonToolset
    from holmes.toolsets.registry import ToolsetContext
    from holmes.toolsets.yaml.definition import YamlToolsetDefinition
    from holmes.toolsets.yaml.prerequisites import Obstacle
    from holmes.values.environment import Environment
    from holmes.values.tools import Toolset

_DEFAULT_DEADLINE_SECONDS = 20.0
_SUCCESS_LIFETIME_SECONDS = 3600.0
_FILE_NAME = "toolset_checks.json"
_FORMAT = 1

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
    ]
    checked = await _results(pending, policy.deadline_seconds)
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
            key = _check_key((definition.prerequisites, definition.config), environment)
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
        reason = None if self.policy.decided is not None else await factory.prerequisites(context)
        if reason is not None:
            return _Checked(status=replace(status, state="failed", reason=reason))
        toolset = factory.create(context)
        ready = ReadyToolset(
            toolset=toolset, approval_patterns=python.approval_patterns, redaction=python.redaction, tags=factory.tags
        )
        return _Checked(status=replace(status, tool_count=len(toolset.tools)), ready=ready)

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


def _python_status(python: PythonToolset) -> ToolsetStatus:
    factory = python.factory
    return ToolsetStatus(
        name=factory.name, state="enabled", source=python.source, tags=factory.tags, description=factory.description
    )


def _check_key(configuration: object, environment: Environment) -> str:
    """Hash everything that a check depends on.

    This includes the configuration, the variables, the folders in `PATH` and the version of Holmes.
    """
    folders = (environment.get("PATH") or "").split(os.pathsep)
    parts = [
        __version__,
        repr(configuration),
        environment.variables,
        [(folder, _modified(folder)) for folder in folders],
    ]
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _modified(folder: str) -> int:
    try:
        return Path(folder).stat().st_mtime_ns
    except (OSError, ValueError):
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SuccessCache:
    """The successful checks by toolset name, each with its key and its time in seconds since the epoch."""

    directory: Path
    entries: Mapping[str, tuple[str, float]] = field(default_factory=dict)

    @classmethod
    def read(cls, directory: Path) -> SuccessCache:
        """Read the remembered successes. The cache is empty if the file is missing, invalid or in another format."""
        try:
            content = json.loads((directory / _FILE_NAME).read_text(encoding="utf-8"))
            if content["format"] != _FORMAT:
                return cls(directory=directory)
            entries = {
                str(name): (str(entry["key"]), float(entry["checked_at_seconds"]))
                for name, entry in content["succeeded"].items()
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return cls(directory=directory)
        return cls(directory=directory, entries=entries)

    def holds(self, name: str, key: str) -> bool:
        """Return whether this check succeeded within the last hour."""
        known = self.entries.get(name)
        if known is None or known[0] != key:
            return False
        return 0 <= time.time() - known[1] < _SUCCESS_LIFETIME_SECONDS

    def write(self, succeeded: Mapping[str, tuple[str, float]]) -> None:
        """Replace the file atomically. Only its owner can read the file."""
        entries = {name: {"key": key, "checked_at_seconds": at} for name, (key, at) in succeeded.items()}
        content = json.dumps({"format": _FORMAT, "succeeded": entries}, indent=1, sort_keys=True)
        # If the disk is full or read-only, the checks run again next time.
        with contextlib.suppress(OSError):
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(dir=self.directory, prefix=_FILE_NAME)
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                    file.write(content)
                Path(temporary).replace(self.directory / _FILE_NAME)
            except OSError:
                Path(temporary).unlink(missing_ok=True)
                raise
