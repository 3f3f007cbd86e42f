"""Texts that come from outside: cut where a reader has no room, of whole characters, judged as a server's address.

A cut never leaves half of a masked secret's placeholder. Half of a secret is no longer recognised as one, so foreign
text is masked before it is cut: `excerpt`. Pure: an address is neither resolved nor asked, but what every HTTP client
would refuse later is refused in better words.
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
    """`text` with U+FFFD in place of each half of a character; two that belong together become one."""
    if text.isascii() or _HALF.search(text) is None:
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def fault_of_address(address: str) -> str | None:
    """Why `address` cannot be that of an HTTP server, as the end of a sentence; None when it can."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        return f"cannot be read ({error})"
    if any(character.isspace() or not character.isprintable() for character in address):
        return "has spaces or control characters in it"
    if parts.scheme not in ("http", "https"):
        return "does not begin with http:// or https://"
    if not parts.hostname:
        return "names no host"
    if parts.netloc.endswith(":") or port == 0:
        return "has a colon after the host, but no port"
    return None


def shortened(text: str, most_characters: int, *, mark: str = "…") -> str:
    """`text`, or its beginning and `mark`, together at most `most_characters` characters.

    A placeholder is kept whole or left out. For text that is masked already, or that is nobody's but ours.
    """
    if len(text) <= most_characters:
        return text
    return f"{text[: before_placeholder(text, max(0, most_characters - len(mark)))].rstrip()}{mark}"


def excerpt(text: str, most_characters: int, *, mark: str = "…") -> str:
    """`shortened` for text that others wrote and nobody masked yet. Text that fits is left to who masks the whole.

    Of a very long text only the beginning is masked, so that this takes milliseconds whatever others wrote.
    """
    if len(text) <= most_characters:
        return text
    most_masked = max(_MOST_MASKED_CHARACTERS, 2 * most_characters)
    known = masked(text) if len(text) <= most_masked else masked(without_last_word(text[:most_masked])) + mark
    return shortened(known, most_characters, mark=mark)


def without_last_word(text: str) -> str:
    """Text that ends where something stopped reading, without the last word, which may be half of a secret.

    A word ends at a space, quote, comma or bracket. One of more than 200 characters stays.
    """
    half = _LAST_WORD.search(text[-_LONGEST_WORD - 1 :])
    return text if half is None or len(half[0]) > _LONGEST_WORD else text[: len(text) - len(half[0])]


def before_placeholder(text: str, end: int) -> int:
    """Where to cut `text` at the end of a piece: at `end`, or where the placeholder begins that lies there."""
    return (_placeholder_at(text, end) or (end, end))[0]


def after_placeholder(text: str, start: int) -> int:
    """Where to cut `text` at the start of a piece: at `start`, or where the placeholder ends that lies there."""
    return (_placeholder_at(text, start) or (start, start))[1]


def _placeholder_at(text: str, position: int) -> tuple[int, int] | None:
    """Start and end of the placeholder that a cut at `position` would divide."""
    start = text.rfind(_PLACEHOLDER, max(0, position - _LONGEST_PLACEHOLDER), position + len(_PLACEHOLDER) - 1)
    if start < 0 or start >= position:
        return None
    close = text.find(")", start, start + _LONGEST_PLACEHOLDER)
    return (start, close + 1) if close >= position else None
