"""Implements a toolset with bash commands as tools.

Renders the command, runs it in its own process group and applies the transformers. An exit code other than 0 is an
error. Empty output has the status `no_data`, and any other output is a success. The exit code is the exit code of the
whole script, as bash defines it. A script that must fail when a program inside a pipe fails needs `set -o pipefail`.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import yaml

from holmes.kubernetes.scope import scope_of
from holmes.toolsets.process import DEFAULT_OUTPUT_LIMIT_BYTES, ProcessLimits, run_process
from holmes.toolsets.yaml.object_names import Advice, advice_for, plain_object
from holmes.toolsets.yaml.rendering import render_command, render_description, render_text
from holmes.toolsets.yaml.scope import command_environment, process_environment, refuse_outside, with_namespace
from holmes.values.errors import ToolError, masked
from holmes.values.expressions import expression
from holmes.values.texts import after_placeholder
from holmes.values.tools import ToolResult
from holmes.yaml_documents import refuse_deep

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from holmes.redaction.redactor import Redactor
    from holmes.toolsets.process import ProcessOutcome
    from holmes.toolsets.yaml.definition import ParseFormat, ViewTransformer, YamlTool, YamlToolsetDefinition
    from holmes.toolsets.yaml.rendering import RenderedCommand
    from holmes.toolsets.yaml.views import View
    from holmes.values.environment import Environment
    from holmes.values.json_types import JsonObject
    from holmes.values.messages import ToolStatus
    from holmes.values.tools import Tool, ToolInvocation

_ERROR_CHARACTERS = 500
_RELEASE_NOT_FOUND = "release: not found"
# Matches a log line of a Go program.
_GO_LOG = expression(r"[IWE]\d{4} \d\d:\d\d:\d\d\.\d+ ")
# Parsed JSON takes about seven times its size in memory, so larger output is not normalised.
_LARGEST_PARSED_CHARACTERS = 5_000_000
_Loader: type[yaml.CSafeLoader | yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: type[yaml.CSafeDumper | yaml.SafeDumper] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlToolset:
    """Runs the tools of one definition. `memory_limit_mb` and `output_limit_bytes` limit every process.

    `redactor` masks objects before a transformer selects parts of them, or is None if redaction is off.
    """

    definition: YamlToolsetDefinition
    environment: Environment
    memory_limit_mb: int | None = 800
    output_limit_bytes: int = DEFAULT_OUTPUT_LIMIT_BYTES
    redactor: Redactor | None = None

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def instructions(self) -> str:
        """The rendered `llm_instructions`."""
        return self.definition.instructions

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools, in the order of the file."""
        return tuple(tool.tool for tool in self.definition.tools)

    def describe(self, invocation: ToolInvocation) -> str:
        """Return the rendered `user_description` or, if it is missing, the tool's name and arguments."""
        tool = self._tool(invocation.tool.name)
        if tool.user_description is not None:
            return " ".join(render_description(tool.user_description, invocation.arguments).split())
        arguments = " ".join(f"{name}={value}" for name, value in invocation.arguments.items() if value is not None)
        return f"{tool.tool.name} {arguments}".strip()

    async def call(self, invocation: ToolInvocation) -> ToolResult:
        """Run the command. A rejected argument returns an error result. Cancellation ends the process group."""
        tool = self._tool(invocation.tool.name)
        limits = ProcessLimits(
            timeout_seconds=tool.timeout_seconds,
            memory_limit_mb=self.memory_limit_mb,
            output_limit_bytes=self.output_limit_bytes,
        )
        try:
            arguments = with_namespace(tool.tool, invocation.arguments, self.environment)
            arguments = plain_object(arguments) if self.definition.chosen_cluster else arguments
            command = self._command(tool, arguments)
            outcome, advice = await self._run_with_advice(tool, command, arguments, limits)
            if advice.instead:
                arguments = advice.instead
                command = self._command(tool, arguments)
                again = await self._run(tool, command, limits)
                outcome = replace(again, stderr=f"{again.stderr}{advice.hint}\n")
            if self.definition.chosen_cluster and outcome.return_code:
                outcome = replace(
                    outcome, stderr=outcome.stderr + _release_hint(outcome.stderr, arguments, self.environment)
                )
            outcome = await self._viewed(tool, arguments, outcome, limits)
        except ToolError as error:
            return ToolResult(status="error", error=str(error))
        stdout = await asyncio.to_thread(_normalised, outcome.stdout, tool.parse)
        return self._result(tool, outcome, stdout, command.invocation)

    async def _run_with_advice(
        self, tool: YamlTool, command: RenderedCommand, arguments: JsonObject, limits: ProcessLimits
    ) -> tuple[ProcessOutcome, Advice]:
        """Run the command. If it does not find an object, also return advice, which is part of the error."""
        outcome = await self._run(tool, command, limits)
        if not self.definition.chosen_cluster or not outcome.return_code:
            return outcome, Advice()
        advice = await advice_for(outcome.stderr, arguments, self.environment)
        stderr = f"{outcome.stderr.rstrip()}; {advice.hint}\n" if advice.hint else outcome.stderr
        return replace(outcome, stderr=stderr), advice

    def _command(self, tool: YamlTool, arguments: JsonObject) -> RenderedCommand:
        command = render_command(tool, arguments, config=self.definition.config, environment=self.environment)
        refuse_outside(command.invocation, scope_of(self.environment))
        return command

    async def _viewed(
        self, tool: YamlTool, arguments: JsonObject, outcome: ProcessOutcome, limits: ProcessLimits
    ) -> ProcessOutcome:
        from holmes.toolsets.yaml.views import ViewSettings, apply_view  # most commands never run such a tool

        views = tuple(self._view(each, tool, arguments) for each in tool.transformers)
        settings = ViewSettings(
            redactor=self.redactor, environment=process_environment(self.environment), limits=limits
        )
        for view in views:
            outcome = await apply_view(view, outcome, settings)
        return outcome

    def _view(self, transformer: ViewTransformer, tool: YamlTool, arguments: JsonObject) -> View:
        from holmes.toolsets.yaml.views import view_of

        config = self.definition.config

        def rendered(template: str) -> str:
            return render_text(tool, template, arguments, config=config, environment=self.environment)

        def command_with(others: JsonObject) -> Callable[[ProcessLimits], Awaitable[ProcessOutcome]]:
            return partial(self._run, tool, self._command(tool, {**arguments, **others}))

        return view_of(transformer, rendered, command_with)

    async def _run(self, tool: YamlTool, command: RenderedCommand, limits: ProcessLimits) -> ProcessOutcome:
        variables = {**dict(tool.variables), **dict(command.variables)}
        chosen = self.definition.chosen_cluster
        return await run_process(
            ("bash", "-c", command.script),
            environment=command_environment(self.environment, variables, chosen_cluster=chosen),
            limits=limits,
        )

    def _result(self, tool: YamlTool, outcome: ProcessOutcome, stdout: str, invocation: str) -> ToolResult:
        error = self._error(tool, outcome)
        status: ToolStatus = "success" if stdout.strip() else "no_data"
        return ToolResult(
            status=status if error is None else "error",
            data=stdout if _says(error, outcome.stderr) else _with_stderr(stdout, outcome.stderr),
            error=error,
            invocation=invocation,
            return_code=outcome.return_code,
        )

    def _error(self, tool: YamlTool, outcome: ProcessOutcome) -> str | None:
        if outcome.timed_out:
            return f"stopped after {tool.timeout_seconds:g} s (time limit); request less data"
        if outcome.output_truncated:
            size_mb = self.output_limit_bytes / (1024 * 1024)
            kept = "the first part of its output is kept" if outcome.stdout else "no output can be shown"
            return f"stopped because its output exceeds {size_mb:g} MiB; {kept}: request less data"
        if outcome.return_code == 0:
            return None
        said = outcome.stderr.strip() or outcome.stdout.strip()
        if outcome.memory_exceeded:
            limit = f"killed at the memory limit of {self.memory_limit_mb} MB"
            return f"{limit} (TOOL_MEMORY_LIMIT_MB); request less data{_last_words(said)}"
        if outcome.return_code < 0:
            return f"ended by signal {-outcome.return_code}{_last_words(said)}"
        return f"exit code {outcome.return_code}{_last_words(said) or ', no output'}"

    def _tool(self, name: str) -> YamlTool:
        for tool in self.definition.tools:
            if tool.tool.name == name:
                return tool
        raise ToolError(f"the toolset {self.name!r} has no tool {name!r}")


