"""Stores a recorded cluster in memory, and defines the files that `holmes snapshot create` writes.

A recording that is incomplete, malformed or in a newer format is rejected with an error that states the file and the
position.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import boolean, child, children, instant, integer, nanoseconds, text, texts
from holmes.snapshot.discovery import Discovery, ResourceType
from holmes.values.errors import ConfigError
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from holmes.values.json_types import JsonObject, JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class LogKey:
    """Identifies a container log. `previous` is true for the log of the container's previous instance."""

    namespace: str
    pod: str
    container: str
    previous: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedLog:
    """The location of a log in a file: `size_bytes` bytes that start at `offset_bytes`.

    If `timestamps` is true, each line starts with its time.
    """

    path: Path
    offset_bytes: int
    size_bytes: int
    timestamps: bool

    def lines(self) -> list[bytes]:
        """Read all lines, including their line endings. Raises `OSError` if the file does not exist."""
        with self.path.open("rb") as file:
            file.seek(self.offset_bytes)
            content = file.read(self.size_bytes)
        # `splitlines` is not used, because a single carriage return, as in progress bars, does not end a line.
        return [line for line in re.split(rb"(?<=\n)", content) if line]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogQuery:
    """Selects part of a log. `since_nanoseconds` is in nanoseconds since the epoch. None means no limit."""

    tail_lines: int | None = None
    since_nanoseconds: int | None = None
    limit_bytes: int | None = None
    timestamps: bool = False


def select(log: RecordedLog, query: LogQuery) -> bytes:
    """Return the selected part of `log`. Like the kubelet, limit the time first, then the lines, then the bytes."""
    lines: Sequence[bytes] = log.lines()
    if log.timestamps and query.since_nanoseconds is not None:
        lines = _since(lines, query.since_nanoseconds)
    if query.tail_lines is not None:
        lines = lines[-query.tail_lines :] if query.tail_lines else []
    if log.timestamps and not query.timestamps:
        lines = [without_timestamp(line) for line in lines]
    content = b"".join(lines)
    return content if query.limit_bytes is None else content[: query.limit_bytes]


def without_timestamp(line: bytes) -> bytes:
    """Remove the timestamp, if any, from a line."""
    before, separator, after = line.partition(b" ")
    return after if separator and nanoseconds(before.decode("ascii", "replace")) is not None else line


def _since(lines: Sequence[bytes], since_nanoseconds: int) -> Sequence[bytes]:
    """Return the lines from the first line that is not older than `since_nanoseconds`."""
    for index, line in enumerate(lines):
        written = nanoseconds(line.partition(b" ")[0].decode("ascii", "replace"))
        if written is not None and written >= since_nanoseconds:
            return lines[index:]
    return []


FORMAT: Final = 1
MANIFEST: Final = "recording.json"
DISCOVERY: Final = "discovery.json"
VERSION: Final = "version"
"""The resource of an `Unread` for the version of the server."""

_OBJECTS: Final = "objects"
_LOGS: Final = "logs"
_OPENAPI: Final = "openapi"


def inside(folder: Path, path: Path) -> bool:
    """Return whether `path` is inside `folder` after resolving links. A recording must not refer to files elsewhere."""
    return path.resolve().is_relative_to(folder.resolve())


def objects_file(group: str, plural: str) -> Path:
    """Return the path of one resource file, relative to the recording."""
    return Path(_OBJECTS, f"{plural}.{group or 'core'}.json")


def log_file(key: LogKey) -> Path:
    """Return the path of one log file, relative to the recording."""
    suffix = ".previous.log" if key.previous else ".log"
    return Path(_LOGS, key.namespace, key.pod, f"{key.container}{suffix}")


def openapi_file(path: str) -> Path:
    """Return the path of a schema file, relative to the recording. `path` is for example `apis/apps/v1`."""
    return Path(_OPENAPI, f"{path.strip('/').replace('/', '__')}.json")


