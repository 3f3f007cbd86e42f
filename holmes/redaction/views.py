r"""What a text says once its encodings are undone: `%3D`, `&quot;`, `\u0022`, `\x22`, zero-width signs, UTF-16.

A view holds only the surroundings of what was decoded, and knows for each of its characters where it stands in the
text, so that every pattern works on it and the text itself is masked.
"""

from __future__ import annotations

import html
import re
from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.redaction.pieces import Window


_ESCAPED: Final = r"\\{1,8}+(?:[eE]|0?033|33|x1[bB]|[xu]\{1[bB]\}|u001[bB]|U0000001[bB])"
_TEXTUAL: Final = rf"(?:{_ESCAPED}|\^\[|#033|<ESC>|\u241b)"
_TEXTUAL_END: Final = rf"(?:\^G|\\{{1,8}}(?:a|0?07|x07|u0007)|{_TEXTUAL}\\{{1,8}}|\x07|\x1b\\)"
_FORWARD: Final = r"(?:\x1b\[|\x9b)[0-9]{0,4}C"
_REAL: Final = re.compile(
    rf"(?P<blank>{_FORWARD})"
    r"|(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]"  # CSI: colours, cursor, clear
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c\x9d\r\n]*+(?:\x07|\x1b\\|\x9c)"  # OSC: title, links, clipboard
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x90\x98\x9c\x9e\x9f\r\n]*+(?:\x1b\\|\x9c)"  # DCS, SOS, PM, APC
    r"|\x1b[ -/]{0,8}[0-~]"  # the short ones
    # What is left of a broken one. Without it two halves could make a new one.
    r"|[\x1b\x90\x98\x9b-\x9f]"
)
_WRITTEN: Final = re.compile(
    rf"(?P<blank>{_TEXTUAL}\[[0-9]{{0,4}}C)"
    rf"|{_TEXTUAL}\[[0-9;:?]{{0,64}}[A-Za-z]"
    rf"|{_TEXTUAL}\][0-9]{{1,4}};[^\r\n\x07\x1b\\^\u241b]{{0,2048}}+{_TEXTUAL_END}"
)
_ESCAPED_START: Final = re.compile(_ESCAPED + r"[\[\]]")
_C1: Final = re.compile("[\x90\x98\x9b\x9d-\x9f\u241b]")
_ASCII: Final = bytes(range(128))
_STEP_CHARACTERS: Final = 256 * 1024


def strip_escape_sequences(text: str, beyond: str | None = None) -> str:
    """`text` without escape sequences; the same object when it has none. Doing it again changes nothing.

    A move of the cursor to the right becomes a blank, because it separates words. `beyond` is `beyond_ascii(text)`,
    for those who have it already.
    """
    beyond = beyond_ascii(text) if beyond is None else beyond
    if "\x1b" in text or _C1.search(beyond):
        text = _REAL.sub(_blank, text)
    if not (_has_written(text) or "\u241b" in beyond):
        return text
    # Removing one may join the halves of another: few rounds, so that hostile texts take linear time.
    for _ in range(4):
        before, text = text, _WRITTEN.sub(_blank, text)
        if before == text:
            break
    return text


def beyond_ascii(text: str) -> str:
    """The characters of `text` that are not ASCII. Most texts have few of them, which are then searched fast."""
    if text.isascii():
        return ""
    pieces = (text[start : start + _STEP_CHARACTERS] for start in range(0, len(text), _STEP_CHARACTERS))
    kept = (piece.encode("utf-8", "surrogatepass").translate(None, _ASCII) for piece in pieces if not piece.isascii())
    return "".join(piece.decode("utf-8", "surrogatepass") for piece in kept)


def _blank(match: re.Match[str]) -> str:
    return " " if match["blank"] else ""


def _has_written(text: str) -> bool:
    return (
        ("^" in text and "^[" in text)
        or ("<" in text and "<ESC>" in text)
        or ("#" in text and "#033" in text)
        or ("\\" in text and _ESCAPED_START.search(text) is not None)
    )


