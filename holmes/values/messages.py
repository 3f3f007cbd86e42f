"""Defines the messages of a conversation.

All values are frozen and are compared by content. They are independent of providers, because `holmes.llm` converts them
to and from provider formats.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NewType, TypeAlias

ToolCallId = NewType("ToolCallId", str)
ResultId = NewType("ResultId", str)

UserKind: TypeAlias = Literal["request", "attachment", "summary", "note"]
ToolStatus: TypeAlias = Literal["success", "error", "no_data", "approval_required"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image as raw bytes, not in base64. `media_type` is for example `image/png`."""

    data: bytes
    media_type: str


Part: TypeAlias = Text | Image


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning:
    """An opaque reasoning block that a provider requires unchanged in later requests.

    `payload` is the JSON of the block. Only `provider` can interpret the payload.
    """

    provider: str
    payload: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool call of the model.

    `arguments` is always the text of a JSON object, so that it can be sent back byte for byte. If the model's text
    cannot be repaired to a JSON object, `arguments` is `{}` and `malformed` is the model's text.
    """

    id: ToolCallId
    name: str
    arguments: str
    malformed: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResult:
    """A reference to a result in the store. `path` is None if the store has no files."""

    id: ResultId
    path: str | None
    size_bytes: int
    media_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOver:
    """The stored results that a conversation may read.

    `removed` is the subset of `ids` that contain messages from a compaction. The conversation may also read the results
    that these messages refer to.
    """

    ids: frozenset[ResultId] = frozenset()
    removed: frozenset[ResultId] = frozenset()


NOTHING_HANDED_OVER: Final = HandedOver()


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemMessage:
    """The system prompt. Its bytes never change within a conversation, to keep the provider's prompt cache valid."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionMark:
    """The state of the conversation after a compaction.

    `kept_rounds` is the number of kept turns, and `tokens` is the size of the conversation. This mark is part of the
    conversation, so that the cooldown survives a restart.
    """

    kept_rounds: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage:
    """A message from the user (`request`), or from Holmes in the user's role.

    An `attachment` is a file or piped text for the next request. A `summary` replaces removed turns, and `mark` is the
    state after the compaction. A `note` is an instruction from the loop. If a pointer replaces the text, `stored`
    refers to the complete text.
    """

    parts: tuple[Part, ...]
    kind: UserKind = "request"
    mark: CompactionMark | None = None
    stored: tuple[StoredResult, ...] = ()

    @property
    def text(self) -> str:
        return joined_text(self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantMessage:
    """One reply of the model."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: tuple[Reasoning, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMessage:
    """The result of one tool call as the model sees it.

    `stored` refers to the complete content, even if the message contains the complete content too. `stored` is empty if
    no store is configured. `spilled` is true if a pointer replaced the content. `masked` is true if a mask replaced the
    content.
    """

    call_id: ToolCallId
    tool_name: str
    status: ToolStatus
    parts: tuple[Part, ...]
    stored: tuple[StoredResult, ...] = ()
    spilled: bool = False
    masked: bool = False

    @property
    def text(self) -> str:
        return joined_text(self.parts)


Message: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolMessage


def joined_text(parts: tuple[Part, ...]) -> str:
    """Join all text parts with newlines."""
    return "\n".join(part.text for part in parts if isinstance(part, Text))


def is_user_message(message: Message, kind: UserKind) -> bool:
    return isinstance(message, UserMessage) and message.kind == kind


def user_text(text: str, kind: UserKind = "request") -> UserMessage:
    """Return a user message with one text part."""
    return UserMessage(parts=(Text(text=text),), kind=kind)
