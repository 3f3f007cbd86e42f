"""What litellm is called with, apart from the conversation. Called by `LitellmModel`; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holmes.llm.config import LitellmModelConfig


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
