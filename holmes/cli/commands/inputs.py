"""Collects the input of a command: the question, files, piped text and alerts.

Rejects binary data and files larger than 64 MB. Only the first 64 MB of standard input are used. Waiting for data on an
open pipe has a time limit.
"""

from __future__ import annotations

import os
import select
import stat
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TextIO

from holmes.app.requests import Attachment
from holmes.input_files import TOTAL_SECONDS, WAIT_SECONDS, read_input_file
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from holmes.app.cluster import ClusterChoice
    from holmes.investigations.records.values import AlertGroup
    from holmes.settings.alerts import SourceSettings
    from holmes.settings.settings import Settings
    from holmes.sources import LabelMatcher

MAX_INPUT_BYTES = 64 * 1024 * 1024
_CHUNK_BYTES = 1 << 20
_BINARY_PROBE_BYTES = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question with its attachments. `text` is empty if the user types it at the interactive prompt."""

    text: str
    attachments: tuple[Attachment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Options for additional output and for checking toolsets again."""

    verbose: bool
    show_tool_output: bool
    log_costs: bool
    refresh_toolsets: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A command whose options have been checked."""

    settings: Settings
    cluster: ClusterChoice
    output: Output


@dataclass(frozen=True, slots=True, kw_only=True)
class AskJob(Job):
    """The options of `holmes ask`: one question, or an interactive session."""

    question: Question
    interactive: bool
    continue_last: bool
    report_path: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class InvestigateJob(Job):
    """The options of `holmes investigate`, which selects at most `limit` firing alerts that match all `matchers`."""

    matchers: tuple[LabelMatcher, ...]
    limit: int | None


def collect_question(prompt: str | None, prompt_file: Path | None, files: tuple[Path, ...], piped: str) -> Question:
    """Combine the sources of a question. If no other source contains the question, the piped text is the question.

    Raises `ConfigError` if two questions are given, or if a file is missing, too large or not text.
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


def read_text_file(path: Path, *, wait_seconds: float = WAIT_SECONDS) -> str:
    """Return the text of a file, in which U+FFFD replaces invalid UTF-8.

    Raises `ConfigError`, also for a pipe that sends no data for `wait_seconds`.
    """
    try:
        content = read_input_file(path, MAX_INPUT_BYTES, wait_seconds=wait_seconds)
    except (OSError, ValueError) as error:  # ValueError: the path contains NUL
        message = f"the file {str(path)!r} cannot be read: {getattr(error, 'strerror', None) or error}"
        raise ConfigError(message) from error
    if len(content) > MAX_INPUT_BYTES:
        message = f"the file {str(path)!r} is larger than 64 MB: reduce it, for example with grep or tail"
        raise ConfigError(message)
    return _decoded(content, f"the file {str(path)!r}")


def read_piped_text(
    stream: TextIO | None, wait_seconds: float, notice: Callable[[str], None], total_seconds: float = TOTAL_SECONDS
) -> str:
    """Return the piped text, which is empty for a terminal, a closed stream or a pipe without data.

    Callers may leave a pipe open. Therefore, a pipe is treated as finished if it sends no data for `wait_seconds`, or
    does not end within `total_seconds`, and `notice` reports this. Raises `ConfigError` for binary data.
    """
    if stream is None or stream.closed or stream.isatty():
        return ""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return ""
    content = bytearray()
    deadline = time.monotonic() + total_seconds
    for chunk in _chunks(descriptor, wait_seconds, notice):
        content += chunk
        if len(content) > MAX_INPUT_BYTES:
            notice("only the first 64 MB of standard input are used; pass less data, or attach files with --file")
            break
        if time.monotonic() > deadline:
            notice(f"standard input did not end within {total_seconds:g} s; only the data until then is used")
            break
    return _decoded(bytes(content[:MAX_INPUT_BYTES]), "standard input")


def _chunks(descriptor: int, wait_seconds: float, notice: Callable[[str], None]) -> Iterator[bytes]:
    """Yield data until the end of the stream or a pause."""
    waits = not stat.S_ISREG(os.fstat(descriptor).st_mode)
    state = "empty"
    while True:
        if waits and not _has_data(descriptor, wait_seconds, notice):
            pause = f"standard input sent no data for {wait_seconds:g} s and is treated as {state}"
            notice(f"{pause}; HOLMES_STDIN_TIMEOUT_SECONDS sets the time limit")
            return
        chunk = os.read(descriptor, _CHUNK_BYTES)
        if not chunk:
            return
        state = "finished"
        yield chunk


def _has_data(descriptor: int, wait_seconds: float, notice: Callable[[str], None]) -> bool:
    """Return whether data or the end of the stream arrives within `wait_seconds`. Reports a long wait."""
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


_MAX_ALERT_BYTES: Final = 64_000_000


async def firing_alerts(
    sources: SourceSettings, matchers: tuple[LabelMatcher, ...], limit: int | None, mask: Callable[[str], str]
) -> AlertGroup:
    """Return the first `limit` firing alerts that match, from the alert file or from Alertmanager.

    Raises `ConfigError` and `SourceUnreachable`.
    """
    # Imported here, because `holmes ask` does not need these modules.
    import asyncio

    from holmes.investigations.alerts.payload import AlertPayloadError, parse_alerts
    from holmes.sources import AlertmanagerAccess, SourceUnreachable, fetch_alerts, matches_all

    file = sources.alertmanager_file
    if file is not None:
        content = await asyncio.to_thread(_read_alerts, file)
    else:
        password = sources.alertmanager_password
        access = AlertmanagerAccess(
            url=sources.alertmanager_url or "",
            username=sources.alertmanager_username,
            password=password.get_secret_value() if password else None,
        )
        content = await fetch_alerts(access, matchers)
    try:
        group = parse_alerts(content, mask=mask)
    except AlertPayloadError as error:
        if file is not None:
            raise ConfigError(f"the file {str(file)!r}: {error}") from None
        message = f"the response from Alertmanager is not valid: {error}; check --alertmanager-url"
        raise SourceUnreachable(message) from None
    firing = (each for each in group.alerts if each.status == "firing" and matches_all(matchers, each.labels))
    return replace(group, alerts=tuple(firing)[:limit])


def _read_alerts(path: Path) -> bytes:
    try:
        content = read_input_file(path, _MAX_ALERT_BYTES)
    except OSError as error:
        raise ConfigError(f"the file {str(path)!r} cannot be read: {error.strerror}") from error
    if len(content) > _MAX_ALERT_BYTES:
        raise ConfigError(f"the file {str(path)!r} is larger than {_MAX_ALERT_BYTES // 1_000_000} MB")
    return content
