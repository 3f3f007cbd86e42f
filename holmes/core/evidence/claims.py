"""What a citation claims: the sentence or list item in front of a marker, what it quotes, and what it names.

Called by the verification and by the ledger. Pure functions of the text that the model wrote.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from holmes.core.evidence.markers import end_of_last_marker

MAX_CLAIM_CHARACTERS = 240
UNVERIFIED: Final = "(unverified)"
_MAX_QUOTES = 20
_MAX_QUOTE_CHARACTERS = 300
_MAX_NAMES = 30

_QUOTED = re.compile(r"`([^`]+)`|\"([^\"\n]+)\"|“([^”\n]+)”")
_FENCE = re.compile(r" {0,3}(?:`{3,}|~{3,})")
_ITEM_START = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)]|[|>]|#{1,6}\s)")
_ENDS_BEFORE_TEXT = re.compile(r"\s*(?:#{1,6}\s|\||`{3}|~{3})")
_SENTENCE_END = re.compile(r"[.!?][\"')\]*]*\s+(?![a-z])")
_DECORATION = re.compile(r"\*\*|__|^\s*(?:[-*+•]|\d{1,3}[.)]|#{1,6}|[|>])\s+", re.MULTILINE)
_EDGES = " \t\n|,;:.—–-("  # noqa: RUF001  models write dashes
_COMMAND = re.compile(r"(?:\$ )?(?:kubectl|helm|oc|docker|crictl|curl|grep)\s")
_ELLIPSIS = re.compile(r"\s*(?:\[?(?:…|\.{3,})\]?)\s*")
_SEPARATOR = re.compile(r"[,;]\s")
_QUOTE_TOKEN = re.compile(r"\w+|[^\w\s]")
_NAME = re.compile(r"[A-Za-z0-9_](?:[\w./:@%+-]*[\w%])?")
_CAMEL_CASE = re.compile(r"[a-z][A-Z]|[A-Z]{2,}[a-z]")
_KIND = re.compile(
    r"(?:Pod|Deployment|Job|Service|Endpoint|Ingress|Secret|Node|Namespace|Role|Event|Container|PVC?|HPA|PDB)s?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotePart:
    """A piece of quoted text: `pattern` finds it whatever the white space, `literal` is its longest word."""

    pattern: re.Pattern[str]
    literal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """Quoted text; where the model left something out, it has several parts. `length` is in characters.

    `pieces` are what stands between its commas: models put neighbouring lines into one quote with commas.
    """

    parts: tuple[QuotePart, ...]
    pieces: tuple[QuotePart, ...]
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """`text` is one line for people. `names` are the distinctive words that are not quoted."""

    text: str
    quotes: tuple[Quote, ...] = ()
    names: tuple[str, ...] = ()


def claim_before(before: str) -> Claim:
    """The claim that ends where `before` ends."""
    text = _without_citations_at_end(before)
    if block := _fenced_block(text):
        lead, lines = block
        shown = _claim_text(_last_statement(lead)) or _claim_text(lines[0] if lines else "")
        return Claim(text=shown, quotes=_quotes(lines))
    statement = _last_statement(text)
    quotes = _quotes(_quoted_texts(statement))
    unquoted = _QUOTED.sub(" ", statement) if quotes else statement
    return Claim(text=_claim_text(statement), quotes=quotes, names=_names(unquoted))


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
    return None


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


def names_pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """Finds any of `names` as a word of its own, whatever its case; a number also in a time, a kind as a plural."""
    return re.compile("|".join(map(_name_pattern, names)), re.IGNORECASE)


def _name_pattern(name: str) -> str:
    if name[0].isdigit():
        return rf"(?<!\d){re.escape(name)}(?!\d)"
    if _KIND.fullmatch(name):
        return rf"(?<![A-Za-z0-9]){name.removesuffix('s')}"
    return rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])"


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


def _quoted_texts(statement: str) -> list[str]:
    collapsed = re.sub("`+", "`", statement)
    return [next(filter(None, match.groups())) for match in _QUOTED.finditer(collapsed)]


def _quotes(texts: list[str]) -> tuple[Quote, ...]:
    """The quotes in `texts`, longest first. A command in backticks says where something is from and quotes nothing."""
    quotes: list[Quote] = []
    for text in (each.strip()[:_MAX_QUOTE_CHARACTERS] for each in texts[:_MAX_QUOTES]):
        if _COMMAND.match(text):
            continue
        if parts := _quote_parts(_ELLIPSIS.split(text)):
            pieces = [piece for part in _ELLIPSIS.split(text) for piece in _SEPARATOR.split(part)]
            quotes.append(Quote(parts=parts, pieces=_quote_parts(pieces), length=len(text)))
    return tuple(sorted(quotes, key=lambda quote: -quote.length))


def _quote_parts(texts: list[str]) -> tuple[QuotePart, ...]:
    return tuple(part for text in texts if (part := _quote_part(text)) is not None)


def _quote_part(text: str) -> QuotePart | None:
    """What finds `text`; None when it has no word. Punctuation at both ends does not count."""
    tokens = list(_QUOTE_TOKEN.finditer(text))
    words = [index for index, token in enumerate(tokens) if token[0][0].isalnum() or token[0][0] == "_"]
    if not words:
        return None
    tokens = tokens[words[0] : words[-1] + 1]
    pattern = re.escape(tokens[0][0])
    for left, right in pairwise(tokens):
        both_words = left.end() < right.start() and _is_word(left[0]) and _is_word(right[0])
        pattern += (r"\s{1,200}" if both_words else r"\s{0,200}") + re.escape(right[0])
    if tokens[-1].end() - tokens[0].start() <= 4:
        pattern = rf"(?<![A-Za-z0-9]){pattern}(?![A-Za-z0-9])"
    return QuotePart(pattern=re.compile(pattern), literal=max((token[0] for token in tokens), key=len))


def _is_word(token: str) -> bool:
    return token[0].isalnum() or token[0] == "_"


def _names(statement: str) -> tuple[str, ...]:
    """Words that would not stand in just any result: names with signs or digits, CamelCase reasons, kinds."""
    found: dict[str, None] = {}
    for match in _NAME.finditer(statement):
        word = match[0]
        if _is_distinctive(word):
            found[word] = None
        if "/" in word and not any(sign.isdigit() for sign in word.partition("/")[0]):
            found.update(dict.fromkeys(part for part in word.split("/") if len(part) >= 3))
    return tuple(found)[:_MAX_NAMES]


def _is_distinctive(word: str) -> bool:
    if any(sign.isdigit() for sign in word):
        return len(word) > 1
    if any(sign in word for sign in "-/._:@"):
        return len(word) > 3 and word.lower() != "and/or"
    return bool(_CAMEL_CASE.search(word) or _KIND.fullmatch(word))
