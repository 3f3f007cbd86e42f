"""Defines the bodies of chat requests and responses, and converts requests to jobs.

An invalid request raises `ConfigError` with a one-line message. Images are data URLs or base64. Their size is limited,
and the model must accept their type. Other URLs are rejected, because the server must not fetch URLs for clients.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic import JsonValue as PydanticJson

from holmes.app.requests import AskRequest
from holmes.core.hooks import hook_of
from holmes.server.chat.approvals import ChatApprover
from holmes.server.chat.json_answers import schema_of
from holmes.values.errors import ConfigError
from holmes.values.messages import Image, UserMessage

if TYPE_CHECKING:
    from holmes.server.chat.conversations import Conversation, ConversationCodec
    from holmes.values.json_types import JsonObject, JsonValue
    from holmes.values.messages import Message, ToolCall

MAX_IMAGES: Final = 20
_MAX_IMAGE_BYTES: Final = 5_000_000
_KINDS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


class ImageError(ConfigError):
    """Raised if an image in a request is invalid."""


def images_of(entries: Sequence[JsonValue]) -> tuple[Image, ...]:
    """Decode the images of a request. Raises `ImageError`, which identifies the invalid entry."""
    if len(entries) > MAX_IMAGES:
        raise ImageError(f"images: {len(entries)} images were sent; the maximum is {MAX_IMAGES}")
    return tuple(_image(entry, f"images.{index}") for index, entry in enumerate(entries))


def _image(entry: JsonValue, place: str) -> Image:
    text = _text(entry)
    if text is None:
        raise ImageError(f"{place}: expected a data URL, base64, or an object with 'image_url'")
    if "://" in text[:16]:
        raise ImageError(f"{place}: URLs are not fetched; send the image as data:image/png;base64,...")
    if text.startswith("data:"):
        header, _, text = text.partition(",")
        if not header.endswith(";base64"):
            raise ImageError(f"{place}: the data URL is not base64")
    try:
        data = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise ImageError(f"{place}: the image is not valid base64") from None
    if len(data) > _MAX_IMAGE_BYTES:
        raise ImageError(f"{place}: the image is larger than {_MAX_IMAGE_BYTES:,} bytes")
    return Image(data=data, media_type=_media_type(data, place))


def _text(entry: JsonValue) -> str | None:
    """Return the URL or base64 text of an image, or None if it is missing. Accepts all formats that clients use."""
    for name in ("image_url", "url"):
        if isinstance(entry, Mapping) and name in entry:
            entry = entry[name]
    return entry if isinstance(entry, str) else None


def _media_type(data: bytes, place: str) -> str:
    """Detect the media type from the first bytes, because the type that the client sent may be wrong."""
    for start, kind in _KINDS:
        if data.startswith(start):
            return kind
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    raise ImageError(f"{place}: not a PNG, JPEG, GIF or WebP image")


_GO_ON = "The user has approved or denied the waiting tool calls. Continue."


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatJob:
    """The parameters of one chat.

    `approver` is set if tool calls may wait for approval. `replayed` tool calls run before the first reply. If `schema`
    is set, the answer must match it. If `triage_may_answer` is true, an answer from `builtin/triage` does not have to
    match it. `cluster` is a configured cluster, or None for the default cluster.
    """

    ask: AskRequest
    model: str | None = None
    cluster: str | None = None
    approver: ChatApprover | None = None
    replayed: tuple[ToolCall, ...] = ()
    schema: JsonObject | None = None
    triage_may_answer: bool = False


def json_rule(schema: JsonObject) -> str:
    """Return the instruction to answer in JSON."""
    return (
        "A program reads your final answer. The answer must be one JSON value that matches this JSON schema, "
        f"without any other text or code fence:\n{json.dumps(schema)}"
    )


def chat_job(request: ChatRequest, codec: ConversationCodec) -> ChatJob:
    """Convert a request to a job. Raises `ConfigError` for an invalid request."""
    conversation = codec.decode(request.conversation_history or ())
    decisions = request.tool_decisions or ()
    images = images_of(request.images or ())
    schema = None if request.response_format is None else schema_of(request.response_format)
    ask = AskRequest(
        question=request.ask,
        images=images,
        conversation=conversation.messages,
        instructions=_instructions(request.additional_system_prompt, schema),
    )
    approver = ChatApprover({each.tool_call_id: each.approved for each in decisions})
    waits = approver if request.enable_tool_approval or decisions else None
    if not decisions:
        return ChatJob(ask=ask, model=request.model, cluster=request.cluster, approver=waits, schema=schema)
    replayed = _decided(conversation, decisions)
    return ChatJob(
        ask=_continued(ask, decisions),
        model=request.model,
        cluster=request.cluster,
        approver=waits,
        replayed=replayed,
        schema=schema,
    )


def _instructions(additions: str | None, schema: JsonObject | None) -> str | None:
    parts = [additions or "", json_rule(schema) if schema is not None else ""]
    return "\n\n".join(part for part in parts if part) or None


def _decided(conversation: Conversation, decisions: Sequence[ToolDecision]) -> tuple[ToolCall, ...]:
    """Return the model's waiting calls for which the user has made a decision.

    Hook calls are omitted, because hooks repeat them.
    """
    wanted = {each.tool_call_id for each in decisions}
    calls = tuple(call for call in conversation.pending if call.id in wanted)
    if len(calls) < len(wanted):
        unknown = sorted(wanted - {call.id for call in calls})
        raise ConfigError(f"tool_decisions: call {unknown[0]!r} is not waiting for a decision")
    return tuple(call for call in calls if hook_of(call.id) is None)


def _continued(ask: AskRequest, decisions: Sequence[ToolDecision]) -> AskRequest:
    """Remove a repeated question, because clients send the question again with their decisions."""
    earlier: tuple[Message, ...] = ask.conversation
    images = ask.images
    asked = [message for message in earlier if isinstance(message, UserMessage) and message.kind == "request"]
    question = _GO_ON if asked and asked[-1].text == ask.question else ask.question
    if earlier and asked and earlier[-1] is asked[-1] and question is _GO_ON:
        question = ask.question
        images = images or tuple(part for part in asked[-1].parts if isinstance(part, Image))
        earlier = earlier[:-1]
    said = [
        f"The user's comment on the call {each.tool_call_id!r}: {each.feedback}" for each in decisions if each.feedback
    ]
    text = "\n\n".join((question, *said))
    return AskRequest(question=text, images=images, conversation=earlier, instructions=ask.instructions)


ModelName = Annotated[
    str | None,
    Field(
        default=None, min_length=1, max_length=200, description="A model from `/api/model`. Default: the first model."
    ),
]
ClusterName = Annotated[
    str | None,
    Field(default=None, min_length=1, max_length=200, description="A configured cluster. Default: `default_cluster`."),
]
Object = dict[str, PydanticJson]


class Document(BaseModel):
    """Base class of request bodies. Unknown fields are ignored, because clients of other servers may send them."""

    model_config = ConfigDict(extra="ignore", protected_namespaces=())


class ToolDecision(Document):
    """The user's decision on a tool call that waits for approval."""

    tool_call_id: str
    approved: bool
    feedback: str | None = Field(default=None, max_length=4_000, description="A comment for the model.")


