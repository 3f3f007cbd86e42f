"""Everything that can be configured, as one frozen value. Made by `load`, read by `holmes.app` and the faces."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holmes.settings.alerts import AlertSettings, SourceSettings
from holmes.settings.context import ContextSettings
from holmes.settings.investigation import InvestigationSettings, StorageSettings, ToolSettings
from holmes.settings.model import BUILTIN_MODEL, ModelSettings
from holmes.settings.model_list import ModelEntry
from holmes.settings.server import InvestigationsSettings, ServerSettings, TelemetrySettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pydantic import SecretStr

    from holmes.settings.setting import SettingsGroup
    from holmes.yaml_documents import KeyPath

GROUPS: Mapping[str, type[SettingsGroup]] = {
    "model": ModelSettings,
    "investigation": InvestigationSettings,
    "context": ContextSettings,
    "tools": ToolSettings,
    "storage": StorageSettings,
    "server": ServerSettings,
    "investigations": InvestigationsSettings,
    "alerts": AlertSettings,
    "telemetry": TelemetrySettings,
    "sources": SourceSettings,
}
"""The groups by the name of their field in `Settings`, in the order of docs/configuration.md."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The whole configuration.

    `model_list` are the named models that can be used; `left_out_models` says, for each of the others, why not;
    `config_file` the file that was read and
    `config_lines` the line of each of its keys; `ignored_keys` the keys and variables
    that HolmesGPT knows and that do nothing here; `api_key_is_option` says that the key came from the command line,
    where it is meant for the chosen model even if the model list has one for it.
    """

    model: ModelSettings
    investigation: InvestigationSettings
    context: ContextSettings
    tools: ToolSettings
    storage: StorageSettings
    server: ServerSettings = field(default_factory=ServerSettings)
    investigations: InvestigationsSettings = field(default_factory=InvestigationsSettings)
    alerts: AlertSettings = field(default_factory=AlertSettings)
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)
    sources: SourceSettings = field(default_factory=SourceSettings)
    model_list: tuple[ModelEntry, ...] = ()
    left_out_models: Mapping[str, str] = field(default_factory=dict)
    config_file: Path | None = None
    config_lines: Mapping[KeyPath, int] = field(default_factory=dict)
    ignored_keys: tuple[str, ...] = ()
    api_key_is_option: bool = False

    def model_chain(self) -> tuple[ModelEntry, ...]:
        """The chosen model and its fallbacks, in order, without repetition; the last needs no LLM.

        A name that the model list does not have is taken as litellm's name; whether litellm knows it is checked by
        `holmes.llm`. The general key and address go to the chosen model and to fallbacks of the same provider.
        """
        last = (BUILTIN_MODEL,) if self.model.builtin_fallback else ()
        names = dict.fromkeys((self.model.model, *self.model.fallback_models, *last))
        return tuple(self._entry(name) for name in names)

    def model_names(self) -> tuple[str, ...]:
        """The names of the model list, for a message that says what could be chosen."""
        return tuple(entry.name for entry in self.model_list)

    def asks_llm(self, name: str | None) -> bool:
        """Whether the model of this name (None: the chosen one) is an LLM, which may cost money."""
        return self._wire_name(name or self.model.model) != BUILTIN_MODEL

    def warnings(self, ignored: Iterable[str] | None = None) -> tuple[str, ...]:
        """What the user should know: what does nothing here (`ignored_keys` unless given), and models left out."""
        names = ", ".join(self.ignored_keys if ignored is None else ignored)
        told = (f"ignored, because Holmes does not have it yet: {names}",) if names else ()
        return (*told, *(f"model {name!r} is left out: {why}" for name, why in self.left_out_models.items()))

    def unusable_model(self) -> str | None:
        """Why a model of the chain, or one that writes its summaries, cannot be used; None when all can."""
        for entry in self.model_chain():
            for name in (entry.name, self.context_of(entry).summary_model):
                if isinstance(name, str) and name in self.left_out_models:
                    return self.left_out_models[name]
        return None

    def context_of(self, entry: ModelEntry) -> ContextSettings:
        """The settings of `context` for one model: its own over the general ones (C9)."""
        return self.context.with_overrides(entry.context)

    def window_tokens(self, entry: ModelEntry) -> int | None:
        """The window that the user gives a model: None leaves it to what is known, 0 asks the provider (C3)."""
        own = entry.context_window_tokens
        return self.model.context_window_tokens if own is None else own

    def summary_model(self, entry: ModelEntry) -> ModelEntry | None:
        """The model that writes the summaries of the conversations of `entry`; None when it does so itself (K12).

        It is reached with its own key, address and window. A name leads to an entry of the model list, or is taken as
        litellm's; then the general key and address hold as they do for a fallback.
        """
        chosen = self.context_of(entry).summary_model
        if chosen is None or entry.model == BUILTIN_MODEL:
            return None
        if isinstance(chosen, str):
            writer = self._entry(chosen)
        else:
            fields = {name: getattr(chosen, name) for name in type(chosen).model_fields}
            writer = ModelEntry.model_construct(**{**fields, "name": chosen.name or chosen.model})
        if writer.context_window_tokens is None and self.model.context_window_tokens is not None:
            return writer.model_copy(update={"context_window_tokens": 0})  # the general window is of another model
        return writer

    def _entry(self, name: str) -> ModelEntry:
        is_chosen = name == self.model.model
        for entry in self.model_list:
            if entry.name == name:
                key = self.model.api_key if is_chosen and self.api_key_is_option else None
                return entry.model_copy(update={"api_key": key}) if key else entry
        shares = is_chosen or _provider(name) == _provider(self._wire_name(self.model.model))
        return ModelEntry.model_validate(
            {
                "name": name,
                "model": name,
                "api_key": self.model.api_key if shares else None,
                "api_base": self.model.api_base if shares else None,
                "api_version": self.model.api_version if shares else None,
            }
        )

    def _wire_name(self, name: str) -> str:
        """What litellm calls the model that users call `name`."""
        return next((entry.model for entry in self.model_list if entry.name == name), name)


def _provider(model: str) -> str:
    """The provider in front of the slash; empty for OpenAI's models, which need none."""
    provider, slash, _ = model.partition("/")
    return provider if slash else ""


def reveal(secret: SecretStr | None) -> str | None:
    """The text of a secret, for the one place that sends it."""
    return secret.get_secret_value() if secret else None