_HALF_CHARACTER: Final = expression(rb"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A resource that could not be recorded completely. `resource` is for example `secrets` or `deployments.apps`.

    `namespace` is empty for the whole cluster. `forbidden` is true if permissions are missing. `partly` is true if the
    first objects or some of the logs were recorded.
    """

    resource: str
    namespace: str
    forbidden: bool
    reason: str
    partly: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedObjects:
    """All objects of one resource, in the version that was read, sorted by namespace and name."""

    type: ResourceType
    items: tuple[JsonObject, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A recorded cluster.

    `namespaces` are the recorded namespaces. Empty means all namespaces. `namespace` is the default namespace. The keys
    of `objects` are pairs of group and plural. A resource that is in `discovery` but not in `objects` was not recorded.
    `notes` are one-line warnings about content that was found but cannot be used.
    """

    source: Path
    recorded_at: datetime
    version: JsonObject
    context: str
    namespace: str
    namespaces: tuple[str, ...]
    discovery: Discovery
    objects: Mapping[tuple[str, str], RecordedObjects]
    logs: Mapping[LogKey, RecordedLog] = field(default_factory=dict)
    openapi: Mapping[str, Path] = field(default_factory=dict)
    unread: tuple[Unread, ...] = ()
    notes: tuple[str, ...] = ()

    def items(self, group: str, plural: str) -> tuple[JsonObject, ...]:
        """Return the objects of one resource, or no objects if it was not recorded."""
        recorded = self.objects.get((group, plural))
        return recorded.items if recorded else ()


def is_recording(folder: Path) -> bool:
    """Return whether `holmes snapshot create` wrote `folder`."""
    return (folder / MANIFEST).is_file()


def load_recording(folder: Path) -> Recording:
    """Read a recording. Reads files, so call it in a thread.

    Raises `ConfigError` with the file and, for malformed JSON, the position.
    """
    manifest = _read_json(folder / MANIFEST)
    _check_format(folder / MANIFEST, manifest)
    recorded_at = instant(text(manifest, "recordedAt"))
    if recorded_at is None:
        reason = "'recordedAt' is not a valid time; expected for example 2026-01-31T12:00:00Z"
        raise ConfigError(f"{folder / MANIFEST}: {reason}")
    discovered = _read_json(folder / DISCOVERY)
    discovery = Discovery(groups=child(discovered, "groups"), resources=children(discovered, "resources"))
    return Recording(
        source=folder,
        recorded_at=recorded_at,
        version=child(manifest, "serverVersion"),
        context=text(manifest, "context"),
        namespace=text(manifest, "namespace") or "default",
        namespaces=texts(manifest, "namespaces"),
        discovery=discovery,
        objects=_objects(folder, discovery),
        logs=_logs(folder),
        openapi=_openapi(folder),
        unread=tuple(_unread(each) for each in children(manifest, "unread")),
    )


def _read_json(path: Path) -> JsonObject:
    """Read a JSON file that contains an object. Raises `ConfigError`."""
    if path.exists() and not path.is_file():  # reading a pipe could wait without end
        raise ConfigError(f"{path}: not a regular file; record the cluster again")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the file: {error.strerror}; the recording may be incomplete") from error
    document = parsed_json(path, content)
    if not isinstance(document, dict):
        raise ConfigError(f"{path}: expected a JSON object")
    return document


def parsed_json(
    path: Path, content: bytes, pairs_hook: Callable[[list[tuple[str, JsonValue]]], JsonValue] | None = None
) -> JsonValue:
    """Parse the content of the file at `path`. `pairs_hook` creates each object from its keys and values.

    Unpaired surrogates become U+FFFD. Raises `ConfigError`.
    """
    try:
        document: JsonValue = json.loads(content, object_pairs_hook=pairs_hook)
        if _HALF_CHARACTER.search(content):
            whole = json.dumps(document, ensure_ascii=False).encode("utf-16", "surrogatepass")
            document = json.loads(whole.decode("utf-16", "replace"))
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}:{error.lineno}:{error.colno}: the file is not valid JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:  # not UTF-8, a very long number, or nested too deeply
        raise ConfigError(f"{path}: the file is not valid JSON: {error}") from error
    return document


def _check_format(path: Path, manifest: JsonObject) -> None:
    found = integer(manifest, "format")
    if found == FORMAT:
        return
    if found > FORMAT:
        raise ConfigError(f"{path}: the recording has format {found}, but at most {FORMAT} is supported; update Holmes")
    raise ConfigError(f"{path}: 'format' is missing or not a number; expected a recording of `holmes snapshot create`")


def _unread(entry: JsonObject) -> Unread:
    return Unread(
        resource=text(entry, "resource"),
        namespace=text(entry, "namespace"),
        forbidden=boolean(entry, "forbidden"),
        reason=text(entry, "reason"),
        partly=boolean(entry, "partly"),
    )


def _objects(folder: Path, discovery: Discovery) -> Mapping[tuple[str, str], RecordedObjects]:
    found: dict[tuple[str, str], RecordedObjects] = {}
    for path in _files(folder, f"{_OBJECTS}/*.json"):
        document = _read_json(path)
        plural, _, group = path.name.removesuffix(".json").partition(".")
        group = "" if group == "core" else group
        version = text(document, "apiVersion").rpartition("/")[2]
        kind = discovery.find(group, version, plural)
        if kind is None:
            raise ConfigError(f"{path}: {DISCOVERY} does not contain {plural!r} of {text(document, 'apiVersion')!r}")
        items = document.get("items")
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise ConfigError(f"{path}: 'items' must be a list of objects")
        found[group, plural] = RecordedObjects(type=kind, items=tuple(items))
    return found


def _files(folder: Path, pattern: str) -> list[Path]:
    return sorted(path for path in folder.glob(pattern) if path.is_file() and inside(folder, path))


def _logs(folder: Path) -> Mapping[LogKey, RecordedLog]:
    found: dict[LogKey, RecordedLog] = {}
    for path in _files(folder, f"{_LOGS}/*/*/*.log"):
        name = path.name.removesuffix(".log")
        key = LogKey(
            namespace=path.parent.parent.name,
            pod=path.parent.name,
            container=name.removesuffix(".previous"),
            previous=name.endswith(".previous"),
        )
        found[key] = RecordedLog(path=path, offset_bytes=0, size_bytes=path.stat().st_size, timestamps=True)
    return found


def _openapi(folder: Path) -> Mapping[str, Path]:
    files = _files(folder, f"{_OPENAPI}/*.json")
    return {path.name.removesuffix(".json").replace("__", "/"): path for path in files}