_URL: Final = r"%[0-7][0-9A-Fa-f]|(?:%[89A-Fa-f][0-9A-Fa-f])+"
_ENTITY: Final = r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,12});"
_ESCAPE: Final = (
    r"\\{1,8}(?:u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]{1,6}\}|U000[0-9a-fA-F]{5}|x[0-9a-fA-F]{2}"
    r"|(?:0?0[1-7][0-7]|0?1[0-7]{2})(?![0-9]))"
)
# Of a text that was shown before, none is left; but a decoded one may have some.
_SEQUENCE: Final = r"\x1b\[[0-9;]{0,20}[A-Za-z]"
# Signs without a width, marks of the reading order, soft hyphens. A byte order mark is one of them.
_UNSEEN: Final = "\u00ad\u034f\u061c\u115f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff"
_WIDE: Final = "\uff01-\uff5e"
_WIDE_DISTANCE: Final = 0xFEE0
_RARE: Final = re.compile(f"[{_UNSEEN}]+|[{_WIDE}]")
_UNSEEN_SIGN: Final = re.compile(f"[\x00{_UNSEEN}]")

# What shows that an encoding may be in a text: a sign that is searched fast, and a pattern that starts with it.
_TRACES: Final = (
    ("%", re.compile(_URL)),
    ("&", re.compile(_ENTITY)),
    ("\\", re.compile(_ESCAPE)),
    ("\x00", re.compile("\x00+")),
    ("\x1b", re.compile(_SEQUENCE)),
)
# How `kubectl describe` prints the words of a command: one to a line, below these names.
_COMMAND_NAMES: Final = ("Command:", "Args:")
_COMMAND: Final = re.compile(
    r"(?:^|\n)(?P<margin>[ ]{2,40})(?:Command|Args):[ ]{0,8}\r?\n"
    r"(?P<words>(?:(?P=margin)[ ]{2}[^\n]{1,4000}(?:\n|$)){1,400})"
)
_WORD_BREAK: Final = re.compile(r"[ \r]{0,8}\n[ ]{4,42}(?=\S)")
# So much around a decoded place is searched, and up to the next border of a word.
_AROUND: Final = 320
_BORDER_CHARACTERS: Final = 400
_BORDERS: Final = re.compile(r"[\s\"',;]")
# Between two places: the end of a document, so that nothing is read across.
_GAP: Final = "\n---\n"
_PARTS_AT_ONCE: Final = 4096
_MOST_SMALL: Final = 2**32


