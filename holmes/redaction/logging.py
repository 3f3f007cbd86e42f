"""A filter that masks secrets in log records. Put on every handler by the face that sets up logging.

On handlers and not on loggers, because a filter of a logger does not see what its children log.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holmes.redaction.redactor import Redactor

_PLAIN = logging.Formatter()


class RedactingFilter(logging.Filter):
    """Masks the message (with its arguments in place), the exception and the stack of a record; drops no record."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record in place, so that handlers that come later write the masked text too."""
        record.msg = self._redactor.redact(_message_of(record))
        record.args = None
        if record.exc_info:
            # A formatter prefers the text; without the exception none can format it again.
            record.exc_text = record.exc_text or _PLAIN.formatException(record.exc_info)
            record.exc_info = None
        if record.exc_text:
            record.exc_text = self._redactor.redact(record.exc_text)
        if record.stack_info:
            record.stack_info = self._redactor.redact(record.stack_info)
        return True


def _message_of(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        # A wrong number of arguments must not hide the record, nor leave secrets in it.
        return f"{record.msg} {record.args!r}"
