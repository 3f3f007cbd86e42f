"""What the server logs: one line of JSON for each record, on standard error, secrets masked. Set up by `holmes serve`.

Requests are not logged: metrics count them, and lines for every probe would hide what matters.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from holmes.app.redaction import mask_logs
from holmes.core.errors import ConfigError

if TYPE_CHECKING:
    from holmes.core.redaction.redactor import Redactor

_LEVELS: Final = {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}
_QUIET: Final = ("httpx", "httpcore", "LiteLLM", "litellm", "dbos", "uvicorn.access")


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


def set_up_logs(level: str, redactor: Redactor | None) -> None:
    """Send everything that is logged at `level` or above to standard error. Raises `ConfigError` for no level."""
    name = level.strip().upper() or "INFO"
    if name not in _LEVELS:
        raise ConfigError(f"LOG_LEVEL={level!r} is no level; there are: DEBUG, INFO, WARNING, ERROR, CRITICAL")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(name)
    for quiet in _QUIET:
        logging.getLogger(quiet).setLevel(max(logging.WARNING, root.level))
    # Its lines about starting and ending say what ours say; a bug is logged by `holmes.server.errors`, with its id.
    logging.getLogger("uvicorn.error").setLevel(max(logging.WARNING, root.level))
    logging.getLogger("uvicorn.error").addFilter(lambda record: "Exception in ASGI application" not in record.msg)
    if redactor is not None:
        mask_logs(redactor)
