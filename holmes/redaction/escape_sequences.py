r"""Removes the escape sequences of terminals: colours, moves of the cursor, titles, links.

Real ones (ESC and the C1 controls) and ones that a program wrote as text: `^[[33m`, `\e[33m`, `\033[0m`, `\u001b[1m`.
The text of a link stays, its address goes. No line break is removed.
"""

from __future__ import annotations

import re
from typing import Final

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