def _release_hint(stderr: str, arguments: JsonObject, environment: Environment) -> str:
    """Return a hint for helm's error `release: not found`, which does not contain the namespace.

    The hint is empty for other errors.
    """
    if _RELEASE_NOT_FOUND not in stderr:
        return ""
    namespace = arguments.get("namespace") or environment.get("HOLMES_KUBE_NAMESPACE")
    place = f", namespace {namespace}" if namespace else ""
    return f"(release {arguments.get('release')}{place}; helm_list shows every release and its namespace)\n"


def _says(error: str | None, stderr: str) -> bool:
    """Return whether the error message already contains everything that the program wrote to standard error."""
    return error is not None and error.endswith(f": {' '.join(masked(stderr).split())}")


def _with_stderr(stdout: str, stderr: str) -> str:
    if not stderr.strip():
        return stdout
    separator = "\n" if stdout and not stdout.endswith("\n") else ""
    return f"{stdout}{separator}stderr:\n{stderr}"


def _last_words(text: str) -> str:
    """Return the end of a program's output on one line.

    Log lines of Go programs are skipped, because the error message usually follows them.
    """
    if not text:
        return ""
    # Mask before truncating, because truncation may remove the name of a secret.
    whole, _, cut = (
        text[-8 * _ERROR_CHARACTERS :].partition("\n") if len(text) > 8 * _ERROR_CHARACTERS else ("", "", text)
    )
    lines = masked(cut or whole).splitlines()
    reasons = [line for line in lines if _GO_LOG.match(line) is None] or lines
    line = " ".join(" ".join(reasons).split())
    if len(line) <= _ERROR_CHARACTERS:
        return f": {line}"
    return f": …{line[after_placeholder(line, len(line) + 1 - _ERROR_CHARACTERS) :]}"


def _normalised(text: str, parse: ParseFormat) -> str:
    """Normalise the layout of the output.

    JSON and YAML are formatted with one value per line. Padding is removed from tables.

    Invalid text is returned unchanged.
    """
    if parse == "text" or not text.strip() or len(text) > _LARGEST_PARSED_CHARACTERS:
        return text
    match parse:
        case "json":
            return _json(text)
        case "yaml":
            return _yaml(text)
        case "table":
            return "\n".join(re.sub(r" {3,}", "  ", line.rstrip()) for line in text.splitlines()) + "\n"


def _json(text: str) -> str:
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=1) + "\n"
    except (ValueError, RecursionError):
        return text


def _yaml(text: str) -> str:
    try:
        refuse_deep(text.encode(), source="")
        documents = list(yaml.load_all(text, Loader=_Loader))
        return str(yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000))
    except (yaml.YAMLError, ValueError, RecursionError):
        return text
