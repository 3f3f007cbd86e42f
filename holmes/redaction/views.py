r"""Removes terminal escape sequences and decodes text: `%3D`, `&quot;`, `\u0022`, `\x22`, UTF-16, invisible characters.

Escape sequences may be real or printed as text: `^[[33m`, `\e[33m`, `\033[0m`, `\u001b[1m`. The text of a link is kept,
and its address is removed. Line breaks are kept.

A view contains the decoded text with its surroundings, and the original position of each character. Every pattern is
also applied to the view, and the spans are masked in the original text.
"""

from __future__ import annotations

import html
from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from holmes.values.expressions import expression

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

    from holmes.redaction.pieces import Window


_ESCAPED: Final = r"\\{1,8}+(?:[eE]|0?033|33|x1[bB]|[xu]\{1[bB]\}|u001[bB]|U0000001[bB])"
_TEXTUAL: Final = rf"(?:{_ESCAPED}|\^\[|#033|<ESC>|\u241b)"
_TEXTUAL_END: Final = rf"(?:\^G|\\{{1,8}}(?:a|0?07|x07|u0007)|{_TEXTUAL}\\{{1,8}}|\x07|\x1b\\)"
_FORWARD: Final = r"(?:\x1b\[|\x9b)[0-9]{0,4}C"
_REAL: Final = expression(
    rf"(?P<blank>{_FORWARD})"
    r"|(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]"  # CSI: colours, cursor, clear
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c\x9d\r\n]*+(?:\x07|\x1b\\|\x9c)"  # OSC: title, links, clipboard
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x90\x98\x9c\x9e\x9f\r\n]*+(?:\x1b\\|\x9c)"  # DCS, SOS, PM, APC
    r"|\x1b[ -/]{0,8}[0-~]"  # short sequences
    # The remaining part of a broken sequence. Two remaining parts could form a new sequence.
    r"|[\x1b\x90\x98\x9b-\x9f]"
)
_WRITTEN: Final = expression(
    rf"(?P<blank>{_TEXTUAL}\[[0-9]{{0,4}}C)"
    rf"|{_TEXTUAL}\[[0-9;:?]{{0,64}}[A-Za-z]"
    rf"|{_TEXTUAL}\][0-9]{{1,4}};[^\r\n\x07\x1b\\^\u241b]{{0,2048}}+{_TEXTUAL_END}"
)
_ESCAPED_START: Final = expression(_ESCAPED + r"[\[\]]")
_C1: Final = expression("[\x90\x98\x9b\x9d-\x9f\u241b]")
_ASCII: Final = bytes(range(128))
_STEP_CHARACTERS: Final = 256 * 1024
_URL: Final = r"%[0-7][0-9A-Fa-f]|(?:%[89A-Fa-f][0-9A-Fa-f])+"
_ENTITY: Final = r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,12});"
_ESCAPE: Final = (
    r"\\{1,8}(?:u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]{1,6}\}|U000[0-9a-fA-F]{5}|x[0-9a-fA-F]{2}"
    r"|(?:0?0[1-7][0-7]|0?1[0-7]{2})(?![0-9]))"
)
# Raw text no longer contains escape sequences, but decoded text may.
_SEQUENCE: Final = r"\x1b\[[0-9;]{0,20}[A-Za-z]"
# Zero-width characters, text direction marks, soft hyphens, byte order marks.
_UNSEEN: Final = "\u00ad\u034f\u061c\u115f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff"
_WIDE: Final = "\uff01-\uff5e"
_WIDE_DISTANCE: Final = 0xFEE0
_RARE: Final = expression(f"[{_UNSEEN}]+|[{_WIDE}]")
_UNSEEN_SIGN: Final = expression(f"[\x00{_UNSEEN}]")
# Indications of an encoding: a character that is fast to search, and a pattern that starts with it.
_TRACES: Final = (
    ("%", expression(_URL)),
    ("&", expression(_ENTITY)),
    ("\\", expression(_ESCAPE)),
    ("\x00", expression("\x00+")),
    ("\x1b", expression(_SEQUENCE)),
)
# `kubectl describe` prints a command below these names, one word per line.
_COMMAND_NAMES: Final = ("Command:", "Args:")
_COMMAND: Final = expression(
    r"(?:^|\n)(?P<margin>[ ]{2,40})(?:Command|Args):[ ]{0,8}\r?\n"
    r"(?P<words>(?:(?P=margin)[ ]{2}[^\n]{1,4000}(?:\n|$)){1,400})"
)
_WORD_BREAK: Final = expression(r"[ \r]{0,8}\n[ ]{4,42}(?=\S)")
# Number of characters around a decoded span. The context is extended to the next word border.
_AROUND: Final = 320
_BORDER_CHARACTERS: Final = 400
_BORDERS: Final = expression(r"[\s\"',;]")
# Separates two spans, so that no match crosses the gap.
_GAP: Final = "\n---\n"
_PARTS_AT_ONCE: Final = 4096
_MOST_SMALL: Final = 2**32


