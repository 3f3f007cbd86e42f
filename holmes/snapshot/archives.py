"""Unpacks archives that other people made, within limits.

Only regular files that a format can use are unpacked. Names that lead out of the folder, links and devices are skipped.
Of a long log, only the end is kept. An archive that expands far more than real ones is refused.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from pathlib import PurePosixPath
from typing import IO, TYPE_CHECKING, Final, Protocol

from holmes.snapshot.documents import FILE_LIMIT_BYTES
from holmes.snapshot.recorded_logs import LOG_LIMIT_BYTES
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OBJECT_ENDINGS: Final = (".json", ".yaml", ".yml")
_WANTED: Final = (*OBJECT_ENDINGS, ".log", ".txt", ".out", "")
_CHUNK_BYTES: Final = 1024 * 1024
_HEADER_LIMIT_BYTES: Final = 4 * 1024 * 1024
_PATH_LIMIT: Final = 1_000


class _Readable(Protocol):
    """A file as far as it is needed here."""

    def read(self, size: int, /) -> bytes: ...


_PACKINGS: Final[tuple[tuple[bytes, Callable[[IO[bytes]], _Readable]], ...]] = (
    (b"\x1f\x8b", lambda file: gzip.GzipFile(fileobj=file)),
    (b"BZh", bz2.BZ2File),
    (b"\xfd7zXZ\x00", lzma.LZMAFile),
)
_ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06")
_TAR_MARK: Final = (b"ustar", 257)
_DAMAGED: Final = (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveLimits:
    """Limits for one archive. `expansion` is the ratio of unpacked to packed bytes, after `free_bytes`."""

    files: int = 200_000
    read_bytes: int = 32 * 1024 * 1024 * 1024
    kept_bytes: int = 4 * 1024 * 1024 * 1024
    expansion: int = 200
    free_bytes: int = 64 * 1024 * 1024


def is_archive(path: Path) -> bool:
    """Return whether a file is a .zip file or a tar file, packed or not. The name does not matter."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(512)
    mark, at = _TAR_MARK
    packed = any(head.startswith(magic) for magic, _ in _PACKINGS)
    return packed or head.startswith(_ZIP) or head[at : at + len(mark)] == mark


def unpack(archive: Path, folder: Path, limits: ArchiveLimits | None = None) -> tuple[str, ...]:
    """Unpack the files of `archive` into `folder`, and return warnings about entries that were skipped.

    Raises `ConfigError` if the archive is damaged, encrypted or exceeds a limit, and `OSError`.
    """
    unpacking = _Unpacking(archive, folder, limits or ArchiveLimits())
    try:
        with archive.open("rb") as file:
            if file.read(4).startswith(_ZIP):
                _unpack_zip(file, unpacking)
            else:
                _unpack_tar(file, unpacking)
    except _DAMAGED as error:
        reason = " ".join(str(error).split()) or "it ends too early"
        raise ConfigError(f"{archive}: the archive is damaged or incomplete ({reason}); copy it again") from error
    except (NotImplementedError, RuntimeError) as error:  # an unknown method, or a password is required
        raise ConfigError(f"{archive}: cannot unpack the archive: {error}; unpack it to a folder first") from error
    if not unpacking.files:
        raise ConfigError(f"{archive}: the archive has no file that Holmes can read{unpacking.in_brackets()}")
    return unpacking.notes()


