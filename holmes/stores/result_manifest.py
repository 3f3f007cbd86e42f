"""Reads and writes the manifest of a file store, which has one JSON object per line.

A line is complete or missing, because `append` takes an inter-process lock and undoes an incomplete write on a full
disk. Lines that a crash made unreadable are skipped. The first line contains the generation of the file. `rewrite`
replaces the file in one step with a new generation, and readers then read the new file from its start. Manifests of
older stores, without times or a generation, are readable.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import threading
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.stores.result_files import BLOBS_FOLDER, open_regular
from holmes.values.codec import Codec
from holmes.values.messages import ResultId  # noqa: TC001  the codec reads the type hints

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from holmes.values.json_types import JsonValue

_HEADER_BYTES = 256
_LINES = Codec()
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEntry:
    """A stored result of one call.

    `name` is a path relative to the store. `sha256` is the name of the blob. `stored_at` is in seconds since the epoch,
    or 0 if unknown.
    """

    id: ResultId
    sha256: str
    name: str
    media_type: str
    size_bytes: int
    stored_at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedEntry:
    """A result that was deleted because of its age or the quota. Error messages explain the deletion."""

    id: ResultId
    sha256: str
    name: str
    removed_at: float


class ResultManifest:
    """Reads and appends lines of the manifest. This class is thread-safe.

    Each read covers only the lines that processes appended since the last read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._forget()

    def append(self, entry: ManifestEntry) -> None:
        """Add one line. If this method raises `OSError`, the file is unchanged."""
        line = _line(_LINES.encode(entry))
        descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            size = os.fstat(descriptor).st_size
            if not size:
                line = _header() + line
            elif os.pread(descriptor, 1, size - 1) != b"\n":
                line = b"\n" + line
            if os.write(descriptor, line) != len(line):
                os.ftruncate(descriptor, size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(descriptor)

    def rewrite(self, entries: Iterable[ManifestEntry], removed: Iterable[RemovedEntry]) -> None:
        """Replace the file in one step. The caller prevents concurrent appends. Raises `OSError`."""
        # The cleanup also removes leftover temporary files from this folder.
        temporary = self._path.parent / BLOBS_FOLDER / f".{uuid.uuid4().hex}.tmp"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(_header())
                file.writelines(_line(_LINES.encode(each)) for each in removed)
                file.writelines(_line(_LINES.encode(each)) for each in entries)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise

    def find(self, result_id: ResultId) -> ManifestEntry | None:
        """Return the newest entry for an id, or None if the id has no entry.

        Raises `OSError` if the file exists but cannot be read.
        """
        with self._lock:
            self._refresh()
            return self._by_id.get(result_id)

    def find_removed(self, result_id: ResultId) -> RemovedEntry | None:
        """Return the last removal of the result with this id or file name, or None if it was not removed.

        Raises `OSError`.
        """
        with self._lock:
            self._refresh()
            return self._removed.get(result_id)

    def entries(self) -> tuple[ManifestEntry, ...]:
        """Return all entries, oldest first. Raises `OSError`."""
        with self._lock:
            self._refresh()
            return tuple(self._entries)

    def removed(self) -> tuple[RemovedEntry, ...]:
        """Return the recorded removals, oldest first. Raises `OSError`."""
        with self._lock:
            self._refresh()
            return tuple(each for key, each in self._removed.items() if key == each.id)

    def _forget(self) -> None:
        self._generation = b""
        self._read_bytes = 0
        self._entries: list[ManifestEntry] = []
        self._by_id: dict[ResultId, ManifestEntry] = {}
        self._removed: dict[str, RemovedEntry] = {}

    def _refresh(self) -> None:
        try:
            with open_regular(self._path) as file:
                generation = _generation_of(file.read(_HEADER_BYTES))
                if generation != self._generation or os.fstat(file.fileno()).st_size < self._read_bytes:
                    self._forget()
                    self._generation = generation
                file.seek(self._read_bytes)
                new = file.read()
        except FileNotFoundError:
            return
        whole = new[: new.rfind(b"\n") + 1]
        self._read_bytes += len(whole)
        for line in whole.splitlines():
            self._add(_parse(line))

    def _add(self, line: ManifestEntry | RemovedEntry | None) -> None:
        if isinstance(line, ManifestEntry):
            self._entries.append(line)
            self._by_id[line.id] = line
        elif line is not None:
            self._removed[line.id] = line
            self._removed[line.name] = line


def _line(fields: JsonValue) -> bytes:
    return json.dumps(fields, ensure_ascii=True).encode() + b"\n"


def _header() -> bytes:
    return _line({"generation": uuid.uuid4().hex})


def _generation_of(start: bytes) -> bytes:
    line = start.partition(b"\n")[0]
    return line if line.startswith(b'{"generation"') else b""


def _parse(line: bytes) -> ManifestEntry | RemovedEntry | None:
    try:
        fields = json.loads(line)
        kind: type[ManifestEntry | RemovedEntry] = RemovedEntry if "removed_at" in fields else ManifestEntry
        entry = _LINES.decode(kind, fields)
    except (ValueError, TypeError, RecursionError):
        return None
    return entry if _SHA256.fullmatch(entry.sha256) and _is_file_name(entry.name) else None


def _is_file_name(name: str) -> bool:
    return "\0" not in name and name.isprintable()
