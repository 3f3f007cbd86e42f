"""Defines tools and toolsets, tool calls and their results, and the interface of the result store.

Cross-cutting behaviour (approval, caching, redaction) is always implemented as a wrapper around a toolset, never as a
condition in the loop. The model cites a stored result by its label. Masks, line numbers and citation checks ignore the
label.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from holmes.values.messages import NOTHING_HANDED_OVER, Text, joined_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.values.charts import Chart
    from holmes.values.json_types import JsonObject, JsonScalar, JsonValue
    from holmes.values.messages import HandedOver, Image, ResultId, StoredResult, ToolCallId, ToolMessage, ToolStatus

JsonType: TypeAlias = Literal["string", "integer", "number", "boolean", "array", "object", "null"]
SEARCH_TOOL: Final = "search_stored_result"
LINES_TOOL: Final = "read_stored_result_lines"
QUERY_TOOL: Final = "query_stored_result"
STATS_TOOL: Final = "summarize_stored_result"
IMAGE_TOOL: Final = "read_image_file"
RESULT_TOOLS: Final = (SEARCH_TOOL, LINES_TOOL, QUERY_TOOL, STATS_TOOL, IMAGE_TOOL)
"""The tools that read stored results. Their results are limited in size and already in the store."""

_LABEL = re.compile(r"\[result ([0-9a-zA-Z_-]+)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterSchema:
    """The part of a value's JSON schema that tools need. If `types` is empty, any type is allowed."""

    types: tuple[JsonType, ...] = ()
    description: str = ""
    enum: tuple[JsonScalar, ...] = ()
    items: ParameterSchema | None = None
    properties: tuple[Parameter, ...] = ()
    additional_properties: ParameterSchema | bool | None = None
    any_of: tuple[ParameterSchema, ...] = ()

    def to_json_schema(self) -> dict[str, JsonValue]:
        """Return the schema for providers.

        The order of keys is fixed, because the prompt cache needs identical bytes.
        """
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
            schema.update(_object_schema(self.properties))
        if isinstance(self.additional_properties, ParameterSchema):
            schema["additionalProperties"] = self.additional_properties.to_json_schema()
        elif self.additional_properties is not None:
            schema["additionalProperties"] = self.additional_properties
        if self.any_of:
            schema["anyOf"] = [option.to_json_schema() for option in self.any_of]
        return schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A named parameter of a tool. The tool executor applies `default` if the model leaves the parameter out."""

    name: str
    schema: ParameterSchema
    required: bool = True
    default: JsonValue = None


def _object_schema(parameters: tuple[Parameter, ...]) -> dict[str, JsonValue]:
    """Return the entries `properties` and `required` of an object's JSON schema."""
    properties: dict[str, JsonValue] = {parameter.name: parameter.schema.to_json_schema() for parameter in parameters}
    required: list[JsonValue] = [parameter.name for parameter in parameters if parameter.required]
    return {"properties": properties, **({"required": required} if required else {})}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """The definition of a tool for the model."""

    name: str
    description: str
    parameters: tuple[Parameter, ...] = ()

    def parameters_json_schema(self) -> dict[str, JsonValue]:
        """Return the JSON schema of the arguments object."""
        return {"type": "object", **_object_schema(self.parameters)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolInvocation:
    """A call that is about to run, with converted arguments and defaults.

    `handed_over` contains the stored results that the conversation may read.
    """

    call_id: ToolCallId
    tool: Tool
    arguments: JsonObject
    handed_over: HandedOver = NOTHING_HANDED_OVER


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The result of a tool.

    `data` is the content. `error` is one line with the problem and the fix. `invocation` is the command or request, for
    the user and the transcript. `spillable` is false for tools that read stored results, because their results are
    already in the store. `chart` is the content as a diagram, of which a wrapper makes an image.
    """

    status: ToolStatus
    data: str = ""
    error: str | None = None
    images: tuple[Image, ...] = ()
    chart: Chart | None = None
    invocation: str | None = None
    return_code: int | None = None
    spillable: bool = True


class Toolset(Protocol):
    """A named group of tools."""

    @property
    def name(self) -> str:
        """The name, for example `kubernetes/core`."""
        ...

    @property
    def instructions(self) -> str:
        """The section of the system prompt about these tools, which can be empty."""
        ...

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools, in a fixed order."""
        ...

    def describe(self, invocation: ToolInvocation) -> str:
        """Return one line about this call for the user."""
        ...

    async def call(self, invocation: ToolInvocation) -> ToolResult:
        """Run the call. Cancelling the call stops all its processes. The tool executor handles all exceptions."""
        ...


@dataclass(frozen=True, slots=True)
class WrapperToolset:
    """A toolset that wraps another toolset. Subclasses override the methods that they change, usually `call`."""

    inner: Toolset

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def instructions(self) -> str:
        return self.inner.instructions

    @property
    def tools(self) -> tuple[Tool, ...]:
        return self.inner.tools

    def describe(self, invocation: ToolInvocation) -> str:
        return self.inner.describe(invocation)

    def needs_approval(self, invocation: ToolInvocation) -> bool:
        """Return whether a wrapper inside this wrapper requires approval of the call."""
        return isinstance(self.inner, WrapperToolset) and self.inner.needs_approval(invocation)

    async def call(self, invocation: ToolInvocation) -> ToolResult:
        return await self.inner.call(invocation)


class ResultStore(Protocol):
    """Stores content verbatim under an id that is derived from the content. Equal content is stored once."""

    async def put(self, content: bytes, *, tool_name: str, call_id: ToolCallId, media_type: str) -> StoredResult:
        """Store `content` for one call.

        Raises `ResultStoreError`, for example if the disk is full or read-only. An error leaves no incomplete file. A
        second result with the same call id does not overwrite the first result.
        """
        ...

    async def read(self, result_id: ResultId) -> tuple[bytes, StoredResult]:
        """Return the content of a result and a reference to it.

        Raises `ResultStoreError` for an unknown or expired id. The error does not mention other ids.
        """
        ...


def result_label(stored: Sequence[StoredResult]) -> str:
    """Return the label to append to a result: `[result <id>]`.

    If a result has text and images, the label contains the id of the text. The label is empty if nothing is stored.
    """
    if not stored:
        return ""
    shown = next((each for each in stored if not each.media_type.startswith("image/")), stored[0])
    return f"[result {shown.id}]"


def label_of(message: ToolMessage) -> str | None:
    """Return the label at the end of `message`, or None if it has no label.

    A label contains the id of a stored result of the message.
    """
    last = message.parts[-1] if len(message.parts) > 1 else None
    if not isinstance(last, Text):
        return None
    match = _LABEL.fullmatch(last.text)
    return last.text if match and any(each.id == match[1] for each in message.stored) else None


def output_text(message: ToolMessage) -> str:
    """Return the text of `message` without its label. A pointer or a mask may have replaced the content."""
    return message.text if label_of(message) is None else joined_text(message.parts[:-1])
