"""The complete configuration as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holmes.settings.alerts import AlertSettings, SourceSettings
from holmes.settings.clusters import ClustersSettings
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
    "clusters": ClustersSettings,
    "context": ContextSettings,
    "tools": ToolSettings,
    "storage": StorageSettings,
    "server": ServerSettings,
    "investigations": InvestigationsSettings,
    "alerts": AlertSettings,
    "telemetry": TelemetrySettings,
    "sources": SourceSettings,
}
"""The settings groups by field name of `Settings`, in the order of docs/configuration.md."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The complete configuration.

    `model_list` contains the usable named models. `left_out_models` maps the name of each other model to the reason why
    it was left out. `config_lines` maps the keys of `config_file` to line numbers. `ignored_keys` are keys and
    variables of HolmesGPT that Holmes does not support. If `api_key_is_option` is true, the API key comes from the
    command line. It then overrides the key of the chosen model in the model list. `cluster` is the configured cluster
    of these settings. It is empty for a recording or a cluster without a name, and None without a choice. `is_recorded`
    is true for a recording.
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
    clusters: ClustersSettings = field(default_factory=ClustersSettings)
    cluster: str | None = None
    is_recorded: bool = False
    model_list: tuple[ModelEntry, ...] = ()
    left_out_models: Mapping[str, str] = field(default_factory=dict)
    config_file: Path | None = None
    config_lines: Mapping[KeyPath, int] = field(default_factory=dict)
    ignored_keys: tuple[str, ...] = ()
    api_key_is_option: bool = False

    @property
    def serves_several(self) -> bool:
        """Whether each investigation chooses one of the configured clusters."""
        return self.cluster is None and bool(self.clusters.clusters)

    def model_chain(self) -> tuple[ModelEntry, ...]:
        """Return the chosen model and its fallbacks, without duplicates.

        The last fallback is `builtin/triage`, unless `builtin_fallback` is false. A name that is not in the model list
        is a litellm model name, which `holmes.llm` checks. The general key and URL apply to the chosen model and to
        fallbacks of the same provider.
        """
        last = (BUILTIN_MODEL,) if self.model.builtin_fallback else ()
        names = dict.fromkeys((self.model.model, *self.model.fallback_models, *last))
        return tuple(self._entry(name) for name in names)

    def model_names(self) -> tuple[str, ...]:
        """Return the names of the model list."""
        return tuple(entry.name for entry in self.model_list)

    def asks_llm(self, name: str | None) -> bool:
        """Return whether the model `name` is an LLM, which may cost money.

        If `name` is None, check the chosen model.
        """
        return self._wire_name(name or self.model.model) != BUILTIN_MODEL

    def warnings(self, ignored: Iterable[str] | None = None) -> tuple[str, ...]:
        """Return the warnings for the user about `ignored` (default: `ignored_keys`) and about skipped models."""
        names = ", ".join(self.ignored_keys if ignored is None else ignored)
        told = (f"Holmes does not support these settings and ignores them: {names}",) if names else ()
        return (*told, *(f"model {name!r} is skipped: {why}" for name, why in self.left_out_models.items()))

    def unusable_model(self) -> str | None:
        """Return why a model of the chain or its summary model cannot be used, or None if all models can be used."""
        for entry in self.model_chain():
            for name in (entry.name, self.context_of(entry).summary_model):
                if isinstance(name, str) and name in self.left_out_models:
                    return self.left_out_models[name]
        return None

    def context_of(self, entry: ModelEntry) -> ContextSettings:
        """Return the settings of `context` for one model, with its overrides."""
        return self.context.with_overrides(entry.context)

    def window_tokens(self, entry: ModelEntry) -> int | None:
        """Return a model's configured context window. None means the known value, and 0 means the provider's value."""
        own = entry.context_window_tokens
        return self.model.context_window_tokens if own is None else own

    def summary_model(self, entry: ModelEntry) -> ModelEntry | None:
        """Return the model that summarises conversations of `entry`, or None if `entry` summarises them itself.

        A name refers to the model list or to litellm. For a litellm name, the general key and URL apply as for a
        fallback.
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
            return writer.model_copy(update={"context_window_tokens": 0})  # the general value is for another model
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
        """Return the litellm name of the model `name`."""
        return next((entry.model for entry in self.model_list if entry.name == name), name)


def _provider(model: str) -> str:
    """Return the provider before the slash, or an empty string for OpenAI models."""
    provider, slash, _ = model.partition("/")
    return provider if slash else ""


def reveal(secret: SecretStr | None) -> str | None:
    """Return the plain text of a secret. Call it only where the secret is sent."""
    return secret.get_secret_value() if secret else None
