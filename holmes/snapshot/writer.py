"""Writes the folder of a recording, which appears whole or not at all.

Everything goes into a hidden folder beside the target, which takes the target's name at the very end. Each file is
written in a thread; a cancelled write is waited for, so that nothing is written after the clean-up.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from holmes.snapshot.recording import DISCOVERY, FORMAT, MANIFEST, is_recording, log_file, objects_file, openapi_file
from holmes.values.errors import ConfigError, HolmesError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from holmes.snapshot.discovery import Discovery, ResourceType
    from holmes.snapshot.recording import LogKey
    from holmes.values.json_types import JsonObject, JsonValue

T = TypeVar("T")


class RecordingWriter:
    """One recording that is being written; see `open`."""

    def __init__(self, target: Path, hidden: Path) -> None:
        self._target = target
        self._hidden = hidden

    @classmethod
    @asynccontextmanager
    async def open(cls, target: Path) -> AsyncIterator[RecordingWriter]:
        """A writer for `target`; without `publish()` nothing stays of what it wrote.

        Raises `ConfigError` when `target` is something that a recording must not replace, `HolmesError` when the disk
        does not take it.
        """
        target = _absolute(target)
        _refuse_foreign(target)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            hidden = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent))
        except OSError as error:
            raise ConfigError(f"the folder {str(target)!r} cannot be made: {error.strerror}") from error
        try:
            yield cls(target, hidden)
        except OSError as error:
            reason = error.strerror or str(error)
            raise HolmesError(f"the recording {str(target)!r} cannot be written: {reason}; nothing was kept") from error
        finally:
            shutil.rmtree(hidden, ignore_errors=True)

    async def write_objects(self, kind: ResourceType, items: Sequence[JsonObject]) -> None:
        """Write all objects of one resource, one a line, in the given order; an empty list is a file too."""
        await self._write(objects_file(kind.group, kind.plural), lambda: _list_document(kind, items))

    async def write_log(self, key: LogKey, content: bytes) -> None:
        """Write one log."""
        await self._write(log_file(key), lambda: content)

    async def write_openapi(self, path: str, document: JsonObject) -> None:
        """Write the schemas of the group version at `path`."""
        await self._write(openapi_file(path), lambda: json.dumps(document, sort_keys=True).encode())

    async def write_discovery(self, discovery: Discovery) -> None:
        """Write what the cluster can be asked for, in its order."""
        document = {"groups": discovery.groups, "resources": discovery.resources}
        await self._write(Path(DISCOVERY), lambda: _indented(document))

    async def write_manifest(self, content: Mapping[str, JsonValue]) -> None:
        """Write what the recording is."""
        await self._write(Path(MANIFEST), lambda: _indented({"format": FORMAT, **content}))

    async def publish(self) -> int:
        """Let the recording take its name, in place of an older one. Returns its size in bytes."""
        return await _finished(self._publish)

    async def _write(self, file: Path, content: Callable[[], bytes]) -> None:
        if file.is_absolute() or ".." in file.parts:  # names in it come from the cluster, which may be anybody's
            raise HolmesError(f"{str(file)!r} leads out of the recording: a name in the cluster's answers is hostile")
        await _finished(lambda: _write_file(self._hidden / file, content()))

    def _publish(self) -> int:
        size_bytes = sum(path.stat().st_size for path in self._hidden.rglob("*") if path.is_file())
        _refuse_foreign(self._target)
        older = self._hidden.with_suffix(".old")
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
    return Path(os.path.abspath(target))  # noqa: PTH100  unlike `Path.absolute` it settles `..`


def _refuse_foreign(target: Path) -> None:
    """Raise `ConfigError` unless `target` is missing, an empty folder or a recording."""
    try:
        if not os.path.lexists(target):
            return
        if target.is_dir() and not target.is_symlink() and (is_recording(target) or not any(target.iterdir())):
            return
    except OSError as error:
        raise ConfigError(f"the folder {str(target)!r} cannot be read: {error.strerror}") from error
    raise ConfigError(
        f"{str(target)!r} is there already and is no recording: name a folder that is new, empty or a recording"
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
    """The result of `work` in a thread; when we are cancelled, the cancellation waits until the thread is done."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
