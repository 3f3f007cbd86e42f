"""From the settings to what masks secrets."""

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
    """Hide secrets in every error from now on, and in everything that is logged, also by libraries.

    None when redaction is switched off: then only escape sequences are removed from errors.
    """
    mask_errors(text_mask(redactor))
    if redactor is not None:
        mask_logs(redactor)


def mask_logs(redactor: Redactor) -> None:
    """Hide secrets in everything that is logged from now on, also by libraries. Doing it again changes nothing."""
    handlers = [*logging.getLogger().handlers, *([logging.lastResort] if logging.lastResort else [])]
    for handler in handlers:
        if not any(isinstance(each, RedactingFilter) for each in handler.filters):
            handler.addFilter(RedactingFilter(redactor))


def text_mask(redactor: Redactor | None) -> Callable[[str], str]:
    """What makes foreign text fit to be read: without secrets, or without escape sequences when redaction is off."""
    return strip_escape_sequences if redactor is None else redactor.redact


@cache
def early_redactor() -> Redactor:
    """Masks errors while the settings, and so the key of this user, are not known yet."""
    return Redactor(os.urandom(KEY_BYTES))


def make_redactor(settings: Settings) -> Redactor | None:
    """Masks secrets with the key of this user; None when redaction is switched off.

    Made once for a process and handed on: where no key can be kept, or none may since storage is switched off, each
    call makes another one, and the same secret would get two placeholders.
    """
    if not settings.tools.redaction:
        return None
    if not settings.storage.results_enabled:
        return Redactor(os.urandom(KEY_BYTES))
    return Redactor(load_or_create_key(settings.storage.results_path / "redaction.key"))
