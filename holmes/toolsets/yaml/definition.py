"""Defines the data classes for a YAML toolset that is validated and ready to run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.values.json_types import JsonValue
    from holmes.values.tools import Tool

ParseFormat: TypeAlias = Literal["json", "yaml", "table", "text"]

DEFAULT_TOOL_TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LintWarning:
    """A warning about a command. `place` is `file:line`, and `tool` is the name of the tool."""

    place: str
    tool: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterRule:
    """Constraints on a parameter's value, checked before rendering.

    `pattern` must match the whole value, or each item of a list. `allow_leading_dash` is true if the author guarantees
    that the value cannot become an option.
    """

    name: str
    required: bool = True
    pattern: str | None = None
    allow_leading_dash: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewTransformer:
    """Shows the output of a command without secrets. `form`, `argument` and `kinds` are templates.

    Unless its `kinds` are safe, the form `table` requires the objects of the table as JSON. The command writes this
    JSON if the arguments in `objects` override the arguments from the model.
    """

    form: str
    argument: str = ""
    kinds: str = ""
    objects: Mapping[str, JsonValue] | None = None

    @property
    def templates(self) -> tuple[str, ...]:
        return self.form, self.argument, self.kinds


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlTool:
    """One tool: its schema for the model, its template, and how to run it.

    `transformers` are applied to the output in order, and `parse` is applied last.
    """

    tool: Tool
    template: str
    rules: tuple[ParameterRule, ...] = ()
    user_description: str | None = None
    timeout_seconds: float = DEFAULT_TOOL_TIMEOUT_SECONDS
    variables: tuple[tuple[str, str], ...] = ()
    transformers: tuple[ViewTransformer, ...] = ()
    parse: ParseFormat = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticPrerequisite:
    """Lets the author of the file disable the toolset."""

    enabled: bool
    disabled_reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentPrerequisite:
    """Requires environment variables to be set."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandPrerequisite:
    """Requires a bash command to succeed, and its standard output to contain `expected_output`."""

    command: str
    expected_output: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramPrerequisite:
    """Requires a program in `PATH`, without running it."""

    program: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KindPrerequisite:
    """Requires the cluster to serve at least one of these kinds, for example `certificates.cert-manager.io`."""

    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectPrerequisite:
    """Requires the object at this API path, for software that has no kinds of its own."""

    path: str


Prerequisite: TypeAlias = (
    StaticPrerequisite
    | EnvironmentPrerequisite
    | ProgramPrerequisite
    | KindPrerequisite
    | ObjectPrerequisite
    | CommandPrerequisite
)


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlToolsetDefinition:
    """An enabled toolset from a file. Overrides are already applied.

    `source` is `file:line`. `approval_patterns` are globs of tool names. `redaction` masks secrets in results. If
    `chosen_cluster` is true, commands use the chosen context and namespace. Tools of a toolset `on_demand`
    are in requests only if the question needs them; models find them with `find_tools`.
    """

    name: str
    source: str
    description: str = ""
    docs_url: str | None = None
    installation_instructions: str | None = None
    prerequisites: tuple[Prerequisite, ...] = ()
    tools: tuple[YamlTool, ...] = ()
    tags: tuple[str, ...] = ("core",)
    config: Mapping[str, JsonValue] = field(default_factory=dict)
    instructions: str = ""
    approval_patterns: tuple[str, ...] = ()
    redaction: bool = True
    chosen_cluster: bool = False
    on_demand: bool = False
    lint_warnings: tuple[LintWarning, ...] = ()

    @property
    def is_optional(self) -> bool:
        """Whether the toolset is for software that many clusters or machines do not have."""
        optional = KindPrerequisite | ObjectPrerequisite | ProgramPrerequisite
        return any(isinstance(each, optional) for each in self.prerequisites)
