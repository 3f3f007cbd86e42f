"""Collects what the user wants to ask: the prompt, files, and what is piped in.

Refuses what is not text and what is larger than 64 MB, and never waits for ever on a pipe that nobody writes to.
"""

from __future__ import annotations

import os
import select
import stat
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from holmes.app.requests import Attachment
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MAX_INPUT_BYTES = 64 * 1024 * 1024
_CHUNK_BYTES = 1 << 20
_BINARY_PROBE_BYTES = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the user asks; `text` is empty when only the interactive prompt can tell."""

    text: str
    attachments: tuple[Attachment, ...]


def collect_question(prompt: str | None, prompt_file: Path | None, files: tuple[Path, ...], piped: str) -> Question:
    """Put the question together. Text that is piped in is the question itself when there is no other.

    Raises `ConfigError` for two questions at once, or a file that is missing, too large or not text.
    """
    if prompt and prompt_file:
        message = "give the question as an argument or with --prompt-file, not both"
        raise ConfigError(message)
    attachments = [Attachment(name=str(file), text=read_text_file(file)) for file in files]
    question = read_text_file(prompt_file) if prompt_file else (prompt or "")
    if prompt_file and not question.strip():
        message = f"the prompt file {str(prompt_file)!r} is empty"
        raise ConfigError(message)
    if piped.strip():
        if question.strip():
            attachments.append(Attachment(name="standard input", text=piped))
        else:
            question = piped
    return Question(text=question.strip(), attachments=tuple(attachments))


def read_text_file(path: Path) -> str:
    """The text of a file; bytes that are not UTF-8 are replaced. Raises `ConfigError`."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_INPUT_BYTES + 1)
    except OSError as error:
        message = f"the file {str(path)!r} cannot be read: {error.strerror}"
        raise ConfigError(message) from error
    if len(content) > MAX_INPUT_BYTES:
        message = f"the file {str(path)!r} is larger than 64 MB: cut out what matters, for example with grep or tail"
        raise ConfigError(message)
    return _decoded(content, f"the file {str(path)!r}")


def read_piped_text(stream: TextIO | None, wait_seconds: float, notice: Callable[[str], None]) -> str:
    """What is piped in, or nothing when `stream` is a terminal, closed, or a pipe without data.

    A pipe that stays silent for `wait_seconds` is taken as finished, and `notice` says so: programs that start us may
    leave one open. Raises `ConfigError` when it is not text.
    """
    if stream is None or stream.closed or stream.isatty():
        return ""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return ""
    content = bytearray()
    for chunk in _chunks(descriptor, wait_seconds, notice):
        content += chunk
        if len(content) > MAX_INPUT_BYTES:
            notice("standard input is larger than 64 MB: the rest was not read")
            break
    return _decoded(bytes(content[:MAX_INPUT_BYTES]), "standard input")


def _chunks(descriptor: int, wait_seconds: float, notice: Callable[[str], None]) -> list[bytes]:
    """All data until the end, the limit, or a silence."""
    waits = not stat.S_ISREG(os.fstat(descriptor).st_mode)
    chunks: list[bytes] = []
    size = 0
    while size <= MAX_INPUT_BYTES:
        if waits and not _has_data(descriptor, wait_seconds, notice):
            state = "was open without data" if not chunks else f"paused for {wait_seconds:g} s and was left"
            notice(f"standard input {state}; HOLMES_STDIN_TIMEOUT_SECONDS sets the wait")
            break
        chunk = os.read(descriptor, _CHUNK_BYTES)
        if not chunk:
            break
        chunks.append(chunk)
        size += len(chunk)
    return chunks


def _has_data(descriptor: int, wait_seconds: float, notice: Callable[[str], None]) -> bool:
    """Whether data or the end comes within `wait_seconds`; a long wait is announced."""
    announce_after = min(wait_seconds, 1.0)
    started = time.monotonic()
    if _readable(descriptor, announce_after):
        return True
    remaining = wait_seconds - (time.monotonic() - started)
    if remaining <= 0:
        return False
    notice(f"waiting up to {wait_seconds:g} s for standard input")
    return _readable(descriptor, remaining)


def _readable(descriptor: int, wait_seconds: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | select.POLLHUP)
    return bool(poll.poll(wait_seconds * 1000))


def _decoded(content: bytes, what: str) -> str:
    if b"\0" in content[:_BINARY_PROBE_BYTES]:
        message = f"{what} is not text"
        raise ConfigError(message)
    return content.decode("utf-8", errors="replace")
