"""Saves each conversation in a private file, so that `holmes ask --continue` resumes the last conversation.

A file consists of JSON lines and is append-only, so a kill loses at most the current message. When Holmes opens a file
with an unreadable end, it moves this end to a separate file. Files have mode 0600, and their folder has mode 0700. A
failed write raises `ConversationStoreError`, and the run continues without the file.

The first line is `{"type": "conversation", "version": 1, "id": …, "started_at": …}`. Each message is a line
`{"type": "message", "message": …}`. A line `{"type": "history", "keep": n, "messages": […]}` replaces all messages
after the first n, because the loop compacts conversations and completes interrupted conversations.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
import uuid
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from holmes.stores.message_codec import message_from_json, message_to_json
from holmes.values.errors import HolmesError
from holmes.values.messages import ResultId

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from holmes.values.json_types import JsonObject
    from holmes.values.messages import Message

_VERSION = 1
_RESULT_ID = re.compile(rb"(?<![0-9a-f])[0-9a-f]{12,64}(?![0-9a-f])")
_FILE_NAME = re.compile(r"\d{8}T\d{6}-[0-9a-f]{8}\.jsonl")
_ASIDE = ".damaged"
_SECONDS_PER_DAY = 86_400


class ConversationStoreError(HolmesError):
    """A conversation could not be saved or read.

    For example, the disk is full or read-only, or a newer version of Holmes wrote the file.
    """


class Conversation:
    """An open conversation of a `ConversationStore`. Call `close()`, or use the conversation as a context manager.

    `notice` is a message for the user about a problem with the file, or None if the file has no problem. `cluster` is
    the configured cluster that the conversation is about, or None.
    """

    def __init__(
        self,
        path: Path,
        messages: Iterable[Message] = (),
        *,
        descriptor: int | None = None,
        notice: str | None = None,
        cluster: str | None = None,
    ) -> None:
        self._path = path
        self._cluster = cluster
        self.notice = notice
        self._messages = list(messages)
        self._on_disk = len(self._messages)  # the number of messages in the file
        self._descriptor = descriptor

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def id(self) -> str:
        """The name of the file without its extension."""
        return self._path.stem

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages so far, with which the conversation can be continued."""
        return tuple(self._messages)

    def append(self, message: Message) -> None:
        """Add a message and write it to disk.

        Raises `ConversationStoreError` if the write fails. The message is then only in memory, and the next write
        includes it.
        """
        self._messages.append(message)
        if self._on_disk == len(self._messages) - 1:
            self._write({"type": "message", "message": message_to_json(message)})
        else:
            self._write_from(self._on_disk)

    def replace(self, messages: Iterable[Message]) -> None:
        """Replace all messages. Writes only the changes to the file. Raises `ConversationStoreError`."""
        new = list(messages)
        if new == self._messages and self._on_disk == len(new):
            return
        pairs = zip(self._messages, new, strict=False)
        keep = next((index for index, (old, fresh) in enumerate(pairs) if old != fresh), None)
        if keep is None:
            keep = min(len(self._messages), len(new))
        self._messages = new
        self._on_disk = min(self._on_disk, keep)
        self._write_from(self._on_disk)

    def close(self) -> None:
        """Close the file. A later `append` opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _write_from(self, keep: int) -> None:
        encoded = [message_to_json(message) for message in self._messages[keep:]]
        self._write({"type": "history", "keep": keep, "messages": encoded})

    def _write(self, record: JsonObject) -> None:
        try:
            if self._descriptor is None:
                self._descriptor = _create(self._path, self._cluster)
            _append_line(self._descriptor, record)
        except OSError as error:
            message = f"the conversation could not be saved in {str(self._path)!r}: {error.strerror or error}"
            raise ConversationStoreError(message) from error
        self._on_disk = len(self._messages)


class ConversationStore:
    """Manages the conversations of one user.

    Deletes conversations that are older than `retention_days`, and the oldest conversations if more than `limit` exist.
    Only conversations about `cluster` are continued, because the answers about another cluster would mislead a model.
    """

    def __init__(self, folder: Path, *, retention_days: float, limit: int, cluster: str | None = None) -> None:
        self._folder = folder
        self._cluster = cluster
        self._retention_seconds = retention_days * _SECONDS_PER_DAY
        self._limit = limit

    def start(self) -> Conversation:
        """Return a new conversation, and delete old conversations. The first message creates the file."""
        self.prune()
        return Conversation(self._new_path(), cluster=self._cluster)

    def result_ids(self) -> frozenset[ResultId]:
        """Return the ids of all stored results that a saved conversation may refer to.

        The set may also contain numbers that are not result ids, which has no effect. An unreadable file is treated as
        empty.
        """
        found: set[bytes] = set()
        for path in self._paths():
            with suppress(OSError), path.open("rb") as lines:
                for line in lines:
                    found.update(_RESULT_ID.findall(line))
        return frozenset(ResultId(each.decode("ascii")) for each in found)

    def latest(self) -> Conversation | None:
        """Return the most recent conversation about the cluster, or None if none exists.

        If another process has the file open, the conversation is a copy in a new file, because two processes must never
        write to one file. Raises `ConversationStoreError` if the file cannot be read.
        """
        path = next((path for path in self._paths() if _cluster_of(path) in {self._cluster, _UNREADABLE}), None)
        if path is None:
            return None
        try:
            return self._reopen(path)
        except OSError as error:
            message = f"the conversation {str(path)!r} cannot be read: {error.strerror or error}"
            raise ConversationStoreError(message) from error

    def prune(self) -> None:
        """Delete conversations that exceed the limits.

        Skips files with other names, and files that cannot be deleted.
        """
        oldest = time.time() - self._retention_seconds
        for index, path in enumerate(self._paths()):
            if index >= self._limit - 1 or _modified(path) < oldest:
                _delete_unless_open(path)

    def _reopen(self, path: Path) -> Conversation:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        with ExitStack() as cleanup:
            cleanup.callback(os.close, descriptor)
            owned = _lock(descriptor)
            with path.open("rb") as file:
                kept = read_lines(file, path)
            if owned:
                notice = _set_aside(path, kept, descriptor)
                cleanup.pop_all()
                return Conversation(path, kept.messages, descriptor=descriptor, notice=notice)
        copy = Conversation(self._new_path(), cluster=self._cluster)
        copy.replace(kept.messages)
        return copy

    def _new_path(self) -> Path:
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        return self._folder / f"{stamp}-{uuid.uuid4().hex[:8]}.jsonl"

    def _paths(self) -> list[Path]:
        """Return the files of all conversations, most recent first."""
        try:
            named = [path for path in self._folder.iterdir() if _FILE_NAME.fullmatch(path.name)]
            # Skip pipes, devices, and empty files that were left by a full disk.
            found = [path for path in named if path.is_file() and path.stat().st_size]
        except OSError:
            return []
        return sorted(found, key=lambda path: (_modified(path), path.name), reverse=True)


_UNREADABLE: Final = ""


def _cluster_of(path: Path) -> str | None:
    """Return the cluster in the header of a file, or `_UNREADABLE` for a damaged file. Its error is shown later."""
    try:
        with path.open("rb") as file:
            header = json.loads(file.readline(_LONGEST_HEADER_BYTES))
    except (OSError, ValueError, RecursionError):
        return _UNREADABLE
    cluster = header.get("cluster") if isinstance(header, dict) else _UNREADABLE
    return cluster if cluster is None or isinstance(cluster, str) else _UNREADABLE


_LONGEST_HEADER_BYTES: Final = 4_096


def _create(path: Path, cluster: str | None) -> int:
    """Create a private file with its header line."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.parent.chmod(0o700)
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    _lock(descriptor)
    if os.fstat(descriptor).st_size == 0:
        started_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        place: JsonObject = {"cluster": cluster} if cluster else {}
        header = {"type": "conversation", "version": _VERSION, "id": path.stem, "started_at": started_at, **place}
        try:
            _append_line(descriptor, header)
        except OSError:
            path.unlink(missing_ok=True)
            os.close(descriptor)
            raise
    return descriptor


