"""The keys of a toolset file as users write them, validated by pydantic. Rejects unknown keys."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, field_validator, model_validator

from holmes.toolsets.kubernetes_view import FORMS
from holmes.values.tools import JsonType

_VIEW: Final = "kubernetes_view"
_TRANSFORMERS: Final = (_VIEW, "llm_summarize")
_PREREQUISITES: Final = ("command", "env", "enabled", "program", "kind", "object")
_RESOURCE: Final = r"^[a-z][a-z0-9-]*(\.[a-z0-9-]+)+$"


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


ParameterTypes = Annotated[list[JsonType], BeforeValidator(_as_list)]


class _Keys(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ParameterKeys(_Keys):
    """A parameter of a tool. The engine checks `pattern` and `allow_leading_dash`, which are not sent to the model."""

    description: str = ""
    type: ParameterTypes = Field(default_factory=list)
    required: bool | None = None
    default: Any = None
    enum: list[str | int | float | bool | None] | None = None
    items: ParameterKeys | None = None
    properties: dict[str, ParameterKeys] | None = None
    additional_properties: ParameterKeys | bool | None = None
    any_of: list[ParameterKeys] | None = None
    pattern: str | None = None
    allow_leading_dash: bool = False

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        try:
            re.compile(value or "")
        except (re.error, RecursionError, OverflowError) as error:
            message = f"{str(value)[:100]!r} is not a valid regular expression: {error}"
            raise ValueError(message) from None
        return value


class ViewConfigKeys(_Keys):
    """Options of `kubernetes_view`. Like commands, they may contain parameters of the tool."""

    form: str
    argument: str = ""
    kinds: str = ""
    objects: dict[str, Any] | None = None

    @field_validator("form")
    @classmethod
    def _is_known(cls, value: str) -> str:
        if "{" not in value and value not in FORMS:
            message = f"unknown form {value!r}; available: {', '.join(FORMS)}"
            raise ValueError(message)
        return value

    @model_validator(mode="after")
    def _knows_the_objects(self) -> ViewConfigKeys:
        if self.form == "table" and self.objects is None:
            raise ValueError("the form 'table' requires 'objects', the arguments that make the command write JSON")
        return self


class ViewKeys(_Keys):
    """A `transformers` entry that applies `kubernetes_view`."""

    name: Literal["kubernetes_view"]
    config: ViewConfigKeys


class UpstreamTransformerKeys(BaseModel):
    """A `transformers` entry of HolmesGPT, which is accepted but has no effect."""

    name: Literal["llm_summarize"]


def _known_transformer(value: object) -> object:
    name = value.get("name") if isinstance(value, dict) else value
    if name not in _TRANSFORMERS:
        nearest = get_close_matches(str(name), _TRANSFORMERS, n=1, cutoff=0.5)
        hint = f"did you mean {nearest[0]!r}?" if nearest else f"available: {', '.join(_TRANSFORMERS)}"
        message = f"unknown transformer {name!r}; {hint}"
        raise ValueError(message)
    return value


TransformerKeys = Annotated[
    Annotated[ViewKeys, Tag(_VIEW)] | Annotated[UpstreamTransformerKeys, Tag("llm_summarize")],
    Discriminator(lambda value: value["name"]),
    BeforeValidator(_known_transformer),
]


class ToolKeys(_Keys):
    """A tool: its description for the model, and its command or script."""

    name: str = Field(min_length=1, max_length=64, pattern=r"^[a-zA-Z0-9_-]+$")
    description: str
    parameters: dict[str, ParameterKeys | None] = Field(default_factory=dict)
    user_description: str | None = None
    transformers: list[TransformerKeys] | None = None
    command: str | None = None
    script: str | None = None
    timeout: float | None = Field(default=None, gt=0)
    env: dict[str, str] = Field(default_factory=dict)
    parse: Literal["json", "yaml", "table", "text"] = "text"

    @model_validator(mode="after")
    def _runs_one_thing(self) -> ToolKeys:
        if (self.command is None) == (self.script is None):
            raise ValueError("a tool requires either 'command' or 'script'")
        return self


class StaticPrerequisiteKeys(_Keys):
    """Lets the author disable the toolset."""

    enabled: bool
    disabled_reason: str = ""


class EnvironmentPrerequisiteKeys(_Keys):
    """Requires environment variables to be set."""

    env: list[str]


class CommandPrerequisiteKeys(_Keys):
    """Requires a command to succeed, and optionally to print `expected_output`."""

    command: str
    expected_output: str | None = None


class ProgramPrerequisiteKeys(_Keys):
    """Requires a program in `PATH`."""

    program: str = Field(pattern=r"^[\w.+-]+$")


class KindPrerequisiteKeys(_Keys):
    """Requires the cluster to serve a kind, or at least one kind of a list."""

    kind: Annotated[list[Annotated[str, Field(pattern=_RESOURCE)]], BeforeValidator(_as_list), Field(min_length=1)]


class ObjectPrerequisiteKeys(_Keys):
    """Requires the object at an API path."""

    object: str = Field(pattern=r"^/apis?/[a-z0-9./-]+$")


def _kind_of_prerequisite(value: object) -> str | None:
    keys = value if isinstance(value, dict) else ()
    return next((kind for kind in _PREREQUISITES if kind in keys), None)


PrerequisiteKeys = Annotated[
    Annotated[StaticPrerequisiteKeys, Tag("enabled")]
    | Annotated[EnvironmentPrerequisiteKeys, Tag("env")]
    | Annotated[CommandPrerequisiteKeys, Tag("command")]
    | Annotated[ProgramPrerequisiteKeys, Tag("program")]
    | Annotated[KindPrerequisiteKeys, Tag("kind")]
    | Annotated[ObjectPrerequisiteKeys, Tag("object")],
    Discriminator(
        _kind_of_prerequisite,
        custom_error_type="prerequisite",
        custom_error_message=f"a prerequisite requires exactly one of {', '.join(map(repr, _PREREQUISITES))}",
    ),
]


class ToolsetKeys(_Keys):
    enabled: bool | None = None
    name: str | None = None
    description: str = ""
    docs_url: str | None = None
    icon_url: str | None = None
    installation_instructions: str | None = None
    prerequisites: list[PrerequisiteKeys] = Field(default_factory=list)
    tools: list[ToolKeys] = Field(default_factory=list)
    tags: list[Literal["core", "cluster", "cli"]] = ["core"]
    config: dict[str, Any] | None = None
    llm_instructions: str | None = None
    transformers: list[TransformerKeys] | None = None
    approval_required_tools: list[str] = Field(default_factory=list)
    redaction: bool = True
    chosen_cluster: bool = False
    on_demand: bool = False
    expose_remotely: Any = None
    """A key of HolmesGPT that has no effect."""
    type: Literal["mcp", "http", "database", "mongodb"] | None = None
