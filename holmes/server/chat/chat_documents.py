"""What chats read and answer over HTTP, with the names of the compatible interface.

Fields of its clients that Holmes has no use for are ignored.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

ModelName = Annotated[
    str | None, Field(default=None, min_length=1, max_length=200, description="One of `/api/model`; unset, the first.")
]
Object = dict[str, JsonValue]


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
    params: JsonValue


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
    destinations: list[JsonValue] | None = Field(
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
