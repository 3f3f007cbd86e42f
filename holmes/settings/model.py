"""Settings for the model that answers, and the keys that define how to reach a model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, JsonValue, SecretStr, model_validator

from holmes.settings.setting import CommaSeparated, JsonText, Setting, SettingsGroup
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from holmes.settings.located import YamlFile
    from holmes.yaml_documents import KeyPath

BUILTIN_MODEL: Final = "builtin/triage"
"""Model name of the built-in rules, which need no LLM."""

MODEL_WITH_KEY: Final = "gpt-4.1"
"""The default model if a key or URL is configured."""


class ModelSettings(SettingsGroup):
    model: Annotated[str, Setting("MODEL", option="--model"), Field(min_length=1)] = BUILTIN_MODEL
    """Model name: an entry of the model list, or a litellm model name, for example `anthropic/claude-sonnet-4-5`.
    Default: the first entry of the model list, or `gpt-4.1` if a key or URL is set, or `builtin/triage`, which needs no
    LLM.
    """

    fallback_models: Annotated[CommaSeparated, Setting("FALLBACK_MODELS")] = ()
    """Models to use, in this order, when a model fails permanently. In the variable, separate the models with commas.
    """

    builtin_fallback: Annotated[bool, Setting("HOLMES_BUILTIN_FALLBACK")] = True
    """Use `builtin/triage`, which needs no LLM, when all models fail permanently."""

    api_key: Annotated[SecretStr | None, Setting(key="api_key", option="--api-key")] = None
    """API key of the model provider. It is usually set in the provider's variable instead, for example
    `OPENAI_API_KEY`.
    """

    api_base: Annotated[str | None, Setting(key="api_base")] = None
    """Base URL of the provider, or of a server with a compatible API."""

    api_version: Annotated[str | None, Setting(key="api_version")] = None
    """API version, for providers that require one, such as Azure."""

    temperature: Annotated[float | None, Setting("TEMPERATURE"), Field(ge=0, le=2)] = None
    """Sampling temperature, from 0 to 2. Default: the provider's default."""

    reasoning_effort: Annotated[str | None, Setting("REASONING_EFFORT"), Field(min_length=1)] = None
    """Reasoning effort of a reasoning model, for example `low`, `medium` or `high`."""

    thinking: Annotated[dict[str, JsonValue] | None, JsonText, Setting("THINKING")] = None
    """Anthropic's `thinking` parameter as a JSON object, for example `{"type": "enabled", "budget_tokens": 10000}`."""

    extra_headers: Annotated[dict[str, SecretStr] | None, JsonText, Setting("EXTRA_HEADERS")] = None
    """Additional headers for requests to the provider, as a JSON object."""

    prompt_caching: Annotated[bool, Setting("HOLMES_PROMPT_CACHING")] = True
    """Mark the cacheable part of requests for providers that require this mark, such as Anthropic and Bedrock."""

    request_timeout_seconds: Annotated[float, Setting("LLM_REQUEST_TIMEOUT"), Field(gt=0)] = 600
    """Time limit for a request to the model, in seconds. A request that exceeds the limit is retried."""

    context_window_tokens: Annotated[
        int | None, Setting("OVERRIDE_MAX_CONTENT_SIZE", aliases=("context.max_tokens",)), Field(ge=0)
    ] = None
    """Context window of the model, in tokens. Set it if the known value is wrong. 0 requests it from the provider.
    Default: the known value, or else 32,768 for a local model and 200,000 for any other model.
    """

    max_output_tokens: Annotated[int | None, Setting("OVERRIDE_MAX_OUTPUT_TOKEN"), Field(ge=0)] = None
    """Maximum number of tokens in one model reply. Set it if the known value is wrong. 0 is the same as unset."""

    model_list_file: Annotated[Path, Setting("MODEL_LIST_FILE_LOCATION")] = Path("~/.holmes/model_list.yaml")
    """File that defines named models, with their keys, URLs, context windows and prices."""


Price = Annotated[float | None, Field(ge=0)]

