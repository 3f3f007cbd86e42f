"""Writes the folder of a recording. The folder is created only when the recording is complete.

All files are written to a hidden folder next to the target, which is renamed at the end. The folder is locked while it
is written, so that the next recording can remove the folders of killed processes. Each file is written in a thread. A
cancelled write is awaited, so that no file is written after the cleanup.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import stat
import tempfile
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from holmes.snapshot.recorded_metrics import metrics_document
from holmes.snapshot.recording import (
    DISCOVERY,
    FORMAT,
    MANIFEST,
    is_recording,
    log_file,
    metrics_file,
    objects_file,
    openapi_file,
)
from holmes.values.errors import ConfigError, HolmesError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from holmes.observability.metrics.recorded import RecordedMetrics
    from holmes.snapshot.discovery import Discovery, ResourceType
    from holmes.snapshot.recorded_logs import LogKey
    from holmes.values.json_types import JsonObject, JsonValue

T = TypeVar("T")


class RecordingWriter:
    """Writes one recording. Use `open` to create a writer."""

    def __init__(self, target: Path, hidden: Path) -> None:
        self._target = target
        self._hidden = hidden

    @classmethod
    @asynccontextmanager
    async def open(cls, target: Path) -> AsyncIterator[RecordingWriter]:
        """Create a writer for `target`. All written files are removed unless `publish()` is called.

        Raises `ConfigError` if a recording must not replace `target`, and `HolmesError` if the disk cannot store it.
        """
        target = _absolute(target)
        _refuse_foreign(target)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            _tidy(target)
            hidden, lock = _locked_folder(target)
        except OSError as error:
            raise ConfigError(f"cannot create the folder {str(target)!r}: {error.strerror}") from error
        try:
            yield cls(target, hidden)
        except OSError as error:
            reason = error.strerror or str(error)
            raise HolmesError(f"cannot write recording {str(target)!r}: {reason}; its files were removed") from error
        finally:
            shutil.rmtree(hidden, ignore_errors=True)
            os.close(lock)

    async def write_objects(self, kind: ResourceType, items: Sequence[JsonObject]) -> None:
        """Write all objects of one resource in the given order, one per line. An empty list is written too."""
        await self._write(objects_file(kind.group, kind.plural), lambda: _list_document(kind, items))

    async def write_log(self, key: LogKey, content: bytes) -> None:
        await self._write(log_file(key), lambda: content)

    async def write_openapi(self, path: str, document: JsonObject) -> None:
        """Write the schemas of the group version at `path`."""
        await self._write(openapi_file(path), lambda: json.dumps(document, sort_keys=True).encode())

    async def write_metrics(self, source: str, metrics: RecordedMetrics) -> None:
        await self._write(metrics_file(source), lambda: metrics_document(metrics))

    async def write_discovery(self, discovery: Discovery) -> None:
        """Write the discovery documents without changing their order."""
        document = {"groups": discovery.groups, "resources": discovery.resources}
        await self._write(Path(DISCOVERY), lambda: _indented(document))

    async def write_manifest(self, content: Mapping[str, JsonValue]) -> None:
        await self._write(Path(MANIFEST), lambda: _indented({"format": FORMAT, **content}))

    async def publish(self) -> int:
        """Rename the hidden folder to `target`, replacing an older recording. Returns its size in bytes."""
        return await _finished(self._publish)

    async def _write(self, file: Path, content: Callable[[], bytes]) -> None:
        if file.is_absolute() or ".." in file.parts:  # the path contains names from the cluster, which are not trusted
            raise HolmesError(f"{str(file)!r} is outside the recording: the cluster returned a malicious name")
        await _finished(lambda: _write_file(self._hidden / file, content()))

    def _publish(self) -> int:
        size_bytes = sum(path.stat().st_size for path in self._hidden.rglob("*") if path.is_file())
        _refuse_foreign(self._target)
        older = self._hidden.with_suffix(_OLD)
        replaced = self._target.is_dir()
        if replaced:
            self._target.rename(older)
        try:
            self._hidden.rename(self._target)
        except OSError:
            if replaced:
                with suppress(OSError):
                    older.rename(self._target)
            raise
        shutil.rmtree(older, ignore_errors=True)
        return size_bytes


def _absolute(target: Path) -> Path:
    return Path(os.path.abspath(target))  # noqa: PTH100  unlike `Path.absolute`, it resolves `..`


_PARTIAL = ".partial"
_OLD = ".old"


def _locked_folder(target: Path) -> tuple[Path, int]:
    """Create a hidden folder for `target`, and return it with the file descriptor that locks it."""
    while True:
        hidden = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=_PARTIAL, dir=target.parent))
        with suppress(FileNotFoundError):  # another process can remove the folder before it is locked
            lock = os.open(hidden, os.O_RDONLY | os.O_DIRECTORY)
            with suppress(OSError):  # not all network file systems have locks
                fcntl.flock(lock, fcntl.LOCK_EX)
            if hidden.is_dir():
                return hidden, lock
            os.close(lock)


def _tidy(target: Path) -> None:
    """Remove the hidden folders that killed processes left, and restore a recording that one of them had moved."""
    for left in _leftovers(target, _PARTIAL):
        with suppress(OSError):
            lock = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left, ignore_errors=True)
            finally:
                os.close(lock)
    for left in _leftovers(target, _OLD):
        if left.with_suffix(_PARTIAL).exists():
            continue  # a running process replaces the recording now
        with suppress(OSError):
            if os.path.lexists(target) or not is_recording(left):
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.rename(target)


def _leftovers(target: Path, suffix: str) -> list[Path]:
    """Return the hidden folders of `target` that belong to this user."""
    prefix, found = f".{target.name}.", list[Path]()
    with suppress(OSError):  # the parent folder may not be readable
        for path in target.parent.iterdir():
            middle = path.name.removeprefix(prefix).removesuffix(suffix)
            is_ours = path.name == f"{prefix}{middle}{suffix}" and "." not in middle
            if is_ours and stat.S_ISDIR(path.lstat().st_mode) and path.lstat().st_uid == os.getuid():
                found.append(path)
    return found


def _refuse_foreign(target: Path) -> None:
    """Raise `ConfigError` unless `target` is missing, an empty folder or a recording."""
    try:
        if not os.path.lexists(target):
            return
        if target.is_dir() and not target.is_symlink() and (is_recording(target) or not any(target.iterdir())):
            return
    except OSError as error:
        raise ConfigError(f"cannot read the folder {str(target)!r}: {error.strerror}") from error
    raise ConfigError(
        f"{str(target)!r} exists and is not a recording; use a new folder, an empty folder or a recording"
    )


def _write_file(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _list_document(kind: ResourceType, items: Sequence[JsonObject]) -> bytes:
    lines = ",\n".join(json.dumps(item, sort_keys=True, ensure_ascii=False) for item in items)
    head = f'{{"apiVersion": {json.dumps(kind.group_version)}, "kind": {json.dumps(f"{kind.kind}List")}, "items": ['
    return f"{head}\n{lines}\n]}}\n".encode()


def _indented(document: Mapping[str, object]) -> bytes:
    return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()


async def _finished(work: Callable[[], T]) -> T:
    """Run `work` in a thread. A cancellation takes effect after the thread has finished."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
