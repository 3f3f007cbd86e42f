"""Foreign texts: shortened, made of whole characters, or checked as a server address.

A cut never leaves a part of a placeholder of a secret. A part of a secret cannot be recognised, so foreign text is
masked before it is cut: `excerpt`. An address is checked without a lookup or a connection.
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
    """`text` with U+FFFD in place of each unpaired surrogate. Pairs become one character."""
    if text.isascii() or _HALF.search(text) is None:
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def fault_of_address(address: str) -> str | None:
    """Why `address` cannot be an HTTP server, as the end of a sentence; None if it can."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        return f"cannot be read ({error})"
    if any(character.isspace() or not character.isprintable() for character in address):
        return "has spaces or control characters"
    if parts.scheme not in ("http", "https"):
        return "does not begin with http:// or https://"
    if not parts.hostname:
        return "has no host"
    if parts.netloc.endswith(":") or port == 0:
        return "has a colon after the host, but no port"
    return None


def shortened(text: str, most_characters: int, *, mark: str = "…") -> str:
    """`text`, or its beginning and `mark`, together at most `most_characters` characters.

    Keeps placeholders whole or leaves them out. Only for text that is masked already or comes from Holmes itself.
    """
    if len(text) <= most_characters:
        return text
    return f"{text[: before_placeholder(text, max(0, most_characters - len(mark)))].rstrip()}{mark}"


def excerpt(text: str, most_characters: int, *, mark: str = "…") -> str:
    """`shortened` for foreign text that is not masked yet. Text that fits is left to the mask of the whole.

    Only the beginning of a very long text is masked, to keep the call within milliseconds.
    """
    if len(text) <= most_characters:
        return text
    most_masked = max(_MOST_MASKED_CHARACTERS, 2 * most_characters)
    known = masked(text) if len(text) <= most_masked else masked(without_last_word(text[:most_masked])) + mark
    return shortened(known, most_characters, mark=mark)


def without_last_word(text: str) -> str:
    """Text without its last word, which may be a part of a secret because the text was cut there.

    A word ends at a space, quote, comma or bracket. A word of more than 200 characters stays.
    """
    half = _LAST_WORD.search(text[-_LONGEST_WORD - 1 :])
    return text if half is None or len(half[0]) > _LONGEST_WORD else text[: len(text) - len(half[0])]


def before_placeholder(text: str, end: int) -> int:
    """Where to end a piece of `text`: at `end`, or before a placeholder at this position."""
    return (_placeholder_at(text, end) or (end, end))[0]


def after_placeholder(text: str, start: int) -> int:
    """Where to start a piece of `text`: at `start`, or after a placeholder at this position."""
    return (_placeholder_at(text, start) or (start, start))[1]


def _placeholder_at(text: str, position: int) -> tuple[int, int] | None:
    """Start and end of the placeholder that a cut at `position` would divide."""
    start = text.rfind(_PLACEHOLDER, max(0, position - _LONGEST_PLACEHOLDER), position + len(_PLACEHOLDER) - 1)
    if start < 0 or start >= position:
        return None
    close = text.find(")", start, start + _LONGEST_PLACEHOLDER)
    return (start, close + 1) if close >= position else None
