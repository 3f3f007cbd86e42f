"""Builds the redactor from the settings, and installs it in the process."""

from __future__ import annotations

import logging
import os
from functools import cache
from typing import TYPE_CHECKING

from holmes.redaction.redactor import RedactingFilter, Redactor
from holmes.redaction.views import strip_escape_sequences
from holmes.stores.secret_key import KEY_BYTES, load_or_create_key
from holmes.values.errors import mask_errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from holmes.settings.settings import Settings


def mask_process(redactor: Redactor | None) -> None:
    """Mask secrets in all later errors and log messages of the process.

    If `redactor` is None, redaction is disabled, and only escape sequences are removed from errors.
    """
    mask_errors(text_mask(redactor))
    if redactor is not None:
        mask_logs(redactor)


def mask_logs(redactor: Redactor) -> None:
    """Mask secrets in all later log messages. Repeated calls have no effect."""
    handlers = [*logging.getLogger().handlers, *([logging.lastResort] if logging.lastResort else [])]
    for handler in handlers:
        if not any(isinstance(each, RedactingFilter) for each in handler.filters):
            handler.addFilter(RedactingFilter(redactor))


def text_mask(redactor: Redactor | None) -> Callable[[str], str]:
    """Return the function that masks secrets in untrusted text.

    If redaction is disabled, the function removes only escape sequences.
    """
    return strip_escape_sequences if redactor is None else redactor.redact


@cache
def early_redactor() -> Redactor:
    """Return a redactor with a random key, for errors that occur before the settings are loaded."""
    return Redactor(os.urandom(KEY_BYTES))


def make_redactor(settings: Settings) -> Redactor | None:
    """Create the redactor with this user's key. Returns None if redaction is disabled.

    Call this function only once in a process. Without a stored key, every redactor has its own key, and two redactors
    would replace the same secret with different placeholders.
    """
    if not settings.tools.redaction:
        return None
    if not settings.storage.results_enabled:
        return Redactor(os.urandom(KEY_BYTES))
    return Redactor(load_or_create_key(settings.storage.results_path / "redaction.key"))