class ChatRequest(Document):
    """A question, and the conversation that the question continues."""

    ask: str = Field(min_length=1, max_length=1_000_000, pattern=r"\S")
    conversation_history: list[Object] | None = Field(
        default=None,
        description="The conversation from an earlier response. Tool results without a signature become quoted text; "
        "the server replaces system messages.",
    )
    model: ModelName
    cluster: ClusterName
    stream: bool = Field(default=False, description="Respond with server-sent events.")
    images: list[str | Object] | None = Field(
        default=None, description="Data URLs, base64, or objects with `image_url`; other URLs are rejected."
    )
    response_format: Object | None = Field(
        default=None,
        description="A JSON schema, or an OpenAI `response_format` with a schema. The answer must match the schema.",
    )
    additional_system_prompt: str | None = Field(default=None, max_length=200_000)
    enable_tool_approval: bool = Field(
        default=False,
        description="End the chat with `pending_approvals` if a tool call requires approval. Default: reject the call.",
    )
    tool_decisions: list[ToolDecision] | None = None
    behavior_controls: Object | None = Field(default=None, description="Accepted for compatibility, but ignored.")


class ToolCallDocument(BaseModel):
    """A finished tool call."""

    tool_call_id: str
    tool_name: str
    description: str
    result: Object


class PendingApproval(BaseModel):
    """A tool call that waits for approval. Send the decision in `tool_decisions`."""

    tool_call_id: str
    tool_name: str
    description: str
    params: PydanticJson


class ChatAnswer(BaseModel):
    """The response to a chat request. `analysis` is the answer, or empty if a tool call waits for approval."""

    analysis: str
    conversation_history: list[Object]
    tool_calls: list[ToolCallDocument]
    follow_up_actions: list[Object] = []
    pending_approvals: list[PendingApproval] = []
    metadata: Object


class OlderRequest(Document):
    """The request body of `/api/investigate`."""

    source: str = Field(default="", max_length=200)
    title: str = Field(min_length=1, max_length=10_000, pattern=r"\S")
    description: str = Field(default="", max_length=1_000_000)
    subject: Object | None = None
    context: Object | None = None
    model: ModelName
    cluster: ClusterName


class OlderAnswer(BaseModel):
    """The response of `/api/investigate`."""

    analysis: str
    sections: dict[str, str]
    tool_calls: list[ToolCallDocument]
    instructions: list[str] = []


class CheckRequest(Document):
    """A statement about the cluster to check."""

    query: str = Field(min_length=1, max_length=100_000, pattern=r"\S")
    name: str | None = Field(default=None, max_length=500)
    timeout: float | None = Field(default=None, ge=0.1, le=3_600, description="Time limit in seconds. Default: 300.")
    mode: str | None = Field(default=None, max_length=100, description="Accepted for compatibility, but ignored.")
    destinations: list[PydanticJson] | None = Field(
        default=None, description="Accepted for compatibility, but ignored."
    )
    model: ModelName
    cluster: ClusterName


class CheckAnswer(BaseModel):
    """The outcome of a check. `duration` is in seconds."""

    status: Literal["pass", "fail", "error"]
    message: str
    rationale: str
    duration: float
    error: str | None = None
    model_used: str


class ModelDocument(BaseModel):
    """The available models. `model_name` is a string that contains a JSON list."""

    model_config = ConfigDict(protected_namespaces=())

    model_name: str
