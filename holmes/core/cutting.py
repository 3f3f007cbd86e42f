"""Makes text shorter where a reader has no room for all of it. Never leaves half of a masked secret's placeholder."""

from __future__ import annotations

from typing import Final

_PLACEHOLDER: Final = "(REDACTED"
_LONGEST_PLACEHOLDER: Final = 90
_LONGEST_WORD: Final = 200


def shortened(text: str, most_characters: int, *, mark: str = "…", whole_words: bool = False) -> str:
    """`text`, or its beginning and `mark`, together at most `most_characters` characters.

    A placeholder is kept whole or left out. With `whole_words` a word of up to 200 characters is too: for text that was
    not masked yet, because half of a token is no longer recognised as one.
    """
    if len(text) <= most_characters:
        return text
    end = _before_placeholder(text, max(0, most_characters - len(mark)))
    if whole_words and not text[end].isspace():
        begin = end - len(text[max(0, end - _LONGEST_WORD) : end].rsplit(" ", maxsplit=1)[-1])
        end = begin if end - begin < _LONGEST_WORD else end
    return f"{text[:end].rstrip()}{mark}"


def _before_placeholder(text: str, end: int) -> int:
    start = text.rfind(_PLACEHOLDER, max(0, end - _LONGEST_PLACEHOLDER), end + len(_PLACEHOLDER) - 1)
    if start < 0 or start >= end:
        return end
    close = text.find(")", start, start + _LONGEST_PLACEHOLDER)
    return start if close >= end else end
