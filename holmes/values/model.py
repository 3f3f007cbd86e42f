"""The interface of models. `holmes.llm` implements it."""

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
    """Limits in tokens. `max_output_tokens` is the maximum of one reply.

    `thinking_tokens` is the configured thinking budget, which providers take from the reply. `encoding` is the closest
    tiktoken encoding, None if estimates are enough. `image_formula` is the formula for images.
    """

    context_window_tokens: int
    max_output_tokens: int
    vision: bool = False
    encoding: Literal["cl100k_base", "o200k_base"] | None = "o200k_base"
    image_formula: ImageFormula = "largest"
    thinking_tokens: int = 0

    @property
    def output_reserve_tokens(self) -> int:
        """The default room for the reply, without settings and learned windows."""
        return self.reserve_tokens(None, self.context_window_tokens)

    def reserve_tokens(self, output_reserved: int | None, window_tokens: int) -> int:
        """The room for the reply in a window of `window_tokens`, which is also sent as max_tokens.

        This is `output_reserved`, which is for the answer alone, or the model's output limit. It is at most a quarter
        of the window, because an output limit of 64k would make every small window compact forever. A thinking budget
        needs more than itself and gets up to half of the window. If even that is too small, the model is not asked to
        think.
        """
        wanted = output_reserved + self.thinking_tokens if output_reserved else self.max_output_tokens
        reserve = min(wanted, self.max_output_tokens, window_tokens // _LARGEST_OUTPUT_SHARE)
        if not self.thinking_tokens:
            return reserve
        least = self.thinking_tokens + _LEAST_ANSWER_TOKENS
        return max(reserve, min(least, self.max_output_tokens, window_tokens // _LARGEST_THINKING_SHARE))

    def reply_tokens(self, text_tokens: int, most_tokens: int) -> int:
        """The limit of a reply with `text_tokens` of text and its thinking, at most `most_tokens` and the output limit.

        If both do not fit, the choice leaves more room for the text: less text after the thinking, or a limit
        so low that the request does not think.
        """
        most = min(most_tokens, self.max_output_tokens)
        if text_tokens + self.thinking_tokens <= most:
            return text_tokens + self.thinking_tokens
        without = min(text_tokens, self.thinking_tokens or text_tokens, most)
        return most if most - self.thinking_tokens > without else without


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One request. `messages` starts with the system message, and every call has its result.

    `max_output_tokens` is the limit of the reply with its thinking; a request without room for that does not think.
    `tools` stay in the request even with `tool_choice="none"`, to keep the cached prefix valid.
    """

    messages: Sequence[Message]
    tools: tuple[Tool, ...]
    tool_choice: Literal["auto", "none"]
    max_output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """A finished reply. `stats` includes failed attempts that were billed.

    `context_tokens` are the prompt tokens of this attempt alone: estimated if the provider did not count, 0 if unknown.
    `reported_prompt_tokens` are the same if the provider counted them, else None.
    """

    message: AssistantMessage
    finish_reason: FinishReason
    stats: RequestStats
    model: str
    context_tokens: int = 0
    reported_prompt_tokens: int | None = None


EmitEvent: TypeAlias = "Callable[[AgentEvent], Awaitable[None]]"


class ChatModel(Protocol):
    """A model that answers requests."""

    @property
    def name(self) -> str:
        """The name that users know."""
        ...

    @property
    def limits(self) -> ModelLimits:
        """The limits. The first use may import large packages."""
        ...

    async def complete(self, request: ModelRequest, emit: EmitEvent) -> ModelReply:
        """Answer `request`. Emits `TextDelta` for text, and `AttemptDiscarded` when that text is void.

        Retries failures that may pass. Raises `ContextOverflow` if the request is too long, else `ModelError`.
        Cancelling closes the connection.
        """
        ...
