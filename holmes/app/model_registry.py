"""From a configuration to a model.

`scripted:PATH` plays a file and `builtin/triage` answers by rules: both need neither a key nor litellm; everything else
is litellm's.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from holmes.llm.litellm_model import LitellmModel
from holmes.llm.scripted import ScriptedModel
from holmes.triage import TRIAGE_MODEL, TriageModel
from holmes.values.model import ChatModel

if TYPE_CHECKING:
    from holmes.llm.config import LitellmModelConfig

SCRIPTED_PREFIX = "scripted:"


class ConfiguredModel(ChatModel, Protocol):
    """A `ChatModel` that can be checked before use and closed after it."""

    async def check(self) -> None:
        """Make ready without a request. Raises `ConfigError` when the model cannot be asked."""
        ...

    async def aclose(self) -> None:
        """Close connections."""
        ...


def build_model(config: LitellmModelConfig) -> ConfiguredModel:
    """The model of this configuration. Does not import litellm; raises `ConfigError` for a broken script file."""
    if config.model.startswith(SCRIPTED_PREFIX):
        return ScriptedModel.from_file(Path(config.model.removeprefix(SCRIPTED_PREFIX)), name=config.name)
    if config.model == TRIAGE_MODEL:
        return TriageModel(name=config.name)
    return LitellmModel(config)
