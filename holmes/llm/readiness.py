"""Can this model be asked at all? Called once by `LitellmModel`, before any request.

A missing key is one line that names the variable to set. Clouds that find credentials by themselves (instance roles,
profiles, application defaults) are not second-guessed: their own error is clearer than a guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.values.errors import ConfigError
from holmes.values.texts import fault_of_address

if TYPE_CHECKING:
    from holmes.llm.config import LitellmModelConfig
    from holmes.llm.litellm_loader import LitellmModule
    from holmes.llm.model_facts import ModelFacts

_CLOUD_CREDENTIALS = frozenset(
    {"bedrock", "bedrock_converse", "sagemaker", "sagemaker_chat", "vertex_ai", "vertex_ai_beta", "github_copilot"}
)
_AZURE_IDENTITY_VARIABLES = ("AZURE_AD_TOKEN", "AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE")
_NO_KEY_NEEDED = "not-needed"


def usable_api_key(litellm: LitellmModule, config: LitellmModelConfig, facts: ModelFacts) -> str | None:
    """The key to send: the configured one, None when litellm finds it itself, a filler for a server on this machine.

    Raises `ConfigError` when a key or address is missing, or the address is none.
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
    """With a key given, only addresses can be missing, and only Azure cannot do without."""
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
