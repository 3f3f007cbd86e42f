"""Long words that are base64 or hexadecimal digits of a text, also compressed (the releases of Helm), also in lines.

Such a word is masked whole when what it says holds a secret, or is more than can be unpacked. What words say is read
like any other text, many words at once.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.redaction.kinds import SECRET, Span
from holmes.redaction.pieces import BASE64_LETTERS, LONG_WORD, WORD_CLASSES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holmes.redaction.pieces import Window

_STEP_CHARACTERS: Final = 256 * 1024
_UNPACKED_BYTES: Final = 4 * 1024 * 1024
_UNPACKED_PER_CHARACTER: Final = 4
_BATCH_CHARACTERS: Final = 128 * 1024
# Between what two words say: the end of a document, so that nothing is read across.
_GAP: Final = "\n---\n"
_MOST_LINES: Final = 40_000

_FIRST, _SECOND, _THIRD = (
    "".join(letter for number, letter in enumerate(BASE64_LETTERS) if not number & bit) for bit in (32, 8, 2)
)
# The bytes of ASCII have no highest bit. Of random letters one of four thousand words passes.
_TEXT: Final = re.compile(rf"(?:[{_FIRST}][{_SECOND}][{_THIRD}][{BASE64_LETTERS}]){{4}}")
_HEX_TEXT: Final = re.compile(r"(?:(?:0[9aAdD]|[2-7][0-9a-fA-F])){10}")
_HEX: Final = re.compile(r"(?:[0-9a-fA-F]{2}){10,}+(?![A-Za-z0-9+/=_\-])")
# UTF-16 with a mark of its order, gzip, zlib.
_OTHER_STARTS: Final = ("//4", "//5", "/v8", "H4sI", "eJ", "eN", "eA")
_WORD: Final = re.compile(r"[A-Za-z0-9+/_\-]+")
_LINE: Final = re.compile(r"(?:\\r)?\\n[ \t]{0,40}|[ \t\"\\]{0,4}\r?\n[ \t#>|\"'+\-]{0,80}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """A word at `start` to `end` of the text, and the letters of it without the breaks of lines."""

    start: int
    end: int
    letters: str


class Unpacking:
    """How much may still be unpacked for one text: a bomb takes no longer to read than a long text."""

    __slots__ = ("_left",)

    def __init__(self, characters: int) -> None:
        self._left = _UNPACKED_BYTES + _UNPACKED_PER_CHARACTER * characters

    def of(self, letters: str) -> str | None:
        """What a compressed text says, as far as it goes: it may be cut off. None when it is more than can be read."""
        limit = min(_UNPACKED_BYTES, self._left)
        if limit <= 0:
            return None
        unpacker = zlib.decompressobj(wbits=47)
        try:
            data = unpacker.decompress(_bytes_of(letters), limit)
        except zlib.error:
            return ""
        self._left -= len(data)
        return None if len(data) == limit else _plain(data)


class _Batch:
    """Words that are searched at once. One search costs as much as many short words."""

    __slots__ = ("_said", "_starts", "_words", "characters")

    def __init__(self) -> None:
        self._said: list[str] = []
        self._starts: list[int] = []
        self._words: list[Encoded] = []
        self.characters = 0

    def add(self, word: Encoded, said: str) -> None:
        self._said.append(said)
        self._starts.append(self.characters)
        self._words.append(word)
        self.characters += len(said) + len(_GAP)

    def secrets(self, search: Callable[[str], Iterator[Span]]) -> Iterator[Span]:
        """The words that hold a secret. One that is nothing else gives the word its own hash."""
        found: dict[int, list[Span]] = {}
        for span in search(_GAP.join(self._said)):
            index = bisect_right(self._starts, span.start) - 1
            of_word = found.setdefault(index, [])
            if len(of_word) < 2:
                of_word.append(span)
        for index, spans in found.items():
            word = self._words[index]
            whole = len(spans) == 1 and spans[0].secret == self._said[index].strip()
            yield Span(
                start=word.start,
                end=word.end,
                label=spans[0].label,
                secret=spans[0].secret if whole else word.letters,
            )


def encoded_secrets(window: Window, search: Callable[[str], Iterator[Span]], unpacking: Unpacking) -> Iterator[Span]:
    """The words of this window in which `search` finds a secret once they are decoded."""
    batch = _Batch()
    for word in _words(window):
        for said in _said(word.letters, unpacking):
            if said is None:
                yield Span(start=word.start, end=word.end, label=SECRET, secret=word.letters)
            elif said:
                batch.add(word, said)
            if batch.characters > _BATCH_CHARACTERS:
                yield from batch.secrets(search)
                batch = _Batch()
    yield from batch.secrets(search)


def _words(window: Window) -> Iterator[Encoded]:
    at = window.long_word
    if at < 0:
        return
    classes = window.plain.translate(WORD_CLASSES)
    while at >= 0:
        start = window.start + at
        if window.piece[at - 1 : at] == "\\" and window.piece[at] in "nrt":
            start += 1
        match = _WORD.match(window.text, start)
        end = match.end() if match else start + len(LONG_WORD)
        begins_inside = at == 0 and window.cut_start
        if not begins_inside and _may_be_text(window.text, start):
            word = _with_lines(window.text, start, end)
            yield word
            end = word.end
        at = classes.find(LONG_WORD, max(end - window.start, at + 1))


def _may_be_text(text: str, start: int) -> bool:
    return (
        _TEXT.match(text, start) is not None
        or text.startswith(_OTHER_STARTS, start)
        or _HEX_TEXT.match(text, start) is not None
    )


def _with_lines(text: str, start: int, end: int) -> Encoded:
    """The word at `start`, and the lines after it while each is as long as the one before, and a last shorter one."""
    parts = [text[start:end]]
    width = end - start
    while len(parts) < _MOST_LINES and width >= len(LONG_WORD):
        line = _LINE.match(text, end)
        word = _WORD.match(text, line.end()) if line else None
        if not word or len(word[0]) > width:
            break
        following = text[word.end() : word.end() + 1]
        if len(word[0]) < width and (following not in "=\r\n\"'\\ |" or not _mixes(word[0])):
            break
        parts.append(word[0])
        end = word.end()
        if len(word[0]) < width:
            break
    padding = len(text[end : end + 2]) - len(text[end : end + 2].lstrip("="))
    return Encoded(start=start, end=end + padding, letters="".join(parts))


def _mixes(word: str) -> bool:
    """Whether the end of a word is no word of a language."""
    return not word.isalpha() or (not word.islower() and not word[1:].islower()) or len(word) % 4 == 0


def _said(letters: str, unpacking: Unpacking) -> Iterator[str | None]:
    """What a word says, part by part; None for a part that is more than can be unpacked."""
    if _HEX.fullmatch(letters):
        yield _plain(bytes.fromhex(letters))
        return
    letters = letters.replace("-", "+").replace("_", "/")
    if letters.startswith("H4sI"):
        yield unpacking.of(letters)
        return
    for start in range(0, len(letters), _STEP_CHARACTERS):
        part = letters[start : start + _STEP_CHARACTERS]
        data = _bytes_of(part)
        if data.startswith((b"\x1f\x8b", b"x\x9c", b"x\xda", b"x\x01")):
            yield unpacking.of(part)
        yield _plain(data)


def _bytes_of(letters: str) -> bytes:
    try:
        return base64.b64decode(letters[: len(letters) - (len(letters) % 4 == 1)] + "==")
    except (ValueError, binascii.Error):
        return b""


def _plain(data: bytes) -> str:
    """The text that the bytes are; empty when they are none."""
    if data[:2] in {b"\xff\xfe", b"\xfe\xff"} or data[1:8:2].strip(b"\0") == b"" or data[:8:2].strip(b"\0") == b"":
        data = data.replace(b"\0", b"")
        data = data[2:] if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else data
    text = data.decode("utf-8", "replace")
    return "" if text.count("\N{REPLACEMENT CHARACTER}") > len(text) // 8 else text
