r"""Private keys in PEM and PGP form, over many lines or in one line with `\\n`. Called by the redactor for each window.

The lines BEGIN and END stay: that there is a key is no secret. A key whose beginning or end was cut off is found too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.redaction.blocks import lines_from
from holmes.redaction.kinds import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.redaction.pieces import Window

LABEL: Final = "private-key"
# A kind is one of a few words; bounded, so that dashes in a row cost nothing.
_BORDER: Final = re.compile(
    r"-----(BEGIN|END) (?:[A-Z0-9 ]{1,40} )?PRIVATE KEY(?: BLOCK)?-----|---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----"
)
_BREAKS: Final = re.compile(r"(?:\s|\\+[nrt])*")
_KEY_LINE: Final = re.compile(
    r"[+\-]?[\s|>#*\"',]*(?:[A-Za-z0-9+/=]{1,80}|(?:Proc-Type|DEK-Info|Version|Comment|Charset|Hash): [^\n]{1,200})?"
    r"[\"',\\nr]*$"
)
_KEY_TEXT: Final = re.compile(r"[ \t]{0,40}[A-Za-z0-9+/=]{1,80}\s{1,4}")
_ONE_LINE_BODY: Final = re.compile(r"(?:[A-Za-z0-9+/=:,. \t\-]|\\+[nrt/])*+")
_KEY_CHARACTERS: Final = 64 * 1024
_LINE_CHARACTERS: Final = 200


def private_keys(window: Window) -> Iterator[Span]:
    """The bodies of private keys that begin, or only end, in this window."""
    if not window.has("PRIVATE KEY", folded=False):
        return
    text = window.text
    opened_until = -1
    for match in _BORDER.finditer(window.piece):
        at = window.start + match.end()
        if match[1] == "END":
            if at > opened_until:
                yield from _headless(text, window.start + match.start())
            continue
        end = _body_end(text, at)
        opened_until = text.find("-----", end) + 100 if text.startswith("-----END", end) else end
        yield from _body(text, at, end)


def _body_end(text: str, start: int) -> int:
    """Where the body ends: at the line END, or where the lines stop to look like a key."""
    limit = min(len(text), start + _KEY_CHARACTERS)
    begin = text.find("-----BEGIN ", start, limit)
    limit = limit if begin < 0 else begin
    end = text.find("-----END ", start, limit)
    if end >= 0:
        return end
    line_end = text.find("\n", start, limit)
    one_line = line_end < 0
    line_end = limit if one_line else line_end
    rest = _ONE_LINE_BODY.match(text, start, line_end)
    last = rest.end() if rest else start
    if one_line or (last < line_end and text[last:line_end].strip("\"',")):
        return last
    for line_start, line_stop in lines_from(text, start):
        if line_start >= limit or line_stop - line_start > 400 or not _KEY_LINE.match(text[line_start:line_stop]):
            break
        last = line_stop
    return last


def _body(text: str, start: int, end: int) -> Iterator[Span]:
    breaks = _BREAKS.match(text, start, end)
    start = breaks.end() if breaks else start
    body = text[start:end].rstrip()
    while body.endswith(("\\n", "\\r", "\\")):
        body = body[:-1].rstrip("\\")
    if body:
        # The same key has the same placeholder however its lines are broken.
        yield Span(start=start, end=start + len(body), label=LABEL, secret=_joined(body))


def _joined(body: str) -> str:
    return re.sub(r"\\+[nrt]|[\s\"',]|^[|>+\-#]+", "", body)


def _headless(text: str, end: int) -> Iterator[Span]:
    """The lines before a line END whose BEGIN is missing."""
    first = end
    while first > 0 and end - first < _KEY_CHARACTERS:
        line_start = text.rfind("\n", max(0, first - 1 - _LINE_CHARACTERS), first - 1) + 1
        if not _KEY_TEXT.fullmatch(text, line_start, first):
            break
        first = line_start
    body = text[first:end].rstrip()
    if body:
        yield Span(start=first, end=first + len(body), label=LABEL, secret=_joined(body))
