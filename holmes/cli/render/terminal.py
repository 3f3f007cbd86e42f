"""What reaches a terminal: text that is safe to show, on streams that may be terminals, pipes, files, or closed.

Every string that Holmes did not write itself goes through here. A log line can hold sequences that move the cursor, set
the window's title or hide what follows; none reaches the terminal. What is stored or sent to the model is not touched.
"""

from __future__ import annotations

import re
import sys
from typing import TextIO

from holmes.values.texts import shortened

_ESCAPE_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, clear
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # OSC: title, links, clipboard
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x9c]*(?:\x1b\\|\x9c)"  # DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-~]"  # the short ones
)
_CONTROL_CHARACTER = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def sanitized(text: str) -> str:
    """`text` without terminal sequences, control characters and marks that reorder what is read.

    Newlines and tabs stay, Windows line ends become newlines. Applying it again changes nothing.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))
    before = None
    while before != text:  # a sequence may be built of the pieces around another one
        before, text = text, _ESCAPE_SEQUENCE.sub("", text)
    return _CONTROL_CHARACTER.sub("", text)


def one_line(text: str, limit: int = 300) -> str:
    """`text` sanitised on one line of at most `limit` characters."""
    return shortened(" ".join(sanitized(text).split()), limit)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether `stream` is open and a terminal."""
    return stream is not None and not stream.closed and stream.isatty()


def write_line(stream: TextIO | None, text: str) -> None:
    """Write a line at once; a stream that was closed before we started swallows it."""
    if stream is not None:
        stream.write(f"{text}\n")
        stream.flush()


def tolerate_narrow_encodings() -> None:
    """Show `?` for characters that the user's terminal cannot show, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
