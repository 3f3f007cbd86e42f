"""Estimates tokens from the kind of text, for machines that cannot load a tokenizer.

The numbers of characters per token are those of the project altimate, measured with cl100k_base. Only the first 500
characters are classified, so the cost does not depend on the length of the text. Length is the number of bytes in
UTF-8. For ASCII text, bytes and characters are equal. For other scripts and emoji, bytes are closer to the number of
tokens. Estimates are wrong by up to a third for most texts, and by a factor of two for indented JSON. If a tokenizer is
installed, the counter `exact` decides whether a text near a limit fits.
"""

from __future__ import annotations

import functools
import logging
import math
import re
from typing import TYPE_CHECKING, Literal, TypeAlias

from holmes.tokens.counter import TokenCounter, encoding_file, utf8_bytes

if TYPE_CHECKING:
    from holmes.values.model import ImageFormula

Content: TypeAlias = Literal["code", "json", "sql", "prose", "mixed"]
Counting: TypeAlias = Literal["exact", "estimate"]

CHARACTERS_PER_TOKEN: dict[Content, float] = {"code": 3.0, "json": 3.2, "sql": 3.5, "mixed": 3.7, "prose": 4.0}
_SAMPLE_CHARACTERS = 500

_log = logging.getLogger(__name__)

CERTAINLY_OVER = 2
"""If an estimate is above this multiple of a limit, the text exceeds the limit."""

_JSON_DENSITY = 0.08
_CODE_DENSITY = 0.04
_PROSE_SHARE = 0.92
_PROSE_MARKS = frozenset(",.;:!?'\"-*#`")
_JSON_MARKS = frozenset('{}[]:,"')
_CODE_MARKS = frozenset("{}();=")
_SQL = re.compile(
    r"\b(select\b.{1,400}?\bfrom|insert\s+into|update\s+\S+\s+set|delete\s+from|create\s+(table|view|index)|with\s+\w+\s+as\s*\()",
    re.IGNORECASE | re.DOTALL,
)


class EstimatingCounter(TokenCounter):
    """Estimates tokens from a number of characters per token. `bytes_tokenized` stays 0.

    `encoding` selects the exact counter, which is loaded when an estimate is not decisive. If the encoding is not
    installed, all counts are estimates. A text that was already counted exactly keeps this count.
    """

    def __init__(self, encoding: str | None = None, *, image_formula: ImageFormula = "largest") -> None:
        super().__init__(image_formula=image_formula)
        installed = encoding is not None and encoding_file(encoding) is not None
        self._exact = TokenCounter(encoding, image_formula=image_formula) if encoding and installed else None

    @property
    def exact(self) -> TokenCounter:
        """The exact counter, or this counter if no tokenizer is installed."""
        return self._exact or self

    def fits(self, text: str, limit_tokens: int) -> bool:
        """Return whether `text` has at most `limit_tokens`.

        The number of bytes or a high estimate can decide. Otherwise, the tokens are counted exactly.
        """
        if utf8_bytes(text) <= limit_tokens:
            return True
        estimate = self.count_text(text)
        if self._exact is None or estimate > CERTAINLY_OVER * limit_tokens:
            return estimate <= limit_tokens
        return self._exact.count_text(text) <= limit_tokens

    def count_text(self, text: str) -> int:
        """Estimate the tokens of `text`, unless an exact count is cached."""
        known = self._exact.known_tokens(text) if self._exact else None
        return known if known is not None else math.ceil(utf8_bytes(text) / CHARACTERS_PER_TOKEN[_content_of(text)])

    def count_text_up_to(self, text: str, limit_tokens: int) -> tuple[int, int]:  # noqa: ARG002  limit not needed
        """Return the estimated token count of the whole `text`, and its length."""
        return self.count_text(text), len(text)

    def estimate_text(self, text: str) -> int:
        return self.count_text(text)


def make_counter(encoding: str | None, counting: Counting, *, image_formula: ImageFormula = "largest") -> TokenCounter:
    """Return the counter for the setting `counting`.

    An estimating counter uses `encoding` where an estimate is not decisive. If `encoding` is None, all counts are
    estimates. If the file of the tokenizer is missing, a warning is logged.
    """
    if encoding is None:
        return EstimatingCounter(image_formula=image_formula)
    if counting == "exact" and encoding_file(encoding) is not None:
        return TokenCounter(encoding, image_formula=image_formula)
    if counting == "exact":
        _warn_of_missing(encoding)
    return EstimatingCounter(encoding, image_formula=image_formula)


@functools.cache
def _warn_of_missing(encoding: str) -> None:
    _log.warning(
        "the tokenizer %r is missing, so token counts are estimates; reinstall litellm for exact counts", encoding
    )


def _content_of(text: str) -> Content:
    """Classify the text by its first 500 characters."""
    sample = text[:_SAMPLE_CHARACTERS]
    length = len(sample)
    if not sample.strip():
        return "mixed"
    if sample.lstrip()[:1] in {"{", "["} and _density(sample, _JSON_MARKS) >= _JSON_DENSITY:
        return "json"
    if _SQL.search(sample):
        return "sql"
    if _density(sample, _CODE_MARKS) >= _CODE_DENSITY:
        return "code"
    words = sum(character.isalpha() or character.isspace() or character in _PROSE_MARKS for character in sample)
    return "prose" if words >= _PROSE_SHARE * length else "mixed"


def _density(sample: str, marks: frozenset[str]) -> float:
    return sum(character in marks for character in sample) / len(sample)
