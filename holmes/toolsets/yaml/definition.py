"""A YAML toolset as values: what the loader gives to the catalogue, the prerequisites and `YamlToolset`."""

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
    """`place` is `file:line`, `tool` the tool's name."""

    place: str
    tool: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterRule:
    """What the engine demands of a value before it renders anything.

    `pattern` is matched against the whole text of the value, for a list against each item.
    `allow_leading_dash` is the author's word that the value cannot become an option at its place.
    """

    name: str
    required: bool = True
    pattern: str | None = None
    allow_leading_dash: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewTransformer:
    """Shows the output of a command without secrets. `form`, `argument` and `kinds` are templates, as commands are.

    The form `table` needs the objects of the table in JSON unless its `kinds` are harmless: the same command writes
    them when it is called with the arguments `objects` in place of those that the model chose.
    """

    form: str
    argument: str = ""
    kinds: str = ""
    objects: Mapping[str, JsonValue] | None = None

    @property
    def templates(self) -> tuple[str, ...]:
        """All templates."""
        return self.form, self.argument, self.kinds


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlTool:
    """One tool: its schema for the model, the template that runs, and how to run it.

    `transformers` are applied to its output one after the other, and `parse` to what the last one shows.
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
    """Switched on or off by the author of the file."""

    enabled: bool
    disabled_reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentPrerequisite:
    """Variables that must be set."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandPrerequisite:
    """A bash command that must succeed; `expected_output` must be somewhere in its standard output."""

    command: str
    expected_output: str | None = None


Prerequisite: TypeAlias = StaticPrerequisite | EnvironmentPrerequisite | CommandPrerequisite


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlToolsetDefinition:
    """One enabled toolset of a file after overrides.

    `source` is `file:line`; `approval_patterns` are globs of tool names; `redaction` says whether secrets
    in its results are masked; with `chosen_cluster` its commands read the context and namespace that the user chose.
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
    lint_warnings: tuple[LintWarning, ...] = ()