def strip_escape_sequences(text: str, beyond: str | None = None) -> str:
    """Remove escape sequences from `text`. Returns the same object if it has none. The function is idempotent.

    A cursor movement to the right becomes a space, because it separates words. `beyond` is `beyond_ascii(text)`, if
    already known.
    """
    beyond = beyond_ascii(text) if beyond is None else beyond
    if "\x1b" in text or _C1.search(beyond):
        text = _REAL.sub(_blank, text)
    if not (_has_written(text) or "\u241b" in beyond):
        return text
    # Removing a sequence may form a new sequence. A few repetitions are enough and keep the time linear.
    for _ in range(4):
        before, text = text, _WRITTEN.sub(_blank, text)
        if before == text:
            break
    return text


def beyond_ascii(text: str) -> str:
    """Return the non-ASCII characters of `text`. Most texts have few, which makes searching them fast."""
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


class View:
    """A decoded text with the original position of each character."""

    __slots__ = ("_after", "_before", "_joined", "_parts", "_shown", "_size", "text")

    def __init__(self, characters: int) -> None:
        # Many small strings use more memory than the text, so they are joined early.
        self._joined: list[str] = []
        self._parts: list[str] = []
        self._size = 0
        # Each replaced span has three positions: its end in the view, and its start and end in the original.
        code = "I" if characters < _MOST_SMALL else "Q"
        self._shown = array(code, [0])
        self._before = array(code, [0])
        self._after = array(code, [0])
        self.text = ""

    def keep(self, text: str, start: int, end: int) -> None:
        """Add `text[start:end]` unchanged. Calls must proceed from left to right without gaps."""
        if start < end:
            self._parts.append(text[start:end])
            self._size += end - start

    def replace(self, shown: str, start: int, end: int) -> None:
        """Add `shown` in place of the span from `start` to `end` of the original."""
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
        """Finish the view and return it."""
        self.text = "".join([*self._joined, *self._parts])
        self._joined.clear()
        self._parts.clear()
        return self

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Return the original span for `text[start:end]` of the view. `start` must be less than `end`."""
        return self._of(start)[0], self._of(end - 1)[1]

    def _of(self, position: int) -> tuple[int, int]:
        """Return the original span for the character at `position` in the view."""
        index = bisect_right(self._shown, position) - 1
        place = self._after[index] + position - self._shown[index]
        if index + 1 < len(self._before) and place >= self._before[index + 1]:
            return self._before[index + 1], self._after[index + 1]
        return place, place + 1


def decoded_view(text: str, beyond: str) -> View | None:
    """Return the decoded surroundings of all encoded spans in `text`, or None if nothing is encoded.

    `beyond` contains the non-ASCII characters of `text`.
    """
    traces = [pattern.pattern for sign, pattern in _TRACES if sign in text and pattern.search(text)]
    if _RARE.search(beyond):
        traces.append(_RARE.pattern)
    if not traces:
        return None
    pattern = expression("|".join(traces))
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
    """Join the commands in a window that are printed with one word per line.

    Returns None if the window contains no such commands.
    """
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
    """Decode one encoded character."""
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
    """Yield the start and end of the parts of `text` around each match. Adjacent parts are joined."""
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
    """Return the start of the line at `position`, or the start of the word in a long line."""
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
