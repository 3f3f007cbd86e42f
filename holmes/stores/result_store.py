"""Results that are too large for the conversation, as files. The default `ResultStore`, built in `holmes.app`.

Layout below the folder that is handed in:

    blobs/<sha256>                      the content, verbatim, once however often it is stored
    <tool>_<call id>.txt|json|png|...   the same file under a name that people can read (a hard link)
    manifest.jsonl                      one line for each call: which blob, what kind, when

Folders are private (0700), files too (0600). Nothing is ever overwritten, nothing half-written stays behind, and no
name leaves the folder, whatever a tool or a call is called. Everything survives a restart. Deletes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import errno
import hashlib
import os
import re
import threading
import uuid
from typing import TYPE_CHECKING

from holmes.core.errors import ResultStoreError
from holmes.core.messages import ResultId, StoredResult
from holmes.core.previews import readable_json
from holmes.stores.result_manifest import ManifestEntry, ResultManifest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holmes.core.messages import ToolCallId

ID_CHARACTERS = 12
MAX_ID_CHARACTERS = 4_096
_NAME_CHARACTERS = 80
_WRITE_BYTES = 1 << 20
_LISTED_IDS = 10
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_EXTENSIONS = {
    "text/plain": "txt",
    "application/json": "json",
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/jpg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
}
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS})


class FileResultStore:
    """Stores results below `directory`, which is made on the first `put`. Safe for threads and several processes."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._blobs = directory / "blobs"
        self._manifest = ResultManifest(directory / "manifest.jsonl")
        self._lock = threading.Lock()

    async def put(self, content: bytes, *, tool_name: str, call_id: ToolCallId, media_type: str) -> StoredResult:
        """Store `content` for one call, in a thread.

        Raises `ResultStoreError` (disk full, read-only); what the failed call had created is gone again.
        """
        return await asyncio.to_thread(self._put, content, f"{tool_name}_{call_id}", media_type)

    async def read(self, result_id: ResultId) -> tuple[bytes, StoredResult]:
        """Content and description of an id, or of a path that lies inside the store.

        Raises `ResultStoreError` for an unknown id, naming the nearest known ones, and for content that was changed.
        """
        return await asyncio.to_thread(self._read, result_id)

    def _put(self, content: bytes, name: str, media_type: str) -> StoredResult:
        digest = hashlib.sha256(content).hexdigest()
        made: list[Path] = []
        try:
            with self._lock:
                self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._blobs.mkdir(mode=0o700, exist_ok=True)
                blob = self._write_blob(content, digest, made)
                path = self._give_name(blob, _json_view(content, media_type), _safe(name), media_type, made)
                entry = ManifestEntry(
                    id=self._free_id(digest),
                    sha256=digest,
                    name=path.relative_to(self._directory).as_posix(),
                    media_type=media_type,
                    size_bytes=len(content),
                )
                self._manifest.append(entry)
        except OSError as error:
            for path in reversed(made):
                with contextlib.suppress(OSError):
                    path.unlink()
            raise ResultStoreError(f"cannot store a result in {str(self._directory)!r}: {error.strerror}") from error
        return self._describe(entry)

    def _write_blob(self, content: bytes, digest: str, made: list[Path]) -> Path:
        """Write to a temporary name, then rename: a blob is whole or not there."""
        blob = self._blobs / digest
        if not (blob.is_file() and blob.stat().st_size == len(content)):
            temporary = self._blobs / f".{uuid.uuid4().hex}.tmp"
            _write_private(temporary, content)
            temporary.replace(blob)
            made.append(blob)
        return blob

    def _give_name(self, blob: Path, view: bytes | None, stem: str, media_type: str, made: list[Path]) -> Path:
        """The readable file of this call: a link to the blob, or `view`. The blob itself where links do not work."""
        for path in self._candidates(stem, _EXTENSIONS.get(media_type, "bin")):
            try:
                if view is None:
                    os.link(blob, path)
                else:
                    _write_private(path, view)
            except FileExistsError:
                if _holds(path, blob, view):
                    return path
            except OSError as error:
                if view is None and error.errno in _NO_LINKS:
                    return blob
                raise
            else:
                made.append(path)
                return path
        return blob

    def _candidates(self, stem: str, extension: str) -> Iterator[Path]:
        yield self._directory / f"{stem}.{extension}"
        for number in range(2, 1000):
            yield self._directory / f"{stem}-{number}.{extension}"

    def _free_id(self, digest: str) -> ResultId:
        """The shortest prefix of at least 12 digits that no other content has."""
        known = {entry.id: entry.sha256 for entry in self._manifest.entries()}
        for length in range(ID_CHARACTERS, len(digest) + 1, 4):
            if known.get(ResultId(digest[:length]), digest) == digest:
                return ResultId(digest[:length])
        return ResultId(digest)

    def _read(self, result_id: ResultId) -> tuple[bytes, StoredResult]:
        entry = self._find(result_id)
        try:
            content = (self._blobs / entry.sha256).read_bytes()
        except OSError as error:
            raise ResultStoreError(
                f"result {result_id!r} cannot be read: {error.strerror}; run its call again"
            ) from error
        if hashlib.sha256(content).hexdigest() != entry.sha256:
            raise ResultStoreError(f"result {result_id!r} was changed on disk and is not used; run its call again")
        return content, self._describe(entry)

    def _find(self, result_id: ResultId) -> ManifestEntry:
        try:
            entries = self._manifest.entries()
        except OSError as error:
            raise ResultStoreError(f"cannot read {str(self._directory)!r}: {error.strerror}") from error
        by_id = {entry.id: entry for entry in entries}
        if result_id in by_id:
            return by_id[result_id]
        if "\0" in result_id or len(result_id) > MAX_ID_CHARACTERS:
            raise ResultStoreError(f"no stored result {result_id[:40]!r}…; use the id or path that the pointer names")
        if "/" in result_id or "." in result_id:
            return self._find_path(result_id, entries)
        newest = list(dict.fromkeys(entry.id for entry in reversed(entries)))
        near = difflib.get_close_matches(result_id, newest, n=_LISTED_IDS, cutoff=0.4) or newest[:_LISTED_IDS]
        known = f"known results: {', '.join(near)}" if near else "nothing is stored yet"
        raise ResultStoreError(f"no stored result {result_id!r}; {known}")

    def _find_path(self, path: str, entries: tuple[ManifestEntry, ...]) -> ManifestEntry:
        """The entry of a file of the store. Everything outside is refused, whatever it is a link to."""
        root = self._directory.resolve()
        wanted = (root / path).resolve()
        if not wanted.is_relative_to(root):
            raise ResultStoreError(f"{path!r} lies outside the stored results in {str(self._directory)!r}")
        relative = wanted.relative_to(root).as_posix()
        for entry in reversed(entries):
            if relative in {entry.name, f"blobs/{entry.sha256}"}:
                return entry
        raise ResultStoreError(f"{path!r} is not a stored result; use the id or path that the pointer names")

    def _describe(self, entry: ManifestEntry) -> StoredResult:
        return StoredResult(
            id=entry.id,
            path=str(self._directory / entry.name),
            size_bytes=entry.size_bytes,
            media_type=entry.media_type,
        )


def _write_private(path: Path, content: bytes) -> None:
    """Make a new file of mode 0600; `FileExistsError` when there is one. A failed write leaves no file."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            for start in range(0, len(content), _WRITE_BYTES):
                piece = memoryview(content)[start : start + _WRITE_BYTES]
                while piece:
                    piece = piece[file.write(piece) :]
    except OSError:
        path.unlink(missing_ok=True)
        raise


def _holds(path: Path, blob: Path, view: bytes | None) -> bool:
    """Whether the file at `path` is what would be put there."""
    try:
        return path.samefile(blob) if view is None else not path.is_symlink() and path.read_bytes() == view
    except OSError:
        return False


def _json_view(content: bytes, media_type: str) -> bytes | None:
    """JSON of one line with one value per line, or None when the content is readable as it is."""
    if media_type != "application/json" or b"\n" in content.strip():
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    view = readable_json(text)
    return None if view is text else view.encode()


def _safe(name: str) -> str:
    """`name` as a file name: no separators, no leading dot, not too long."""
    return _UNSAFE.sub("_", name).lstrip(".")[:_NAME_CHARACTERS] or "result"
