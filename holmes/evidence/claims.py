"""What a citation claims: the sentence or list item in front of a marker, or the fenced block.

Pure functions of the text that the model wrote.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from holmes.evidence.markers import end_of_last_marker

MAX_CLAIM_CHARACTERS = 240
UNVERIFIED: Final = "(unverified)"

_QUOTED = re.compile(r"`([^`]+)`|\"([^\"\n]+)\"|“([^”\n]+)”")
_FENCE = re.compile(r" {0,3}(?:`{3,}|~{3,})")
_ITEM_START = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)]|[|>]|#{1,6}\s)")
_ENDS_BEFORE_TEXT = re.compile(r"\s*(?:#{1,6}\s|\||`{3}|~{3})")
_ABBREVIATIONS = "".join(
    rf"(?<!\b{each})"
    for each in ("ca", "approx", "vs", "bzw", "Nr", "No", "max", "min", "incl", "vgl", "e\\.g", "z\\. B", "d\\. h")
)
_SENTENCE_END = re.compile(rf"{_ABBREVIATIONS}[.!?][\"')\]*]*\s+(?![a-z])")
_DECORATION = re.compile(r"\*\*|__|^\s*(?:[-*+•]|\d{1,3}[.)]|#{1,6}|[|>])\s+", re.MULTILINE)
_EDGES = " \t\n|,;:.—–-("  # noqa: RUF001  models write dashes


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """`text` is one line for people, `statement` all that is claimed, `block` the lines of a fenced block after it."""

    text: str
    statement: str = ""
    block: tuple[str, ...] = ()


def claim_before(before: str) -> Claim:
    """The claim that ends where `before` ends."""
    text = _without_citations_at_end(before)
    if block := _fenced_block(text):
        lead, lines = block
        statement = _plain(_last_statement(lead))
        shown = clipped_claim(statement.strip(_EDGES)) or clipped_claim(_plain(lines[0] if lines else "").strip(_EDGES))
        return Claim(text=shown, statement=statement, block=tuple(lines))
    statement = _last_statement(text)
    return Claim(text=_claim_text(statement), statement=_plain(statement))


def _without_citations_at_end(before: str) -> str:
    """`before` without what follows the last word: markers of the same claim, white space."""
    text = before.rstrip()
    while True:
        end = max(end_of_last_marker(text), text.rfind(UNVERIFIED) + len(UNVERIFIED) if UNVERIFIED in text else 0)
        if not end or re.search(r"\w", text[end:]):
            break
        cut = text[:end]
        start = cut.rfind("[[") if cut.endswith("]]") else cut.rfind(UNVERIFIED)
        text = text[:start].rstrip()
    last_line = text.rpartition("\n")[2]
    if text.endswith("`") and not _FENCE.fullmatch(last_line) and last_line.count("`") % 2:
        text = text[:-1].rstrip()  # the marker itself stands in backticks
    return text


def _fenced_block(text: str) -> tuple[str, list[str]] | None:
    """What stands before the fenced block at the end of `text`, and its lines; None when there is no such block."""
    lines = text.split("\n")
    if not _FENCE.fullmatch(lines[-1].rstrip()):
        return None
    for index in range(len(lines) - 2, -1, -1):
        if _FENCE.match(lines[index]):
            return "\n".join(lines[:index]).rstrip(), [line for line in lines[index + 1 : -1] if line.strip()]
    return "", [line for line in lines[1:-1] if line.strip()]  # it begins before what is known of the text


def _last_statement(text: str) -> str:
    """The last sentence of the last list item or paragraph, after the markers of other claims."""
    end = max(end_of_last_marker(text), text.rfind(UNVERIFIED) + len(UNVERIFIED) if UNVERIFIED in text else 0)
    lines = text[end:].rstrip().split("\n")
    start = len(lines) - 1
    while start > 0 and not _ITEM_START.match(lines[start]):
        above = lines[start - 1]
        if not above.strip() or _ENDS_BEFORE_TEXT.match(above):
            break
        start -= 1
    block = "\n".join(lines[start:])
    masked = _QUOTED.sub(lambda match: "x" * len(match[0]), block)
    ends = [match.end() for match in _SENTENCE_END.finditer(masked) if re.search(r"\w", masked[match.end() :])]
    number = _ITEM_START.match(masked)
    ends = [position for position in ends if number is None or position > number.end() + 1]
    return block[ends[-1] :] if ends else block


def _plain(statement: str) -> str:
    """`statement` on one line without Markdown decoration; cells of a table are parts of it."""
    return " ".join(_DECORATION.sub("", statement).replace("|", ", ").split())


def _claim_text(statement: str) -> str:
    """`statement` on one line without Markdown decoration, at most 240 characters; a quote that is cut stays closed."""
    line = " ".join(_DECORATION.sub("", statement).replace("|", " ").split()).strip(_EDGES)
    return clipped_claim(line)


def clipped_claim(line: str) -> str:
    """`line`, or its beginning of at most 240 characters. Applying it again changes nothing."""
    if len(line) <= MAX_CLAIM_CHARACTERS:
        return line
    cut = line[: MAX_CLAIM_CHARACTERS - 2]
    cut = cut[: cut.rfind(" ")] if " " in cut[MAX_CLAIM_CHARACTERS // 2 :] else cut
    for sign in '`"':
        if cut.count(sign) % 2:
            return f"{cut.rstrip()}…{sign}"
    return f"{cut.rstrip()}…"