class _Unpacking:
    """Writes the files of one archive, and counts what was read, kept and skipped."""

    def __init__(self, archive: Path, folder: Path, limits: ArchiveLimits) -> None:
        self._archive = archive
        self._folder = folder
        self._limits = limits
        self._packed_bytes = archive.stat().st_size
        self._kept_bytes = 0
        self.read_bytes = 0
        self.files = 0
        self._entries = 0
        self._skipped: Counter[str] = Counter()

    def count(self, size: int) -> None:
        """Count unpacked bytes. Raises `ConfigError` if there are too many."""
        self.read_bytes += size
        limits = self._limits
        expanded = max(limits.free_bytes, self._packed_bytes * limits.expansion)
        if self.read_bytes > min(limits.read_bytes, expanded):
            self._refuse(f"it unpacks to more than {min(limits.read_bytes, expanded) // 1024 // 1024:,} MB")

    def add(self, name: str, kind: str, content: IO[bytes], changed_seconds: float) -> None:
        """Write one entry, or skip it. `kind` is empty for a regular file, or else states what the entry is."""
        self._entries += 1
        if self._entries > self._limits.files:
            self._refuse(f"it has more than {self._limits.files:,} entries")
        path = PurePosixPath(name.replace("\\", "/"))
        if kind:
            self._skipped[kind] += kind != "folder"
        elif _is_unsafe(path):
            self._skipped["unsafe name"] += 1
        elif path.suffix.lower() in _WANTED and path.parts:
            self._write(path, content, changed_seconds)
        else:
            self._skipped["of an unknown kind"] += 1

    def _write(self, path: PurePosixPath, content: IO[bytes], changed_seconds: float) -> None:
        whole = path.suffix.lower() in OBJECT_ENDINGS
        target = self._folder / path
        kept = self._kept(content, FILE_LIMIT_BYTES if whole else LOG_LIMIT_BYTES, whole=whole)
        if kept is None:
            self._skipped[f"larger than {FILE_LIMIT_BYTES // 1024 // 1024} MB"] += 1
            return
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                file.writelines(kept)
            with suppress(OverflowError):
                os.utime(target, (changed_seconds, changed_seconds))
        except (FileExistsError, NotADirectoryError, IsADirectoryError):  # the same name for a file and a folder
            self._skipped["unsafe name"] += 1
            return
        self.files += 1

    def _kept(self, source: IO[bytes], limit: int, *, whole: bool) -> deque[bytes] | None:
        """Read a file to its end. Return its last `limit` bytes, or None if it must be whole and is larger."""
        chunks: deque[bytes] = deque()
        held, cut = 0, False
        while chunk := source.read(_CHUNK_BYTES):
            self.count(len(chunk))
            chunks.append(chunk)
            held += len(chunk)
            while held - len(chunks[0]) >= limit:
                held -= len(chunks.popleft())
                cut = True
        if cut and whole:
            return None
        if cut:
            chunks[0] = chunks[0].partition(b"\n")[2]
        self._kept_bytes += held
        if self._kept_bytes > self._limits.kept_bytes:
            self._refuse(f"its files have more than {self._limits.kept_bytes // 1024 // 1024:,} MB")
        return chunks

    def _refuse(self, why: str) -> None:
        raise ConfigError(f"{self._archive}: the archive is not unpacked: {why}; unpack the needed files to a folder")

    def notes(self) -> tuple[str, ...]:
        """Return one line about the entries that were skipped, or nothing."""
        listed = [f"{count} {what}" for what, count in self._skipped.items() if count and what != "link"]
        total = sum(count for what, count in self._skipped.items() if what != "link")
        noun = "entry was" if total == 1 else "entries were"
        return (f"{total:,} {noun} not unpacked ({', '.join(listed)})",) if listed else ()

    def in_brackets(self) -> str:
        return "".join(f" ({note})" for note in self.notes())


def _is_unsafe(path: PurePosixPath) -> bool:
    drive = any(part.endswith(":") for part in path.parts[:1])
    too_long = len(str(path)) > _PATH_LIMIT or any(len(part.encode("utf-8", "replace")) > 255 for part in path.parts)
    return path.is_absolute() or drive or too_long or ".." in path.parts or "\0" in str(path)


class _Counted:
    """Counts what tarfile reads, and limits its headers: tarfile reads a long name or attribute into memory."""

    def __init__(self, source: _Readable, unpacking: _Unpacking) -> None:
        self._source = source
        self._unpacking = unpacking
        self.header_bytes = 0
        self.in_header = True

    def read(self, size: int) -> bytes:
        content = self._source.read(size)
        if self.in_header:
            self.header_bytes += len(content)
            if self.header_bytes > _HEADER_LIMIT_BYTES:
                raise tarfile.ReadError("a header is too long")
            self._unpacking.count(0)
        return content


def _unpack_tar(file: IO[bytes], unpacking: _Unpacking) -> None:
    file.seek(0)
    head = file.read(8)
    file.seek(0)
    opener = next((each for magic, each in _PACKINGS if head.startswith(magic)), None)
    source = _Counted(opener(file) if opener else file, unpacking)
    # The files are read in their order, so that an archive of any size needs little memory.
    with tarfile.open(fileobj=source, mode="r|", errorlevel=1) as archive:  # type: ignore[call-overload]  # `read` is enough
        while True:
            source.in_header, source.header_bytes = True, 0
            member = archive.next()
            if member is None:
                return
            source.in_header = False
            archive.members.clear()  # tarfile remembers every entry
            content = archive.extractfile(member) if member.isreg() else None
            unpacking.add(member.name, _kind_of(member), content or BytesIO(), member.mtime)
            while content is not None and (rest := content.read(_CHUNK_BYTES)):
                unpacking.count(len(rest))


def _kind_of(member: tarfile.TarInfo) -> str:
    if member.isreg():
        return ""
    if member.isdir():
        return "folder"
    return "link" if member.issym() or member.islnk() else "device"


def _unpack_zip(file: IO[bytes], unpacking: _Unpacking) -> None:
    with zipfile.ZipFile(file) as archive:
        for entry in archive.infolist():
            kind = _kind_in_zip(entry)
            if kind or PurePosixPath(entry.filename).suffix.lower() not in _WANTED:
                unpacking.add(entry.filename, kind, BytesIO(), 0)
                continue
            with archive.open(entry) as content:
                unpacking.add(entry.filename, kind, content, _changed_seconds(entry))


def _changed_seconds(entry: zipfile.ZipInfo) -> float:
    """Return the time of an entry, which a .zip file stores without a time zone."""
    try:
        return datetime(*entry.date_time, tzinfo=UTC).timestamp()
    except ValueError:
        return 0.0


def _kind_in_zip(entry: zipfile.ZipInfo) -> str:
    mode = entry.external_attr >> 16
    if entry.is_dir():
        return "folder"
    if stat.S_ISLNK(mode):
        return "link"
    return "device" if stat.S_IFMT(mode) not in (0, stat.S_IFREG) else ""