_WINDOW_KEY = "max_context_size"
_OWN_FIELDS = {
    "name": "the parent key is the name of the model",
    "context_window_tokens": f"set the context window in custom_args: {{{_WINDOW_KEY}: …}}",
    "extra": "put arguments for litellm next to 'model'",
}
"""Fields that the file must not set, each with advice for the user."""


class ModelAccess(BaseModel):
    """Defines how to reach one model. Prices are in US dollars per token."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True)

    name: str = ""
    """Name of the model in the model list. Empty for a summary model that has no entry."""

    model: str = Field(min_length=1)
    """Name of the model for litellm."""

    api_key: SecretStr | None = None
    """Key of the provider. Default: the variable of the provider."""

    api_base: str | None = Field(default=None, validation_alias=AliasChoices("api_base", "base_url"))
    """Base URL of the provider."""

    api_version: str | None = None
    """API version of the provider."""

    context_window_tokens: int | None = Field(default=None, ge=0)
    """Context window from `custom_args.max_context_size`, in tokens. 0 requests it from the provider."""

    temperature: float | None = Field(default=None, ge=0, le=2)
    """Overrides the general temperature."""

    thinking: dict[str, JsonValue] | None = None
    """Overrides the general thinking parameter."""

    reasoning_effort: str | None = None
    """Overrides the general reasoning effort."""

    input_cost_per_token: Price = None
    """Price of an uncached prompt token."""

    output_cost_per_token: Price = None
    """Price of a completion token."""

    cache_read_input_token_cost: Price = None
    """Price of a cached prompt token."""

    cache_creation_input_token_cost: Price = None
    """Price of a prompt token that is written to the cache."""

    extra: dict[str, JsonValue] = Field(default_factory=dict, repr=False)
    """Additional arguments for litellm. They may contain secrets, so they are never shown."""

    @model_validator(mode="before")
    @classmethod
    def _sort_keys(cls, raw: object) -> object:
        """Split the keys into known fields and arguments for litellm."""
        if not isinstance(raw, Mapping):
            message = "expected a mapping with at least the key 'model'"
            raise ValueError(message)  # noqa: TRY004  pydantic converts ValueErrors
        entry = _from_brain({str(key): value for key, value in raw.items()})
        custom = entry.pop("custom_args", None)
        if isinstance(custom, Mapping) and _WINDOW_KEY in custom:
            entry["context_window_tokens"] = custom[_WINDOW_KEY]
        known = {*cls.model_fields, "base_url"}
        extra = {key: value for key, value in entry.items() if key not in known}
        fields = {key: value for key, value in entry.items() if key in known}
        return {**fields, "extra": extra} if extra else fields


def refuse_lost_keys(file: YamlFile, path: KeyPath, raw: Mapping[object, object]) -> None:
    """Raise `ConfigError` for a key under `path` that has no effect or an unexpected effect."""
    shown = ".".join(str(part) for part in path)
    for field, advice in _OWN_FIELDS.items():
        if field in raw:
            message = f"{file.place(*path, field)}: '{shown}.{field}' is not a key of a model: {advice}"
            raise ConfigError(message)
    custom = raw.get("custom_args")
    if custom is None:
        return
    if not isinstance(custom, Mapping):
        message = f"{file.place(*path, 'custom_args')}: '{shown}.custom_args' must be a mapping with {_WINDOW_KEY!r}"
        raise ConfigError(message)
    for key in custom:
        if key != _WINDOW_KEY:
            place = file.place(*path, "custom_args", str(key))
            message = f"{place}: unknown key '{shown}.custom_args.{key}'; valid key: {_WINDOW_KEY!r}"
            raise ConfigError(message)


def _from_brain(raw: dict[str, object]) -> dict[str, object]:
    """Convert a model from the Digitorn format, which has a separate `provider`, and the key and URL under `config`."""
    if "provider" not in raw:
        return raw
    below = raw.get("config")
    config = {str(key): value for key, value in below.items()} if isinstance(below, Mapping) else {}
    rest = {key: value for key, value in raw.items() if key not in {"provider", "backend", "config"}}
    model = {"model": f"{raw['provider']}/{raw['model']}"} if "model" in raw else {}
    return {**config, **rest, **model}
