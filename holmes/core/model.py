"""What the loop needs of a model. Implemented in `holmes.llm`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from holmes.core.events import AgentEvent
    from holmes.core.messages import AssistantMessage, Message
    from holmes.core.stats import RequestStats
    from holmes.core.tools import Tool

FinishReason: TypeAlias = Literal["stop", "tool_calls", "length", "content_filter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLimits:
    """Sizes in tokens. `max_output_tokens` is what the model can write at most in one reply.

    `encoding` names the tiktoken encoding that comes closest.
    """

    context_window_tokens: int
    max_output_tokens: int
    vision: bool = False
    encoding: Literal["cl100k_base", "o200k_base"] = "o200k_base"

    @property
    def output_reserve_tokens(self) -> int:
        """What is kept free for the reply, and sent as max_tokens: min(model max output, window / 4).

        An unclamped reserve of 64k would make every small window compact forever (context.md, section 2, "trigger").
        """
        return min(self.max_output_tokens, self.context_window_tokens // 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One request. `messages` starts with the system message; pairing of calls and results holds.

    `tools` stay in the request even with `tool_choice="none"`, since leaving them out would break the cached prefix.
    """

    messages: Sequence[Message]
    tools: tuple[Tool, ...]
    tool_choice: Literal["auto", "none"]
    max_output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """A finished reply. `stats` includes failed attempts that were billed.

    `context_tokens` are the prompt tokens of this attempt alone, estimated when the provider did not count; 0 when
    unknown.
    """

    message: AssistantMessage
    finish_reason: FinishReason
    stats: RequestStats
    model: str
    context_tokens: int = 0


EmitEvent: TypeAlias = "Callable[[AgentEvent], Awaitable[None]]"


class ChatModel(Protocol):
    """A model that can be asked."""

    @property
    def name(self) -> str:
        """The name users know it by."""
        ...

    @property
    def limits(self) -> ModelLimits:
        """Sizes; may import heavy things on first use."""
        ...

    async def complete(self, request: ModelRequest, emit: EmitEvent) -> ModelReply:
        """Answer `request`, emitting `TextDelta` while text arrives and `AttemptDiscarded` when that text is void.

        Retries what can be retried. Raises `ContextOverflow` when the request is too long, else `ModelError`.
        Cancelling it closes the connection.
        """
        ...
