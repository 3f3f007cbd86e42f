"""Loads a recording, a `kubectl cluster-info dump`, or manifests.

A dump (`kubectl cluster-info dump --output-directory`) contains objects as JSON or YAML. It contains only a few kinds
of objects, and no Secrets. Its logs lack timestamps, so they cannot be filtered by time.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import text
from holmes.snapshot.assembly import Assembly, assemble
from holmes.snapshot.recording import LogKey, RecordedLog, inside, is_recording, load_recording, parsed_json
from holmes.values.errors import ConfigError
from holmes.values.expressions import expression
from holmes.yaml_documents import YamlError, refuse_deep

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from holmes.snapshot.recording import Recording
    from holmes.values.json_types import JsonObject, JsonValue

_MARK: Final = expression(rb"^==== (START|END) logs for container (\S+) of pod ([^/\s]+)/(\S+) ====\n", re.MULTILINE)


def _is_cluster_dump(folder: Path) -> bool:
    """Return whether `folder` has the files of a dump: nodes at the top level, and pods in namespace folders."""
    return any((folder / f"nodes.{ending}").is_file() for ending in ("json", "yaml")) and any(
        (below / f"pods.{ending}").is_file() for below in folder.iterdir() for ending in ("json", "yaml")
    )


def _load_cluster_dump(folder: Path) -> Recording:
    """Load a dump as a recording. Raises `ConfigError` for malformed files."""
    files = _manifest_files(folder)
    objects = [item for file in files for item in _objects_in(file)]
    logs = {key: log for file in _log_files(folder) for key, log in _logs_in(file)}
    namespaces = {file.parent.name for file in files if file.stem == "pods" and file.parent != folder}
    return assemble(
        Assembly(
            source=folder,
            context="cluster-info dump",
            objects=objects,
            changed_at=_changed_at(files),
            namespaces=tuple(sorted(namespaces)),
            logs=logs,
        )
    )


def _log_files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.glob("*/*/logs.txt") if file.is_file() and inside(folder, file))


def _logs_in(file: Path) -> Iterator[tuple[LogKey, RecordedLog]]:
    """Yield the container logs of a pod, which are all in one file."""
    content = file.read_bytes()
    start: tuple[bytes, int] | None = None
    for mark in _MARK.finditer(content):
        word, container, namespace, pod = mark.groups()
        if word == b"START":
            start = container, mark.end()
        elif start is not None and start[0] == container:
            key = LogKey(namespace=namespace.decode(), pod=pod.decode(), container=container.decode())
            size = mark.start() - start[1]
            yield key, RecordedLog(path=file, offset_bytes=start[1], size_bytes=size, timestamps=False)
            start = None


def load_snapshot(path: Path) -> Recording:
    """Load the folder or file at `path`. Reads files, so call it in a thread.

    Raises `ConfigError` with a one-line message that contains the file and, if known, the position.
    """
    try:
        if not path.exists():
            raise ConfigError(f"{str(path)!r} does not exist; expected a recording, a cluster dump or manifests")
        if is_recording(path):
            return load_recording(path)
        if path.is_dir() and _is_cluster_dump(path):
            return _load_cluster_dump(path)
        return _load_manifests(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(f"{error.filename or path}: cannot read the file: {reason}") from error


_ENDINGS: Final = (".json", ".yaml", ".yml")
_FILE_LIMIT_BYTES: Final = 256 * 1024 * 1024
_YAML_LIMIT_VALUES: Final = 3_000_000
_YAML_LIMIT_LEVELS: Final = 1_000


def _load_manifests(path: Path) -> Recording:
    """Load the objects from a file, or from all files in a folder and its subfolders. Raises `ConfigError`."""
    files = _manifest_files(path)
    objects = [item for file in files for item in _objects_in(file)]
    if not objects:
        what = f"{len(files)} files were read" if files else "no .yaml, .yml or .json file found"
        raise ConfigError(f"{str(path)!r} contains neither a recording nor Kubernetes objects: {what}")
    return assemble(Assembly(source=path, context="manifests", objects=objects, changed_at=_changed_at(files)))


def _manifest_files(path: Path) -> list[Path]:
    """Return the sorted files to read, without hidden files or links that lead outside the folder."""
    if path.is_file():
        return [path]
    found = (file for file in path.rglob("*") if file.suffix in _ENDINGS and file.is_file() and inside(path, file))
    return sorted(file for file in found if not any(p.startswith(".") for p in file.relative_to(path).parts))


def _changed_at(files: Sequence[Path]) -> datetime:
    """Return the newest modification time of these files, to the second."""
    newest = max((file.stat().st_mtime for file in files), default=0.0)
    return datetime.fromtimestamp(int(newest), UTC)


def _objects_in(file: Path) -> Iterator[JsonObject]:
    """Read every object in a file, including the items of lists. Raises `ConfigError` with the position."""
    for document in _documents(file):
        yield from _objects(document)


def _objects(document: JsonValue, kind: str = "", api_version: str = "") -> Iterator[JsonObject]:
    """Return the objects of a document. The kind of objects in a typed list is derived from the list."""
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
        raise ConfigError(f"{file}: cannot read the file: {error.strerror}") from error
    if size > _FILE_LIMIT_BYTES:
        raise ConfigError(f"{file}: the file is larger than {_FILE_LIMIT_BYTES // 1024 // 1024} MB")
    if file.suffix == ".json":
        return [_json(file, content)]
    return _yaml(file, content)


def _json(file: Path, content: bytes) -> JsonValue:
    return parsed_json(file, content)


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
