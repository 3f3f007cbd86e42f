"""What a configured model is called in traces: the provider's name by the GenAI conventions, and its own name.

Used by `holmes.app.telemetry`, which knows the configuration, and by `tracing`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

BUILTIN_PROVIDER: Final = "holmes"

_BY_PREFIX: Final = {
    "ai21": "ai21",
    "anthropic": "anthropic",
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "builtin": BUILTIN_PROVIDER,
    "cohere": "cohere",
    "deepseek": "deepseek",
    "gemini": "gcp.gemini",
    "groq": "groq",
    "mistral": "mistral_ai",
    "openai": "openai",
    "perplexity": "perplexity",
    "scripted": BUILTIN_PROVIDER,
    "vertex_ai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
_BY_NAME: Final = (
    ("claude", "anthropic"),
    ("command", "cohere"),
    ("deepseek", "deepseek"),
    ("gemini", "gcp.gemini"),
    ("grok", "x_ai"),
    ("mistral", "mistral_ai"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelIdentity:
    """`provider` is a name of the GenAI conventions, or what litellm calls a provider that they do not have."""

    provider: str
    model: str

    @property
    def is_remote(self) -> bool:
        """Whether another process answers."""
        return self.provider != BUILTIN_PROVIDER


def identity_of(wire_name: str) -> ModelIdentity:
    """The identity of what litellm calls `wire_name`: `provider/model`, or a name that says it by itself."""
    if wire_name.startswith("scripted:"):
        return ModelIdentity(provider=BUILTIN_PROVIDER, model="scripted")  # the rest is a path of this machine
    prefix, slash, rest = wire_name.partition("/")
    if slash:
        own = wire_name if prefix == "builtin" else rest
        return ModelIdentity(provider=_BY_PREFIX.get(prefix, prefix), model=own)
    provider = next((provider for start, provider in _BY_NAME if wire_name.startswith(start)), "openai")
    return ModelIdentity(provider=provider, model=wire_name)
