"""What becomes of one value of a Kubernetes Secret. Called by the readers of Secrets in YAML and JSON."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from holmes.redaction.kinds import Span
from holmes.redaction.names import label_of
from holmes.redaction.values import is_variable

_BASE64: Final = re.compile(r"[A-Za-z0-9+/]{4,}+={0,2}$")
_PRIVATE: Final = "PRIVATE KEY"


def decoded(value: str) -> str:
    """What base64 text says; the text itself when it is none, or says nothing printable."""
    text = value.strip()
    if len(text) % 4 or not _BASE64.match(text):
        return text
    try:
        plain = base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        return text
    return plain if plain.rstrip("\r\n").isprintable() or "\n" in plain else text


def may_be_shown(value: str) -> bool:
    """Whether a value of a Secret is none: empty, a template, or certificates without a key."""
    text = value.strip().lstrip("\"'{")
    if is_variable(value) or not text.strip("\"'{} "):
        return True
    if not text.startswith(("-----BEGIN CERT", "LS0tLS1CRUdJTiBD")):
        return False
    plain = decoded(text)
    return plain.lstrip().startswith("-----BEGIN CERT") and _PRIVATE not in plain


def secret_span(name: str, start: int, end: int, value: str) -> Span:
    """The span of a value. The hash is of what base64 says, so that it equals that of the same secret in plain text."""
    return Span(start=start, end=end, label=label_of(name), secret=decoded(value).strip())
