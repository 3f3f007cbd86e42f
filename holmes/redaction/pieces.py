"""Splits a text into windows, so that no search blocks other threads for long.

Windows end at line ends if possible. They overlap, so that at least one window contains each complete match.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holmes.redaction.kinds import Span

PIECE_CHARACTERS: Final = 256 * 1024
_OVERLAP_CHARACTERS: Final = 8 * 1024
# Number of characters with unknown context at the start of a window that begins inside a line.
_BLIND_CHARACTERS: Final = 256
_STEP_CHARACTERS: Final = 64 * 1024
_NO_BORDER: Final = expression(r"[^\s\"'\\,;}\])<>]*+")
# Characters that `Window.rare` omits. Most characters of a typical text are among them.
_NOT_RARE: Final = bytes(sorted(set(range(256)) - set(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ$~{*<")))
# Whitespace characters outside Latin-1, which patterns must also recognise.
_OTHER_BLANKS: Final = expression("[\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
# Every secret name contains one of these words.
KEYWORDS: Final = (
    "pass", "pw", "secret", "token", "cred", "key", "auth", "psk", "jwt", "dockerc", "cookie", "kennwort", "contrase",
    "senha", "clave", "parola", "jeton", "chiave", "chave",
)  # fmt: skip
# Words that occur in many literals. Such literals are searched only near these words.
COMMON: Final = ("pass", "secret", "token", "key", "auth", "psk", "cookie")
BASE64_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
# All letters of long words are replaced with one character. The shortest long word encodes fifteen bytes in base64, for
# example `DB_PASSWORD=abc`.
WORD_CLASSES: Final = bytes(97 if chr(code) in BASE64_LETTERS else 32 for code in range(256))
LONG_WORD: Final = b"a" * 20
# In shorter windows, a search is faster than a lookup of a cached result.
_SHORT_CHARACTERS: Final = 4096
_NEAR_CHARACTERS: Final = 40
_MOST_PLACES: Final = 1000
_NO_CONSONANTS: Final = bytes(sorted(set(range(256)) - set(b"bcdfghjklmnpqrstvwxyz")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A part of the text: `piece` is `text[start:end]`, and `lower` is `piece` in lower case.

    `plain` is `piece` with one byte per character. In `plain` and `lower`, question marks replace letters beyond
    Latin-1, and Latin-1 spaces replace other spaces. `lower` is for ASCII patterns. `rare` contains only the capitals
    and a few symbols of `piece`. `consonants` contains only the consonants of `lower`. If a literal is in `piece`, its
    capitals and consonants are in `rare` and `consonants`, which are faster to search. `long_word` is the position of
    the first long word, or -1. `cut_start` and `cut_end` mean that the window starts or ends inside a line.
    """

    text: str
    start: int
    end: int
    piece: str
    plain: bytes
    lower: str
    rare: str
    consonants: str
    long_word: int
    cut_start: bool
    cut_end: bool
    _known: dict[tuple[str, bool], bool] = field(default_factory=dict, compare=False)
    _seen: dict[tuple[str, str], bool] = field(default_factory=dict, compare=False)
    _around: dict[str, str | None] = field(default_factory=dict, compare=False)

    def has(self, literal: str, *, folded: bool = True) -> bool:
        """Return whether `literal` is in `piece`. If `folded` is true, ignore case. The result is cached."""
        if not literal.isascii() and literal[-1] not in self.piece:
            return False
        if len(self.piece) < _SHORT_CHARACTERS:
            return literal in (self.lower if folded else self.piece)
        key = (literal, folded)
        if key not in self._known:
            self._known[key] = self._search(literal, folded=folded)
        return self._known[key]

    def _search(self, literal: str, *, folded: bool) -> bool:
        common = next((word for word in COMMON if word in literal.lower() and word != literal), None)
        if common is not None:
            near = self.near(common)
            if near is not None:
                return literal.lower() in near and (folded or literal in self.piece)
        return self._may_have(literal) and literal in (self.lower if folded else self.piece)

    def near(self, common: str) -> str | None:
        """Return the text around the occurrences of a common word, or None if the word occurs too often."""
        if common not in self._around:
            places: list[str] = []
            at = self.lower.find(common) if self.has(common) else -1
            while at >= 0 and len(places) < _MOST_PLACES:
                places.append(self.lower[max(0, at - _NEAR_CHARACTERS) : at + _NEAR_CHARACTERS])
                at = self.lower.find(common, at + 1)
            self._around[common] = None if at >= 0 else "\n".join(places)
        return self._around[common]

    @property
    def names_secrets(self) -> bool:
        """Whether the window contains a part of a secret name."""
        return any(self.has(word) for word in KEYWORDS)

    def _may_have(self, literal: str) -> bool:
        letters = _letters_of(literal)
        if letters not in self._seen:
            rare, consonants = letters
            self._seen[letters] = rare in self.rare and consonants in self.consonants
        return self._seen[letters]

    def settle(self, spans: Iterable[Span]) -> Iterator[Span]:
        """Yield the spans (positions in the text) that belong to this window.

        If a span reaches a window border inside a line, the neighbouring window yields it. Spans longer than half the
        overlap are yielded here and extended to the end of the word.
        """
        for span in spans:
            if self.cut_start and span.start < self.start + _BLIND_CHARACTERS:
                continue
            if self.cut_end and span.end >= self.end:
                if span.end - span.start > _OVERLAP_CHARACTERS // 2:
                    yield replace(span, end=_end_of_word(self.text, self.end))
                continue
            yield span


