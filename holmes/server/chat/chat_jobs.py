"""From the request of a client to what an investigator is asked.

Raises `ConfigError` in one line for what cannot be asked. Pictures are data URLs or base64, small enough and of a kind
that models read. Addresses are refused: the server fetches nothing that a client names.
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
MAX_IMAGE_BYTES: Final = 5_000_000
_KINDS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


class ImageError(ConfigError):
    """What a client sent is no picture."""


def images_of(entries: Sequence[JsonValue]) -> tuple[Image, ...]:
    """The pictures of a request. Raises `ImageError` that names the entry."""
    if len(entries) > MAX_IMAGES:
        raise ImageError(f"images: more than {MAX_IMAGES}")
    return tuple(_image(entry, f"images.{index}") for index, entry in enumerate(entries))


def _image(entry: JsonValue, place: str) -> Image:
    text = _text(entry)
    if text is None:
        raise ImageError(f"{place}: a data URL, base64, or an object with 'image_url' is expected")
    if "://" in text[:16]:
        raise ImageError(f"{place}: addresses are not fetched; send the picture as data:image/png;base64,...")
    if text.startswith("data:"):
        header, _, text = text.partition(",")
        if not header.endswith(";base64"):
            raise ImageError(f"{place}: a data URL must be base64")
    try:
        data = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise ImageError(f"{place}: this is not base64") from None
    if len(data) > MAX_IMAGE_BYTES:
        raise ImageError(f"{place}: larger than {MAX_IMAGE_BYTES:,} bytes")
    return Image(data=data, media_type=_media_type(data, place))


def _text(entry: JsonValue) -> str | None:
    """Where the picture is said to be; clients differ in how they wrap it."""
    for name in ("image_url", "url"):
        if isinstance(entry, Mapping) and name in entry:
            entry = entry[name]
    return entry if isinstance(entry, str) else None


def _media_type(data: bytes, place: str) -> str:
    """By the first bytes; what a client says may be wrong."""
    for start, kind in _KINDS:
        if data.startswith(start):
            return kind
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    raise ImageError(f"{place}: no PNG, JPEG, GIF or WebP")


_GO_ON = "The decisions about the tool calls that waited for approval are made. Go on."


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatJob:
    """One chat. `approver` is set when calls may wait for a person; `replayed` calls come before the first reply.

    `schema` is what the answer must fit; `triage_may_answer` excepts `builtin/triage`, which writes no JSON.
    """

    ask: AskRequest
    model: str | None = None
    approver: ChatApprover | None = None
    replayed: tuple[ToolCall, ...] = ()
    schema: JsonObject | None = None
    triage_may_answer: bool = False


def json_rule(schema: JsonObject) -> str:
    """What the model is told about the form of its answer."""
    return (
        "Your final answer is read by a program: it must be one JSON value that fits this JSON schema, "
        f"without any other text and without a code fence:\n{json.dumps(schema)}"
    )


def chat_job(request: ChatRequest, codec: ConversationCodec) -> ChatJob:
    """What `request` wants."""
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
        return ChatJob(ask=ask, model=request.model, approver=waits, schema=schema)
    replayed = _decided(conversation, decisions)
    return ChatJob(
        ask=_continued(ask, decisions), model=request.model, approver=waits, replayed=replayed, schema=schema
    )


def _instructions(additions: str | None, schema: JsonObject | None) -> str | None:
    parts = [additions or "", json_rule(schema) if schema is not None else ""]
    return "\n\n".join(part for part in parts if part) or None


def _decided(conversation: Conversation, decisions: Sequence[ToolDecision]) -> tuple[ToolCall, ...]:
    """The waiting calls of the model that somebody decided about. A hook makes its call again by itself."""
    wanted = {each.tool_call_id for each in decisions}
    calls = tuple(call for call in conversation.pending if call.id in wanted)
    if len(calls) < len(wanted):
        unknown = sorted(wanted - {call.id for call in calls})
        raise ConfigError(f"tool_decisions: no call {unknown[0]!r} of the conversation waits for a decision")
    return tuple(call for call in calls if hook_of(call.id) is None)


def _continued(ask: AskRequest, decisions: Sequence[ToolDecision]) -> AskRequest:
    """Clients say the question again with the decisions: it is taken once, from the conversation if it ends with it."""
    earlier: tuple[Message, ...] = ask.conversation
    images = ask.images
    asked = [message for message in earlier if isinstance(message, UserMessage) and message.kind == "request"]
    question = _GO_ON if asked and asked[-1].text == ask.question else ask.question
    if earlier and asked and earlier[-1] is asked[-1] and question is _GO_ON:
        question = ask.question
        images = images or tuple(part for part in asked[-1].parts if isinstance(part, Image))
        earlier = earlier[:-1]
    said = [
        f"About the call {each.tool_call_id!r} the user says: {each.feedback}" for each in decisions if each.feedback
    ]
    text = "\n\n".join((question, *said))
    return AskRequest(question=text, images=images, conversation=earlier, instructions=ask.instructions)


ModelName = Annotated[
    str | None, Field(default=None, min_length=1, max_length=200, description="One of `/api/model`; unset, the first.")
]
Object = dict[str, PydanticJson]


class Document(BaseModel):
    """A request of a client that may be made for another server."""

    model_config = ConfigDict(extra="ignore", protected_namespaces=())


class ToolDecision(Document):
    """What a person decided about a call that waits."""

    tool_call_id: str
    approved: bool
    feedback: str | None = Field(default=None, max_length=4_000, description="What the model is told of a refusal.")


class ChatRequest(Document):
    """A question, and the conversation it continues."""

    ask: str = Field(min_length=1, max_length=1_000_000, pattern=r"\S")
    conversation_history: list[Object] | None = Field(
        default=None,
        description="As an earlier answer gave it. Results of tools that the server did not sign become quoted text; "
        "system messages are replaced by the server's own.",
    )
    model: ModelName
    stream: bool = Field(default=False, description="Answer with server-sent events.")
    images: list[str | Object] | None = Field(
        default=None, description="Data URLs, base64, or objects with `image_url`; addresses are refused."
    )
    response_format: Object | None = Field(
        default=None, description="A JSON schema, or OpenAI's `response_format` around one, that the answer must fit."
    )
    additional_system_prompt: str | None = Field(default=None, max_length=200_000)
    enable_tool_approval: bool = Field(
        default=False, description="End with `pending_approvals` where a tool needs a person; unset, it does not run."
    )
    tool_decisions: list[ToolDecision] | None = None
    behavior_controls: Object | None = Field(default=None, description="Accepted for other clients; it does nothing.")


class ToolCallDocument(BaseModel):
    """A tool call that was made."""

    tool_call_id: str
    tool_name: str
    description: str
    result: Object


class PendingApproval(BaseModel):
    """A tool call that waits for a person; answer it in `tool_decisions`."""

    tool_call_id: str
    tool_name: str
    description: str
    params: PydanticJson


class ChatAnswer(BaseModel):
    """The answer. `analysis` is empty when a call waits for approval."""

    analysis: str
    conversation_history: list[Object]
    tool_calls: list[ToolCallDocument]
    follow_up_actions: list[Object] = []
    pending_approvals: list[PendingApproval] = []
    metadata: Object


class OlderRequest(Document):
    """What `/api/investigate` reads."""

    source: str = Field(default="", max_length=200)
    title: str = Field(min_length=1, max_length=10_000, pattern=r"\S")
    description: str = Field(default="", max_length=1_000_000)
    subject: Object | None = None
    context: Object | None = None
    model: ModelName


class OlderAnswer(BaseModel):
    """What `/api/investigate` answers."""

    analysis: str
    sections: dict[str, str]
    tool_calls: list[ToolCallDocument]
    instructions: list[str] = []


class CheckRequest(Document):
    """A statement about the cluster that holds or does not."""

    query: str = Field(min_length=1, max_length=100_000, pattern=r"\S")
    name: str | None = Field(default=None, max_length=500)
    timeout: float | None = Field(default=None, ge=0.1, le=3_600, description="Seconds. Unset: 300.")
    mode: str | None = Field(default=None, max_length=100, description="Accepted for other clients; it does nothing.")
    destinations: list[PydanticJson] | None = Field(
        default=None, description="Accepted for other clients; it does nothing."
    )
    model: ModelName


class CheckAnswer(BaseModel):
    """Whether it holds. `duration` is in seconds."""

    status: Literal["pass", "fail", "error"]
    message: str
    rationale: str
    duration: float
    error: str | None = None
    model_used: str


class ModelDocument(BaseModel):
    """What can be asked; `model_name` is a JSON list as a string."""

    model_config = ConfigDict(protected_namespaces=())

    model_name: str
