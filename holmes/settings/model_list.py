"""Reads the model list. Each entry defines how to reach a model and how to manage its context window.

Error messages contain the file and the line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pydantic import Field, ValidationError

from holmes.settings.context import ContextSettings
from holmes.settings.located import YamlFile, complaint, mapping_at, read_yaml_file, refuse_unknown_keys
from holmes.settings.model import ModelAccess, refuse_lost_keys
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

_OTHER_NAMES = {"summary_brain": "summary_model"}
"""Keys of `context` that other systems document, mapped to the keys of Holmes."""


class ModelEntry(ModelAccess):
    """An entry of the model list, with its own `context` settings."""

    context: ContextSettings = Field(default_factory=ContextSettings)
    """Overrides of `context` for this model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelList:
    """The usable models in the order of the file.

    `left_out` maps the name of each skipped model to the reason why it was skipped.
    """

    entries: tuple[ModelEntry, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)


def read_model_list(path: Path, environment: Mapping[str, str]) -> ModelList:
    """Read the models of the file. Raises `ConfigError` with file and line.

    Models that refer to an unset variable are skipped.
    """
    file = read_yaml_file(path, environment)
    left_out: dict[str, str] = {}
    for place, message in file.unset.items():
        left_out.setdefault(str(place[0]), message)
    entries = tuple(_entry(file, name, raw) for name, raw in file.content.items() if name not in left_out)
    return ModelList(entries=entries, left_out=left_out)


def _entry(file: YamlFile, name: str, raw: object) -> ModelEntry:
    fields = raw
    if isinstance(raw, Mapping):
        refuse_lost_keys(file, (name,), raw)
        context, own = _context(file, name, raw)
        fields = {**raw, "name": name, "context": context, **own}
    try:
        return ModelEntry.model_validate(fields)
    except ValidationError as error:
        raise ConfigError(complaint(file, (name,), raw, error)) from None


def _context(
    file: YamlFile, name: str, raw: Mapping[object, object]
) -> tuple[Mapping[str, object], Mapping[str, object]]:
    """Return the keys under `context`, with aliases resolved, and the fields of the entry that they set."""
    below = mapping_at(file, (name, "context"), raw.get("context"))
    if "store_dir" in below:
        place = file.place(name, "context", "store_dir")
        message = f"{place}: '{name}.context.store_dir' cannot be set for one model: set tool_result_storage_path"
        raise ConfigError(message)
    refuse_unknown_keys(file, (name, "context"), below, (*ContextSettings.model_fields, *_OTHER_NAMES, "max_tokens"))
    for other, ours in _OTHER_NAMES.items():
        if other in below and ours in below:
            message = f"{file.place(name, 'context', other)}: {other!r} is an alias of {ours!r}: remove one of them"
            raise ConfigError(message)
    own: dict[str, object] = {}
    if below.get("max_tokens") is not None:
        own["context_window_tokens"] = below["max_tokens"]
        if isinstance(raw.get("custom_args"), Mapping):
            place = file.place(name, "context", "max_tokens")
            message = f"{place}: 'max_tokens' is an alias of 'custom_args.max_context_size': remove one of them"
            raise ConfigError(message)
    for key in ("summary_model", "summary_brain"):
        if isinstance(model := below.get(key), Mapping):
            refuse_lost_keys(file, (name, "context", key), model)
    context = {_OTHER_NAMES.get(key, key): value for key, value in below.items() if key != "max_tokens"}
    return context, own
