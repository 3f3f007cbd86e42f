"""Defines the configuration of a model, from which `holmes.app.models.build_model` builds the model.

This module reads neither environment variables nor files. `repr` omits the values that may be secret: the API key, the
headers and the extra arguments.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holmes.values.json_types import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """The prices of a model in US dollars per token. They replace missing or wrong prices in litellm.

    If a cache price is None, the cached tokens cost the same as other input tokens.
    """

    input_per_token: float
    output_per_token: float
    cache_read_per_token: float | None = None
    cache_creation_per_token: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LitellmModelConfig:
    """Configuration of a model that is called through litellm.

    `name` is the name that users see. `model` is the litellm id, for example `gpt-4o`, `anthropic/claude-sonnet-4-5`,
    or `openai/qwen` with an `api_base`. `request_timeout_seconds` limits the wait for the first byte and for each later
    chunk of a stream, not for the whole reply. `context_window_tokens` and `max_output_tokens` override litellm's
    values. If `context_window_tokens` is 0, Holmes asks the server for the context window. If `context_window_tokens`
    is None, Holmes asks only local servers, and OpenAI-compatible servers if litellm has no data about the model.
    `prompt_caching` enables cache marks for providers that require them. litellm receives `extra_arguments` unchanged.
    """

    name: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    api_base: str | None = None
    api_version: str | None = None
    temperature: float | None = None
    reasoning_effort: str | None = None
    thinking: JsonValue = None
    request_timeout_seconds: float = 600.0
    context_window_tokens: int | None = None
    max_output_tokens: int | None = None
    prices: Prices | None = None
    prompt_caching: bool = True
    extra_headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    extra_arguments: tuple[tuple[str, JsonValue], ...] = field(default=(), repr=False)
