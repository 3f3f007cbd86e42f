"""Manages the files of a result store: blobs, readable names for blobs, and the folder's lock file.

A blob is complete or missing. Existing files are never overwritten. Tool names and call ids are sanitised, so that all
files are inside the folder. The lock is released when its process ends, and waiting for the lock has a time limit.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import time
import uuid
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO, Final

from holmes.previews import readable_json
from holmes.previews.json_view import MAX_JSON_VIEW_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BLOBS_FOLDER: Final = "blobs"
_NAME_CHARACTERS = 80
_MOST_NUMBERED_NAMES = 9
_LINK_TRIES = 20
_WRITE_BYTES = 1 << 20
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


def write_blob(folder: Path, content: bytes, digest: str, made: list[Path]) -> Path:
    """Write the blob of `content` to a temporary file, and then rename this file.

    Appends new files to `made`. Raises `OSError`.
    """
    blob = folder / BLOBS_FOLDER / digest
    if _is_whole(blob, len(content)):
        os.utime(blob)  # the cleanup reads the time of the last use
        return blob
    temporary = blob.with_name(f".{uuid.uuid4().hex}.tmp")
    _write_private(temporary, content)
    temporary.replace(blob)
    made.append(blob)
    return blob


def _is_whole(blob: Path, size_bytes: int) -> bool:
    """Return whether `blob` exists and is complete."""
    try:
        return blob.stat().st_size == size_bytes
    except OSError:
        return False


def give_name(blob: Path, view: bytes | None, stem: str, media_type: str, made: list[Path]) -> Path:
    """Create the readable file of a call, which contains `view` or is a link to the blob.

    Returns the blob if links are not supported. Appends new files to `made`. Raises `OSError`.
    """
    for path in _candidates(blob, _safe_name(stem), _EXTENSIONS.get(media_type, "bin")):
        try:
            if view is None:
                _link(blob, path)
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


def _link(blob: Path, path: Path) -> None:
    """Create the link `path` to `blob`. Raises `OSError`.

    Tries again if the blob seems to be missing, because Linux reports this while another writer replaces the blob.
    """
    for _ in range(_LINK_TRIES):
        with suppress(FileNotFoundError):
            return os.link(blob, path)
    return os.link(blob, path)


def _candidates(blob: Path, stem: str, extension: str) -> Iterator[Path]:
    """Yield the plain name, then numbered names, then a unique name, because call ids can repeat without limit."""
    folder = blob.parent.parent
    yield folder / f"{stem}.{extension}"
    for number in range(2, _MOST_NUMBERED_NAMES + 1):
        yield folder / f"{stem}-{number}.{extension}"
    yield folder / f"{stem}-{blob.name}.{extension}"


def _write_private(path: Path, content: bytes) -> None:
    """Create a file with mode 0600. Raises `FileExistsError` if the file exists. A failed write leaves no file."""
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
    """Return whether the file at `path` already has the required content."""
    try:
        if view is None:
            return path.samefile(blob)
        return not path.is_symlink() and path.stat().st_size == len(view) and path.read_bytes() == view
    except OSError:
        return False


def json_view(content: bytes, media_type: str) -> bytes | None:
    """Format one-line JSON with one value per line.

    Returns None if the content is already readable or too large.
    """
    if media_type != "application/json" or len(content) > 4 * MAX_JSON_VIEW_CHARACTERS or b"\n" in content.strip():
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    view = readable_json(text)
    return None if view is text else view.encode()


def _safe_name(name: str) -> str:
    """Convert `name` to a file name of limited length, without separators and leading dots."""
    return _UNSAFE.sub("_", name).lstrip(".")[:_NAME_CHARACTERS] or "result"


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading. Raises `OSError` for other files, because reading a pipe may never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    return os.fdopen(descriptor, "rb")


_POLL_SECONDS = 0.005


@contextmanager
def folder_lock(path: Path, *, shared: bool, timeout_seconds: float) -> Iterator[None]:
    """Lock the file at `path` within the `with` block. Creates the file if necessary.

    Blocks the thread. Raises `OSError` if this fails or takes longer than `timeout_seconds`.
    """
    deadline = time.monotonic() + timeout_seconds
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        while not _taken(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                raise OSError(errno.EAGAIN, "another process has locked the folder")
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)


def _taken(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
