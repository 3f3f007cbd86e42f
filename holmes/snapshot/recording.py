"""Stores a recorded cluster in memory, and defines the files that `holmes snapshot create` writes.

A recording that is incomplete, malformed or in a newer format is rejected with an error that states the file and the
position.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

from holmes.kubernetes.fields import boolean, child, children, instant, integer, text, texts
from holmes.snapshot.discovery import Discovery, ResourceType
from holmes.snapshot.recorded_logs import LogKey, RecordedLog
from holmes.values.errors import ConfigError
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from holmes.observability.metrics.recorded import RecordedMetrics
    from holmes.values.json_types import JsonObject, JsonValue


FORMAT: Final = 1
MANIFEST: Final = "recording.json"
DISCOVERY: Final = "discovery.json"
VERSION: Final = "version"
"""The resource of an `Unread` for the version of the server."""

_OBJECTS: Final = "objects"
_LOGS: Final = "logs"
_OPENAPI: Final = "openapi"
_METRICS: Final = "metrics"


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


def metrics_file(source: str) -> Path:
    """Return the path of the metrics of a source, relative to the recording."""
    return Path(_METRICS, f"{quote(source, safe=' ')}.json")


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
    The keys of `metrics` are the names of their sources. `notes` are one-line warnings about content that was found but
    cannot be used.
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
    metrics: Mapping[str, RecordedMetrics] = field(default_factory=dict)
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
        metrics=_metrics(folder),
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


def _metrics(folder: Path) -> Mapping[str, RecordedMetrics]:
    files = _files(folder, f"{_METRICS}/*.json")
    if not files:
        return {}
    from holmes.snapshot.recorded_metrics import LIMIT_BYTES, read_metrics  # most recordings have no metrics

    for path in files:
        if path.stat().st_size > LIMIT_BYTES:
            raise ConfigError(f"{path}: larger than {LIMIT_BYTES // 1024 // 1024} MB; record fewer hours or namespaces")
    return {unquote(path.name.removesuffix(".json")): read_metrics(path, _read_json(path)) for path in files}
