r"""Tokens that a terminal, a YAML file or a string in several parts broke into lines.

Only tokens with a prefix of their own are joined: of any other word nobody knows that it goes on in the next line.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.core.redaction.kinds import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.core.redaction.kinds import Kind
    from holmes.core.redaction.pieces import Window

_RUN: Final = re.compile(r"(?:[A-Za-z0-9_\-.+/~]|=(?!\r?\n)){1,4096}+")
# The end of a line within a string, a comment, a quotation or a table, and what the next line begins with.
_BREAK: Final = re.compile(
    r"[ \t]{0,40}\\{0,7}[\"']?[ \t]{0,40}[+.&|\\=]?[ \t]{0,4}(?:\r?\n|(?:\\{1,7}r)?\\{1,7}n)"
    r"[ \t]{0,80}(?:(?:[#>|*+]|//|- )[ \t|]{0,80})?\\{0,7}[\"']?"
)
_LINE_END: Final = re.compile(r"\\{0,7}[\"',;)\]}]{0,4}(?:[ \t]|\\{0,7}[\"'rn]|\r?\n|$)")
_BEFORE_CHARACTERS: Final = 8
_MOST_LINES: Final = 32
_SHORTEST_REST: Final = 4
_SURE_REST: Final = 12


def wrapped_tokens(window: Window, kind: Kind) -> Iterator[Span]:
    """The parts of tokens of `kind` that begin in this window and go on in the next lines."""
    for literal in kind.literals:
        at = window.piece.find(literal)
        while at >= 0:
            run = _RUN.match(window.text, window.start + at)
            # Within one long word a token begins once.
            end = run.end() if run else window.start + at + len(literal)
            yield from _parts(window.text, window.start + at, end, kind)
            at = window.piece.find(literal, end - window.start)


def _parts(text: str, start: int, end: int, kind: Kind) -> Iterator[Span]:
    """The parts of the token of `kind` whose first part is at `start` to `end`, when it has more than one."""
    if not _BREAK.match(text, end):
        return
    # Some prefixes stand in the middle of a token.
    lowest = max(0, start - _BEFORE_CHARACTERS)
    before = text[lowest:start]
    joined, parts = text[start:end], [(start, end)]
    whole = _matches(kind, before, joined)
    while len(parts) < _MOST_LINES:
        following = _next_part(text, parts[-1][1])
        if not following:
            break
        word = text[following[0] : following[1]]
        if word.startswith(kind.literals) or (whole and not (len(word) >= _SURE_REST and _is_random(word))):
            break
        joined += word
        parts.append(following)
        whole = whole or _matches(kind, before, joined)
    if whole and len(parts) > 1:
        label = kind.label or kind.name
        yield from (Span(start=first, end=last, label=label, secret=joined) for first, last in parts)


def _matches(kind: Kind, before: str, joined: str) -> bool:
    match = kind.pattern.search(before + joined)
    return match is not None and match.start() <= len(before) and match.end() > len(before)


def _next_part(text: str, end: int) -> tuple[int, int] | None:
    """The word that the next line begins with, when a token that ends at `end` can go on there."""
    line_break = _BREAK.match(text, end)
    run = _RUN.match(text, line_break.end()) if line_break else None
    if not run or len(run[0]) < _SHORTEST_REST or not _LINE_END.match(text, run.end()):
        return None
    return run.span()


def _is_random(word: str) -> bool:
    return any(map(str.isupper, word)) and any(map(str.islower, word)) and any(map(str.isdigit, word))
