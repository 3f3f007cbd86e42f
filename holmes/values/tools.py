"""What a tool is: its schema for the model, the call, the result and its store; and a toolset, which runs calls.

Toolsets live in `holmes.toolsets`, stores of results in `holmes.stores`. Cross-cutting behaviour (approval, caching,
redaction) wraps a toolset and is never an `if` in the loop. The label of a stored result is written by the spill, shown
to the model so that it can cite the result, and left out by everything that wants the output itself: masks, line
counts, citations.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from holmes.values.messages import NOTHING_HANDED_OVER, Text, joined_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.values.json_types import JsonObject, JsonScalar, JsonValue
    from holmes.values.messages import HandedOver, Image, ResultId, StoredResult, ToolCallId, ToolMessage, ToolStatus

JsonType: TypeAlias = Literal["string", "integer", "number", "boolean", "array", "object", "null"]
SEARCH_TOOL: Final = "search_stored_result"
LINES_TOOL: Final = "read_stored_result_lines"
QUERY_TOOL: Final = "query_stored_result"
STATS_TOOL: Final = "summarize_stored_result"
IMAGE_TOOL: Final = "read_image_file"
RESULT_TOOLS: Final = (SEARCH_TOOL, LINES_TOOL, QUERY_TOOL, STATS_TOOL, IMAGE_TOOL)
"""The tools that read stored results back. What they answer is bounded and in the store already."""

_LABEL = re.compile(r"\[result ([0-9a-zA-Z_-]+)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterSchema:
    """The JSON schema of a value, as far as tools need it. Empty `types` means any type."""

    types: tuple[JsonType, ...] = ()
    description: str = ""
    enum: tuple[JsonScalar, ...] = ()
    items: ParameterSchema | None = None
    properties: tuple[Parameter, ...] = ()
    additional_properties: ParameterSchema | bool | None = None
    any_of: tuple[ParameterSchema, ...] = ()

    def to_json_schema(self) -> dict[str, JsonValue]:
        """The schema as providers read it, with keys in a fixed order (the prompt cache wants stable bytes)."""
        schema: dict[str, JsonValue] = {}
        if self.types:
            schema["type"] = self.types[0] if len(self.types) == 1 else list(self.types)
        if self.description:
            schema["description"] = self.description
        if self.enum:
            schema["enum"] = list(self.enum)
        if self.items is not None:
            schema["items"] = self.items.to_json_schema()
        if self.properties:
            schema.update(object_schema(self.properties))
        if isinstance(self.additional_properties, ParameterSchema):
            schema["additionalProperties"] = self.additional_properties.to_json_schema()
        elif self.additional_properties is not None:
            schema["additionalProperties"] = self.additional_properties
        if self.any_of:
            schema["anyOf"] = [option.to_json_schema() for option in self.any_of]
        return schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A named value that a tool takes. `default` is applied by the tool executor when the model leaves it out."""

    name: str
    schema: ParameterSchema
    required: bool = True
    default: JsonValue = None


def object_schema(parameters: tuple[Parameter, ...]) -> dict[str, JsonValue]:
    """The `properties` and `required` part of an object's JSON schema."""
    properties: dict[str, JsonValue] = {parameter.name: parameter.schema.to_json_schema() for parameter in parameters}
    required: list[JsonValue] = [parameter.name for parameter in parameters if parameter.required]
    return {"properties": properties, **({"required": required} if required else {})}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """What the model is told about a tool."""

    name: str
    description: str
    parameters: tuple[Parameter, ...] = ()

    def parameters_json_schema(self) -> dict[str, JsonValue]:
        """The JSON schema of the arguments object."""
        return {"type": "object", **object_schema(self.parameters)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolInvocation:
    """One call that is about to run: arguments parsed, coerced to the schema's types, defaults filled in.

    `handed_over` are the stored results of the conversation that calls.
    """

    call_id: ToolCallId
    tool: Tool
    arguments: JsonObject
    handed_over: HandedOver = NOTHING_HANDED_OVER


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool returns.

    `data` is the output; `error` one line that says what went wrong and what to do; `invocation` the command or
    request that ran, for people and for the transcript. `spillable` is false for tools that read stored results back:
    their answers are bounded already and never go to the store again.
    """

    status: ToolStatus
    data: str = ""
    error: str | None = None
    images: tuple[Image, ...] = ()
    invocation: str | None = None
    return_code: int | None = None
    spillable: bool = True


class Toolset(Protocol):
    """A named group of tools that run together."""

    @property
    def name(self) -> str:
        """For example `kubernetes/core`."""
        ...

    @property
    def instructions(self) -> str:
        """What the system prompt says about these tools; may be empty."""
        ...

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What the model can call, in a fixed order."""
        ...

    def describe(self, invocation: ToolInvocation) -> str:
        """One line for people: what this call does."""
        ...

    async def call(self, invocation: ToolInvocation) -> ToolResult:
        """Run the call. Cancelling it ends whatever it started. May raise; the tool executor makes a result of it."""
        ...


@dataclass(frozen=True, slots=True)
class WrapperToolset:
    """A toolset around another one. Subclasses override what they change, usually `call`."""

    inner: Toolset

    @property
    def name(self) -> str:
        """The wrapped toolset's name."""
        return self.inner.name

    @property
    def instructions(self) -> str:
        """The wrapped toolset's instructions."""
        return self.inner.instructions

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The wrapped toolset's tools."""
        return self.inner.tools

    def describe(self, invocation: ToolInvocation) -> str:
        """The wrapped toolset's line."""
        return self.inner.describe(invocation)

    def needs_approval(self, invocation: ToolInvocation) -> bool:
        """Whether a wrapper inside asks a person before the call runs."""
        return isinstance(self.inner, WrapperToolset) and self.inner.needs_approval(invocation)

    async def call(self, invocation: ToolInvocation) -> ToolResult:
        """The wrapped toolset's result."""
        return await self.inner.call(invocation)


class ResultStore(Protocol):
    """Keeps bytes verbatim under an id made of their content. Same content, same id, stored once."""

    async def put(self, content: bytes, *, tool_name: str, call_id: ToolCallId, media_type: str) -> StoredResult:
        """Store `content` for one call.

        Raises `ResultStoreError` when that is not possible (disk full, read-only); nothing half-written stays behind.
        The same call id twice never overwrites.
        """
        ...

    async def read(self, result_id: ResultId) -> tuple[bytes, StoredResult]:
        """The content and its description.

        Raises `ResultStoreError` for an unknown id and for one whose time has run out. Names no other id.
        """
        ...


def result_label(stored: Sequence[StoredResult]) -> str:
    """The last part of a labelled result: `[result <id>]`, of its text if it has one. Empty when nothing is stored."""
    if not stored:
        return ""
    shown = next((each for each in stored if not each.media_type.startswith("image/")), stored[0])
    return f"[result {shown.id}]"


def label_of(message: ToolMessage) -> str | None:
    """The label that `message` ends with, or None. Only an id that is stored for this message makes a label."""
    last = message.parts[-1] if len(message.parts) > 1 else None
    if not isinstance(last, Text):
        return None
    match = _LABEL.fullmatch(last.text)
    return last.text if match and any(each.id == match[1] for each in message.stored) else None


def output_text(message: ToolMessage) -> str:
    """The text of `message` without its label: what the tool said, or the pointer or mask in its place."""
    return message.text if label_of(message) is None else joined_text(message.parts[:-1])
