"""Cuts a text into windows that are short enough to search without holding up other threads.

Called by the redactor. Windows end at line ends where they can, and each overlaps the one before, so that what crosses
a border is whole in one of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holmes.core.redaction.kinds import Span

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
_COMMON: Final = ("pass", "secret", "token", "key", "auth", "psk")
_ASCII: Final = bytes(range(128))
_NO_CONSONANTS: Final = bytes(sorted(set(range(256)) - set(b"bcdfghjklmnpqrstvwxyz")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """`piece` is `text[start:end]`, `lower` the same in lower case, position by position.

    `plain` is `piece` with one byte for each character.
    `lower` is for patterns of ASCII: letters beyond Latin-1 are question marks in it, and blanks beyond it are one of
    Latin-1, which makes it cheap to make and to search. `rare` holds only the capitals and a few signs of the piece,
    `consonants` only those letters of `lower`: a literal that is in the piece is, with the same letters left out, in
    them too, and they are much shorter to search.
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
    cut_start: bool
    cut_end: bool
    _known: dict[tuple[str, bool], bool] = field(default_factory=dict, compare=False)

    def has(self, literal: str, *, folded: bool = True) -> bool:
        """Whether `literal` is in the piece; with `folded` in any case. Asked once for each literal."""
        key = (literal, folded)
        if key not in self._known:
            self._known[key] = (
                all(self.has(part) for part in _parts_of(literal))
                and self._may_have(literal)
                and literal in (self.lower if folded else self.piece)
            )
        return self._known[key]

    def _may_have(self, literal: str) -> bool:
        rare, consonants = _letters_of(literal)
        return rare in self.rare and consonants in self.consonants

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


def windows(text: str, piece_characters: int = PIECE_CHARACTERS) -> Iterator[Window]:
    """The windows of `text` in order."""
    start = 0
    position = 0
    while position < len(text):
        end = _cut(text, position, piece_characters)
        piece = text[start:end]
        plain = _plain(piece)
        lower = plain.lower()
        yield Window(
            text=text,
            start=start,
            end=end,
            piece=piece,
            plain=plain,
            lower=lower.decode("latin-1"),
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


def _plain(piece: str) -> bytes:
    """The piece with one byte for each character."""
    if not piece.isascii() and _OTHER_BLANKS.search(beyond_ascii(piece)):
        piece = _OTHER_BLANKS.sub("\xa0", piece)
    return piece.encode("latin-1", "replace")


def beyond_ascii(piece: str) -> str:
    """The characters of `piece` that are not ASCII. Texts have few of them, so this is fast."""
    return piece.encode("utf-8", "surrogatepass").translate(None, _ASCII).decode("utf-8", "surrogatepass")


@lru_cache(maxsize=512)
def _parts_of(literal: str) -> tuple[str, ...]:
    """The common words in `literal`: they are searched anyway, and without one of them nothing more needs to be."""
    return tuple(word for word in _COMMON if word in literal.lower() and word != literal)


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
