r"""Secrets that go on over several lines: private keys in PEM and PGP form, and tokens that something broke into lines.

A private key may also stand in one line with `\\n`, or lack its beginning or end. Its lines BEGIN and END stay: that
there is a key is no secret. Of tokens only those with a prefix of their own are joined: of any other word nobody knows
that it goes on in the next line.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.redaction.kinds import Span
from holmes.redaction.value_ends import lines_from

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.redaction.kinds import Kind
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
_RUN: Final = re.compile(r"(?:[A-Za-z0-9_\-.+/~]|=(?!\r?\n)){1,4096}+")
# The end of a line within a string, a comment, a quotation or a table, and what the next line begins with.
_BREAK: Final = re.compile(
    r"[ \t]{0,40}\\{0,7}[\"']?[ \t]{0,40}[+.&|=]?[ \t]{0,4}\\{0,7}(?:\r?\n|(?:\\{1,7}r)?\\{1,7}n)"
    r"[ \t]{0,80}(?:(?:[#>|*+]|//|- )[ \t|]{0,80})?\\{0,7}[\"']?"
)
_LINE_END: Final = re.compile(r"\\{0,7}[\"',;)\]}]{0,4}(?:[ \t@&|]|\\{0,7}[\"'rn]|\r?\n|$)")
_BEFORE_CHARACTERS: Final = 8
_MOST_LINES: Final = 32
_FEWEST_LINES: Final = 4
_FREE_LINES: Final = 256
_LINES_PER_BREAK: Final = 3
_SHORTEST_REST: Final = 4
_SHORTEST_MIDDLE: Final = 16
_SURE_REST: Final = 12


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


def wrapped_tokens(window: Window, kind: Kind) -> Iterator[Span]:
    """The parts of tokens of `kind` that begin in this window and go on in the next lines."""
    # What begins in every line and never becomes a token would read the same lines over and over.
    lines_left = _FREE_LINES + _LINES_PER_BREAK * (window.piece.count("\n") + window.piece.count("\\n"))
    for literal in kind.literals:
        at = window.piece.find(literal)
        while at >= 0:
            run = _RUN.match(window.text, window.start + at)
            # Within one long word a token begins once.
            end = run.end() if run else window.start + at + len(literal)
            most = max(_FEWEST_LINES, min(_MOST_LINES, lines_left))
            parts, whole = _parts(window.text, (window.start + at, end), kind, most)
            lines_left -= len(parts) - 1
            if whole and len(parts) > 1:
                secret = "".join(window.text[first:last] for first, last in parts)
                label = kind.label or kind.name
                yield from (Span(start=first, end=last, label=label, secret=secret) for first, last in parts)
            at = window.piece.find(literal, end - window.start)


def _parts(text: str, first: tuple[int, int], kind: Kind, most: int) -> tuple[list[tuple[int, int]], bool]:
    """At most so many parts of the token of `kind` that begins with `first`, and whether they are a whole one."""
    start, end = first
    parts = [first]
    if not _BREAK.match(text, end):
        return parts, False
    # Some prefixes stand in the middle of a token.
    before = text[max(0, start - _BEFORE_CHARACTERS) : start]
    joined = text[start:end]
    whole = _matches(kind, before, joined)
    while len(parts) < most:
        following = _next_part(text, parts[-1][1])
        # Only the first and the last part may be short.
        if not following or (len(parts) > 1 and parts[-1][1] - parts[-1][0] < _SHORTEST_MIDDLE):
            break
        word = text[following[0] : following[1]]
        if word.startswith(kind.literals) or (whole and not _goes_on(kind, before + joined, word)):
            break
        joined += word
        parts.append(following)
        whole = whole or _matches(kind, before, joined)
    return parts, whole


def _goes_on(kind: Kind, token: str, word: str) -> bool:
    """Whether a whole token, with what stands before it, becomes a longer one with `word`."""
    if len(word) < _SURE_REST or not _is_random(word):
        return False
    return any(match.end() == len(token) + len(word) for match in kind.pattern.finditer(token + word))


def _matches(kind: Kind, before: str, joined: str) -> bool:
    # Searching would go on through all that was joined.
    starts = range(len(before) + 1)
    matches = (kind.pattern.match(before + joined, start) for start in starts)
    return any(match is not None and match.end() > len(before) for match in matches)


def _next_part(text: str, end: int) -> tuple[int, int] | None:
    """The word that the next line begins with, when a token that ends at `end` can go on there."""
    line_break = _BREAK.match(text, end)
    run = _RUN.match(text, line_break.end()) if line_break else None
    if not run or len(run[0]) < _SHORTEST_REST or not _LINE_END.match(text, run.end()):
        return None
    return run.span()


def _is_random(word: str) -> bool:
    return any(map(str.isupper, word)) and any(map(str.islower, word)) and any(map(str.isdigit, word))
