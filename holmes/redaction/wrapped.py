r"""Tokens that a terminal, a YAML file or a string in several parts broke into lines.

Only tokens with a prefix of their own are joined: of any other word nobody knows that it goes on in the next line.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.redaction.kinds import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.redaction.kinds import Kind
    from holmes.redaction.pieces import Window

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
