"""Puts the settings together: command line over environment over file. Called by the faces.

Refuses unknown keys, with the nearest valid one; keys that HolmesGPT knows and Holmes does not have yet are collected
for one warning instead.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from holmes.settings.context import ContextSettings
from holmes.settings.errors import SettingsError
from holmes.settings.investigation import InvestigationSettings
from holmes.settings.model import ModelSettings
from holmes.settings.model_list import ModelEntry, read_model_list
from holmes.settings.setting import Setting, SettingsGroup, setting_of
from holmes.settings.settings import GROUPS, Settings
from holmes.settings.storage import StorageSettings
from holmes.settings.tools import ToolSettings
from holmes.settings.upstream import UPSTREAM_KEYS, UPSTREAM_VARIABLES
from holmes.settings.validation import reason_of
from holmes.settings.yaml_file import YamlFile, read_yaml_file

if TYPE_CHECKING:
    from collections.abc import Mapping

Group = TypeVar("Group", bound=SettingsGroup)

DEFAULT_CONFIG_FILE = Path("~/.holmes/config.yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """A value that somebody gave, and where."""

    value: object
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sources:
    """Where values come from, strongest first. `overrides` go by config key."""

    overrides: Mapping[str, object]
    environment: Mapping[str, str]
    file: YamlFile | None
    home: Path

    def find(self, setting: Setting) -> _Given | None:
        """The strongest value for a setting, or None when nobody gave one."""
        key = setting.file_key
        option = self.overrides.get(key) if key else None
        in_file = self.file.content.get(key) if self.file and key else None
        place_in_file = f"{self.file.place(key)}: {key!r}" if self.file and key else ""
        if option is not None and option != ():
            if setting.adds and isinstance(option, tuple) and isinstance(in_file, (list, str)):
                option = (*([in_file] if isinstance(in_file, str) else in_file), *option)
            return _Given(value=option, place=f"{setting.option}")
        if setting.env and (variable := self.environment.get(setting.env, "").strip()):
            return _Given(value=variable, place=setting.env)
        if in_file is not None:
            return _Given(value=in_file, place=place_in_file)
        return None


def load_settings(
    environment: Mapping[str, str], file: Path | None = None, overrides: Mapping[str, object] | None = None
) -> Settings:
    """The settings from `overrides` (by config key; None and () mean not given), `environment` and `file`.

    Without `file`, `~/.holmes/config.yaml` is read if it is there. An empty variable counts as unset. Raises
    `SettingsError` that names the variable, option or `file:line`.
    """
    home = Path(environment.get("HOME") or Path.home())
    path = expand_home(file or DEFAULT_CONFIG_FILE, home)
    # Toolsets keep their references: their own engine resolves them, and a variable that is missing costs one toolset.
    config = read_yaml_file(path, environment, raw_keys=("toolsets",)) if file or path.exists() else None
    _refuse_unset(config)
    ignored = _check_keys(config) if config else ()
    given = overrides or {}
    sources = _Sources(overrides=given, environment=environment, file=config, home=home)
    model = _group(ModelSettings, sources)
    models = _model_list(model, environment)
    if models and sources.find(setting_of(ModelSettings, "model")) is None:
        model = model.model_copy(update={"model": models[0].name})
    tools = _group(ToolSettings, sources)
    _check_files(tools)
    settings = Settings(
        model=model,
        investigation=_group(InvestigationSettings, sources),
        context=_group(ContextSettings, sources),
        tools=tools,
        storage=_group(StorageSettings, sources),
        model_list=models,
        config_file=config.path if config else None,
        config_lines=config.document.lines if config else {},
        ignored_keys=(*ignored, *sorted(name for name in UPSTREAM_VARIABLES if environment.get(name))),
        api_key_is_option=bool(given.get("api_key")),
    )
    for entry in settings.model_chain():
        if entry.unset_variable:
            raise SettingsError(entry.unset_variable)
    return settings


def config_keys() -> tuple[str, ...]:
    """All keys of the config file that do something, sorted."""
    settings = (setting_of(group, name) for group in GROUPS.values() for name in group.model_fields)
    return tuple(sorted(setting.file_key for setting in settings if setting.file_key))


def expand_home(path: Path, home: Path) -> Path:
    """`path` with a leading `~` replaced by `home`."""
    return home.joinpath(*path.parts[1:]) if path.parts[:1] == ("~",) else path


def _refuse_unset(file: YamlFile | None) -> None:
    for message in file.unset.values() if file else ():
        raise SettingsError(message)


def _check_keys(file: YamlFile) -> tuple[str, ...]:
    """The keys that do nothing yet. Raises `SettingsError` for a key that nobody knows."""
    valid = config_keys()
    for key in file.content:
        if key in valid or key in UPSTREAM_KEYS:
            continue
        near = difflib.get_close_matches(key, valid, n=1, cutoff=0.5)
        advice = f"did you mean {near[0]!r}?" if near else f"valid keys: {', '.join(valid)}"
        message = f"{file.place(key)}: unknown key {key!r}; {advice}"
        raise SettingsError(message)
    return tuple(key for key in file.content if key in UPSTREAM_KEYS and key not in valid)


def _group(group: type[Group], sources: _Sources) -> Group:
    """One group with its values. Raises `SettingsError` for a value of the wrong kind."""
    values: dict[str, object] = {}
    places: dict[str, _Given] = {}
    for name, field in group.model_fields.items():
        given = sources.find(setting_of(group, name))
        if given is not None:
            if isinstance(given.value, str) and "\0" in given.value:
                message = f"{given.place}: a NUL character is not allowed"
                raise SettingsError(message)
            places[name] = given
            values[name] = given.value
        elif isinstance(field.default, Path):
            values[name] = field.default
    try:
        made = group.model_validate(values)
    except ValidationError as error:
        raise SettingsError(_bad_value(group, error, places)) from None
    return made.model_copy(update=_expanded_paths(made, sources.home))


def _expanded_paths(group: SettingsGroup, home: Path) -> dict[str, object]:
    """The fields that hold paths, with `~` replaced."""
    expanded: dict[str, object] = {}
    for name in type(group).model_fields:
        value = getattr(group, name)
        if isinstance(value, Path):
            expanded[name] = expand_home(value, home)
        elif isinstance(value, tuple) and any(isinstance(item, Path) for item in value):
            expanded[name] = tuple(expand_home(item, home) for item in value)
    return expanded


def _bad_value(group: type[SettingsGroup], error: ValidationError, places: Mapping[str, _Given]) -> str:
    name = str(error.errors(include_url=False)[0]["loc"][0])
    given = places[name]
    holds_secret = "SecretStr" in repr(group.model_fields[name].annotation)
    shown = "" if holds_secret else f"={_shorten(given.value)}"
    return f"{given.place}{shown}: {reason_of(error)}"


def _shorten(value: object, limit: int = 80) -> str:
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}…"


def _model_list(model: ModelSettings, environment: Mapping[str, str]) -> tuple[ModelEntry, ...]:
    """The named models. A file that was asked for must be there; the default one may be missing."""
    asked_for = bool(environment.get("MODEL_LIST_FILE_LOCATION"))
    if not asked_for and not model.model_list_file.exists():
        return ()
    return read_model_list(model.model_list_file, environment)


def _check_files(tools: ToolSettings) -> None:
    for file in tools.custom_toolsets:
        if not file.is_file():
            message = f"custom toolset file {str(file)!r}: there is no such file"
            raise SettingsError(message)
