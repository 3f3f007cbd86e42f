"""Parses JSON and YAML files with Kubernetes objects. A file that is not valid is an error with its position.

Like kubectl, it rejects duplicate keys. Values that JSON does not support are rejected too, and so are files that are
too large or nested too deeply.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Final

from holmes.snapshot.recorded_logs import as_utf8
from holmes.snapshot.recording import parsed_json
from holmes.values.errors import ConfigError
from holmes.yaml_documents import YamlError, refuse_deep

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import yaml

    from holmes.values.json_types import JsonValue

FILE_LIMIT_BYTES: Final = 256 * 1024 * 1024
_YAML_LIMIT_BYTES: Final = 32 * 1024 * 1024
"""Parsing YAML takes about a hundred times its size in memory."""
_YAML_LIMIT_VALUES: Final = 3_000_000
_YAML_LIMIT_LEVELS: Final = 1_000


def documents_of(path: Path, file: Path) -> list[JsonValue]:
    """Return all documents in the file at `path`.

    Raises `ConfigError` with one line that names the file, as `file`, and the position.
    """
    try:
        size = path.stat().st_size
        content = as_utf8(path.read_bytes()) if size <= FILE_LIMIT_BYTES else b""
    except OSError as error:
        raise ConfigError(f"{file}: cannot read the file: {error.strerror}") from error
    if size > FILE_LIMIT_BYTES:
        raise ConfigError(f"{file}: the file is larger than {FILE_LIMIT_BYTES // 1024 // 1024} MB")
    if path.suffix == ".json":
        return _json(file, content)
    if size > _YAML_LIMIT_BYTES:
        limit = _YAML_LIMIT_BYTES // 1024 // 1024
        raise ConfigError(f"{file}: a YAML file may have at most {limit} MB; write it with `-o json`")
    return _yaml(file, content)


def _json(file: Path, content: bytes) -> list[JsonValue]:
    """Parse a document, or several documents in a row, as several runs of kubectl append them to one file."""

    def unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
        found = dict(pairs)
        if len(found) < len(pairs):
            duplicate = Counter(key for key, _ in pairs).most_common(1)[0][0]
            raise ConfigError(f"{file}: duplicate key {duplicate!r}; remove one of them")
        return found

    try:
        return [parsed_json(file, content, unique)]
    except ConfigError as error:
        if not isinstance(error.__cause__, json.JSONDecodeError) or not error.__cause__.msg.startswith("Extra data"):
            raise
    return list(_in_a_row(file, content, json.JSONDecoder(object_pairs_hook=unique)))


def _in_a_row(file: Path, content: bytes, decoder: json.JSONDecoder) -> Iterator[JsonValue]:
    text = content.decode("utf-8", "replace")
    position = 0
    while position < len(text):
        try:
            document, position = decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            raise ConfigError(
                f"{file}:{error.lineno}:{error.colno}: the file is not valid JSON: {error.msg}"
            ) from error
        yield document
        while position < len(text) and text[position].isspace():
            position += 1


def _yaml(file: Path, content: bytes) -> list[JsonValue]:
    # Imported here because a recording does not contain YAML.
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # either class at run time
        """A YAML loader that does not convert timestamps."""

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    try:
        refuse_deep(content, source=str(file), max_levels=_YAML_LIMIT_LEVELS)
        documents: list[JsonValue] = []
        loader = Loader(content)
        try:
            while loader.check_node():
                node = loader.get_node()
                _refuse_duplicates(file, node)
                documents.append(loader.construct_document(node))
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{file}:{mark.line + 1}" if mark else str(file)
        raise ConfigError(f"{place}: the file is not valid YAML: {error.problem or error.context}") from error
    except YamlError as error:
        raise ConfigError(str(error)) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{file}: the file is not valid YAML: {' '.join(str(error).split())}") from error
    _check_values(file, documents)
    return documents


def _refuse_duplicates(file: Path, root: yaml.Node) -> None:
    """Raise `ConfigError` for a key that occurs twice in a mapping. kubectl rejects such manifests too."""
    waiting, seen = [root], {id(root)}
    while waiting:
        node, lines = waiting.pop(), dict[tuple[str, str], int]()
        pairs = node.value if isinstance(node.value, list) else []
        for pair in pairs:
            parts = pair if isinstance(pair, tuple) else (pair,)
            waiting += [part for part in parts if id(part) not in seen]
            seen.update(map(id, parts))
            if len(parts) == 1 or not isinstance(parts[0].value, str) or parts[0].value == "<<":
                continue
            key, line = (parts[0].tag, parts[0].value), parts[0].start_mark.line + 1
            if key in lines:
                raise ConfigError(f"{file}:{line}: duplicate key {key[1]!r}; first defined in line {lines[key]}")
            lines[key] = line


def _check_values(file: Path, documents: list[JsonValue]) -> None:
    """Convert every key to a string, as in JSON.

    Raises `ConfigError` for values that JSON does not support, and for aliases that expand to millions of values or
    refer to themselves.
    """
    left = _YAML_LIMIT_VALUES
    waiting: list[JsonValue] = list(documents)
    while waiting:
        value = waiting.pop()
        left -= 1
        if left < 0:
            raise ConfigError(f"{file}: the file has too many values after its aliases are expanded")
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                _name_keys(value)
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
        elif not isinstance(value, str | int | float | None):
            raise ConfigError(f"{file}: the file has a value that JSON does not support ({type(value).__name__})")


def _name_keys(value: dict[str, JsonValue]) -> None:
    """Convert the keys in place, because several aliases can refer to the same object."""
    named = {_name(key): each for key, each in value.items()}
    value.clear()
    value.update(named)


def _name(key: object) -> str:
    return key if isinstance(key, str) else json.dumps(key, default=str)
