"""Writes each record of the server log to standard error as one line of JSON, with masked secrets.

Requests are not logged, because metrics count them. Connection errors that clients cause are not logged either. A
repeated line is written at most once a minute, with the number of repetitions.
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
    # `holmes.server.errors` logs these exceptions with an id.
    "uvicorn.error": (
        "Exception in ASGI application",
        "Invalid HTTP request received",
        "Unsupported upgrade request",
        "No supported WebSocket library",
    ),
    # A Python warning about a library type, which does not help operators.
    "py.warnings": ("TypedDict",),
}
_QUIET: Final = ("httpx", "httpcore", "LiteLLM", "litellm", "dbos", "uvicorn.access", "uvicorn.error")


class PatientHandler(logging.StreamHandler[TextIO]):
    """Writes a repeated line at most once in `seconds`, with the number of its repetitions.

    Forked processes take turns, because long lines would be interleaved in a pipe.
    """

    def __init__(self, stream: TextIO, seconds: float = _MINUTE) -> None:
        super().__init__(stream)
        self._seconds = seconds
        self._written: dict[tuple[str, int, int], _Written] = {}
        self._turns = _file_of_turns()

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record, unless it was written recently."""
        try:
            message, now = record.getMessage(), time.monotonic()
        except (TypeError, ValueError, KeyError):  # invalid arguments must not stop the caller
            self.handleError(record)
            return
        key = (record.name, record.levelno, hash(message))
        known = self._written.get(key)
        if known is not None and now - known.at < self._seconds:
            known.more += 1
            return
        if known is not None and known.more:
            record.msg, record.args = f"{message} (repetitions not logged: {known.more})", None
        self._written.pop(key, None)
        self._written[key] = _Written(at=now)
        if len(self._written) > _REMEMBERED:
            del self._written[next(iter(self._written))]
        if self._turns is None:
            super().emit(record)
            return
        fcntl.lockf(self._turns, fcntl.LOCK_EX)  # the kernel releases the lock if the process dies
        try:
            super().emit(record)
        finally:
            fcntl.lockf(self._turns, fcntl.LOCK_UN)


@dataclass(slots=True, kw_only=True)
class _Written:
    """The time at which a line was last written, and the number of its repetitions since then."""

    at: float
    more: int = 0


def _file_of_turns() -> int | None:
    """Create an in-memory file that forked processes inherit and lock to take turns.

    Returns None if the system does not support such files.
    """
    if sys.platform != "linux":
        return None
    try:
        return os.memfd_create("holmes-log")
    except OSError:
        return None


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record. The field `trace` contains the stack trace of an exception."""
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
    """Log records at `level` or above to standard error. Raises `ConfigError` for an unknown level."""
    name = level.strip().upper() or "INFO"
    if name not in _LEVELS:
        raise ConfigError(
            f"LOG_LEVEL={level!r} is not a valid level; available levels: DEBUG, INFO, WARNING, ERROR, CRITICAL"
        )
    handler = PatientHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(name)
    for quiet in _QUIET:
        logging.getLogger(quiet).setLevel(max(logging.WARNING, root.level))
    logging.captureWarnings(True)  # noqa: FBT003  the interface of logging
    handler.addFilter(_is_no_noise)
    # Form errors are not logged, because clients receive them in the response.
    logging.getLogger("python_multipart").setLevel(logging.ERROR)
    mask_process(redactor)
