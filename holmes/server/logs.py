"""What the server logs: one line of JSON for each record, on standard error, secrets masked. Set up by `holmes serve`.

Requests are not logged: metrics count them, and lines for every probe would hide what matters. Nor is what strangers
do wrong on a connection; and a line that repeats itself is written once a minute, with a count.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TextIO

from holmes.app.redaction import mask_process
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from holmes.redaction.redactor import Redactor

_LEVELS: Final = {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}
_MINUTE: Final = 60.0
_REMEMBERED: Final = 1_000
_NOISE: Final = {
    # Its lines about bugs: they are logged by `holmes.server.errors`, with their id.
    "uvicorn.error": (
        "Exception in ASGI application",
        "Invalid HTTP request received",
        "Unsupported upgrade request",
        "No supported WebSocket library",
    ),
    # Warnings of Python say nothing to who runs a server; this one is about a type of a library.
    "py.warnings": ("TypedDict",),
}
_QUIET: Final = ("httpx", "httpcore", "LiteLLM", "litellm", "dbos", "uvicorn.access", "uvicorn.error")


class PatientHandler(logging.StreamHandler[TextIO]):
    """Writes a line that repeats itself once in `seconds`; how often it came meanwhile is said the next time.

    Processes that are forked from this one write in turns: long lines, those with a trace, would mix in a pipe.
    """

    def __init__(self, stream: TextIO, seconds: float = _MINUTE) -> None:
        super().__init__(stream)
        self._seconds = seconds
        self._written: dict[tuple[str, int, int], _Written] = {}
        self._turns = _file_of_turns()

    def emit(self, record: logging.LogRecord) -> None:
        """Write it, unless it was written a moment ago."""
        try:
            message, now = record.getMessage(), time.monotonic()
        except (TypeError, ValueError, KeyError):  # arguments that do not fit: whoever logs must not fail
            self.handleError(record)
            return
        key = (record.name, record.levelno, hash(message))
        known = self._written.get(key)
        if known is not None and now - known.at < self._seconds:
            known.more += 1
            return
        if known is not None and known.more:
            record.msg, record.args = f"{message} ({known.more} more since then)", None
        self._written.pop(key, None)
        self._written[key] = _Written(at=now)
        if len(self._written) > _REMEMBERED:
            del self._written[next(iter(self._written))]
        if self._turns is None:
            super().emit(record)
            return
        fcntl.lockf(self._turns, fcntl.LOCK_EX)  # the kernel unlocks for a process that dies
        try:
            super().emit(record)
        finally:
            fcntl.lockf(self._turns, fcntl.LOCK_UN)


@dataclass(slots=True, kw_only=True)
class _Written:
    """When a line was written, and how often it came since then."""

    at: float
    more: int = 0


def _file_of_turns() -> int | None:
    """A file in memory that forked processes inherit and lock; None where there are none."""
    if sys.platform != "linux":
        return None
    try:
        return os.memfd_create("holmes-log")
    except OSError:
        return None


class JsonLines(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """The line. An exception is one field of it."""
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        trace = record.exc_text or (self.formatException(record.exc_info) if record.exc_info else "")
        if trace:
            fields["trace"] = trace
        return json.dumps(fields, ensure_ascii=False)


def _is_no_noise(record: logging.LogRecord) -> bool:
    signs = _NOISE.get(record.name)
    return signs is None or not any(sign in f"{record.msg}{record.args}" for sign in signs)


def set_up_logs(level: str, redactor: Redactor | None) -> None:
    """Send everything that is logged at `level` or above to standard error. Raises `ConfigError` for no level."""
    name = level.strip().upper() or "INFO"
    if name not in _LEVELS:
        raise ConfigError(f"LOG_LEVEL={level!r} is no level; there are: DEBUG, INFO, WARNING, ERROR, CRITICAL")
    handler = PatientHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(name)
    for quiet in _QUIET:
        logging.getLogger(quiet).setLevel(max(logging.WARNING, root.level))
    logging.captureWarnings(True)  # noqa: FBT003  the interface of logging
    handler.addFilter(_is_no_noise)
    # Whatever is wrong with a form, its sender is told.
    logging.getLogger("python_multipart").setLevel(logging.ERROR)
    mask_process(redactor)
