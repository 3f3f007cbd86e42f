"""What litellm is called with, apart from the conversation. Called by `LitellmModel`; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holmes.core.model import ModelLimits
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
        "_skip_mcp_handler": True,  # or litellm imports its MCP gateway, half a second, as soon as there are tools
        **{name: value for name, value in optional.items() if value is not None},
        **dict(config.extra_arguments),
    }


def max_tokens_to_ask(config: LitellmModelConfig, limits: ModelLimits, wanted_tokens: int) -> int:
    """`wanted_tokens` for the reply, plus the thinking budget, which providers take out of the same number."""
    budget = config.thinking.get("budget_tokens") if isinstance(config.thinking, Mapping) else None
    if not isinstance(budget, int):
        return wanted_tokens
    return max(min(budget + wanted_tokens, limits.max_output_tokens), budget + 1)


def prompt_characters(arguments: Mapping[str, Any]) -> int:
    """The size of messages and tools, without images, which are not paid by the character."""
    return _characters(arguments["messages"]) + _characters(arguments.get("tools", []))


def _characters(value: Any) -> int:  # noqa: ANN401  any JSON
    if isinstance(value, str):
        return 0 if value.startswith("data:image/") else len(value)
    if isinstance(value, dict):
        return sum(len(key) + _characters(item) for key, item in value.items())
    if isinstance(value, list):
        return sum(map(_characters, value))
    return 0
