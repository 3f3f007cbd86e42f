"""Combines the sources of settings. Options override variables, and variables override the file.

Rejects the keys that `config_keys` rejects, invalid values, and missing files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from holmes.settings.alerts import AlertSettings, SourceSettings
from holmes.settings.clusters import ClustersSettings
from holmes.settings.config_keys import FileKeys, read_keys, upstream_variables
from holmes.settings.context import ContextSettings
from holmes.settings.investigation import InvestigationSettings, StorageSettings, ToolSettings
from holmes.settings.located import YamlFile, first_location, name_of, path_in_file, read_yaml_file, reason, value_at
from holmes.settings.model import BUILTIN_MODEL, MODEL_WITH_KEY, ModelSettings, refuse_lost_keys
from holmes.settings.model_list import ModelEntry, ModelList, read_model_list
from holmes.settings.server import InvestigationsSettings, ServerSettings, TelemetrySettings
from holmes.settings.setting import Setting, SettingsGroup, setting_of
from holmes.settings.settings import Settings
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from holmes.yaml_documents import KeyPath

Group = TypeVar("Group", bound=SettingsGroup)

DEFAULT_FOLDER = Path("~/.holmes")
"""Folder of the config file and of the model list, unless `HOLMES_CONFIGPATH_DIR` is set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """A value with its origin: the path in the file, or the name of the option or variable."""

    value: object
    name: str = ""
    path: KeyPath = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sources:
    """The sources of setting values. `overrides` contains values by config key."""

    overrides: Mapping[str, object]
    environment: Mapping[str, str]
    file: YamlFile | None
    keys: FileKeys
    home: Path

    def find(self, setting: Setting) -> _Given | None:
        """Find the value of a setting in the source with the highest precedence. Returns None if it is unset."""
        key = setting.file_key
        option = self.overrides.get(key) if key else None
        in_file = self.keys.given.get(key) if key else None
        if option is not None and option != ():
            if in_file and setting.adds and isinstance(option, tuple) and isinstance(in_file.value, (list, str)):
                option = (*([in_file.value] if isinstance(in_file.value, str) else in_file.value), *option)
            return _Given(value=option, name=setting.option or f"{key}")
        if setting.env and (variable := self.environment.get(setting.env, "").strip()):
            return _Given(value=variable, name=setting.env)
        return _Given(value=in_file.value, path=in_file.path) if in_file else None


def load_settings(
    environment: Mapping[str, str], file: Path | None = None, overrides: Mapping[str, object] | None = None
) -> Settings:
    """Load the settings from `overrides`, `environment` and `file`.

    `overrides` maps config keys to values. The value None, the value () and an empty variable mean that the setting is
    unset. If `file` is None, reads `config.yaml` in the configuration folder, unless this file is missing. Raises a
    `ConfigError` that contains the variable, the option or `file:line`.
    """
    home = Path(environment.get("HOME") or Path.home())
    folder = _folder(environment, home)
    path = expand_home(file or folder / "config.yaml", home)
    # Toolsets resolve references themselves, so that a missing variable disables only one toolset.
    config = read_yaml_file(path, environment, raw_keys=("toolsets",)) if file or path.exists() else None
    _refuse_unset(config)
    keys = read_keys(config) if config else FileKeys()
    given = overrides or {}
    sources = _Sources(overrides=given, environment=environment, file=config, keys=keys, home=home)
    model = _group(ModelSettings, sources)
    listed = sources.find(setting_of(ModelSettings, "model_list_file")) is not None
    if not listed:
        model = model.model_copy(update={"model_list_file": folder / "model_list.yaml"})
    models = _model_list(model, environment, asked_for=listed)
    if sources.find(setting_of(ModelSettings, "model")) is None:
        model = model.model_copy(update={"model": _unchosen_model(model, models.entries, environment)})
    tools = _group(ToolSettings, sources)
    _check_files(tools)
    settings = Settings(
        model=model,
        investigation=_group(InvestigationSettings, sources),
        context=_context(sources),
        tools=tools,
        storage=_group(StorageSettings, sources),
        server=_group(ServerSettings, sources),
        investigations=_group(InvestigationsSettings, sources),
        alerts=_group(AlertSettings, sources).with_upstream_slack(),
        telemetry=_group(TelemetrySettings, sources),
        sources=_group(SourceSettings, sources),
        clusters=_clusters(sources),
        model_list=models.entries,
        left_out_models=models.left_out,
        config_file=config.path if config else None,
        config_lines=config.document.lines if config else {},
        ignored_keys=(*keys.ignored, *_unread_variables(environment, config)),
        api_key_is_option=bool(given.get("api_key")),
    )
    if unusable := settings.unusable_model():
        raise ConfigError(unusable)
    return settings


def expand_home(path: Path, home: Path) -> Path:
    """Return `path` with a leading `~` replaced by `home`."""
    return home.joinpath(*path.parts[1:]) if path.parts[:1] == ("~",) else path


