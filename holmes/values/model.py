"""The interface of models, which `holmes.llm` implements."""

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

ImageFormula: TypeAlias = Literal["anthropic", "openai", "gemini", "largest", "note"]
FinishReason: TypeAlias = Literal["stop", "tool_calls", "length", "content_filter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLimits:
    """The limits of a model, in tokens.

    `max_output_tokens` is the maximum length of one reply. `thinking_tokens` is the configured thinking budget, which
    is part of the reply. `encoding` is the closest tiktoken encoding, or None if estimates are enough. `image_formula`
    selects the formula for the tokens of an image. A model without `vision` gets a note instead of an image.
    """

    context_window_tokens: int
    max_output_tokens: int
    vision: bool = False
    encoding: Literal["cl100k_base", "o200k_base"] | None = "o200k_base"
    image_formula: ImageFormula = "largest"
    thinking_tokens: int = 0

    @property
    def output_reserve_tokens(self) -> int:
        """The number of tokens reserved for the reply if no setting and no learned context window applies."""
        return self.reserve_tokens(None, self.context_window_tokens)

    def reserve_tokens(self, output_reserved: int | None, window_tokens: int) -> int:
        """Return the number of tokens reserved for the reply in a context window of `window_tokens`.

        The reserve is also sent as `max_tokens`. It is `output_reserved`, which excludes thinking, or the model's
        output limit. It is at most a quarter of the context window, because an output limit of 64k would cause endless
        compaction in every small context window. If a thinking budget is configured, the reserve must exceed this
        budget and can take up to half of the context window. If half is too small for the budget, the request disables
        thinking.
        """
        wanted = output_reserved + self.thinking_tokens if output_reserved else self.max_output_tokens
        reserve = min(wanted, self.max_output_tokens, window_tokens // _LARGEST_OUTPUT_SHARE)
        if not self.thinking_tokens:
            return reserve
        least = self.thinking_tokens + _LEAST_ANSWER_TOKENS
        return max(reserve, min(least, self.max_output_tokens, window_tokens // _LARGEST_THINKING_SHARE))

    def reply_tokens(self, text_tokens: int, most_tokens: int) -> int:
        """Return the token limit for a reply that consists of `text_tokens` tokens of text, plus thinking.

        The limit is at most `most_tokens` and at most the output limit. If text and thinking do not both fit, the limit
        either shortens the text or is so low that the request disables thinking. The method selects the limit that
        leaves more tokens for the text.
        """
        most = min(most_tokens, self.max_output_tokens)
        if text_tokens + self.thinking_tokens <= most:
            return text_tokens + self.thinking_tokens
        without = min(text_tokens, self.thinking_tokens or text_tokens, most)
        return most if most - self.thinking_tokens > without else without


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """A request to a model.

    `messages` starts with the system message, and every tool call has its result. `max_output_tokens` limits the reply,
    including thinking. If this limit is too low for thinking, the request disables thinking. The request contains
    `tools` even with `tool_choice="none"`, to keep the cached prefix valid.
    """

    messages: Sequence[Message]
    tools: tuple[Tool, ...]
    tool_choice: Literal["auto", "none"]
    max_output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """A finished reply.

    `stats` includes failed attempts that were billed. `context_tokens` is the number of prompt tokens of the successful
    attempt. It is estimated if the provider did not count the tokens, and 0 if unknown. `reported_prompt_tokens` is the
    provider's count, or None if the provider did not count the tokens.
    """

    message: AssistantMessage
    finish_reason: FinishReason
    stats: RequestStats
    model: str
    context_tokens: int = 0
    reported_prompt_tokens: int | None = None


EmitEvent: TypeAlias = "Callable[[AgentEvent], Awaitable[None]]"


class ChatModel(Protocol):
    @property
    def name(self) -> str:
        """The name that users see."""
        ...

    @property
    def limits(self) -> ModelLimits:
        """The limits of the model. The first use may import large packages."""
        ...

    async def complete(self, request: ModelRequest, emit: EmitEvent) -> ModelReply:
        """Send `request` and return the reply.

        Emits `TextDelta` for text, and `AttemptDiscarded` if the text must be discarded. Retries temporary failures.
        Raises `ContextOverflow` if the request is too long, and `ModelError` for other failures. Cancelling the call
        closes the connection.
        """
        ...
