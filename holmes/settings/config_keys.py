"""Maps keys of the config file to settings.

A setting has one key, and may have aliases that other systems document. `context:` and `hooks:` have the same meaning
under `execution:` and at the top level. Rejects unknown keys with a suggestion, and rejects settings that are given
twice.

Collects the names that only HolmesGPT supports, for one warning. Does not check toolset names, which are checked when
the toolsets are read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holmes.settings.located import mapping_at, nearest, refuse_unknown_keys, spell
from holmes.settings.setting import setting_of
from holmes.settings.settings import GROUPS
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holmes.settings.located import YamlFile
    from holmes.settings.setting import Setting
    from holmes.yaml_documents import KeyPath

UPSTREAM_KEYS = frozenset(
    {
        "additional_toolsets", "anchors", "custom_runbook_catalogs", "custom_runbooks", "custom_skill_paths",
        "custom_toolsets_from_cli", "fast_model", "github_owner", "github_pat", "github_query", "github_repository",
        "github_url", "jira_api_key", "jira_query", "jira_url", "jira_username", "log_level",
        "opsgenie_api_key", "opsgenie_query", "opsgenie_team_integration_key", "pagerduty_api_key",
        "pagerduty_incident_key", "pagerduty_user_email", "should_try_robusta_ai", "skill_repos",
    }
)  # fmt: skip
"""Keys of `config.yaml` that HolmesGPT supports but Holmes does not."""

_VARIABLES = frozenset(
    {
        "AZURE_AD_TOKEN", "AZURE_AD_TOKEN_AUTH", "CUSTOM_SKILL_PATHS", "DISABLE_PROMETHEUS_TOOLSET",
        "ENABLED_BY_DEFAULT_TOOLSETS", "MAX_OUTPUT_TOKEN_RESERVATION", "SENTRY_DSN", "SLACK_CHANNEL",
        "SLACK_TOKEN", "TOOL_CALL_SAFEGUARDS_ENABLED", "USE_LEGACY_KUBERNETES_LOGS",
    }
)  # fmt: skip
_PREFIX = "ROBUSTA_"


def upstream_variables(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the set variables that HolmesGPT reads but Holmes does not, sorted."""
    known = (name for name in environment if name in _VARIABLES or name.startswith(_PREFIX))
    return tuple(sorted(name for name in known if environment[name].strip()))


_SECTIONS = ("context", "compaction", "server", "investigations", "alerts")
_NESTED = "execution"
_NESTED_KEYS = ("context", "hooks")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyInFile:
    """A value and its path in the file."""

    path: KeyPath
    value: object


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKeys:
    """The content of a config file: the value for each setting key, and unsupported keys."""

    given: Mapping[str, KeyInFile] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()


def config_keys() -> tuple[str, ...]:
    """Return the keys of all settings, sorted, without aliases."""
    return tuple(sorted(setting.file_key for setting in _settings() if setting.file_key))


def read_keys(file: YamlFile) -> FileKeys:
    """Read the keys of `file`. Raises `ConfigError` for an unknown or repeated setting."""
    meanings = _meanings()
    given: dict[str, KeyInFile] = {}
    ignored: list[str] = []
    for path, value in _keys_of(file):
        spelled = spell(path[1:] if path[0] == _NESTED else path)
        meant = meanings.get(spelled)
        if meant is None:
            if spelled not in UPSTREAM_KEYS:
                message = f"{file.place(*path)}: unknown key {spell(path)!r}; {_advice(path, meanings)}"
                raise ConfigError(message)
            ignored.append(spelled)
        elif meant in given:
            other = spell(given[meant].path)
            message = f"{file.place(*path)}: {spell(path)!r} is an alias of {other!r}: remove one of them"
            raise ConfigError(message)
        elif value is not None:
            given[meant] = KeyInFile(path=path, value=value)
    return FileKeys(given=given, ignored=tuple(ignored))


def _settings() -> Iterator[Setting]:
    for group in GROUPS.values():
        for name in group.model_fields:
            yield setting_of(group, name)


def _meanings() -> dict[str, str]:
    """Map every accepted key to the key of its setting."""
    meanings: dict[str, str] = {}
    for setting in _settings():
        if key := setting.file_key:
            meanings.update(dict.fromkeys((key, *setting.aliases), key))
    return meanings


def _keys_of(file: YamlFile) -> Iterator[tuple[KeyPath, object]]:
    """Yield the keys that may be settings, in the order of the file, with sections expanded."""
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
    """Suggest the most similar key of the section. At the top level, also considers the keys of `context`."""
    section = spell(path[:-1]).removeprefix(f"{_NESTED}.")
    if section:
        names = [key.removeprefix(f"{section}.") for key in meanings if key.startswith(f"{section}.")]
        return nearest(str(path[-1]), names)
    own = [key for key in meanings if "." not in key]
    below = {key.removeprefix("context."): key for key in meanings if key.startswith("context.")}
    if path[-1] in below:
        return f"did you mean {below[str(path[-1])]!r}?"
    return nearest(str(path[-1]), own)
