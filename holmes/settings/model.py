"""Settings of the model that answers, and the keys that describe how to reach one model."""

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
"""The model without an LLM."""

MODEL_WITH_KEY: Final = "gpt-4.1"
"""What answers when nobody chose a model and there is a key or an address for it."""


class ModelSettings(SettingsGroup):
    """The model."""

    model: Annotated[str, Setting("MODEL", option="--model"), Field(min_length=1)] = BUILTIN_MODEL
    """The model: a name of the model list, or what litellm calls it, for example `anthropic/claude-sonnet-4-5`. Unset:
    the first entry of the model list, else `gpt-4.1` if there is a key or address for it, else `builtin/triage`, which
    needs no LLM.
    """

    fallback_models: Annotated[CommaSeparated, Setting("FALLBACK_MODELS")] = ()
    """Models that take over, in this order, when the one before fails for good. Comma-separated in the variable."""

    builtin_fallback: Annotated[bool, Setting("HOLMES_BUILTIN_FALLBACK")] = True
    """Whether `builtin/triage` answers, without an LLM, when all models have failed for good."""

    api_key: Annotated[SecretStr | None, Setting(key="api_key", option="--api-key")] = None
    """The provider's key. Usually set as the provider's own variable instead, for example `OPENAI_API_KEY`."""

    api_base: Annotated[str | None, Setting(key="api_base")] = None
    """The address of the provider or of a server that speaks its protocol."""

    api_version: Annotated[str | None, Setting(key="api_version")] = None
    """The version of the provider's interface (Azure)."""

    temperature: Annotated[float | None, Setting("TEMPERATURE"), Field(ge=0, le=2)] = None
    """How freely the model writes, 0 to 2. Unset: the provider decides."""

    reasoning_effort: Annotated[str | None, Setting("REASONING_EFFORT"), Field(min_length=1)] = None
    """How much a reasoning model thinks, for example `low`, `medium` or `high`."""

    thinking: Annotated[dict[str, JsonValue] | None, JsonText, Setting("THINKING")] = None
    """Anthropic's thinking parameter as JSON, for example `{"type": "enabled", "budget_tokens": 10000}`."""

    extra_headers: Annotated[dict[str, SecretStr] | None, JsonText, Setting("EXTRA_HEADERS")] = None
    """Headers of every request to the provider, as a JSON object."""

    prompt_caching: Annotated[bool, Setting("HOLMES_PROMPT_CACHING")] = True
    """Whether requests mark what the provider shall cache, where it wants marks (Anthropic, Bedrock)."""

    request_timeout_seconds: Annotated[float, Setting("LLM_REQUEST_TIMEOUT"), Field(gt=0)] = 600
    """Seconds after which a request to the model is given up and made again."""

    context_window_tokens: Annotated[
        int | None, Setting("OVERRIDE_MAX_CONTENT_SIZE", aliases=("context.max_tokens",)), Field(ge=0)
    ] = None
    """The model's context window in tokens, when the known value is wrong. 0 asks the provider. Unset: what is known of
    the model, else 32,768 for a local one and 200,000 for any other.
    """

    max_output_tokens: Annotated[int | None, Setting("OVERRIDE_MAX_OUTPUT_TOKEN"), Field(ge=0)] = None
    """The most tokens the model writes in one reply, when the known value is wrong. 0 is the same as unset."""

    model_list_file: Annotated[Path, Setting("MODEL_LIST_FILE_LOCATION")] = Path("~/.holmes/model_list.yaml")
    """The file that names models with their keys, addresses, sizes and prices."""


Price = Annotated[float | None, Field(ge=0)]

_WINDOW_KEY = "max_context_size"
_OWN_FIELDS = {
    "name": "the name of a model is the key above it",
    "context_window_tokens": f"the window goes into custom_args: {{{_WINDOW_KEY}: …}}",
    "extra": "arguments for litellm stand beside 'model'",
}
"""Fields that the file may not set, and what to do instead."""


class ModelAccess(BaseModel):
    """One way to reach one model. Prices are US dollars per token."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    name: str = ""
    """What users call it; empty for the model of a summary that has no entry of its own."""

    model: str = Field(min_length=1)
    """What litellm calls it."""

    api_key: SecretStr | None = None
    """The provider's key; None leaves it to the provider's own variable."""

    api_base: str | None = Field(default=None, validation_alias=AliasChoices("api_base", "base_url"))
    """The provider's address."""

    api_version: str | None = None
    """The version of the provider's interface."""

    context_window_tokens: int | None = Field(default=None, ge=0)
    """`custom_args.max_context_size`: the real window. 0 asks the provider."""

    temperature: float | None = Field(default=None, ge=0, le=2)
    """Overrides the general one."""

    thinking: dict[str, JsonValue] | None = None
    """Overrides the general one."""

    reasoning_effort: str | None = None
    """Overrides the general one."""

    input_cost_per_token: Price = None
    """A fresh prompt token."""

    output_cost_per_token: Price = None
    """A completion token."""

    cache_read_input_token_cost: Price = None
    """A cached prompt token."""

    cache_creation_input_token_cost: Price = None
    """A prompt token that is written to the cache."""

    extra: dict[str, JsonValue] = Field(default_factory=dict, repr=False)
    """More arguments for litellm; may hold secrets, so it is never shown."""

    @model_validator(mode="before")
    @classmethod
    def _sort_keys(cls, raw: object) -> object:
        """Split what the file says into known fields and arguments for litellm."""
        if not isinstance(raw, Mapping):
            message = "a mapping with at least the key 'model' is expected"
            raise ValueError(message)  # noqa: TRY004  pydantic turns ValueErrors into its own
        entry = _from_brain({str(key): value for key, value in raw.items()})
        custom = entry.pop("custom_args", None)
        if isinstance(custom, Mapping) and _WINDOW_KEY in custom:
            entry["context_window_tokens"] = custom[_WINDOW_KEY]
        known = {*cls.model_fields, "base_url"}
        extra = {key: value for key, value in entry.items() if key not in known}
        fields = {key: value for key, value in entry.items() if key in known}
        return {**fields, "extra": extra} if extra else fields


def refuse_lost_keys(file: YamlFile, path: KeyPath, raw: Mapping[object, object]) -> None:
    """Raises `ConfigError` for a key below `path` that would do nothing, or something else than it says."""
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
            message = f"{place}: unknown key '{shown}.custom_args.{key}'; the only one is {_WINDOW_KEY!r}"
            raise ConfigError(message)


def _from_brain(raw: dict[str, object]) -> dict[str, object]:
    """A model as Digitorn writes it: the provider apart from the model, key and address below `config`."""
    if "provider" not in raw:
        return raw
    below = raw.get("config")
    config = {str(key): value for key, value in below.items()} if isinstance(below, Mapping) else {}
    rest = {key: value for key, value in raw.items() if key not in {"provider", "backend", "config"}}
    model = {"model": f"{raw['provider']}/{raw['model']}"} if "model" in raw else {}
    return {**config, **rest, **model}
