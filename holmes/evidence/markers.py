"""Parses citation markers such as `[[<result id>:12]]` and the claims before them.

After the check, the marker contains the outcome. No suffix means *checked*. `[[<id>:12-18 cited]]` means that the lines
do not support the whole claim. `[[<id>:12-18 not found there: OOMKilled, 137]]` means that the lines lack a part of it.
One bracket may contain several citations (`[[<id>:3, 7-9]]`, `[[<id>:3; <id>:7]]`). Other text in double brackets is
unchanged: `[[ -f x ]]`, `[[1, 2]]`, wiki links. A claim is the sentence, list item or fenced block before a marker.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from holmes.values.expressions import expression
from holmes.values.messages import ResultId

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holmes.values.events import CitationOutcome

MAX_MARKER_CHARACTERS = 200
CONTEXT_CHARACTERS = 4_000
MAX_MISSING = 4
_MAX_FURTHER_MARKERS = 19
_MISSING_CHARACTERS = 30
OUTCOME_WORDS: Final[Mapping[CitationOutcome, str]] = {
    "checked": "checked",
    "cited": "cited, not checked",
    "not_found": "not found there",
}
"""The wording of each outcome in texts for people. Markers in texts for the model are shorter."""
_CITED: Final = "cited"
_NOT_FOUND: Final = "not found there"

_LINES = r"\d{1,9}(?: ?[-–] ?\d{1,9})?"  # noqa: RUF001  models write an en dash
_ITEM = rf"[0-9a-fA-F]{{12,64}}: ?{_LINES}"
_OUTCOME = rf"(?: (?:{_CITED}|{_NOT_FOUND}(?:: [^\[\]\n]{{1,150}})?))?"
_BRACKET = rf"\[\[(?=[^\]]{{1,{MAX_MARKER_CHARACTERS - 4}}}\]\]) ?{_ITEM}(?: ?[,;] ?(?:{_ITEM}|{_LINES}))*"
_MARKER = rf"{_BRACKET}{_OUTCOME} ?\]\]"
_BETWEEN = r"[ \t,;]{0,3}"
_GROUP = expression(rf"{_MARKER}(?:{_BETWEEN}{_MARKER}){{0,{_MAX_FURTHER_MARKERS}}}")
_ONE_MARKER = expression(rf"(?P<lines>{_BRACKET})(?P<outcome>{_OUTCOME}) ?\]\]")
_OPEN_LINES = r"[0-9a-fA-F:,; \-–]*"  # noqa: RUF001
_OPEN_MARKER = expression(rf"\[(?:\[{_OPEN_LINES}(?: [cn](?<=\d \w)[^\[\]\n]*)?\]?)?")
_OPEN_GROUP = expression(rf"{_BETWEEN}(?:{_OPEN_MARKER.pattern})?")
_SPACE_BEFORE_STOP = expression(r"[ \t]{1,9}(?=[.,;:!?])")
_NOT_SHOWN = expression(r"[\[\]`,\s]+")
_PART = expression(r"(?:(?P<id>[0-9a-fA-F]{12,64}): ?)?(?P<first>\d{1,9})(?: ?[-–] ?(?P<last>\d{1,9}))?")  # noqa: RUF001
MAX_CLAIM_CHARACTERS = 240
_UNVERIFIED: Final = "(unverified)"
_QUOTED = expression(r"`([^`]+)`|\"([^\"\n]+)\"|“([^”\n]+)”")
_FENCE = expression(r" {0,3}(?:`{3,}|~{3,})")
_ITEM_START = expression(r"\s*(?:[-*+•]|\d{1,3}[.)]|[|>]|#{1,6}\s)")
_ENDS_BEFORE_TEXT = expression(r"\s*(?:#{1,6}\s|\||`{3}|~{3})")
_ABBREVIATIONS = "".join(
    rf"(?<!\b{each})"
    for each in ("ca", "approx", "vs", "bzw", "Nr", "No", "max", "min", "incl", "vgl", "e\\.g", "z\\. B", "d\\. h")
)
_SENTENCE_END = expression(rf"{_ABBREVIATIONS}[.!?][\"')\]*]*\s+(?![a-z])")
_DECORATION = expression(r"\*\*|__|^\s*(?:[-*+•]|\d{1,3}[.)]|#{1,6}|[|>])\s+", re.MULTILINE)
_EDGES = " \t\n|,;:.—–-("  # noqa: RUF001  models write dashes


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """A citation of lines in a stored result.

    Line numbers start at 1, and `last_line` is included. `missing` contains the parts that the lines lack, for display.
    It may be empty.
    """

    result_id: ResultId
    first_line: int
    last_line: int
    outcome: CitationOutcome = "checked"
    missing: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = f"{self.first_line}-{self.last_line}" if self.last_line != self.first_line else str(self.first_line)
        return f"[[{self.result_id}:{lines}{f' {self.words}' if self.words else ''}]]"

    @property
    def words(self) -> str:
        """The outcome in words: empty for checked, `cited`, or `not found there: OOMKilled, 137`."""
        match self.outcome:
            case "checked":
                return ""
            case "cited":
                return _CITED
            case "not_found":
                shown = ", ".join(filter(None, map(shown_missing, self.missing[:MAX_MISSING])))
                return f"{_NOT_FOUND}: {shown}" if shown else _NOT_FOUND

    def short(self, number: int) -> str:
        """Return the marker for display: `[1]`, `[2 cited]`, `[3 not found there: OOMKilled]`."""
        return f"[{number}{f' {self.words}' if self.words else ''}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerGroup:
    """Adjacent markers of one claim.

    `text` is the original text of the markers. `before` is the text before them, up to 4,000 characters.
    """

    text: str
    markers: tuple[Marker, ...]
    before: str


TextOrMarkers: TypeAlias = str | MarkerGroup


class MarkerScanner:
    """Splits streamed text into plain text and markers. The result does not depend on the chunk boundaries.

    Plain text is returned immediately. At most 200 characters that may become a marker are held back.
    """

    def __init__(self) -> None:
        self._held = ""
        self._before = ""

    def feed(self, text: str) -> list[TextOrMarkers]:
        """Add `text`, and return the plain text and the markers that are now complete."""
        self._held += text
        return list(self._take(final=False))

    def finish(self) -> list[TextOrMarkers]:
        """Return the text and markers that are still held back when the text ends."""
        return list(self._take(final=True))

    def _take(self, *, final: bool) -> Iterator[TextOrMarkers]:
        held, taken, position = self._held, 0, 0
        while (position := held.find("[", position)) >= 0:
            group = _GROUP.match(held, position)
            if group is None:
                left = len(held) - position
                if not final and left < MAX_MARKER_CHARACTERS and _OPEN_MARKER.fullmatch(held, position):
                    break
                position += 1
                continue
            if not final and _may_go_on(group, held):
                break
            if position > taken:
                yield held[taken:position]
            before = (self._before + held[max(0, position - CONTEXT_CHARACTERS) : position])[-CONTEXT_CHARACTERS:]
            yield MarkerGroup(text=group[0], markers=markers_in(group[0]), before=before)
            taken = position = group.end()
        end = position if position >= 0 else len(held)
        if end > taken:
            yield held[taken:end]
        self._before = (self._before + held[max(0, end - CONTEXT_CHARACTERS) : end])[-CONTEXT_CHARACTERS:]
        self._held = held[end:]


def _may_go_on(group: re.Match[str], held: str) -> bool:
    """Return whether another marker of `group` may follow in the held-back text."""
    left = len(held) - group.end()
    if left >= MAX_MARKER_CHARACTERS + 3 or not _OPEN_GROUP.fullmatch(held, group.end()):
        return False
    return len(_ONE_MARKER.findall(group[0])) <= _MAX_FURTHER_MARKERS


def scan_markers(text: str) -> list[TextOrMarkers]:
    """Split a whole text into plain text and marker groups, in order."""
    scanner = MarkerScanner()
    return [*scanner.feed(text), *scanner.finish()]


def markers_in(text: str) -> tuple[Marker, ...]:
    """Return the distinct markers in `text`, in order."""
    found: dict[Marker, None] = {}
    for bracket in _ONE_MARKER.finditer(text):
        result_id = ""
        outcome, missing = _outcome_of(bracket["outcome"] or "")
        for part in _PART.finditer(bracket["lines"]):
            result_id = (part["id"] or result_id).lower()
            first = int(part["first"])
            marker = Marker(
                result_id=ResultId(result_id),
                first_line=first,
                last_line=int(part["last"] or first),
                outcome=outcome,
                missing=missing,
            )
            found[marker] = None
    return tuple(found)


def without_markers(text: str) -> str:
    """Return `text` for a display that does not support links.

    Markers of checked claims are removed. Other outcomes are written in words.
    """
    if "[[" not in text:
        return text
    pieces = (piece if isinstance(piece, str) else _spoken(piece) for piece in scan_markers(text))
    return _SPACE_BEFORE_STOP.sub("", "".join(pieces)).strip()


def _spoken(group: MarkerGroup) -> str:
    words = dict.fromkeys(marker.words for marker in group.markers if marker.words)
    shown = f"({'; '.join(words)})" if words else ""
    return shown if not shown or group.before[-1:].isspace() else f" {shown}"


def _outcome_of(words: str) -> tuple[CitationOutcome, tuple[str, ...]]:
    words = words.strip()
    if not words:
        return "checked", ()
    if words == _CITED:
        return "cited", ()
    return "not_found", tuple(filter(None, words.removeprefix(_NOT_FOUND).removeprefix(": ").split(", ")))


def shown_missing(item: str) -> str:
    """Shorten `item` for a marker, and remove brackets, commas and line feeds."""
    plain = " ".join(_NOT_SHOWN.sub(" ", item).split())
    return plain if len(plain) <= _MISSING_CHARACTERS else f"{plain[: _MISSING_CHARACTERS - 1].rstrip()}…"


def _end_of_last_marker(text: str) -> int:
    """Return the position after the last marker in `text`, or 0 if `text` contains no marker."""
    return max((match.end() for match in _ONE_MARKER.finditer(text)), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A claim before a marker.

    `text` is one line for display. `statement` is the whole claim. `block` contains the lines of a fenced block.
    """

    text: str
    statement: str = ""
    block: tuple[str, ...] = ()