def _folder(environment: Mapping[str, str], home: Path) -> Path:
    """Return the folder that contains the configuration. Raises `ConfigError` if a configured folder does not exist."""
    named = environment.get("HOLMES_CONFIGPATH_DIR", "").strip()
    folder = expand_home(Path(named) if named else DEFAULT_FOLDER, home)
    if named and not folder.is_dir():
        message = f"HOLMES_CONFIGPATH_DIR={named!r}: folder not found"
        raise ConfigError(message)
    return folder


def _unread_variables(environment: Mapping[str, str], config: YamlFile | None) -> tuple[str, ...]:
    """Return the set variables that HolmesGPT reads but Holmes does not.

    Variables that the config file refers to are omitted.
    """
    named = config.references() if config else frozenset()
    return tuple(name for name in upstream_variables(environment) if name not in named)


def _refuse_unset(file: YamlFile | None) -> None:
    for message in file.unset.values() if file else ():
        raise ConfigError(message)


def _context(sources: _Sources) -> ContextSettings:
    given = sources.find(setting_of(ContextSettings, "summary_model"))
    if sources.file and given and given.path and isinstance(given.value, Mapping):
        refuse_lost_keys(sources.file, given.path, given.value)
    return _group(ContextSettings, sources)


def _clusters(sources: _Sources) -> ClustersSettings:
    made = _group(ClustersSettings, sources)
    expanded = {
        name: each.model_copy(update={"kubeconfig": each.kubeconfig and expand_home(each.kubeconfig, sources.home)})
        for name, each in made.clusters.items()
    }
    return made.model_copy(update={"clusters": expanded})


def _group(group: type[Group], sources: _Sources) -> Group:
    """Create one group of settings with its values. Raises `ConfigError` for an invalid value."""
    values: dict[str, object] = {}
    places: dict[str, _Given] = {}
    for name, field in group.model_fields.items():
        given = sources.find(setting_of(group, name))
        if given is not None:
            if isinstance(given.value, str) and "\0" in given.value:
                message = f"{_place(given, (), sources)}: a NUL character is not allowed"
                raise ConfigError(message)
            places[name] = given
            values[name] = given.value
        elif isinstance(field.default, Path):
            values[name] = field.default
    try:
        made = group.model_validate(values)
    except ValidationError as error:
        raise ConfigError(_bad_value(group, error, places, sources)) from None
    return made.model_copy(update=_expanded_paths(made, sources.home))


def _expanded_paths(group: SettingsGroup, home: Path) -> dict[str, object]:
    """Return the fields that contain paths, with a leading `~` replaced by the home folder."""
    expanded: dict[str, object] = {}
    for name in type(group).model_fields:
        value = getattr(group, name)
        if isinstance(value, Path):
            expanded[name] = expand_home(value, home)
        elif isinstance(value, tuple) and any(isinstance(item, Path) for item in value):
            expanded[name] = tuple(expand_home(item, home) for item in value)
    return expanded


def _bad_value(
    group: type[SettingsGroup], error: ValidationError, places: Mapping[str, _Given], sources: _Sources
) -> str:
    name, *rest = first_location(error)
    given = places[str(name)]
    below = path_in_file(tuple(rest), given.value)
    value = value_at(given.value, below)
    kind = repr(group.model_fields[str(name)].annotation)
    hidden = "SecretStr" in kind or "ModelAccess" in kind or isinstance(value, Mapping) or (below and value is None)
    shown = "" if hidden else f"={_shorten(value)}"
    return f"{_place(given, below, sources)}{shown}: {reason(error)}"


def _place(given: _Given, below: KeyPath, sources: _Sources) -> str:
    """Return `file:line: key`, or the name of the option or variable."""
    if sources.file and given.path:
        return f"{sources.file.place(*given.path, *below)}: {name_of(given.path, below, given.value)}"
    return given.name


def _shorten(value: object, limit: int = 80) -> str:
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}…"


def _model_list(model: ModelSettings, environment: Mapping[str, str], *, asked_for: bool) -> ModelList:
    """Read the named models. A configured file must exist, but the default file is optional."""
    if not asked_for and not model.model_list_file.exists():
        return ModelList()
    return read_model_list(model.model_list_file, environment)


def _unchosen_model(model: ModelSettings, models: tuple[ModelEntry, ...], environment: Mapping[str, str]) -> str:
    """Return the model that is used if no model is configured."""
    if models:
        return models[0].name
    reachable = model.api_key or model.api_base or environment.get("OPENAI_API_KEY")
    return MODEL_WITH_KEY if reachable else BUILTIN_MODEL


def _check_files(tools: ToolSettings) -> None:
    for file in tools.custom_toolsets:
        if not file.is_file():
            message = f"custom toolset file {str(file)!r}: file not found"
            raise ConfigError(message)
