"""The list of what is in a file store: one JSON object a line, appended, never rewritten. Used by `result_store`.

A line is whole or not there: appending takes a lock that other processes respect, and a write that the disk cuts short
is taken back. A line that cannot be read (a crash in the middle) is skipped.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import threading
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from holmes.core.messages import ResultId

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEntry:
    """One stored result of one call. `name` is relative to the store; `sha256` names the blob."""

    id: ResultId
    sha256: str
    name: str
    media_type: str
    size_bytes: int


class ResultManifest:
    """Reads only what was appended since the last look, by this process or another."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries: tuple[ManifestEntry, ...] = ()
        self._read_bytes = 0
        self._lock = threading.Lock()

    def append(self, entry: ManifestEntry) -> None:
        """Add one line. Raises `OSError`; the file is then as it was before."""
        line = json.dumps(asdict(entry), ensure_ascii=True).encode() + b"\n"
        descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                line = b"\n" + line
            if os.write(descriptor, line) != len(line):
                os.ftruncate(descriptor, size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(descriptor)

    def entries(self) -> tuple[ManifestEntry, ...]:
        """All entries, oldest first. Raises `OSError` when the file is there and cannot be read."""
        with self._lock:
            try:
                with self._path.open("rb") as file:
                    file.seek(self._read_bytes)
                    new = file.read()
            except FileNotFoundError:
                return self._entries
            whole = new[: new.rfind(b"\n") + 1]
            self._read_bytes += len(whole)
            self._entries += tuple(entry for line in whole.splitlines() if (entry := _parse(line)) is not None)
            return self._entries


def _parse(line: bytes) -> ManifestEntry | None:
    try:
        fields = json.loads(line)
        return ManifestEntry(
            id=ResultId(str(fields["id"])),
            sha256=str(fields["sha256"]),
            name=str(fields["name"]),
            media_type=str(fields["media_type"]),
            size_bytes=int(fields["size_bytes"]),
        )
    except (ValueError, KeyError, TypeError):
        return None