def _append_line(descriptor: int, record: JsonObject) -> None:
    """Write a complete line. If the disk is full, remove the incomplete line again."""
    size_before = os.fstat(descriptor).st_size
    remaining = memoryview(json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n")
    try:
        while remaining:
            remaining = remaining[os.write(descriptor, remaining) :]
    except OSError:
        os.ftruncate(descriptor, size_before)
        raise


def _set_aside(path: Path, kept: KeptLines, descriptor: int) -> str | None:
    """Move the unreadable end to a separate file, and complete the last line.

    Returns a message for the user, or None if nothing was moved.
    """
    notice = None
    if kept.garbage:
        aside = path.with_suffix(_ASIDE)
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(kept.garbage)
        os.ftruncate(descriptor, kept.complete_bytes)
        size = f"{len(kept.garbage):,} bytes"
        notice = f"the last {size} of the conversation cannot be read and were moved to {str(aside)!r}"
    if kept.complete_bytes and os.pread(descriptor, 1, kept.complete_bytes - 1) != b"\n":
        os.write(descriptor, b"\n")
    return notice


def is_conversation(line: bytes) -> bool:
    """Return whether `line` is the first line of a conversation file."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and record.get("type") == "conversation"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptLines:
    """The messages of a conversation file, and its unreadable end in `garbage`."""

    messages: tuple[Message, ...]
    complete_bytes: int
    garbage: bytes


def read_lines(lines: Iterable[bytes], path: Path) -> KeptLines:
    """Read the lines of a conversation. Error messages contain `path`.

    Only the end may be damaged. A kill leaves an incomplete line, a power failure leaves zero bytes, and another
    program can leave any data. A damaged line before a valid line raises `ConversationStoreError`, because the messages
    after the damaged line would be lost.
    """
    messages: list[Message] = []
    garbage: list[bytes] = []
    complete_bytes = broken_line = 0
    for number, line in enumerate(lines, start=1):
        try:
            _apply_line(line, [] if broken_line else messages, path, is_after_garbage=bool(broken_line))
        except (ValueError, RecursionError):
            broken_line = broken_line or number
            garbage.append(line)
            continue
        if broken_line:
            message = (
                f"the conversation {str(path)!r} is damaged at line {broken_line}: "
                "repair or remove the file, or start a new conversation without --continue"
            )
            raise ConversationStoreError(message)
        complete_bytes += len(line)
    return KeptLines(messages=tuple(messages), complete_bytes=complete_bytes, garbage=b"".join(garbage))


def _apply_line(line: bytes, messages: list[Message], path: Path, *, is_after_garbage: bool) -> None:
    record = json.loads(line.strip(b"\x00"))
    if not isinstance(record, dict):
        message = "not a JSON object"
        raise ValueError(message)  # noqa: TRY004  callers catch only `ValueError`
    if is_after_garbage and record.get("type") == "history":
        record = {**record, "keep": 0}  # the number of saved messages is unknown at this point
    _apply(record, messages, path)


def _apply(record: Mapping[str, object], messages: list[Message], path: Path) -> None:
    match record.get("type"):
        case "conversation":
            if record.get("version") != _VERSION:
                message = (
                    f"the conversation {str(path)!r} was written by a newer version of Holmes: "
                    "update Holmes, or start a new conversation"
                )
                raise ConversationStoreError(message)
        case "message":
            messages.append(message_from_json(record.get("message")))
        case "history":
            keep, fresh = record.get("keep"), record.get("messages")
            if not isinstance(keep, int) or not 0 <= keep <= len(messages) or not isinstance(fresh, list):
                message = "the fields of the history line are not valid"
                raise ValueError(message)
            messages[keep:] = [message_from_json(item) for item in fresh]
        case unknown:
            message = f"unknown line type {unknown!r}"
            raise ValueError(message)


def _lock(descriptor: int) -> bool:
    """Lock the file for this process until the file is closed. Returns False if another process has the lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _delete_unless_open(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if _lock(descriptor):
            path.with_suffix(_ASIDE).unlink(missing_ok=True)
            path.unlink(missing_ok=True)
    except OSError:
        return
    finally:
        os.close(descriptor)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
