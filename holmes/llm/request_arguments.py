"""Creates the arguments of a litellm request, except for the messages, and adds cache marks to the messages."""

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
    """Return the arguments that all requests share. Arguments that are not configured are omitted."""
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
        "max_retries": 0,  # Holmes retries requests itself, to respect Retry-After and discard streamed text
        # An undocumented argument. Without it, litellm imports its MCP gateway (0.5 s) for requests with tools.
        "_skip_mcp_handler": True,
        **{name: value for name, value in optional.items() if value is not None},
        **dict(config.extra_arguments),
    }


def thinking_tokens(config: LitellmModelConfig) -> int:
    """Return the configured thinking budget in tokens, or 0 if none is configured.

    The budget is part of the maximum length of the reply.
    """
    thinking = config.thinking
    if not isinstance(thinking, Mapping) or thinking.get("type") == "disabled":
        return 0
    budget = thinking.get("budget_tokens")
    return budget if isinstance(budget, int) and budget > 0 else 0


def reply_arguments(budget_tokens: int, max_tokens: int) -> dict[str, Any]:
    """Return the arguments that limit the reply, so that the request stays within the context window.

    Providers reject a thinking budget that is not below `max_tokens`. In that case, thinking is disabled, for example
    for a short summary or with a small context window.
    """
    if budget_tokens and max_tokens <= budget_tokens:
        return {"max_tokens": max_tokens, "thinking": None, "reasoning_effort": None}
    return {"max_tokens": max_tokens}


def prompt_characters(arguments: Mapping[str, Any]) -> int:
    """Count the characters of messages and tools. Images are excluded because they are not billed per character."""
    return _characters_of(arguments["messages"]) + _characters_of(arguments.get("tools", []))


def _characters_of(value: Any) -> int:  # noqa: ANN401  any JSON
    """Count the characters of any part of a request, without images."""
    if isinstance(value, str):
        return 0 if value.startswith("data:image/") else len(value)
    if isinstance(value, dict):
        return sum(len(key) + _characters_of(item) for key, item in value.items())
    if isinstance(value, list):
        return sum(map(_characters_of, value))
    return 0


CacheMarks: TypeAlias = Literal["none", "system", "conversation"]

_MIN_CACHED_TOKENS = 1_024

_CLAUDE_PROVIDERS = frozenset({"anthropic", "vertex_ai", "azure_ai", "openrouter", "bedrock", "bedrock_converse"})
_BEDROCK = frozenset({"bedrock", "bedrock_converse"})
_CHARACTERS_PER_TOKEN = 4
_MARK = {"type": "ephemeral"}


def cache_marks(facts: ModelFacts) -> CacheMarks:
    """Return the kind of cache marks that the model supports."""
    name = facts.model.lower()
    if facts.provider in _CLAUDE_PROVIDERS and ("claude" in name or facts.provider == "anthropic"):
        return "conversation"
    return "system" if facts.provider in _BEDROCK and "nova" in name else "none"


def mark_for_cache(messages: list[Wire], tools: list[Wire], marks: CacheMarks) -> None:
    """Add cache marks to `messages`.

    Prefixes below 1,024 tokens are not marked, because providers do not cache them.
    """
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
    """Return the position of the last message before the last reply, and of the last message after the last reply.

    Only messages that can be marked are considered.
    """
    last_reply = next((at for at in range(len(messages) - 1, -1, -1) if messages[at]["role"] == "assistant"), 0)
    ends = (_last_marked(messages, 1, last_reply), _last_marked(messages, max(1, last_reply + 1), len(messages)))
    return [end for end in ends if end is not None]


def _last_marked(messages: list[Wire], start: int, end: int) -> int | None:
    """Return the position of the last message before `end` that is neither empty nor a model reply, or None."""
    for position in range(end - 1, start - 1, -1):
        message = messages[position]
        content = message["content"]
        if message["role"] != "assistant" and (content if isinstance(content, str) else content and _text(content[-1])):
            return position
    return None


def _text(part: Wire) -> bool:
    return part.get("type") != "text" or bool(part["text"])


def _mark(message: Wire) -> None:
    """Mark the last part of a message.

    If a message has no parts, the message itself is marked, and litellm moves the mark to the content.
    """
    content = message["content"]
    (content[-1] if isinstance(content, list) else message)["cache_control"] = dict(_MARK)


def _is_worth_caching(prefix: Iterable[Wire]) -> bool:
    """Return whether the prefix is long enough to be cached. Reads only as much of the prefix as necessary."""
    characters = 0
    for part in prefix:
        characters += _characters_of(part)
        if characters >= _MIN_CACHED_TOKENS * _CHARACTERS_PER_TOKEN:
            return True
    return False
