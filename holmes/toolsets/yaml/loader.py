"""Reads toolset files.

`read_toolsets` returns the entries of a file, the catalogue merges overrides, and `build_definition` checks one entry.
Invalid YAML or an unknown top-level key raises `ConfigError`. Any other error disables only its toolset. Its message
contains the file and line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from holmes.values.errors import ConfigError
from holmes.values.expressions import expression
from holmes.yaml_documents import KeyPath, YamlDocument, YamlError, read_document

if TYPE_CHECKING:
    import re
    from pathlib import Path

_OLD_NAMES = {"additional_instructions": "llm_instructions", "restricted_tools": "approval_required_tools"}
_OPTIONAL = frozenset({"kind", "object", "program"})
_TOP_LEVEL_KEYS = ("toolsets", "mcp_servers")
_MCP = "mcp"
_ENVIRONMENT = expression(r"\{\{-?\s*env\.([A-Za-z_]\w*)\s*-?\}\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenValue:
    """The value of one toolset key, with its location in the file."""

    value: object
    document: YamlDocument
    path: KeyPath


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenToolset:
    """A toolset entry before validation. `source` is `file:line`.

    The values in `keys` keep their locations after a merge.
    """

    name: str
    source: str
    keys: Mapping[str, WrittenValue]

    def overridden_by(self, other: WrittenToolset) -> WrittenToolset:
        """Return a copy of the entry with the keys of `other`. `config` is merged key by key."""
        merged = {**self.keys, **other.keys}
        if "config" in self.keys and "config" in other.keys:
            both = _merged(self.keys["config"].value, other.keys["config"].value)
            merged["config"] = replace(other.keys["config"], value=both)
        return replace(self, keys=merged)

    def place(self, location: KeyPath) -> str:
        """Return `file:line` of the key at `location` in the entry."""
        written = self.keys.get(str(location[0])) if location else None
        if written is None:
            return self.source
        # After an index, pydantic adds the name of a union variant, which is not a key in the file.
        kind = next((n + 2 for n, step in enumerate(location) if step in {"prerequisites", "transformers"}), 0)
        steps = (*location[1:kind], *location[kind + 1 :])
        path = written.path
        for step in steps:
            path = (*path, step) if (*path, step) in written.document.lines else path
        return written.document.place(path)

    @property
    def is_server(self) -> bool:
        """Whether the entry is an MCP server."""
        return "type" in self.keys and self.keys["type"].value == _MCP

    @property
    def is_optional(self) -> bool:
        """Whether the toolset is for software that many clusters or machines do not have."""
        wanted = self.keys["prerequisites"].value if "prerequisites" in self.keys else None
        found = wanted if isinstance(wanted, list) and "tools" in self.keys else ()
        return any(isinstance(each, Mapping) and each.keys() & _OPTIONAL for each in found)

    def values(self) -> dict[str, object]:
        return {key: written.value for key, written in self.keys.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsetFile:
    """The entries of one file in order, and warnings about the file."""

    toolsets: tuple[WrittenToolset, ...]
    warnings: tuple[str, ...]


def read_toolsets(path: Path) -> ToolsetFile:
    """Read a toolset file. Raises `ConfigError` for invalid YAML and unknown top-level keys."""
    try:
        document = read_document(path)
    except YamlError as error:
        raise ConfigError(str(error)) from error
    return toolsets_of(document)


def toolsets_of(document: YamlDocument) -> ToolsetFile:
    """Return the entries of a parsed toolset file. Raises `ConfigError`."""
    content = document.content
    if content is None:
        return ToolsetFile(toolsets=(), warnings=(f"{document.source} is empty",))
    if not isinstance(content, Mapping):
        raise ConfigError(f"{document.place(())}: a toolset file must be a mapping with the key 'toolsets'")
    for key in content:
        if key not in _TOP_LEVEL_KEYS:
            raise ConfigError(f"{document.place((str(key),))}: {unknown_key(str(key), _TOP_LEVEL_KEYS)}")
    warnings: list[str] = []
    toolsets = content.get("toolsets")
    if isinstance(toolsets, Sequence) and not isinstance(toolsets, str):
        warnings.append(
            f"{document.place(('toolsets',))}: 'toolsets' as a list is deprecated; use a mapping from name to toolset"
        )
    servers = written_servers(content.get("mcp_servers"), document, ("mcp_servers",))
    entries = (*written_toolsets(toolsets, document, ("toolsets",)), *servers)
    return ToolsetFile(toolsets=entries, warnings=tuple(warnings))


def written_servers(servers: object, document: YamlDocument, path: KeyPath) -> tuple[WrittenToolset, ...]:
    """Return the entries under `mcp_servers:` as toolsets of type `mcp`. Raises `ConfigError`."""
    if servers is None:
        return ()
    if not isinstance(servers, Mapping):
        raise ConfigError(f"{document.place(path)}: 'mcp_servers' must be a mapping from name to server")
    kind = WrittenValue(value=_MCP, document=document, path=path)
    entries = (_written(str(name), entry, document, (*path, str(name))) for name, entry in servers.items())
    return tuple(replace(entry, keys={**entry.keys, "type": kind}) for entry in entries)


def written_toolsets(toolsets: object, document: YamlDocument, path: KeyPath) -> tuple[WrittenToolset, ...]:
    """Return the entries under `toolsets:`, a mapping or a deprecated list. Raises `ConfigError`."""
    if toolsets is None:
        return ()
    if isinstance(toolsets, Mapping):
        return tuple(_written(str(name), entry, document, (*path, str(name))) for name, entry in toolsets.items())
    if isinstance(toolsets, Sequence) and not isinstance(toolsets, str):
        return tuple(_listed(entry, document, (*path, index)) for index, entry in enumerate(toolsets))
    raise ConfigError(f"{document.place(path)}: 'toolsets' must be a mapping from name to toolset")


def _listed(entry: object, document: YamlDocument, path: KeyPath) -> WrittenToolset:
    name = entry.get("name") if isinstance(entry, Mapping) else None
    if not isinstance(name, str):
        raise ConfigError(f"{document.place(path)}: a toolset in a list requires a 'name'")
    return _written(name, entry, document, path)


def _written(name: str, entry: object, document: YamlDocument, path: KeyPath) -> WrittenToolset:
    source = document.place(path)
    if entry is None:
        entry = {}
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{source}: the toolset {name!r} must be a mapping with keys such as 'enabled' and 'tools'")
    keys = {
        str(key): WrittenValue(value=value, document=document, path=(*path, str(key))) for key, value in entry.items()
    }
    return WrittenToolset(name=name, source=source, keys=keys)


def with_current_names(written: WrittenToolset) -> tuple[WrittenToolset, tuple[str, ...]]:
    """Rename the deprecated keys of an entry, and return a warning for each. `url` of a server moves to `config`."""
    keys: dict[str, WrittenValue] = {}
    warnings: list[str] = []
    for key, value in written.keys.items():
        current = _OLD_NAMES.get(key, key)
        if current != key:
            place = value.document.place(value.path)
            warnings.append(f"{place}: {key!r} of toolset {written.name!r} is deprecated; use {current!r}")
        keys[current] = value
    url = keys.pop("url", None) if written.is_server else None
    if url is not None:
        config = keys.get("config", replace(url, value={}))
        known = config.value if isinstance(config.value, Mapping) else {}
        keys["config"] = replace(config, value={"url": url.value, **known})
        warnings.append(f"{url.document.place(url.path)}: 'url' of MCP server {written.name!r} belongs below 'config'")
    return replace(written, keys=keys), tuple(warnings)


def unknown_key(key: str, known: Sequence[str]) -> str:
    """Return the message for an unknown key, with the most similar valid key."""
    nearest = get_close_matches(key, known, n=1, cutoff=0.5)
    hint = f"did you mean {nearest[0]!r}?" if nearest else f"valid keys: {', '.join(known)}"
    return f"unknown key {key!r}; {hint}"


def declared_variable_names(written: Sequence[WrittenToolset]) -> frozenset[str]:
    """Find the variables in every `{{ env.NAME }}` and in `prerequisites: [{env: [NAME]}]`."""
    return frozenset(name for toolset in written for value in toolset.keys.values() for name in _declared(value.value))


def _declared(value: object) -> set[str]:
    if isinstance(value, str):
        return set(_ENVIRONMENT.findall(value))
    if isinstance(value, Mapping):
        required = value.get("env")
        names = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
        return names.union(*(_declared(item) for item in value.values()))
    if isinstance(value, Sequence):
        return set().union(*(_declared(item) for item in value))
    return set()


def with_environment(value: object, variables: Mapping[str, str], *, key: str = "") -> object:
    """Replace every `{{ env.NAME }}` in `value`, except in commands.

    In commands, the renderer replaces it with a reference, which does not contain the value. Raises `ConfigError` for a
    variable that is not set.
    """
    if isinstance(value, str):
        return (
            value if key in {"command", "script"} else _ENVIRONMENT.sub(lambda found: _look_up(found, variables), value)
        )
    if isinstance(value, Mapping):
        return {name: with_environment(item, variables, key=str(name)) for name, item in value.items()}
    if isinstance(value, list):
        return [with_environment(item, variables) for item in value]
    return value


def _look_up(found: re.Match[str], variables: Mapping[str, str]) -> str:
    name = found.group(1)
    if name not in variables:
        raise ConfigError(f"the environment variable {name!r} is not set, but the toolset uses {{{{ env.{name} }}}}")
    return variables[name]


def _merged(base: object, override: object) -> object:
    if not isinstance(base, Mapping) or not isinstance(override, Mapping):
        return override
    return {**base, **{key: _merged(base.get(key), value) for key, value in override.items()}}
