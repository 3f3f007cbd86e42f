"""What litellm is called with, apart from the conversation. Called by `LitellmModel`; pure."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holmes.llm.codec import Wire
    from holmes.llm.config import LitellmModelConfig
    from holmes.llm.model_facts import ModelFacts


def fixed_arguments(config: LitellmModelConfig, api_key: str | None) -> dict[str, Any]:
    """The arguments that are the same in every request. What is not configured is left out."""
    optional: dict[str, Any] = {
        "api_key": api_key,
        "api_base": config.api_base,
        "api_version": config.api_version,
        "temperature": config.temperature,
        "reasoning_effort": config.reasoning_effort,
        "thinking": config.thinking,
        "extra_headers": dict(config.extra_headers) or None,
    }
    return {
        "model": config.model,
        "stream": True,
        "stream_options": {"include_usage": True},
        "timeout": config.request_timeout_seconds,
        "drop_params": True,
        "max_retries": 0,  # ours know Retry-After, and say that text is void
        # Not documented, but without it litellm imports its MCP gateway for every request with tools: half a second.
        "_skip_mcp_handler": True,
        **{name: value for name, value in optional.items() if value is not None},
        **dict(config.extra_arguments),
    }


def thinking_tokens(config: LitellmModelConfig) -> int:
    """The thinking budget, which providers take out of the reply; 0 when none is set."""
    thinking = config.thinking
    if not isinstance(thinking, Mapping) or thinking.get("type") == "disabled":
        return 0
    budget = thinking.get("budget_tokens")
    return budget if isinstance(budget, int) and budget > 0 else 0


def reply_arguments(budget_tokens: int, max_tokens: int) -> dict[str, Any]:
    """How long the reply may be: what was kept free for it, and never more, or the request would leave the window.

    Where that has no room for the thinking budget (a short summary, a small window), the model is not asked to think,
    by `thinking` or by an effort: providers refuse a budget that is not below max_tokens.
    """
    if budget_tokens and max_tokens <= budget_tokens:
        return {"max_tokens": max_tokens, "thinking": None, "reasoning_effort": None}
    return {"max_tokens": max_tokens}


def prompt_characters(arguments: Mapping[str, Any]) -> int:
    """The size of messages and tools, without images, which are not paid by the character."""
    return characters_of(arguments["messages"]) + characters_of(arguments.get("tools", []))


def characters_of(value: Any) -> int:  # noqa: ANN401  any JSON
    """The size of any part of a request, without images."""
    if isinstance(value, str):
        return 0 if value.startswith("data:image/") else len(value)
    if isinstance(value, dict):
        return sum(len(key) + characters_of(item) for key, item in value.items())
    if isinstance(value, list):
        return sum(map(characters_of, value))
    return 0


CacheMarks: TypeAlias = Literal["none", "system", "conversation"]

MIN_CACHED_TOKENS = 1_024

_CLAUDE_PROVIDERS = frozenset({"anthropic", "vertex_ai", "azure_ai", "openrouter", "bedrock", "bedrock_converse"})
_BEDROCK = frozenset({"bedrock", "bedrock_converse"})
_CHARACTERS_PER_TOKEN = 4
_MARK = {"type": "ephemeral"}


def cache_marks(facts: ModelFacts) -> CacheMarks:
    """Which marks this model understands."""
    name = facts.model.lower()
    if facts.provider in _CLAUDE_PROVIDERS and ("claude" in name or facts.provider == "anthropic"):
        return "conversation"
    return "system" if facts.provider in _BEDROCK and "nova" in name else "none"


def mark_for_cache(messages: list[Wire], tools: list[Wire], marks: CacheMarks) -> None:
    """Put the marks into `messages`. A prefix below 1,024 tokens, which no provider caches, is not marked."""
    if marks == "none" or not messages:
        return
    start = 1 if messages[0]["role"] == "system" else 0
    fixed = [*tools, *messages[:start]]
    if start and _is_worth_caching(fixed):
        _mark(messages[0])
    if marks == "conversation":
        for position in _ends(messages):
            if _is_worth_caching(chain(fixed, islice(messages, start, position + 1))):
                _mark(messages[position])


def _ends(messages: list[Wire]) -> list[int]:
    """The last message that is not the model's, of this request and of the one before."""
    last_reply = next((at for at in range(len(messages) - 1, -1, -1) if messages[at]["role"] == "assistant"), 0)
    ends = (_last_marked(messages, 1, last_reply), _last_marked(messages, max(1, last_reply + 1), len(messages)))
    return [end for end in ends if end is not None]


def _last_marked(messages: list[Wire], start: int, end: int) -> int | None:
    """The last message before `end` that can carry a mark: not the model's own, and not empty."""
    for position in range(end - 1, start - 1, -1):
        message = messages[position]
        content = message["content"]
        if message["role"] != "assistant" and (content if isinstance(content, str) else content and _text(content[-1])):
            return position
    return None


def _text(part: Wire) -> bool:
    return part.get("type") != "text" or bool(part["text"])


def _mark(message: Wire) -> None:
    """On the last part when there are parts, else on the message, from where litellm takes it to the right place."""
    content = message["content"]
    (content[-1] if isinstance(content, list) else message)["cache_control"] = dict(_MARK)


def _is_worth_caching(prefix: Iterable[Wire]) -> bool:
    """Reads only as far as it takes: the beginning of a long conversation says it."""
    characters = 0
    for part in prefix:
        characters += characters_of(part)
        if characters >= MIN_CACHED_TOKENS * _CHARACTERS_PER_TOKEN:
            return True
    return False
