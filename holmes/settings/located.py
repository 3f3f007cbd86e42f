"""Reads a settings file, and describes errors in the file by line and key.

Replaces `{{ env.NAME }}` with the values of variables. Rejects duplicate keys and a top level that is not a mapping.
The error locations from pydantic contain internal names, for example the type of a condition. The error messages of
this module omit these names.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holmes.core.hooks import hook_keys
from holmes.values.errors import ConfigError
from holmes.yaml_documents import KeyPath, YamlDocument, YamlError, read_document

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import ValidationError

_ENV_REFERENCE = re.compile(r"\{\{\s*env\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlFile:
    """The content of a settings file.

    `unset` contains an error message for each reference to an unset variable, keyed by its path. These references
    remain in the content.
    """

    path: Path
    content: Mapping[str, object]
    document: YamlDocument
    unset: Mapping[KeyPath, str] = field(default_factory=dict)

    def references(self) -> frozenset[str]:
        """Return the names of all variables that the file refers to."""
        return frozenset(_references_of(self.document.content))

    def place(self, *path: str | int) -> str:
        """Return `file:line` of a key, or of the nearest known parent key."""
        return self.document.place(path)


def read_yaml_file(path: Path, environment: Mapping[str, str], *, raw_keys: tuple[str, ...] = ()) -> YamlFile:
    """Read `path` and replace `{{ env.NAME }}` with variables, except under the top-level `raw_keys`.

    Raises `ConfigError` for an unreadable file, invalid YAML, a duplicate key, or a top level that is not a mapping.
    """
    try:
        document = read_document(path)
    except YamlError as error:
        raise ConfigError(str(error)) from None
    content = {} if document.content is None else document.content
    if not isinstance(content, Mapping):
        message = f"{path}: the top level must be an object (keys and values), not a {type(content).__name__}"
        raise ConfigError(message)
    references = _References(document, environment)
    replaced = {
        str(key): value if key in raw_keys else references.replace(value, (str(key),)) for key, value in content.items()
    }
    return YamlFile(path=path, content=replaced, document=document, unset=references.unset)


class _References:
    """Replaces the references in one file with the values of variables, and collects references to unset variables."""

    def __init__(self, document: YamlDocument, environment: Mapping[str, str]) -> None:
        self._document = document
        self._environment = environment
        self.unset: dict[KeyPath, str] = {}

    def replace(self, value: object, path: KeyPath) -> object:
        """Replace all references in `value`."""
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
            f"{self._document.place(path)}: {spell(path)!r} refers to the unset variable {name!r}: "
            "set it, or remove the reference"
        )
        return match[0]


def _references_of(value: object) -> set[str]:
    if isinstance(value, str):
        return set(_ENV_REFERENCE.findall(value))
    if isinstance(value, Mapping):
        value = tuple(value.values())
    return set().union(*map(_references_of, value)) if isinstance(value, Sequence) else set()


_WORDS = {
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "string_type": "must be a string",
    "string_too_short": "must not be empty",
    "path_type": "must be a path",
    "missing": "is missing",
    "dict_type": "must be an object (keys and values)",
    "dataclass_type": "must be an object (keys and values)",
    "model_type": "must be an object (keys and values)",
    "model_attributes_type": "must be an object (keys and values)",
    "tuple_type": "must be a list",
    "union_tag_not_found": "the key 'type' is missing",
}


def reason_of(error: ValidationError) -> str:
    """Describe the first error in one clause, without the value, which may be a secret."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    if words := _WORDS.get(first["type"]):
        return words
    if first["type"] == "too_short" and isinstance(error.errors()[0]["input"], str):  # here, items are characters
        return f"must have at least {error.errors()[0]['ctx']['min_length']} characters"
    if first["type"] == "union_tag_invalid":  # "Input tag 'x' found using 'type' does not match ... expected tags: ..."
        return f"the type must be one of {first['msg'].rpartition(': ')[2]}"
    if first["type"] in {"extra_forbidden", "unexpected_keyword_argument"}:
        return "unknown key"
    if first["type"] == "string_pattern_mismatch":
        return f"must match the pattern {error.errors()[0]['ctx']['pattern']!r}"
    message = first["msg"].removeprefix("Value error, ")
    return f"must be {message.removeprefix('Input should be ')}" if message.startswith("Input should be ") else message


