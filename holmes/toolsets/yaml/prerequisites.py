"""Checks whether a YAML toolset can run on this machine.

`enabled`, variables and programs are checked first, then the cluster, then commands. Only the first unmet prerequisite
is reported.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from holmes.toolsets.process import ProcessLimits, run_process
from holmes.toolsets.yaml.definition import (
    CommandPrerequisite,
    EnvironmentPrerequisite,
    ProgramPrerequisite,
    StaticPrerequisite,
    YamlTool,
)
from holmes.toolsets.yaml.rendering import render_command
from holmes.toolsets.yaml.scope import process_environment
from holmes.values.errors import ConfigError, ToolError, masked
from holmes.values.expressions import expression
from holmes.values.texts import shortened
from holmes.values.tools import Tool

if TYPE_CHECKING:
    from holmes.toolsets.process import ProcessOutcome
    from holmes.toolsets.yaml.definition import YamlToolsetDefinition
    from holmes.values.environment import Environment

_REASON_CHARACTERS = 300
_NOT_FOUND = expression(r"(\S+): command not found")


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Explains why a toolset cannot run.

    `disabled` means that its author disabled it, `absent` that the cluster or the machine does not have the software,
    and `failed` that another prerequisite is not met.
    """

    state: Literal["disabled", "absent", "failed"]
    reason: str


def quick_obstacle(definition: YamlToolsetDefinition, environment: Environment) -> Obstacle | None:
    """Return the first unmet prerequisite that can be checked without a command, or None.

    `enabled` is checked before variables, and variables before programs.
    """
    for prerequisite in definition.prerequisites:
        if isinstance(prerequisite, StaticPrerequisite) and not prerequisite.enabled:
            return Obstacle(state="disabled", reason=prerequisite.disabled_reason or "disabled in the toolset file")
    for prerequisite in definition.prerequisites:
        if isinstance(prerequisite, EnvironmentPrerequisite):
            for name in prerequisite.names:
                if not environment.get(name):
                    return Obstacle(state="failed", reason=f"the environment variable {name!r} is not set")
    path = process_environment(environment).get("PATH")
    for prerequisite in definition.prerequisites:
        if isinstance(prerequisite, ProgramPrerequisite) and shutil.which(prerequisite.program, path=path) is None:
            return Obstacle(state="absent", reason=_with_help(f"{prerequisite.program!r} is not installed", definition))
    return None


def has_commands(definition: YamlToolsetDefinition) -> bool:
    return any(isinstance(prerequisite, CommandPrerequisite) for prerequisite in definition.prerequisites)


async def command_obstacle(
    definition: YamlToolsetDefinition, environment: Environment, *, timeout_seconds: float, memory_limit_mb: int | None
) -> Obstacle | None:
    """Run the commands in order until one fails, and describe the failure. Returns None if all succeed.

    Cancellation ends the running command.
    """
    limits = ProcessLimits(
        timeout_seconds=timeout_seconds, memory_limit_mb=memory_limit_mb, output_limit_bytes=1024 * 1024
    )
    for prerequisite in definition.prerequisites:
        if not isinstance(prerequisite, CommandPrerequisite):
            continue
        try:
            outcome = await _run(prerequisite.command, definition, environment, limits)
        except (ConfigError, ToolError) as error:
            return Obstacle(state="failed", reason=str(error))
        if outcome.timed_out:
            return Obstacle(state="failed", reason=f"the check took longer than {timeout_seconds:g} s")
        expected = prerequisite.expected_output
        if outcome.return_code != 0:
            said = _what_it_said(outcome)
            return Obstacle(state="failed", reason=_with_help(said, definition))
        if expected is not None and expected not in outcome.stdout:
            reason = f"{_one_line(prerequisite.command)!r} did not print {expected!r}"
            return Obstacle(state="failed", reason=_with_help(reason, definition))
    return None


async def _run(
    command: str, definition: YamlToolsetDefinition, environment: Environment, limits: ProcessLimits
) -> ProcessOutcome:
    """Run a prerequisite command, which can use `env` and `config` like a tool command."""
    template = YamlTool(tool=Tool(name=definition.name, description=""), template=command)
    rendered = render_command(template, {}, config=definition.config, environment=environment)
    variables = process_environment(environment).with_variables(dict(rendered.variables))
    return await run_process(("bash", "-c", rendered.script), environment=variables, limits=limits)


def _what_it_said(outcome: ProcessOutcome) -> str:
    missing = _NOT_FOUND.search(outcome.stderr)
    if missing is not None:
        return f"{missing.group(1)!r} is not installed"
    return _one_line(masked(outcome.stderr or outcome.stdout)) or f"exit code {outcome.return_code}"


def _with_help(reason: str, definition: YamlToolsetDefinition) -> str:
    help_text = _one_line(definition.installation_instructions or "")
    return f"{reason}; {help_text}" if help_text else reason


def _one_line(text: str) -> str:
    return shortened(" ".join(text.split()), _REASON_CHARACTERS)
