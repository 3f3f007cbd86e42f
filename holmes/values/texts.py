"""Shortens untrusted text, replaces invalid characters, forms plurals, and validates server addresses.

A cut never leaves an incomplete placeholder. An incomplete secret cannot be recognised, so `excerpt` masks untrusted
text before cutting it. An address is validated without a DNS lookup or a connection.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from holmes.values.errors import masked

_HALF = re.compile("[\ud800-\udfff]")
_PLACEHOLDER: Final = "(REDACTED"
_LONGEST_PLACEHOLDER: Final = 90
_LONGEST_WORD: Final = 200
_MOST_MASKED_CHARACTERS: Final = 64 * 1024
_LAST_WORD: Final = re.compile(r"[^\s\"',;|<>(){}\[\]]+\Z")


def whole_characters(text: str) -> str:
    """Replace each unpaired surrogate in `text` with U+FFFD. Surrogate pairs become one character."""
    if text.isascii() or _HALF.search(text) is None:
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def plural(noun: str) -> str:
    """Return the plural of an English noun or a kind: `Ingresses`, `NetworkPolicies`."""
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}{'es' if noun.endswith(('s', 'x', 'ch')) else 's'}"


def fault_of_address(address: str) -> str | None:
    """Return why `address` is not a valid HTTP address, as the end of a sentence, or None if it is valid."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        # The error of an address with a password can repeat a part of it.
        why = "encode special characters of its password" if "@" in address else error
        return f"cannot be read ({why})"
    if any(character.isspace() or not character.isprintable() for character in address):
        return "has spaces or control characters"
    if parts.scheme not in ("http", "https"):
        return "does not begin with http:// or https://"
    if not parts.hostname:
        return "has no host"
    if parts.netloc.endswith(":") or port == 0:
        return "has a colon after the host, but no port"
    return None


def refused_address(address: str, *, example: str) -> str | None:
    """Return the message for an address that is not valid, without its user name and password, or None."""
    fault = fault_of_address(address)
    if fault is None:
        return None
    scheme, separator, rest = address.rpartition("@")[0].partition("://")
    shown = f"{scheme if rest else ''}{separator}{address.rpartition('@')[2]}"
    return f"{shown!r} {fault}; expected for example {example}"


def shortened(text: str, most_characters: int, *, mark: str = "…") -> str:
    """Shorten `text` to at most `most_characters` characters, including `mark` at the end.

    A placeholder is kept complete or left out. Use this function only for text that is already masked or that Holmes
    itself wrote.
    """
    if len(text) <= most_characters:
        return text
    return f"{text[: before_placeholder(text, max(0, most_characters - len(mark)))].rstrip()}{mark}"


def excerpt(text: str, most_characters: int, *, mark: str = "…") -> str:
    """Shorten untrusted text that is not masked yet.

    Text that fits is returned unmasked, because the caller masks the complete text. If the text is very long, only its
    beginning is masked, so that the call takes milliseconds.
    """
    if len(text) <= most_characters:
        return text
    most_masked = max(_MOST_MASKED_CHARACTERS, 2 * most_characters)
    known = masked(text) if len(text) <= most_masked else masked(without_last_word(text[:most_masked])) + mark
    return shortened(known, most_characters, mark=mark)


def without_last_word(text: str) -> str:
    """Return `text` without its last word, which may be a part of a secret because the text was cut there.

    A word ends at a space, quote, comma or bracket. A word of more than 200 characters is kept.
    """
    half = _LAST_WORD.search(text[-_LONGEST_WORD - 1 :])
    return text if half is None or len(half[0]) > _LONGEST_WORD else text[: len(text) - len(half[0])]


def before_placeholder(text: str, end: int) -> int:
    """Return `end`, or the start of the placeholder that contains the position `end`."""
    return (_placeholder_at(text, end) or (end, end))[0]


def after_placeholder(text: str, start: int) -> int:
    """Return `start`, or the end of the placeholder that contains the position `start`."""
    return (_placeholder_at(text, start) or (start, start))[1]


def _placeholder_at(text: str, position: int) -> tuple[int, int] | None:
    """Return the start and end of the placeholder that contains `position`, or None if no placeholder contains it."""
    start = text.rfind(_PLACEHOLDER, max(0, position - _LONGEST_PLACEHOLDER), position + len(_PLACEHOLDER) - 1)
    if start < 0 or start >= position:
        return None
    close = text.find(")", start, start + _LONGEST_PLACEHOLDER)
    return (start, close + 1) if close >= position else None
