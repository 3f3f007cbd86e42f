"""Which key of the config file means which setting. Called by `load`.

A setting has one key of its own, and aliases that other systems document. Below `execution:`, `context:` and `hooks:`
mean what they mean at the top level. Refuses unknown keys, with the nearest valid one, and a setting that is given
twice; keys that HolmesGPT knows and Holmes does not have yet are collected for one warning instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holmes.settings.errors import SettingsError
from holmes.settings.located import mapping_at, nearest, refuse_unknown_keys, spell
from holmes.settings.setting import setting_of
from holmes.settings.settings import GROUPS
from holmes.settings.upstream import UPSTREAM_KEYS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holmes.settings.setting import Setting
    from holmes.settings.yaml_file import YamlFile
    from holmes.yaml_documents import KeyPath

_SECTIONS = ("context", "compaction", "server", "investigations", "alerts")
_NESTED = "execution"
_NESTED_KEYS = ("context", "hooks")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyInFile:
    """A value and where it stands."""

    path: KeyPath
    value: object


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKeys:
    """What a config file says: values by the setting's own key, and the keys that do nothing yet."""

    given: Mapping[str, KeyInFile] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()


def config_keys() -> tuple[str, ...]:
    """The own keys of all settings, sorted."""
    return tuple(sorted(setting.file_key for setting in _settings() if setting.file_key))


def read_keys(file: YamlFile) -> FileKeys:
    """What `file` says. Raises `SettingsError` for a key that nobody knows, or a setting that is given twice."""
    meanings = _meanings()
    given: dict[str, KeyInFile] = {}
    ignored: list[str] = []
    for path, value in _keys_of(file):
        spelled = spell(path[1:] if path[0] == _NESTED else path)
        meant = meanings.get(spelled)
        if meant is None:
            if spelled not in UPSTREAM_KEYS:
                message = f"{file.place(*path)}: unknown key {spell(path)!r}; {_advice(path, meanings)}"
                raise SettingsError(message)
            ignored.append(spelled)
        elif meant in given:
            other = spell(given[meant].path)
            message = f"{file.place(*path)}: {spell(path)!r} is another name of {other!r}: remove one of them"
            raise SettingsError(message)
        elif value is not None:
            given[meant] = KeyInFile(path=path, value=value)
    return FileKeys(given=given, ignored=tuple(ignored))


def _settings() -> Iterator[Setting]:
    for group in GROUPS.values():
        for name in group.model_fields:
            yield setting_of(group, name)


def _meanings() -> dict[str, str]:
    """The setting's own key for every key that is accepted."""
    meanings: dict[str, str] = {}
    for setting in _settings():
        if key := setting.file_key:
            meanings.update(dict.fromkeys((key, *setting.aliases), key))
    return meanings


def _keys_of(file: YamlFile) -> Iterator[tuple[KeyPath, object]]:
    """The keys that may be settings, in the order of the file; sections are opened."""
    for key, value in file.content.items():
        if key == _NESTED:
            below = mapping_at(file, (key,), value)
            refuse_unknown_keys(file, (key,), below, _NESTED_KEYS)
            for name, item in below.items():
                yield from _opened(file, (key, name), item)
        else:
            yield from _opened(file, (key,), value)


def _opened(file: YamlFile, path: KeyPath, value: object) -> Iterator[tuple[KeyPath, object]]:
    if path[-1] not in _SECTIONS:
        yield path, value
        return
    for key, item in mapping_at(file, path, value).items():
        yield (*path, key), item


def _advice(path: KeyPath, meanings: Mapping[str, str]) -> str:
    """The nearest key of the same section; at the top level also those that belong below `context`."""
    section = spell(path[:-1]).removeprefix(f"{_NESTED}.")
    if section:
        names = [key.removeprefix(f"{section}.") for key in meanings if key.startswith(f"{section}.")]
        return nearest(str(path[-1]), names)
    own = [key for key in meanings if "." not in key]
    below = {key.removeprefix("context."): key for key in meanings if key.startswith("context.")}
    if path[-1] in below:
        return f"did you mean {below[str(path[-1])]!r}?"
    return nearest(str(path[-1]), own)