Location = tuple[str | int, ...]

_WRITTEN_AS: Mapping[str | int, tuple[KeyPath, ...]] = {
    "context_window_tokens": (("custom_args", "max_context_size"), ("context", "max_tokens")),
    "summary_model": (("summary_brain",),),
}
"""Fields whose path in the file differs from the field name."""


def mapping_at(file: YamlFile, path: KeyPath, value: object) -> dict[str, object]:
    """Return the mapping `value` at `path`, or an empty mapping for None. Raises `ConfigError` for any other value."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        message = f"{file.place(*path)}: {spell(path)!r} must be an object (keys and values)"
        raise ConfigError(message)
    return {str(key): item for key, item in value.items()}


def refuse_unknown_keys(file: YamlFile, path: KeyPath, keys: Mapping[str, object], valid: Sequence[str]) -> None:
    """Raise `ConfigError` for the first key under `path` that is not in `valid`."""
    for key in keys:
        if key not in valid:
            message = f"{file.place(*path, key)}: unknown key {spell((*path, key))!r}; {nearest(key, valid)}"
            raise ConfigError(message)


def nearest(key: str, valid: Sequence[str]) -> str:
    """Suggest a valid key for an unknown key."""
    near = difflib.get_close_matches(key, valid, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"valid keys: {', '.join(sorted(valid))}"


def complaint(file: YamlFile, path: KeyPath, raw: object, error: ValidationError) -> str:
    """Describe the first error at or under `path`, with its position and key.

    Omits the value, which may be a secret.
    """
    below = path_in_file(first_location(error), raw)
    return f"{file.place(*path, *below)}: {name_of(path, below, raw)}: {reason(error)}"


def first_location(error: ValidationError) -> Location:
    """Return the location of the first error, in pydantic's format."""
    return error.errors(include_url=False, include_input=False, include_context=False)[0]["loc"]


def reason(error: ValidationError) -> str:
    """Describe the first error in one clause."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    if first["type"] == "unexpected_keyword_argument":  # only in hooks, because all other keys are already checked
        key = str(first["loc"][-1])
        return f"unknown key; {nearest(key, hook_keys(first['loc'][:-1]))}"
    return reason_of(error)


def path_in_file(location: Location, raw: object) -> KeyPath:
    """Return the part of a location that exists in the file. A missing key is included as the last part."""
    path: list[str | int] = []
    value = raw
    for number, part in enumerate(location):
        written = next(
            (keys for keys in ((part,), *_WRITTEN_AS.get(part, ())) if value_at(value, keys) is not None), None
        )
        if written is not None:
            path.extend(written)
            value = value_at(value, written)
        elif isinstance(value, Mapping) and number == len(location) - 1 and not str(part).startswith("<"):
            path.append(part)
    return tuple(path)


def name_of(path: KeyPath, below: KeyPath, raw: object) -> str:
    """Return the name of a key for a message.

    A hook is identified by its id. `raw` is the value at `path`, and `below` is the path of the key within this value.
    """
    whole = (*path, *below)
    hooks = next((number for number, part in enumerate(whole) if part == "hooks"), len(whole))
    if hooks + 1 >= len(whole):
        return repr(spell(whole))
    hook = value_at(raw, below[: hooks + 2 - len(path)])
    given = hook.get("id") if isinstance(hook, Mapping) else None
    named = repr(given) if isinstance(given, str) else f"number {int(whole[hooks + 1]) + 1}"
    rest = whole[hooks + 2 :]
    return f"hook {named}: {spell(rest)!r}" if rest else f"hook {named}"


def value_at(raw: object, path: KeyPath) -> object:
    """Return the value at `path` in `raw`, or None."""
    for part in path:
        if isinstance(raw, Mapping):
            raw = raw.get(part)
        elif isinstance(raw, Sequence) and not isinstance(raw, str) and isinstance(part, int) and part < len(raw):
            raw = raw[part]
        else:
            return None
    return raw


def spell(path: KeyPath) -> str:
    """Join `path` with dots."""
    return ".".join(str(part) for part in path)