def claim_before(before: str) -> Claim:
    """Return the claim that ends at the end of `before`."""
    text = _without_citations_at_end(before)
    if block := _fenced_block(text):
        lead, lines = block
        statement = _plain(_last_statement(lead))
        shown = clipped_claim(statement.strip(_EDGES)) or clipped_claim(_plain(lines[0] if lines else "").strip(_EDGES))
        return Claim(text=shown, statement=statement, block=tuple(lines))
    statement = _last_statement(text)
    return Claim(text=_claim_text(statement), statement=_plain(statement))


def _without_citations_at_end(before: str) -> str:
    """Return `before` without trailing whitespace and markers of the same claim."""
    text = before.rstrip()
    while True:
        end = max(_end_of_last_marker(text), text.rfind(_UNVERIFIED) + len(_UNVERIFIED) if _UNVERIFIED in text else 0)
        if not end or re.search(r"\w", text[end:]):
            break
        cut = text[:end]
        start = cut.rfind("[[") if cut.endswith("]]") else cut.rfind(_UNVERIFIED)
        text = text[:start].rstrip()
    last_line = text.rpartition("\n")[2]
    if text.endswith("`") and not _FENCE.fullmatch(last_line) and last_line.count("`") % 2:
        text = text[:-1].rstrip()  # backticks enclose the marker
    return text


