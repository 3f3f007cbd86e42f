"""Loads a recording, a `kubectl cluster-info dump`, or manifests.

A dump (`kubectl cluster-info dump --output-directory`) contains objects as JSON or YAML. It contains only a few kinds
of objects, and no Secrets. Its logs lack timestamps, so they cannot be filtered by time.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import at, text
from holmes.snapshot.assembly import Assembly, assemble
from holmes.snapshot.recording import LogKey, RecordedLog, inside, is_recording, load_recording, parsed_json
from holmes.values.errors import ConfigError
from holmes.values.expressions import expression
from holmes.yaml_documents import YamlError, refuse_deep

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import yaml

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
    found = _read_all(folder, files)
    logs = {key: log for file in _log_files(folder) for key, log in _logs_in(file)}
    namespaces = {file.parent.name for file in files if file.stem == "pods" and file.parent != folder}
    return assemble(
        Assembly(
            source=folder,
            context="cluster-info dump",
            objects=found.objects,
            changed_at=_changed_at(files),
            notes=found.notes(),
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
_SHOWN_FILES: Final = 3


def _load_manifests(path: Path) -> Recording:
    """Load the objects from a file, or from all files in a folder and its subfolders. Raises `ConfigError`."""
    files = _manifest_files(path)
    found = _read_all(path, files)
    if not found.objects:
        what = f"{len(files)} files were read" if files else "no .yaml, .yml or .json file found"
        why = "; ".join((what, *found.notes()))
        raise ConfigError(f"{str(path)!r} contains neither a recording nor Kubernetes objects: {why}")
    return assemble(
        Assembly(
            source=path,
            context="manifests",
            objects=found.objects,
            changed_at=_changed_at(files),
            notes=found.notes(),
        )
    )


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


@dataclass(slots=True, kw_only=True)
class _Found:
    """The objects in the files of `folder`. `skipped` maps a reason to the file of each entry that is not an object."""

    folder: Path
    objects: list[JsonObject] = field(default_factory=list)
    skipped: dict[str, list[str]] = field(default_factory=dict)

    def add(self, file: Path, document: JsonValue, kind: str = "", api_version: str = "") -> None:
        """Add the objects of a document. The kind of objects in a typed list is derived from the list."""
        if isinstance(document, list):
            for each in document:
                self.add(file, each, kind, api_version)
            return
        own_kind, own_version = text(document, "kind") or kind, text(document, "apiVersion") or api_version
        items = at(document, "items")
        if own_kind.endswith("List") and (isinstance(items, list) or _is_empty_list(document)):
            member = own_kind.removesuffix("List")
            self.add(file, items or [], member, own_version if member else "")
        elif isinstance(document, dict) and own_kind and own_version and text(document, "metadata", "name"):
            self.objects.append({"apiVersion": own_version, "kind": own_kind, **document})
        else:
            self._skip(file, document, own_kind, own_version)

    def _skip(self, file: Path, document: JsonValue, kind: str, api_version: str) -> None:
        missing = "kind" if not kind else "apiVersion" if not api_version else "metadata.name"
        why = f"without {missing}" if isinstance(document, dict) else "not an object"
        name = file.name if file == self.folder else str(file.relative_to(self.folder))
        self.skipped.setdefault(why, []).append(name)

    def notes(self) -> tuple[str, ...]:
        """Return one line about the entries that were skipped, or nothing."""
        if not self.skipped:
            return ()
        reasons = "; ".join(f"{len(names)} {why} in {_some(names)}" for why, names in self.skipped.items())
        total = sum(map(len, self.skipped.values()))
        verb = "entry is not a valid Kubernetes object" if total == 1 else "entries are not valid Kubernetes objects"
        return (f"{total:,} {verb} and cannot be used ({reasons})",)


def _is_empty_list(document: JsonValue) -> bool:
    return isinstance(document, dict) and document.get("items", "") is None


def _some(names: Sequence[str]) -> str:
    """Name the first files."""
    different = tuple(dict.fromkeys(names))
    more = f" and {len(different) - _SHOWN_FILES:,} more" if len(different) > _SHOWN_FILES else ""
    return ", ".join(map(repr, different[:_SHOWN_FILES])) + more


def _read_all(folder: Path, files: Sequence[Path]) -> _Found:
    """Read every object in `files`, including the items of lists. Raises `ConfigError` with the position."""
    found = _Found(folder=folder)
    for file in files:
        for document in _documents(file):
            if document is None:  # a document without content, as between two `---`
                continue
            try:
                found.add(file, document)
            except RecursionError as error:
                raise ConfigError(f"{file}: the file is nested too deeply") from error
    return found


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
    def unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
        found = dict(pairs)
        if len(found) < len(pairs):
            duplicate = Counter(key for key, _ in pairs).most_common(1)[0][0]
            raise ConfigError(f"{file}: duplicate key {duplicate!r}; remove one of them")
        return found

    return parsed_json(file, content, unique)


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
