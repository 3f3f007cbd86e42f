"""Which model answers, and how it is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, JsonValue, SecretStr

from holmes.settings.setting import CommaSeparated, JsonText, Setting, SettingsGroup

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
