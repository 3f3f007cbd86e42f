"""How large a model's window is (C6). Called by `LitellmModel`; pure.

The order is: what the user set, what the server says when it was asked, what litellm's map says, a table by name for
models the map does not know, then 32,768 for models on the user's own machines (their servers rarely offer more) and
200,000 for the rest.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from holmes.llm.request_arguments import thinking_tokens
from holmes.values.model import ModelLimits

if TYPE_CHECKING:
    from holmes.llm.config import LitellmModelConfig
    from holmes.llm.model_facts import ModelFacts
    from holmes.values.model import ImageFormula

_LOCAL_WINDOW_TOKENS = 32_768
_DEFAULT_WINDOW_TOKENS = 200_000
_DEFAULT_OUTPUT_TOKENS = 4_096

# (beginning of a part of the name, window, output, vision); the first that matches counts. Octo's and Digitorn's tables
# are in here.
_KNOWN_FAMILIES: tuple[tuple[str, int, int, bool], ...] = (
    ("claude-3-", 200_000, 8_192, True),
    ("claude", 200_000, 32_000, True),
    ("gpt-5", 272_000, 128_000, True),
    ("gpt-4.1", 1_047_576, 32_768, True),
    ("gpt-4o", 128_000, 16_384, True),
    ("gpt-4-turbo", 128_000, 4_096, True),
    ("gpt-4", 8_192, 4_096, False),
    ("gpt-3.5", 16_385, 4_096, False),
    ("gpt-oss", 131_072, 32_768, False),
    ("o4", 200_000, 100_000, True),
    ("o3", 200_000, 100_000, True),
    ("o1", 200_000, 100_000, True),
    ("gemini-1.5-pro", 2_097_152, 8_192, True),
    ("gemini-2.5", 1_000_000, 65_535, True),
    ("gemini", 1_048_576, 65_535, True),
    ("deepseek", 131_072, 8_192, False),
    ("grok-4", 256_000, 32_768, True),
    ("grok", 131_072, 16_384, False),
    ("llama-4", 131_072, 8_192, True),
    ("llama-3.3-70b-versatile", 128_000, 32_768, False),
    ("llama-3", 131_072, 8_192, False),
    ("mistral-large", 128_000, 8_192, False),
    ("kimi-k2", 262_144, 16_384, False),
    ("qwen3", 131_072, 16_384, False),
    ("command", 128_000, 4_096, False),
)
_OLD_ENCODING_FAMILIES = ("gpt-4-", "gpt-3.5", "claude", "llama", "qwen", "deepseek")


def resolve_limits(
    config: LitellmModelConfig, facts: ModelFacts, *, served_window_tokens: int | None = None
) -> ModelLimits:
    """The limits of a model, each from the best source that knows it. 0 in the configuration is the same as None."""
    family = None if facts.is_local else _family(facts.model)
    window = config.context_window_tokens or served_window_tokens or facts.context_window_tokens
    output = config.max_output_tokens or facts.max_output_tokens
    vision = facts.vision
    if family is not None:
        window, output = window or family[1], output or family[2]
        vision = family[3] if vision is None else vision
    return ModelLimits(
        context_window_tokens=window or (_LOCAL_WINDOW_TOKENS if facts.is_local else _DEFAULT_WINDOW_TOKENS),
        max_output_tokens=output or _DEFAULT_OUTPUT_TOKENS,
        vision=bool(vision),
        encoding=_encoding(facts.model),
        image_formula=_image_formula(facts),
        thinking_tokens=max(thinking_tokens(config), facts.thinking_tokens),
    )


def _family(model: str) -> tuple[str, int, int, bool] | None:
    name = model.lower()
    return next(
        (family for family in _KNOWN_FAMILIES if re.search(rf"(?<![a-z0-9]){re.escape(family[0])}", name)), None
    )


def _image_formula(facts: ModelFacts) -> ImageFormula:
    """By the maker of the model, wherever it runs; the dearest formula for makers whose own is not known."""
    name = facts.model.lower()
    if facts.provider == "anthropic" or "claude" in name:
        return "anthropic"
    if "gemini" in name:
        return "gemini"
    return "openai" if re.search(r"(?<![a-z0-9])(gpt-|o[134](?![a-z0-9]))", name) else "largest"


def _encoding(model: str) -> Literal["cl100k_base", "o200k_base"]:
    name = model.lower()
    return "cl100k_base" if name == "gpt-4" or any(part in name for part in _OLD_ENCODING_FAMILIES) else "o200k_base"
