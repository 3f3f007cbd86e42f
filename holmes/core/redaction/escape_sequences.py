r"""Removes the escape sequences of terminals: colours, moves of the cursor, titles, links.

Real ones (ESC and the C1 controls) and ones that a program wrote as text: `^[[33m`, `\e[33m`, `\033[0m`, `\u001b[1m`.
The text of a link stays, its address goes. No line break is removed.
"""

from __future__ import annotations

import re
from typing import Final

_ESCAPED: Final = r"\\{1,8}+(?:[eE]|0?033|33|x1[bB]|[xu]\{1[bB]\}|u001[bB]|U0000001[bB])"
_TEXTUAL: Final = rf"(?:{_ESCAPED}|\^\[|#033|\u241b)"
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
_C1: Final = "\x90\x98\x9b\x9c\x9d\x9e\x9f"


def strip_escape_sequences(text: str) -> str:
    """`text` without escape sequences; the same object when it has none. Doing it again changes nothing.

    A move of the cursor to the right becomes a blank, because it separates words.
    """
    if _has_real(text):
        text = _REAL.sub(_blank, text)
    if not _has_written(text):
        return text
    # Removing one may join the halves of another: few rounds, so that hostile texts take linear time.
    for _ in range(4):
        before, text = text, _WRITTEN.sub(_blank, text)
        if before == text:
            break
    return text


def _blank(match: re.Match[str]) -> str:
    return " " if match["blank"] else ""


def _has_real(text: str) -> bool:
    return "\x1b" in text or (not text.isascii() and any(sign in text for sign in _C1))


def _has_written(text: str) -> bool:
    return (
        "^[" in text
        or "#033" in text
        or ("\\" in text and _ESCAPED_START.search(text) is not None)
        or (not text.isascii() and "\u241b" in text)
    )
