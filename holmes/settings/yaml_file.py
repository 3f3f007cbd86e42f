"""Reads a YAML file and remembers the line of every key. Called by `load` and `model_list`.

Refuses what YAML lets pass silently: a key that is there twice, and a top level that is not a mapping.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import yaml

from holmes.settings.errors import SettingsError

if TYPE_CHECKING:
    from pathlib import Path

KeyPath: TypeAlias = tuple[str | int, ...]

_ENV_REFERENCE = re.compile(r"\{\{\s*env\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlFile:
    """The content of a file. `lines` holds the line (from 1) of each key and list item by its path.

    `unset` says, for each place that refers to a variable that is not set, what to do; its text is left as it is.
    """

    path: Path
    content: Mapping[str, object]
    lines: Mapping[KeyPath, int]
    unset: Mapping[KeyPath, str] = field(default_factory=dict)

    def place(self, *path: str | int) -> str:
        """`file:line` of a key, or of the nearest key above it that is known."""
        for length in range(len(path), 0, -1):
            if line := self.lines.get(path[:length]):
                return f"{self.path}:{line}"
        return str(self.path)


def read_yaml_file(path: Path, environment: Mapping[str, str], *, raw_keys: tuple[str, ...] = ()) -> YamlFile:
    """Read `path` and put variables in place of `{{ env.NAME }}`, except below the top-level `raw_keys`.

    Raises `SettingsError` when the file cannot be read, is not YAML, has a key twice, or is not a mapping.
    """
    text = _read_text(path)
    lines: dict[KeyPath, int] = {}
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if root is not None:
            _collect_lines(root, (), lines, path)
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise SettingsError(_broken_yaml(path, error)) from None
    if content is None:
        content = {}
    if not isinstance(content, Mapping):
        message = f"{path}: the file must hold keys and values, it holds a {type(content).__name__}"
        raise SettingsError(message)
    bare = YamlFile(path=path, content={str(key): value for key, value in content.items()}, lines=lines)
    reader = _References(bare, environment)
    replaced = {key: value if key in raw_keys else reader.replace(value, (key,)) for key, value in bare.content.items()}
    return YamlFile(path=path, content=replaced, lines=lines, unset=reader.unset)


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        message = f"{path}: there is no such file"
    except UnicodeDecodeError as error:
        message = f"{path}: the file is not UTF-8 text (byte {error.start})"
    except OSError as error:
        message = f"{path}: the file cannot be read: {error.strerror}"
    raise SettingsError(message)


def _broken_yaml(path: Path, error: yaml.YAMLError) -> str:
    reason = str(error).splitlines()[0]
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        where = f":{error.problem_mark.line + 1}"
        return f"{path}{where}: the file is not valid YAML: {error.problem or reason}"
    return f"{path}: the file is not valid YAML: {reason}"


def _collect_lines(node: yaml.Node, path: KeyPath, lines: dict[KeyPath, int], file: Path) -> None:
    if isinstance(node, yaml.MappingNode):
        for key_node, value_node in node.value:
            key = (*path, str(key_node.value))
            line = key_node.start_mark.line + 1
            if key in lines and key_node.value != "<<":
                message = f"{file}:{line}: the key {key_node.value!r} is there already, in line {lines[key]}"
                raise SettingsError(message)
            lines[key] = line
            _collect_lines(value_node, key, lines, file)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            lines[(*path, index)] = item.start_mark.line + 1
            _collect_lines(item, (*path, index), lines, file)


class _References:
    """Puts variables in place of the references of one file, and collects those that are not set."""

    def __init__(self, file: YamlFile, environment: Mapping[str, str]) -> None:
        self._file = file
        self._environment = environment
        self.unset: dict[KeyPath, str] = {}

    def replace(self, value: object, path: KeyPath) -> object:
        """`value` with everything below it replaced."""
        if isinstance(value, str):
            return _ENV_REFERENCE.sub(lambda match: self._variable(match, path), value)
        if isinstance(value, Mapping):
            return {key: self.replace(item, (*path, str(key))) for key, item in value.items()}
        if isinstance(value, Sequence):
            return [self.replace(item, (*path, index)) for index, item in enumerate(value)]
        return value

    def _variable(self, match: re.Match[str], path: KeyPath) -> str:
        name = match[1]
        if name in self._environment:
            return self._environment[name]
        self.unset[path] = (
            f"{self._file.place(*path)}: {_spell(path)} refers to the variable {name!r}, which is not set: "
            "set it, or remove the reference"
        )
        return match[0]


def _spell(path: KeyPath) -> str:
    return repr(".".join(str(part) for part in path))