def _fenced_block(text: str) -> tuple[str, list[str]] | None:
    """Return the text before the fenced block at the end of `text`, and the lines of the block.

    Returns None if `text` does not end with a block.
    """
    lines = text.split("\n")
    if not _FENCE.fullmatch(lines[-1].rstrip()):
        return None
    for index in range(len(lines) - 2, -1, -1):
        if _FENCE.match(lines[index]):
            return "\n".join(lines[:index]).rstrip(), [line for line in lines[index + 1 : -1] if line.strip()]
    return "", [line for line in lines[1:-1] if line.strip()]  # the block starts before the known text


def _last_statement(text: str) -> str:
    """Return the last sentence of the last list item or paragraph, after any markers of other claims."""
    end = max(_end_of_last_marker(text), text.rfind(_UNVERIFIED) + len(_UNVERIFIED) if _UNVERIFIED in text else 0)
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
    """Return `statement` on one line without Markdown, with table cells separated by commas."""
    return " ".join(_DECORATION.sub("", statement).replace("|", ", ").split())


def _claim_text(statement: str) -> str:
    """Return `statement` on one line without Markdown, with at most 240 characters. A clipped quote is closed."""
    line = " ".join(_DECORATION.sub("", statement).replace("|", " ").split()).strip(_EDGES)
    return clipped_claim(line)


def clipped_claim(line: str) -> str:
    """Clip `line` to 240 characters. A line that is already clipped remains unchanged."""
    if len(line) <= MAX_CLAIM_CHARACTERS:
        return line
    cut = line[: MAX_CLAIM_CHARACTERS - 2]
    cut = cut[: cut.rfind(" ")] if " " in cut[MAX_CLAIM_CHARACTERS // 2 :] else cut
    for sign in '`"':
        if cut.count(sign) % 2:
            return f"{cut.rstrip()}…{sign}"
    return f"{cut.rstrip()}…"
