"""Logs that are parts of files. They are read only when they are requested, within a limit, and secrets are masked.

Other tools write logs in several forms: plain lines, lines with the time of the container runtime, or the lines of the
runtime's own files (`TIME stdout F LINE`). Files can have a byte order mark and Windows line ends.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import nanoseconds
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

LOG_LIMIT_BYTES: Final = 16 * 1024 * 1024
"""Only the end of a longer log is read, so that logs of any size do not need memory."""

_PEEKED_BYTES: Final = 64 * 1024
_PEEKED_LINES: Final = 20
_RUNTIME_FILE: Final = expression(rb"(?m)^(\S+) (?:stdout|stderr) ([FP]) ?")
_RUNTIME_TIME: Final = expression(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7,9}(?:Z|[+-]\d\d:\d\d)(?: |$)")
_WIDE: Final = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def as_utf8(content: bytes) -> bytes:
    """Convert a text with a byte order mark to UTF-8 without it. Windows shells write UTF-16."""
    for mark, encoding in _WIDE.items():
        if content.startswith(mark):
            try:
                return content.removeprefix(mark).decode(encoding).encode()
            except UnicodeError:
                return content
    return content.removeprefix(codecs.BOM_UTF8)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogKey:
    """Identifies a container log. `previous` is true for the log of the container's previous instance."""

    namespace: str
    pod: str
    container: str
    previous: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedLog:
    """The location of a log in a file: `size_bytes` bytes that start at `offset_bytes`.

    If `timestamps` is true, each line starts with its time. `convert` changes the content to plain lines, and `mask`
    removes secrets from the selected lines.
    """

    path: Path
    offset_bytes: int
    size_bytes: int
    timestamps: bool
    convert: Callable[[bytes], bytes] | None = field(default=None, compare=False)
    mask: Callable[[bytes], bytes] | None = field(default=None, compare=False)

    def lines(self) -> list[bytes]:
        """Read all lines, including their line endings. Raises `OSError` if the file does not exist."""
        with self.path.open("rb") as file:
            file.seek(self.offset_bytes)
            content = file.read(self.size_bytes)
        content = self.convert(content) if self.convert else content
        # `splitlines` is not used, because a single carriage return, as in progress bars, does not end a line.
        return [line for line in re.split(rb"(?<=\n)", content) if line]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogQuery:
    """Selects part of a log. `since_nanoseconds` is in nanoseconds since the epoch. None means no limit."""

    tail_lines: int | None = None
    since_nanoseconds: int | None = None
    limit_bytes: int | None = None
    timestamps: bool = False


def select(log: RecordedLog, query: LogQuery) -> bytes:
    """Return the selected part of `log`. Like the kubelet, limit the time first, then the lines, then the bytes."""
    lines: Sequence[bytes] = log.lines()
    if log.timestamps and query.since_nanoseconds is not None:
        lines = _since(lines, query.since_nanoseconds)
    if query.tail_lines is not None:
        lines = lines[-query.tail_lines :] if query.tail_lines else []
    if log.mask is not None and lines:
        lines = re.split(rb"(?<=\n)", log.mask(b"".join(lines)))
    if log.timestamps and not query.timestamps:
        lines = [without_timestamp(line) for line in lines]
    content = b"".join(lines)
    return content if query.limit_bytes is None else content[: query.limit_bytes]


def without_timestamp(line: bytes) -> bytes:
    """Remove the timestamp, if any, from a line."""
    before, separator, after = line.partition(b" ")
    return after if separator and nanoseconds(before.decode("ascii", "replace")) is not None else line


def _since(lines: Sequence[bytes], since_nanoseconds: int) -> Sequence[bytes]:
    """Return the lines from the first line that is not older than `since_nanoseconds`."""
    for index, line in enumerate(lines):
        written = nanoseconds(line.partition(b" ")[0].decode("ascii", "replace"))
        if written is not None and written >= since_nanoseconds:
            return lines[index:]
    return []


def found_log(path: Path) -> RecordedLog:
    """Describe the log in a file of another tool. Only the end of a large file is used. Raises `OSError`."""
    size = path.stat().st_size
    start = max(0, size - LOG_LIMIT_BYTES)
    start -= start % 2  # characters of UTF-16 have two bytes
    with path.open("rb") as file:
        head = file.read(_PEEKED_BYTES)
        encoding = next((name for mark, name in _WIDE.items() if head.startswith(mark)), "utf-8")
        if start and encoding == "utf-8":
            file.seek(start)
            start += len(file.readline(_PEEKED_BYTES))
    convert = partial(plain_lines, encoding=encoding)
    timed = is_timed(convert(head))
    return RecordedLog(path=path, offset_bytes=start, size_bytes=size - start, timestamps=timed, convert=convert)


def last_seconds(log: RecordedLog) -> float:
    """Return the time of the last line of a log in seconds, or of the last change of its file. Raises `OSError`."""
    changed = log.path.stat().st_mtime
    if not log.timestamps:
        return changed
    end = log.offset_bytes + log.size_bytes
    start = max(log.offset_bytes, end - _PEEKED_BYTES)
    lines = replace(log, offset_bytes=start - start % 2, size_bytes=end - start).lines()
    written = (nanoseconds(line.partition(b" ")[0].decode("ascii", "replace")) for line in reversed(lines))
    return next((each / 1_000_000_000 for each in written if each is not None), changed)


def plain_lines(content: bytes, encoding: str = "utf-8") -> bytes:
    """Convert a log to UTF-8 with plain line ends. A line of a runtime's file keeps only its time and its text."""
    if encoding != "utf-8":
        content = content.decode(encoding, "replace").encode().removeprefix(codecs.BOM_UTF8)
    content = content.removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n")
    first = _RUNTIME_FILE.match(content)
    if first is None or nanoseconds(first[1].decode("ascii", "replace")) is None:
        return content
    return _RUNTIME_FILE.sub(rb"\1 ", content)


def is_timed(head: bytes) -> bool:
    """Return whether the first lines of a log start with the time of the container runtime.

    A program's own time is rarely as precise, so it is not taken for it.
    """
    lines = [line for line in head.split(b"\n")[:_PEEKED_LINES] if line]
    lines = lines[:-1] or lines  # the last line may be incomplete
    return bool(lines) and all(_RUNTIME_TIME.match(line) for line in lines)
