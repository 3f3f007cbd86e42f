"""From the settings to the chain of models. Called by `holmes.app.investigator`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.core.errors import ConfigError
from holmes.llm.config import LitellmModelConfig, Prices
from holmes.llm.registry import build_model
from holmes.settings.settings import reveal

if TYPE_CHECKING:
    from holmes.llm.registry import ConfiguredModel
    from holmes.settings.model_list import ModelEntry
    from holmes.settings.settings import Settings


def build_models(settings: Settings) -> tuple[ConfiguredModel, ...]:
    """The chosen model and its fallbacks, in order. Imports nothing heavy and asks nobody."""
    return tuple(build_model(_config(settings, entry)) for entry in settings.model_chain())


async def check_models(settings: Settings, models: tuple[ConfiguredModel, ...]) -> None:
    """Make all models of the chain ready, without a request.

    Raises `ConfigError` for an unknown model or a missing key; an unknown name also lists the model list's names.
    """
    for model in models:
        try:
            await model.check()
        except ConfigError as error:
            named = settings.model_names()
            if not named or model.name in named:
                raise
            message = f"{error} The model list has: {', '.join(named)}."
            raise ConfigError(message) from error


def _config(settings: Settings, entry: ModelEntry) -> LitellmModelConfig:
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
        context_window_tokens=entry.context_window_tokens or general.context_window_tokens or None,
        max_output_tokens=general.max_output_tokens or None,
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
