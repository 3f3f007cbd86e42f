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

ImageFormula: TypeAlias = Literal["anthropic", "openai", "gemini", "largest"]
FinishReason: TypeAlias = Literal["stop", "tool_calls", "length", "content_filter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLimits:
    """The limits of a model, in tokens.

    `max_output_tokens` is the maximum length of one reply. `thinking_tokens` is the configured thinking budget, which
    is part of the reply. `encoding` is the closest tiktoken encoding, or None if estimates are enough. `image_formula`
    selects how the tokens of an image are computed.
    """

    context_window_tokens: int
    max_output_tokens: int
    vision: bool = False
    encoding: Literal["cl100k_base", "o200k_base"] | None = "o200k_base"
    image_formula: ImageFormula = "largest"
    thinking_tokens: int = 0

    @property
    def output_reserve_tokens(self) -> int:
        """The default reserve for the reply, without settings and learned context windows."""
        return self.reserve_tokens(None, self.context_window_tokens)

    def reserve_tokens(self, output_reserved: int | None, window_tokens: int) -> int:
        """Return the tokens reserved for the reply in a context window of `window_tokens`.

        They are also sent as max_tokens. The reserve is `output_reserved`, which is for the answer alone, or the output
        limit of the model. It is at most a quarter of the context window, because an output limit of 64k would cause
        endless compaction in every small context window. With a thinking budget, the reserve must exceed this budget
        and can take up to half of the context window. If even that is too small, the request disables thinking.
        """
        wanted = output_reserved + self.thinking_tokens if output_reserved else self.max_output_tokens
        reserve = min(wanted, self.max_output_tokens, window_tokens // _LARGEST_OUTPUT_SHARE)
        if not self.thinking_tokens:
            return reserve
        least = self.thinking_tokens + _LEAST_ANSWER_TOKENS
        return max(reserve, min(least, self.max_output_tokens, window_tokens // _LARGEST_THINKING_SHARE))

    def reply_tokens(self, text_tokens: int, most_tokens: int) -> int:
        """Return the limit of a reply with `text_tokens` of text and its thinking.

        The limit is at most `most_tokens` and the output limit. If text and thinking do not both fit, the limit either
        shortens the text or is so low that the request disables thinking. It uses the option that leaves more tokens
        for the text.
        """
        most = min(most_tokens, self.max_output_tokens)
        if text_tokens + self.thinking_tokens <= most:
            return text_tokens + self.thinking_tokens
        without = min(text_tokens, self.thinking_tokens or text_tokens, most)
        return most if most - self.thinking_tokens > without else without


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """A request to a model.

    `messages` starts with the system message, and every call has its result. `max_output_tokens` is the limit of the
    reply with its thinking. If that limit is too low for thinking, the request disables it. `tools` stay in the request
    even with `tool_choice="none"`, to keep the cached prefix valid.
    """

    messages: Sequence[Message]
    tools: tuple[Tool, ...]
    tool_choice: Literal["auto", "none"]
    max_output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """A finished reply.

    `stats` includes failed attempts that were billed. `context_tokens` are the prompt tokens of the successful attempt
    alone: estimated if the provider did not count them, 0 if unknown. `reported_prompt_tokens` are the same tokens as
    counted by the provider, otherwise None.
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
        """The name that users know."""
        ...

    @property
    def limits(self) -> ModelLimits:
        """The limits of the model. The first use may import large packages."""
        ...

    async def complete(self, request: ModelRequest, emit: EmitEvent) -> ModelReply:
        """Send `request` and return the reply.

        Emits `TextDelta` for text, and `AttemptDiscarded` if that text becomes void. Retries temporary failures. Raises
        `ContextOverflow` if the request is too long, otherwise `ModelError`. Cancelling closes the connection.
        """
        ...
