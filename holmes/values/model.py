"""What the loop needs of a model. Implemented in `holmes.llm`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from holmes.values.events import AgentEvent
    from holmes.values.messages import AssistantMessage, Message
    from holmes.values.stats import RequestStats
    from holmes.values.tools import Tool

_LEAST_ANSWER_TOKENS = 1_024
_LARGEST_OUTPUT_SHARE = 4
_LARGEST_THINKING_SHARE = 2

ImageFormula: TypeAlias = Literal["anthropic", "openai", "gemini", "largest"]
FinishReason: TypeAlias = Literal["stop", "tool_calls", "length", "content_filter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLimits:
    """Sizes in tokens. `max_output_tokens` is what the model can write at most in one reply.

    `thinking_tokens` is the thinking budget that was configured; providers take it out of the reply. `encoding` names
    the tiktoken encoding that comes closest; None where estimates will do. `image_formula` says how pictures count.
    """

    context_window_tokens: int
    max_output_tokens: int
    vision: bool = False
    encoding: Literal["cl100k_base", "o200k_base"] | None = "o200k_base"
    image_formula: ImageFormula = "largest"
    thinking_tokens: int = 0

    @property
    def output_reserve_tokens(self) -> int:
        """What is kept free for the reply when nothing is set and nothing was learned about the window."""
        return self.reserve_tokens(None, self.context_window_tokens)

    def reserve_tokens(self, output_reserved: int | None, window_tokens: int) -> int:
        """What is kept free for the reply in a window of `window_tokens`, and sent as max_tokens: the same number.

        `output_reserved`, which is for the answer alone, or all that the model can write; at most a quarter of the
        window, since an unclamped 64k would make every small window compact for ever. A thinking budget needs more
        than itself, and gets up to half of the window; what has no room even there is not asked to think.
        """
        wanted = output_reserved + self.thinking_tokens if output_reserved else self.max_output_tokens
        reserve = min(wanted, self.max_output_tokens, window_tokens // _LARGEST_OUTPUT_SHARE)
        if not self.thinking_tokens:
            return reserve
        least = self.thinking_tokens + _LEAST_ANSWER_TOKENS
        return max(reserve, min(least, self.max_output_tokens, window_tokens // _LARGEST_THINKING_SHARE))

    def reply_tokens(self, text_tokens: int, most_tokens: int) -> int:
        """What a reply of `text_tokens` may take with its thinking, at most `most_tokens` and what the model can write.

        Where both have no room, what leaves more for the text: less text after the thinking, or so little in all that
        the request does not think.
        """
        most = min(most_tokens, self.max_output_tokens)
        if text_tokens + self.thinking_tokens <= most:
            return text_tokens + self.thinking_tokens
        without = min(text_tokens, self.thinking_tokens or text_tokens, most)
        return most if most - self.thinking_tokens > without else without


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One request. `messages` starts with the system message; pairing of calls and results holds.

    `max_output_tokens` is what the reply may take with its thinking; a request without room for that does not think.

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
    unknown. `reported_prompt_tokens` are the same when the provider itself counted them, else None.
    """

    message: AssistantMessage
    finish_reason: FinishReason
    stats: RequestStats
    model: str
    context_tokens: int = 0
    reported_prompt_tokens: int | None = None


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
