"""Masks secrets that are known word for word, as the configured key of a model in a provider's error."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.redaction.values import looks_random

if TYPE_CHECKING:
    from collections.abc import Iterable

MASKED: Final = "***"
_SHORT_CHARACTERS: Final = 8
_LONG_CHARACTERS: Final = 16


def without_known_keys(text: str, keys: Iterable[str]) -> str:
    """`text` with `***` for each of `keys` that stands in it as a whole word; the same text when none does.

    A key that could be a word (`none`, `test`) is left alone: servers without keys get such ones, and every message
    would lose its words.
    """
    for key in keys:
        is_short = len(key) < _SHORT_CHARACTERS or (key.isalpha() and len(key) < _LONG_CHARACTERS)
        if not is_short or looks_random(key, password=True):
            text = re.sub(rf"(?<![A-Za-z0-9_\-]){re.escape(key)}(?![A-Za-z0-9_\-])", MASKED, text)
    return text
