"""Builds the chain of models from the settings.

`scripted:PATH` replays a file, and `builtin/triage` answers from rules. These models need neither a key nor litellm.
All other models are called through litellm.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from holmes.core.model_chain import Calibration, LoopModel
from holmes.llm.config import LitellmModelConfig, Prices
from holmes.llm.scripted import ScriptedModel
from holmes.triage import TRIAGE_MODEL, TriageModel
from holmes.values.errors import ConfigError
from holmes.values.model import ChatModel

if TYPE_CHECKING:
    from holmes.settings.model_list import ModelEntry
    from holmes.settings.settings import Settings

_SCRIPTED_PREFIX = "scripted:"


class ConfiguredModel(ChatModel, Protocol):
    """A `ChatModel` that can be checked and closed."""

    async def check(self) -> None:
        """Prepare the model without sending a request. Raises `ConfigError` if the model cannot be used."""
        ...

    async def aclose(self) -> None: ...


def build_model(config: LitellmModelConfig, *, details: bool = False) -> ConfiguredModel:
    """Create the configured model without importing litellm. Raises `ConfigError` for an invalid script file.

    `details` is for the built-in rules: their answers omit nothing.
    """
    if config.model.startswith(_SCRIPTED_PREFIX):
        return ScriptedModel.from_file(Path(config.model.removeprefix(_SCRIPTED_PREFIX)), name=config.name)
    if config.model == TRIAGE_MODEL:
        return TriageModel(name=config.name, details=details)
    from holmes.llm.litellm_model import LitellmModel  # the built-in rules need nothing of it

    return LitellmModel(config)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltModels:
    """The models of one configuration. The loop calls `models` in this order.

    `configured` also includes the models for summaries.
    """

    models: tuple[LoopModel, ...]
    configured: tuple[ConfiguredModel, ...]

    def preload(self) -> None:
        """Import litellm in the background, if a model needs it. This takes seconds."""
        if not all(isinstance(model, (ScriptedModel, TriageModel)) for model in self.configured):
            from holmes.llm.litellm_loader import preload

            preload()


def build_models(settings: Settings) -> BuiltModels:
    """Build the chosen model and its fallbacks, in order, without slow imports or requests.

    Raises `ConfigError` if a model refers to an unset variable.
    """
    from holmes.app.context_policies import context_policy  # slow, because it loads all context settings

    if unusable := settings.unusable_model():
        raise ConfigError(unusable)
    built: dict[str, ConfiguredModel] = {}

    def build(entry: ModelEntry) -> ConfiguredModel:
        config = _config(settings, entry)
        model = build_model(config, details=settings.investigation.details)
        return built.setdefault(repr((entry.name, config)), model)

    models = []
    for entry in settings.model_chain():
        writer = settings.summary_model(entry)
        models.append(
            LoopModel(
                model=build(entry),
                policy=context_policy(settings, entry),
                summary_model=build(writer) if writer is not None else None,
                calibration=_calibration((entry.api_base or "").rstrip("/"), entry.model),
            )
        )
    return BuiltModels(models=tuple(models), configured=tuple(built.values()))


@cache
def _calibration(_endpoint: str, _model: str) -> Calibration:
    """Return the token calibration of a model at an endpoint, which all model list entries for this model share."""
    return Calibration()


async def check_models(settings: Settings, models: tuple[ConfiguredModel, ...]) -> None:
    """Check all models without sending a request.

    Raises `ConfigError` for a missing key or an unknown model. The error message lists the available models.
    """
    for model in models:
        try:
            await model.check()
        except ConfigError as error:
            named = settings.model_names()
            if not named or model.name in named:
                raise
            message = f"{error} Available models: {', '.join(named)}."
            raise ConfigError(message) from error


def _config(settings: Settings, entry: ModelEntry) -> LitellmModelConfig:
    from holmes.settings.settings import reveal  # the settings are already loaded here

    general = settings.model
    headers = general.extra_headers or {}
    return LitellmModelConfig(
        name=entry.name,
        model=entry.model,
        api_key=reveal(entry.api_key),
        api_base=entry.api_base,
        api_version=entry.api_version,
        temperature=general.temperature if entry.temperature is None else entry.temperature,
        reasoning_effort=entry.reasoning_effort or general.reasoning_effort,
        thinking=entry.thinking or general.thinking,
        request_timeout_seconds=general.request_timeout_seconds,
        context_window_tokens=settings.window_tokens(entry),
        max_output_tokens=general.max_output_tokens or None,
        prompt_caching=general.prompt_caching,
        prices=_prices(entry),
        extra_headers=tuple((name, value.get_secret_value()) for name, value in headers.items()),
        extra_arguments=tuple(entry.extra.items()),
    )


def _prices(entry: ModelEntry) -> Prices | None:
    if entry.input_cost_per_token is None and entry.output_cost_per_token is None:
        return None
    return Prices(
        input_per_token=entry.input_cost_per_token or 0.0,
        output_per_token=entry.output_cost_per_token or 0.0,
        cache_read_per_token=entry.cache_read_input_token_cost,
        cache_creation_per_token=entry.cache_creation_input_token_cost,
    )
