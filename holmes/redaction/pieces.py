"""Cuts a text into windows that are short enough to search without holding up other threads.

Windows end at line ends where they can, and each overlaps the one before, so that what crosses
a border is whole in one of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holmes.redaction.kinds import Span

PIECE_CHARACTERS: Final = 256 * 1024
OVERLAP_CHARACTERS: Final = 8 * 1024
# In a window that starts inside of a line nothing is known about what stands before these first characters.
_BLIND_CHARACTERS: Final = 256
_STEP_CHARACTERS: Final = 64 * 1024
_NO_BORDER: Final = re.compile(r"[^\s\"'\\,;}\])<>]*+")
# What is left out of `Window.rare` and `Window.consonants`: most of what texts are made of.
_NOT_RARE: Final = bytes(sorted(set(range(256)) - set(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ$~{*<")))
# Blanks that Latin-1 does not have; patterns must see that they are blanks.
_OTHER_BLANKS: Final = re.compile("[\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
# What names of secrets consist of.
KEYWORDS: Final = (
    "pass", "pw", "secret", "token", "cred", "key", "auth", "psk", "jwt", "dockerc", "cookie", "kennwort", "contrase",
    "senha", "clave", "parola", "jeton", "chiave", "chave",
)  # fmt: skip
# Words that are in many other literals, which need only be searched around them.
COMMON: Final = ("pass", "secret", "token", "key", "auth", "psk", "cookie")
BASE64_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
# The letters of long words made one sign, and a word that is long: fifteen bytes in base64, as `DB_PASSWORD=abc`.
WORD_CLASSES: Final = bytes(97 if chr(code) in BASE64_LETTERS else 32 for code in range(256))
LONG_WORD: Final = b"a" * 20
# In so short a piece a literal is found sooner than remembered.
_SHORT_CHARACTERS: Final = 4096
_NEAR_CHARACTERS: Final = 40
_MOST_PLACES: Final = 1000
_NO_CONSONANTS: Final = bytes(sorted(set(range(256)) - set(b"bcdfghjklmnpqrstvwxyz")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """`piece` is `text[start:end]`, `lower` the same in lower case, position by position.

    `plain` is `piece` with one byte for each character.
    `lower` is for patterns of ASCII: letters beyond Latin-1 are question marks in it, and blanks beyond it are one of
    Latin-1, which makes it cheap to make and to search. `rare` holds only the capitals and a few signs of the piece,
    `consonants` only those letters of `lower`: a literal that is in the piece is, with the same letters left out, in
    them too, and they are much shorter to search.
    `long_word` is where the first long word of letters, digits, `+` and `/` is, -1 without one.
    `cut_start` and `cut_end` say that the window begins or ends inside of a line.
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
        """Whether `literal` is in the piece; with `folded` in any case. Asked once for each literal."""
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
        """What stands around the places of a common word; None when there are many of them."""
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
        """Whether a word that names of secrets consist of is in the piece."""
        return any(self.has(word) for word in KEYWORDS)

    def _may_have(self, literal: str) -> bool:
        letters = _letters_of(literal)
        if letters not in self._seen:
            rare, consonants = letters
            self._seen[letters] = rare in self.rare and consonants in self.consonants
        return self._seen[letters]

    def settle(self, spans: Iterable[Span]) -> Iterator[Span]:
        """The spans of this window (positions in the text) that this window can judge.

        What touches a border inside of a line is left to the neighbour, unless it is longer than the overlap: then it
        goes on to the end of the word.
        """
        for span in spans:
            if self.cut_start and span.start < self.start + _BLIND_CHARACTERS:
                continue
            if self.cut_end and span.end >= self.end:
                if span.end - span.start > OVERLAP_CHARACTERS // 2:
                    yield replace(span, end=_end_of_word(self.text, self.end))
                continue
            yield span


def windows(text: str, beyond: str, piece_characters: int = PIECE_CHARACTERS) -> Iterator[Window]:
    """The windows of `text` in order. `beyond` are its characters that are not ASCII."""
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
    """Where the window that brings `text[position:]` ends: after a line end if one is near."""
    limit = position + piece_characters
    if limit >= len(text):
        return len(text)
    line_end = text.rfind("\n", position, limit)
    return limit if line_end < 0 else line_end + 1


def _overlap_start(text: str, end: int) -> int:
    """Where the next window starts: at a line start within the overlap, if there is one."""
    earliest = max(0, end - OVERLAP_CHARACTERS)
    line_end = text.find("\n", earliest, end - 1) if end else -1
    return earliest if line_end < 0 else line_end + 1


def _plain(piece: str, *, blanks: bool) -> bytes:
    """The piece with one byte for each character. `blanks` says that the text has blanks that Latin-1 does not have."""
    if blanks and not piece.isascii():
        piece = _OTHER_BLANKS.sub("\xa0", piece)
    return piece.encode("latin-1", "replace")


@lru_cache(maxsize=512)
def _letters_of(literal: str) -> tuple[str, str]:
    """What `Window.rare` and `Window.consonants` keep of `literal`."""
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
