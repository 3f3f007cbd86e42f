"""Reads the Kubernetes objects in YAML and JSON files: several documents in a file, lists, lists of lists.

Files that are not Kubernetes objects (values of a chart, a kustomization) are passed over; broken ones are refused with
file and line. The values are taken as Kubernetes takes them: a timestamp stays text.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import text
from holmes.snapshot.assembly import Assembly, assemble
from holmes.snapshot.recording import inside, parsed_json
from holmes.values.errors import ConfigError
from holmes.yaml_documents import YamlError, refuse_deep

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from holmes.snapshot.recording import Recording
    from holmes.values.json_types import JsonObject, JsonValue

ENDINGS: Final = (".json", ".yaml", ".yml")
_FILE_LIMIT_BYTES: Final = 256 * 1024 * 1024
_YAML_LIMIT_VALUES: Final = 3_000_000
_YAML_LIMIT_LEVELS: Final = 1_000


def load_manifests(path: Path) -> Recording:
    """The objects in a file, or in all files of a folder and the folders in it. Raises `ConfigError`."""
    files = manifest_files(path)
    objects = [item for file in files for item in objects_in(file)]
    if not objects:
        what = f"{len(files)} files were read" if files else "there is no .yaml, .yml or .json file"
        raise ConfigError(f"{str(path)!r} holds neither a recording nor Kubernetes objects: {what}")
    return assemble(Assembly(source=path, context="manifests", objects=objects, changed_at=changed_at(files)))


def manifest_files(path: Path) -> list[Path]:
    """The files to read, in order; hidden ones, and links to other places, are left out."""
    if path.is_file():
        return [path]
    found = (file for file in path.rglob("*") if file.suffix in ENDINGS and file.is_file() and inside(path, file))
    return sorted(file for file in found if not any(p.startswith(".") for p in file.relative_to(path).parts))


def changed_at(files: Sequence[Path]) -> datetime:
    """When the newest of these files was changed, to the second."""
    newest = max((file.stat().st_mtime for file in files), default=0.0)
    return datetime.fromtimestamp(int(newest), UTC)


def objects_in(file: Path) -> Iterator[JsonObject]:
    """Every object in a file, lists taken apart. Raises `ConfigError` with the place."""
    for document in _documents(file):
        yield from _objects(document)


def _objects(document: JsonValue, kind: str = "", api_version: str = "") -> Iterator[JsonObject]:
    """The objects of a document; those in a typed list take their kind from it."""
    if isinstance(document, list):
        for each in document:
            yield from _objects(each, kind, api_version)
        return
    if not isinstance(document, dict):
        return
    own_kind, own_version = text(document, "kind") or kind, text(document, "apiVersion") or api_version
    items = document.get("items")
    if own_kind.endswith("List") and isinstance(items, list):
        member = own_kind.removesuffix("List")
        yield from _objects(items, member, own_version if member else "")
    elif own_kind and own_version and text(document, "metadata", "name"):
        yield {"apiVersion": own_version, "kind": own_kind, **document}


def _documents(file: Path) -> list[JsonValue]:
    try:
        size = file.stat().st_size
        content = file.read_bytes() if size <= _FILE_LIMIT_BYTES else b""
    except OSError as error:
        raise ConfigError(f"{file}: the file cannot be read: {error.strerror}") from error
    if size > _FILE_LIMIT_BYTES:
        raise ConfigError(f"{file}: the file is larger than {_FILE_LIMIT_BYTES // 1024 // 1024} MB")
    if file.suffix == ".json":
        return [_json(file, content)]
    return _yaml(file, content)


def _json(file: Path, content: bytes) -> JsonValue:
    return parsed_json(file, content)


def _yaml(file: Path, content: bytes) -> list[JsonValue]:
    # Imported here: a recording holds no YAML.
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # one of the two, at run time
        """Leaves timestamps as they are written."""

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    try:
        refuse_deep(content, source=str(file), max_levels=_YAML_LIMIT_LEVELS)
        documents: list[JsonValue] = list(yaml.load_all(content, Loader))
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


def _check_values(file: Path, documents: list[JsonValue]) -> None:
    """Make every key a text, as JSON has it, and raise `ConfigError` for values that JSON does not have.

    The same for a few lines whose aliases stand for millions of values, or for themselves.
    """
    left = _YAML_LIMIT_VALUES
    waiting: list[JsonValue] = list(documents)
    while waiting:
        value = waiting.pop()
        left -= 1
        if left < 0:
            raise ConfigError(f"{file}: the file has too many values once its aliases are put in place")
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                _name_keys(value)
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
        elif not isinstance(value, str | int | float | None):
            raise ConfigError(f"{file}: the file has a value that JSON does not have ({type(value).__name__})")


def _name_keys(value: dict[str, JsonValue]) -> None:
    """In place, because an alias may stand for the same object elsewhere."""
    named = {_name(key): each for key, each in value.items()}
    value.clear()
    value.update(named)


def _name(key: object) -> str:
    return key if isinstance(key, str) else json.dumps(key, default=str)
