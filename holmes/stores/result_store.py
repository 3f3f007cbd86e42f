"""Stores tool results as files. This is the default `ResultStore`.

Layout of the folder:

    blobs/<sha256>                      the content, verbatim, stored once
    <tool>_<call id>.txt|json|png|...   the same file under a readable name (a hard link)
    manifest.jsonl                      one line for each call, with blob, media type and time
    .lock                               the inter-process lock

Folders have mode 0700, and files have mode 0600. Existing files are never overwritten, incomplete files are removed,
and names that point outside the folder are rejected. Results survive a restart. `result_retention` deletes results that
exceed the limits. Without limits, results are never deleted.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import threading
import time
from typing import TYPE_CHECKING

from holmes.stores.result_files import BLOBS_FOLDER, folder_lock, give_name, json_view, open_regular, write_blob
from holmes.stores.result_manifest import ManifestEntry, ResultManifest
from holmes.stores.result_retention import RetentionRules, SweepReport, sweep, would_remove
from holmes.values.errors import HolmesError, ResultStoreError
from holmes.values.messages import ResultId, StoredResult

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from holmes.values.messages import ToolCallId

_ID_CHARACTERS = 12
_MAX_ID_CHARACTERS = 4_096
_SWEEP_EVERY_PUTS = 500
SWEEP_THREAD = "holmes-results-sweep"
_WRITE_TIMEOUT_SECONDS = 10.0
_SWEEP_TIMEOUT_SECONDS = 2.0


class FileResultStore:
    """Stores results in `directory`, which is created on the first `put`. Safe for threads and processes.

    Deletes a result `retention_seconds` after its last use. If the total size exceeds `quota_bytes`, deletes the least
    recently used results. None means no limit. `protected` returns the results that saved conversations refer to. If
    `protected` raises a `HolmesError`, no result is deleted.
    """

    def __init__(
        self,
        directory: Path,
        *,
        retention_seconds: float | None = None,
        quota_bytes: int | None = None,
        protected: Callable[[], frozenset[ResultId]] = frozenset,
    ) -> None:
        self._directory = directory
        self._blobs = directory / BLOBS_FOLDER
        self._manifest = ResultManifest(directory / "manifest.jsonl")
        self._lock = threading.Lock()
        self._rules = RetentionRules(retention_seconds=retention_seconds, quota_bytes=quota_bytes, protected=protected)
        self._puts_until_sweep = 0
        self._sweeping: threading.Thread | None = None

    async def put(self, content: bytes, *, tool_name: str, call_id: ToolCallId, media_type: str) -> StoredResult:
        """Store `content` for one call, in a thread.

        Raises `ResultStoreError`, for example if the disk is full, and removes all files that the failed call created.
        A background cleanup starts after the first result of a process, and after every 500 further results. The
        cleanup never delays the exit of the process.
        """
        stored = await asyncio.to_thread(self._put, content, f"{tool_name}_{call_id}", media_type)
        self._sweep_if_due()
        return stored

    async def read(self, result_id: ResultId) -> tuple[bytes, StoredResult]:
        """Return the content of a result and a reference to it. `result_id` is an id or a path inside the store.

        Raises `ResultStoreError` for an unknown id, a deleted result, or changed content.
        """
        return await asyncio.to_thread(self._read, result_id)

    async def sweep(self) -> SweepReport:
        """Apply the limits now. Raises `ResultStoreError` if the folder cannot be changed."""
        try:
            return await asyncio.to_thread(self._sweep)
        except OSError as error:
            raise ResultStoreError(f"cannot clean up {str(self._directory)!r}: {error.strerror}") from error

    def _put(self, content: bytes, name: str, media_type: str) -> StoredResult:
        digest = hashlib.sha256(content).hexdigest()
        made: list[Path] = []
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._blobs.mkdir(mode=0o700, exist_ok=True)
            view = json_view(content, media_type)
            with self._lock, self._held(shared=True, timeout_seconds=_WRITE_TIMEOUT_SECONDS):
                blob = write_blob(self._directory, content, digest, made)
                path = give_name(blob, view, name, media_type, made)
                entry = ManifestEntry(
                    id=self._free_id(digest),
                    sha256=digest,
                    name=path.relative_to(self._directory).as_posix(),
                    media_type=media_type,
                    size_bytes=len(content),
                    stored_at=time.time(),
                )
                self._manifest.append(entry)
        except OSError as error:
            self._discard(made, digest)
            raise ResultStoreError(f"cannot store a result in {str(self._directory)!r}: {error.strerror}") from error
        return self._describe(entry)

    def _discard(self, made: list[Path], digest: str) -> None:
        """Delete the files of a failed call, except for a blob that another call has stored with the same content."""
        if not made:
            return
        with contextlib.suppress(OSError), self._lock, self._held(shared=False, timeout_seconds=_WRITE_TIMEOUT_SECONDS):
            shared = any(entry.sha256 == digest for entry in self._manifest.entries())
            for path in reversed(made):
                if not (shared and path.parent == self._blobs):
                    path.unlink(missing_ok=True)

    def _free_id(self, digest: str) -> ResultId:
        """Return the shortest prefix of `digest`, at least 12 digits long, that was never the id of another result."""
        for length in range(_ID_CHARACTERS, len(digest), 4):
            candidate = ResultId(digest[:length])
            known = self._manifest.find(candidate) or self._manifest.find_removed(candidate)
            if known is None or known.sha256 == digest:
                return candidate
        return ResultId(digest)

    def _read(self, result_id: ResultId) -> tuple[bytes, StoredResult]:
        entry = self._find(result_id)
        blob = self._blobs / entry.sha256
        try:
            with open_regular(blob) as file:
                content = file.read()
        except OSError as error:
            message = f"stored result {result_id!r} cannot be read: {error.strerror}; repeat the tool call"
            raise ResultStoreError(message) from error
        if hashlib.sha256(content).hexdigest() != entry.sha256:
            raise ResultStoreError(f"result {result_id!r} was changed on disk and cannot be used; repeat the tool call")
        with contextlib.suppress(OSError):  # a read-only folder can still be read
            os.utime(blob)
        return content, self._describe(entry)

    def _find(self, result_id: ResultId) -> ManifestEntry:
        if "\0" in result_id or len(result_id) > _MAX_ID_CHARACTERS:
            raise ResultStoreError(f"stored result {result_id[:40]!r}… not found; use the id or path in the pointer")
        try:
            if entry := self._manifest.find(result_id):
                return entry
            if self._manifest.find_removed(result_id):
                raise _expired(result_id)
            entries = self._manifest.entries()
        except OSError as error:
            raise ResultStoreError(f"cannot read {str(self._directory)!r}: {error.strerror}") from error
        if "/" in result_id or "." in result_id:
            return self._find_path(result_id, entries)
        # The error does not mention other ids, because the store contains the results of many conversations.
        raise ResultStoreError(f"stored result {result_id!r} not found; use the id or path in the pointer")

    def _find_path(self, path: str, entries: tuple[ManifestEntry, ...]) -> ManifestEntry:
        """Return the entry of a file in the store.

        Rejects every path outside the store, including paths through symbolic links.
        """
        root = self._directory.resolve()
        wanted = (root / path).resolve()
        if not wanted.is_relative_to(root):
            raise ResultStoreError(f"{path!r} is outside the stored results in {str(self._directory)!r}")
        relative = wanted.relative_to(root).as_posix()
        for entry in reversed(entries):
            if relative in {entry.name, f"{BLOBS_FOLDER}/{entry.sha256}"}:
                return entry
        if self._manifest.find_removed(ResultId(relative)):
            raise _expired(path)
        raise ResultStoreError(f"{path!r} is not a stored result; use the id or path in the pointer")

    def _describe(self, entry: ManifestEntry) -> StoredResult:
        return StoredResult(
            id=entry.id,
            path=str(self._directory / entry.name),
            size_bytes=entry.size_bytes,
            media_type=entry.media_type,
        )

    def _held(self, *, shared: bool, timeout_seconds: float) -> contextlib.AbstractContextManager[None]:
        return folder_lock(self._directory / ".lock", shared=shared, timeout_seconds=timeout_seconds)

    def _sweep_if_due(self) -> None:
        if not self._rules.active:
            return
        self._puts_until_sweep -= 1
        if self._puts_until_sweep < 0 and (self._sweeping is None or not self._sweeping.is_alive()):
            self._puts_until_sweep = _SWEEP_EVERY_PUTS
            # The process may exit during the cleanup. The next process completes it.
            self._sweeping = threading.Thread(target=self._sweep_quietly, name=SWEEP_THREAD, daemon=True)
            self._sweeping.start()

    def _sweep_quietly(self) -> None:
        """Apply the limits. A failure never stops the run, because the next cleanup tries again."""
        with contextlib.suppress(OSError, HolmesError):
            self._sweep()

    def _sweep(self) -> SweepReport:
        if not self._rules.active or not self._directory.is_dir():
            return SweepReport()
        needed = would_remove(self._directory, self._manifest, self._rules, time.time())
        protected = self._rules.protected() if needed else None
        with self._lock, self._held(shared=False, timeout_seconds=_SWEEP_TIMEOUT_SECONDS):
            return sweep(self._directory, self._manifest, self._rules, protected, time.time())


def _expired(reference: str) -> ResultStoreError:
    return ResultStoreError(
        f"result {reference!r} has expired: it was deleted because of the age and size limits of stored results; "
        "repeat the tool call"
    )