class View:
    """A decoded text, and where its characters stand in the original."""

    __slots__ = ("_after", "_before", "_joined", "_parts", "_shown", "_size", "text")

    def __init__(self, characters: int) -> None:
        # Many small parts take more memory than the text: they are joined as they come.
        self._joined: list[str] = []
        self._parts: list[str] = []
        self._size = 0
        # Of every replaced place: where the view goes on after it, and where it began and ended in the original.
        code = "I" if characters < _MOST_SMALL else "Q"
        self._shown = array(code, [0])
        self._before = array(code, [0])
        self._after = array(code, [0])
        self.text = ""

    def keep(self, text: str, start: int, end: int) -> None:
        """Take `text[start:end]` as it is. Calls go from left to right, and leave nothing out."""
        if start < end:
            self._parts.append(text[start:end])
            self._size += end - start

    def replace(self, shown: str, start: int, end: int) -> None:
        """Take `shown` for what stands at `start` to `end` of the original."""
        if shown:
            self._parts.append(shown)
            self._size += len(shown)
        self._shown.append(self._size)
        self._before.append(start)
        self._after.append(end)
        if len(self._parts) > _PARTS_AT_ONCE:
            self._joined.append("".join(self._parts))
            self._parts.clear()

    def close(self) -> View:
        """The finished view."""
        self.text = "".join([*self._joined, *self._parts])
        self._joined.clear()
        self._parts.clear()
        return self

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Where `text[start:end]` of the view stands in the original; `start` is less than `end`."""
        return self._of(start)[0], self._of(end - 1)[1]

    def _of(self, position: int) -> tuple[int, int]:
        """Start and end of what the character at `position` was made of."""
        index = bisect_right(self._shown, position) - 1
        place = self._after[index] + position - self._shown[index]
        if index + 1 < len(self._before) and place >= self._before[index + 1]:
            return self._before[index + 1], self._after[index + 1]
        return place, place + 1


def decoded_view(text: str, beyond: str) -> View | None:
    """The surroundings of everything in `text` that is encoded, decoded once; None when nothing is.

    `beyond` are the characters of `text` that are not ASCII.
    """
    traces = [pattern.pattern for sign, pattern in _TRACES if sign in text and pattern.search(text)]
    if _RARE.search(beyond):
        traces.append(_RARE.pattern)
    if not traces:
        return None
    pattern = re.compile("|".join(traces))
    view = View(len(text))
    position = 0
    for start, end in _surroundings(text, pattern):
        if start > position:
            view.replace(_GAP, position, start)
        position = start
        for match in pattern.finditer(text, start, end):
            view.keep(text, position, match.start())
            view.replace(_decoded(match[0]), match.start(), match.end())
            position = match.end()
        view.keep(text, position, end)
        position = end
    return view.close()


def command_view(window: Window) -> View | None:
    """The commands that a window prints with one word to a line, each in one line; None without any."""
    if not any(window.has(name, folded=False) for name in _COMMAND_NAMES):
        return None
    text = window.piece
    view = View(len(text))
    position = 0
    for command in _COMMAND.finditer(text):
        start, end = command.span("words")
        view.replace(_GAP, position, start)
        position = start
        for match in _WORD_BREAK.finditer(text, start, end):
            view.keep(text, position, match.start())
            view.replace(" ", match.start(), match.end())
            position = match.end()
        view.keep(text, position, end)
        position = end
    return view.close() if position else None


def _decoded(match: str) -> str:
    """What one encoded sign says."""
    first = match[0]
    if first == "%":
        plain = unquote(match)
        return "" if _UNSEEN_SIGN.match(plain) else plain
    if first == "&":
        plain = html.unescape(match)
        return " " if plain == "\xa0" else plain
    if first == "\\":
        return _unescaped(match.lstrip("\\"))
    if first == "\x1b" or _UNSEEN_SIGN.match(first):
        return ""
    return chr(ord(first) - _WIDE_DISTANCE)


def _unescaped(escape: str) -> str:
    code = int(escape.strip("uUx{}"), 16) if escape[0] in "uUx" else int(escape, 8)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        return "\N{REPLACEMENT CHARACTER}"
    return "" if _UNSEEN_SIGN.match(chr(code)) else chr(code)


def _surroundings(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Start and end of the parts of `text` around its matches, those that touch made into one."""
    start = end = -1
    for match in pattern.finditer(text):
        if end >= 0 and match.start() - _AROUND - 2 * _BORDER_CHARACTERS <= end:
            end = max(end, match.end() + _AROUND)
            continue
        if end >= 0:
            yield start, _border_after(text, end)
        start, end = _border_before(text, max(0, match.start() - _AROUND)), match.end() + _AROUND
    if end >= 0:
        yield start, _border_after(text, end)


def _border_before(text: str, position: int) -> int:
    """The start of the line of `position`, or of its word in a long line."""
    lowest = max(0, position - _BORDER_CHARACTERS)
    line = text.rfind("\n", lowest, position)
    if line >= 0 or not lowest:
        return line + 1
    border = max(text.rfind(sign, lowest, position) for sign in " \t\"',;")
    return border + 1 if border >= 0 else position


def _border_after(text: str, position: int) -> int:
    if position >= len(text):
        return len(text)
    border = _BORDERS.search(text, position, position + _BORDER_CHARACTERS)
    return border.start() if border else min(len(text), position)
