"""The conversation as values: what was said, by whom, in which order.

Read by everything; written by the loop. No provider's words here: `holmes.llm` translates to and from the wire.
All values are frozen and compare by content.
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
    """A piece of text."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A picture as raw bytes (base64 exists only on the wire). `media_type` is for example `image/png`."""

    data: bytes
    media_type: str


Part: TypeAlias = Text | Image


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning:
    """An opaque block that a provider wants back untouched; `payload` is its JSON, `provider` its only reader."""

    provider: str
    payload: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """The model's wish to run a tool.

    `arguments` is always the text of a JSON object, so that it can be sent back byte for byte. When the model wrote
    something that could not be repaired into one, `arguments` is `{}` and `malformed` keeps what it wrote.
    """

    id: ToolCallId
    name: str
    arguments: str
    malformed: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResult:
    """Where the full content of a result lies. `path` is None when the store is not a folder."""

    id: ResultId
    path: str | None
    size_bytes: int
    media_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOver:
    """The stored results that a conversation may read; the store has those of others too.

    `removed` are those of `ids` that hold messages which compaction removed: what such messages point at may be read
    as well.
    """

    ids: frozenset[ResultId] = frozenset()
    removed: frozenset[ResultId] = frozenset()


NOTHING_HANDED_OVER: Final = HandedOver()


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemMessage:
    """The instructions. Its bytes never change within a conversation, or the provider's prompt cache is lost."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionMark:
    """How the history was right after a compaction: rounds in the kept tail, and tokens in all.

    It lies in the conversation, so that the cooldown (S1) outlives a restart.
    """

    kept_rounds: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage:
    """What the user said (`request`), or what Holmes says in the user's place.

    `attachment` is a file or piped text that goes with the next request; `summary` stands for rounds that compaction
    removed, and `mark` then says where that compaction stood; `note` is an instruction of the loop. `stored` is where
    the whole text lies when a pointer stands in its place.
    """

    parts: tuple[Part, ...]
    kind: UserKind = "request"
    mark: CompactionMark | None = None
    stored: tuple[StoredResult, ...] = ()

    @property
    def text(self) -> str:
        """The text parts, joined by newlines."""
        return joined_text(self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantMessage:
    """One reply of the model."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: tuple[Reasoning, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMessage:
    """The result of one call as the model sees it.

    `stored` is where every byte of the output lies, also while the output is still whole in the conversation; empty
    when there is no store. `spilled` says that a pointer stands in place of the output, `masked` that ageing replaced
    it.
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
        """The text parts, joined by newlines."""
        return joined_text(self.parts)


Message: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolMessage


def joined_text(parts: tuple[Part, ...]) -> str:
    """The text of all text parts, joined by newlines."""
    return "\n".join(part.text for part in parts if isinstance(part, Text))


def user_text(text: str, kind: UserKind = "request") -> UserMessage:
    """A user message of one text part."""
    return UserMessage(parts=(Text(text=text),), kind=kind)
