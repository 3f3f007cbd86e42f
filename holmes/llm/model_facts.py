"""Reads litellm's facts about a model, and checks that the API key is present.

The bundled price map contains the provider, sizes, price and vision support of a model. litellm would request the facts
from an Ollama server over the network, so Ollama models are looked up in the map directly. Unknown facts are None. The
error for a missing key is one line that contains the name of the variable to set. Keys are not checked for cloud
providers with other credential sources (instance roles, profiles, application defaults), because the errors of these
providers are clearer.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from holmes.values.errors import ConfigError
from holmes.values.texts import fault_of_address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.llm.config import LitellmModelConfig
    from holmes.llm.litellm_loader import LitellmModule

_OLLAMA = ("ollama", "ollama_chat")
LOCAL_PROVIDERS = frozenset(
    {*_OLLAMA, "hosted_vllm", "vllm", "lm_studio", "llamafile", "xinference", "docker_model_runner"}
)
_UNWATCHED = "aiohttp_openai"
_EFFORTS = {"minimal": 1_024, "low": 1_024, "medium": 2_048, "high": 4_096, "xhigh": 8_192, "max": 16_384}
_ROOM_FOR_ANY_BUDGET = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """Facts about one model. `model` is the litellm id without the provider. Sizes are in tokens.

    `is_local` is true for a model on the user's machine or network. `api_base` is litellm's default base URL, if known.
    `native_calls` is true if the model supports tool calls. `thinking_tokens` is the thinking budget that litellm sends
    to this provider. `is_priced` is true if litellm's price map contains the price of the model.
    """

    provider: str
    model: str
    is_local: bool
    api_base: str | None = None
    context_window_tokens: int | None = None
    max_output_tokens: int | None = None
    vision: bool | None = None
    native_calls: bool | None = None
    thinking_tokens: int = 0
    is_priced: bool = False


def model_facts(litellm: LitellmModule, config: LitellmModelConfig) -> ModelFacts:
    """Collect the facts about a configured model.

    Raises `ConfigError` for an unknown provider, or if Holmes cannot watch the provider's responses.
    """
    try:
        model, provider, _, api_base = litellm.get_llm_provider(model=config.model, api_base=config.api_base)
    except litellm.exceptions.BadRequestError:
        raise ConfigError(_unknown_model_message(litellm, config.model)) from None
    if provider == _UNWATCHED:
        raise ConfigError(
            f"provider {provider!r} is not supported, because its client follows redirects; use 'openai/{model}'"
        )
    info = _map_entry(litellm, model, provider)
    calls = info.get("supports_function_calling")
    window, output = info.get("max_input_tokens"), info.get("max_output_tokens")
    vision = info.get("supports_vision")
    return ModelFacts(
        provider=provider,
        model=model,
        is_local=provider in LOCAL_PROVIDERS or is_loopback(config.api_base),
        api_base=api_base or (litellm.get_secret("OLLAMA_API_BASE") if provider in _OLLAMA else None),
        context_window_tokens=window if isinstance(window, int) else None,
        max_output_tokens=output if isinstance(output, int) else None,
        vision=vision if isinstance(vision, bool) else None,
        native_calls=calls if isinstance(calls, bool) else None,
        thinking_tokens=_thinking_tokens(litellm, config, model, provider),
        is_priced=info.get("input_cost_per_token") is not None,
    )


def is_loopback(api_base: str | None) -> bool:
    """Return whether `api_base` points to this machine."""
    host = urlsplit(api_base).hostname if api_base else None
    if host is None:
        return False
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _unknown_model_message(litellm: LitellmModule, model: str) -> str:
    """Format the error for an unknown model, with the most similar known names. This takes about 0.1 seconds."""
    near = _nearest_models(litellm, model)
    if near:
        return f"Unknown model {model!r}: did you mean {' or '.join(map(repr, near))}?"
    return (
        f"Unknown model {model!r}: litellm cannot determine its provider;"
        " use PROVIDER/MODEL, for example 'anthropic/claude-sonnet-4-5' or 'openai/NAME' with --api-base."
    )


def _nearest_models(litellm: LitellmModule, model: str) -> list[str]:
    """Return up to two similar names from the price map."""
    import difflib

    return difflib.get_close_matches(model, litellm.model_cost.keys(), n=2, cutoff=0.75)


def _thinking_tokens(litellm: LitellmModule, config: LitellmModelConfig, model: str, provider: str) -> int:
    """Return the number of tokens in the thinking budget that litellm sends, or 0 if litellm sends no budget.

    For Claude models, a router converts the reasoning effort to a budget that is at most litellm's budget.
    """
    wishes = {"thinking": config.thinking, "reasoning_effort": config.reasoning_effort}
    wishes = {name: value for name, value in wishes.items() if value is not None}
    if not wishes:
        return 0
    try:
        sent: Mapping[str, Any] = litellm.utils.get_optional_params(
            model=model, custom_llm_provider=provider, max_tokens=_ROOM_FOR_ANY_BUDGET, drop_params=True, **wishes
        )
    except (litellm.exceptions.BadRequestError, ValueError):  # the model request reports this error
        return 0
    budgets = (
        _budget(sent.get("thinking"), "budget_tokens"),
        _budget(sent.get("thinkingConfig"), "thinkingBudget"),
        _EFFORTS.get(str(sent.get("reasoning_effort")), 0) if "claude" in model.lower() else 0,
    )
    return max(budgets)


def _budget(thinking: object, name: str) -> int:
    budget = thinking.get(name) if isinstance(thinking, dict) else None
    return budget if isinstance(budget, int) and budget > 0 else 0


def _map_entry(litellm: LitellmModule, model: str, provider: str) -> Mapping[str, Any]:
    if provider in _OLLAMA:
        entry: Mapping[str, Any] = litellm.model_cost.get(f"{provider}/{model}", {})
        return entry
    try:
        info: Mapping[str, Any] = litellm.get_model_info(model=model, custom_llm_provider=provider)
    except (litellm.exceptions.ModelNotMappedError, ValueError, KeyError):
        return {}
    return info


_CLOUD_CREDENTIALS = frozenset(
    {"bedrock", "bedrock_converse", "sagemaker", "sagemaker_chat", "vertex_ai", "vertex_ai_beta", "github_copilot"}
)
_AZURE_IDENTITY_VARIABLES = ("AZURE_AD_TOKEN", "AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE")
_NO_KEY_NEEDED = "not-needed"


def usable_api_key(litellm: LitellmModule, config: LitellmModelConfig, facts: ModelFacts) -> str | None:
    """Return the configured key, None if litellm finds a key, or a placeholder for a local server without a key.

    Raises `ConfigError` for a missing key or base URL, or for a base URL that is not valid.
    """
    fault = fault_of_address(config.api_base) if config.api_base else None
    if fault is not None:
        raise ConfigError(f"The api_base {config.api_base!r} of model {config.name!r} {fault}; correct it.")
    if config.api_key or facts.provider in _CLOUD_CREDENTIALS:
        _refuse_missing(litellm, config, facts)
        return config.api_key
    missing = _missing_variables(litellm, config, facts)
    if missing and facts.is_local:
        return _NO_KEY_NEEDED
    if missing:
        raise ConfigError(_missing_line(config, missing))
    return None


def _refuse_missing(litellm: LitellmModule, config: LitellmModelConfig, facts: ModelFacts) -> None:
    """Raise `ConfigError` if the base URL or API version for Azure is missing. Other providers require only a key."""
    missing = _missing_variables(litellm, config, facts) if facts.provider == "azure" else []
    if missing:
        raise ConfigError(_missing_line(config, missing))


def _missing_variables(litellm: LitellmModule, config: LitellmModelConfig, facts: ModelFacts) -> list[str]:
    found = litellm.validate_environment(
        model=config.model, api_key=config.api_key, api_base=config.api_base, api_version=config.api_version
    )
    missing = [str(name) for name in found.get("missing_keys", ())]
    given = {"API_BASE": config.api_base, "API_VERSION": config.api_version, "API_KEY": config.api_key}
    missing = [name for name in missing if not any(value and name.endswith(end) for end, value in given.items())]
    if facts.provider == "azure" and _has_azure_identity(litellm, config):
        missing = [name for name in missing if not name.endswith("_API_KEY")]
    return missing


def _has_azure_identity(litellm: LitellmModule, config: LitellmModelConfig) -> bool:
    if any(name.startswith("azure_ad_token") for name, _ in config.extra_arguments):
        return True
    return any(litellm.get_secret(name) for name in _AZURE_IDENTITY_VARIABLES)


def _missing_line(config: LitellmModelConfig, missing: list[str]) -> str:
    keys = [name for name in missing if name.endswith(("_KEY", "_TOKEN"))]
    if keys == missing:
        return f"No API key for model {config.name!r}: set {' or '.join(keys)} or pass --api-key."
    return f"Model {config.name!r} is not fully configured: set {', '.join(missing)}."
