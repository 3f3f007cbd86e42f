"""The logs of a recording: which there are, and the part of one that a request asks for.

A log with `timestamps` has the moment of each line before it, as the kubelet writes it; one without (from a cluster
dump) cannot be cut by time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.snapshot.times import nanoseconds

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class LogKey:
    """Whose log; `previous` is the one of the container's instance before the current one."""

    namespace: str
    pod: str
    container: str
    previous: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedLog:
    """A log as a part of a file: `size_bytes` from `offset_bytes`."""

    path: Path
    offset_bytes: int
    size_bytes: int
    timestamps: bool

    def lines(self) -> list[bytes]:
        """All lines, with their line ends. Raises `OSError` when the file is gone."""
        with self.path.open("rb") as file:
            file.seek(self.offset_bytes)
            content = file.read(self.size_bytes)
        # Not `splitlines`: a bare carriage return, as progress bars write it, ends no line.
        return [line for line in re.split(rb"(?<=\n)", content) if line]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogQuery:
    """What of a log is wanted. `since_nanoseconds` counts from 1970; None means no limit."""

    tail_lines: int | None = None
    since_nanoseconds: int | None = None
    limit_bytes: int | None = None
    timestamps: bool = False


def select(log: RecordedLog, query: LogQuery) -> bytes:
    """The part of `log` that `query` asks for, as the kubelet cuts it: by time, then the tail, then by bytes."""
    lines: Sequence[bytes] = log.lines()
    if log.timestamps and query.since_nanoseconds is not None:
        lines = _since(lines, query.since_nanoseconds)
    if query.tail_lines is not None:
        lines = lines[-query.tail_lines :] if query.tail_lines else []
    if log.timestamps and not query.timestamps:
        lines = [without_timestamp(line) for line in lines]
    content = b"".join(lines)
    return content if query.limit_bytes is None else content[: query.limit_bytes]


def without_timestamp(line: bytes) -> bytes:
    """The line as the container wrote it; a line without a moment comes back as it is."""
    before, separator, after = line.partition(b" ")
    return after if separator and nanoseconds(before.decode("ascii", "replace")) is not None else line


def _since(lines: Sequence[bytes], since_nanoseconds: int) -> Sequence[bytes]:
    """The lines from the first one that is not older."""
    for index, line in enumerate(lines):
        written = nanoseconds(line.partition(b" ")[0].decode("ascii", "replace"))
        if written is not None and written >= since_nanoseconds:
            return lines[index:]
    return []