def windows(text: str, beyond: str, piece_characters: int = PIECE_CHARACTERS) -> Iterator[Window]:
    """Yield the windows of `text` in order. `beyond` contains the non-ASCII characters of `text`."""
    blanks = _OTHER_BLANKS.search(beyond) is not None
    start = 0
    position = 0
    while position < len(text):
        end = _cut(text, position, piece_characters)
        piece = text[start:end]
        plain = _plain(piece, blanks=blanks)
        lower = plain.lower()
        yield Window(
            text=text,
            start=start,
            end=end,
            piece=piece,
            plain=plain,
            lower=lower.decode("latin-1"),
            long_word=plain.translate(WORD_CLASSES).find(LONG_WORD),
            rare=plain.translate(None, _NOT_RARE).decode("ascii"),
            consonants=lower.translate(None, _NO_CONSONANTS).decode("ascii"),
            cut_start=start > 0 and text[start - 1] != "\n",
            cut_end=end < len(text) and text[end - 1] != "\n",
        )
        position = end
        start = _overlap_start(text, end)


def _cut(text: str, position: int, piece_characters: int) -> int:
    """Return the end of the window that contains `position`, if possible after a line end."""
    limit = position + piece_characters
    if limit >= len(text):
        return len(text)
    line_end = text.rfind("\n", position, limit)
    return limit if line_end < 0 else line_end + 1


def _overlap_start(text: str, end: int) -> int:
    """Return the start of the next window, if possible the start of a line within the overlap."""
    earliest = max(0, end - _OVERLAP_CHARACTERS)
    line_end = text.find("\n", earliest, end - 1) if end else -1
    return earliest if line_end < 0 else line_end + 1


def _plain(piece: str, *, blanks: bool) -> bytes:
    """Return `piece` with one byte per character. `blanks` means that the text has spaces outside Latin-1."""
    if blanks and not piece.isascii():
        piece = _OTHER_BLANKS.sub("\xa0", piece)
    return piece.encode("latin-1", "replace")


@lru_cache(maxsize=512)
def _letters_of(literal: str) -> tuple[str, str]:
    """Return the characters of `literal` that `Window.rare` and `Window.consonants` also contain."""
    plain = literal.encode("latin-1")
    kept = plain.translate(None, _NOT_RARE), plain.lower().translate(None, _NO_CONSONANTS)
    return kept[0].decode("ascii"), kept[1].decode("ascii")


def _end_of_word(text: str, position: int) -> int:
    while position < len(text):
        match = _NO_BORDER.match(text, position, position + _STEP_CHARACTERS)
        end = match.end() if match else position
        if end < min(len(text), position + _STEP_CHARACTERS):
            return end
        position = end
    return len(text)
