"""Puts variables in place of `{{ env.NAME }}` in a file of settings.

Refuses what YAML lets pass silently: a key that is there twice, and a top level that is not a mapping.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holmes.settings.errors import SettingsError
from holmes.yaml_documents import KeyPath, YamlDocument, YamlError, read_document

if TYPE_CHECKING:
    from pathlib import Path

_ENV_REFERENCE = re.compile(r"\{\{\s*env\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlFile:
    """The content of a file.

    `unset` says, for each place that refers to a variable that is not set, what to do; its text is left as it is.
    """

    path: Path
    content: Mapping[str, object]
    document: YamlDocument
    unset: Mapping[KeyPath, str] = field(default_factory=dict)

    def references(self) -> frozenset[str]:
        """The variables that the file refers to, whoever puts them in place."""
        return frozenset(_references_of(self.document.content))

    def place(self, *path: str | int) -> str:
        """`file:line` of a key, or of the nearest key above it that is known."""
        return self.document.place(path)


def read_yaml_file(path: Path, environment: Mapping[str, str], *, raw_keys: tuple[str, ...] = ()) -> YamlFile:
    """Read `path` and put variables in place of `{{ env.NAME }}`, except below the top-level `raw_keys`.

    Raises `SettingsError` when the file cannot be read, is not YAML, has a key twice, or is not a mapping.
    """
    try:
        document = read_document(path)
    except YamlError as error:
        raise SettingsError(str(error)) from None
    content = {} if document.content is None else document.content
    if not isinstance(content, Mapping):
        message = f"{path}: the file must hold keys and values, it holds a {type(content).__name__}"
        raise SettingsError(message)
    references = _References(document, environment)
    replaced = {
        str(key): value if key in raw_keys else references.replace(value, (str(key),)) for key, value in content.items()
    }
    return YamlFile(path=path, content=replaced, document=document, unset=references.unset)


class _References:
    """Puts variables in place of the references of one file, and collects those that are not set."""

    def __init__(self, document: YamlDocument, environment: Mapping[str, str]) -> None:
        self._document = document
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
            f"{self._document.place(path)}: {_spell(path)} refers to the variable {name!r}, which is not set: "
            "set it, or remove the reference"
        )
        return match[0]


def _references_of(value: object) -> set[str]:
    if isinstance(value, str):
        return set(_ENV_REFERENCE.findall(value))
    if isinstance(value, Mapping):
        value = tuple(value.values())
    return set().union(*map(_references_of, value)) if isinstance(value, Sequence) else set()


def _spell(path: KeyPath) -> str:
    return repr(".".join(str(part) for part in path))
