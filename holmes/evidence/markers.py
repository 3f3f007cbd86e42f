"""The markers by which an answer cites stored results: `[[<result id>:12]]`, `[[<result id>:12-18]]`.

Pure. The marker says what came of the check: nothing more for *checked*, `[[<id>:12-18 cited]]` where the lines cannot
show all of the claim, `[[<id>:12-18 not found there: OOMKilled, 137]]` where a part of it is missing. One bracket may
hold several (`[[<id>:3, 7-9]]`, `[[<id>:3; <id>:7]]`), and several may follow each other. Everything else in double
brackets is somebody's text and passes unchanged: `[[ -f x ]]`, `[[1, 2]]`, a link of a wiki.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from holmes.values.messages import ResultId

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.values.events import CitationOutcome

MAX_MARKER_CHARACTERS = 200
CONTEXT_CHARACTERS = 4_000
MAX_MISSING = 4
_MAX_FURTHER_MARKERS = 19
_MISSING_CHARACTERS = 30
_CITED: Final = "cited"
_NOT_FOUND: Final = "not found there"

_LINES = r"\d{1,9}(?: ?[-–] ?\d{1,9})?"  # noqa: RUF001  models write an en dash
_ITEM = rf"[0-9a-fA-F]{{12,64}}: ?{_LINES}"
_OUTCOME = rf"(?: (?:{_CITED}|{_NOT_FOUND}(?:: [^\[\]\n]{{1,150}})?))?"
_BRACKET = rf"\[\[(?=[^\]]{{1,{MAX_MARKER_CHARACTERS - 4}}}\]\]) ?{_ITEM}(?: ?[,;] ?(?:{_ITEM}|{_LINES}))*"
_MARKER = rf"{_BRACKET}{_OUTCOME} ?\]\]"
_BETWEEN = r"[ \t,;]{0,3}"
_GROUP = re.compile(rf"{_MARKER}(?:{_BETWEEN}{_MARKER}){{0,{_MAX_FURTHER_MARKERS}}}")
_ONE_MARKER = re.compile(rf"(?P<lines>{_BRACKET})(?P<outcome>{_OUTCOME}) ?\]\]")
_OPEN_LINES = r"[0-9a-fA-F:,; \-–]*"  # noqa: RUF001
_OPEN_MARKER = re.compile(rf"\[(?:\[{_OPEN_LINES}(?: [cn](?<=\d \w)[^\[\]\n]*)?\]?)?")
_OPEN_GROUP = re.compile(rf"{_BETWEEN}(?:{_OPEN_MARKER.pattern})?")
_SPACE_BEFORE_STOP = re.compile(r"[ \t]{1,9}(?=[.,;:!?])")
_NOT_SHOWN = re.compile(r"[\[\]`,\s]+")
_PART = re.compile(r"(?:(?P<id>[0-9a-fA-F]{12,64}): ?)?(?P<first>\d{1,9})(?: ?[-–] ?(?P<last>\d{1,9}))?")  # noqa: RUF001


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """Lines of a stored result; they count from 1, both included.

    `missing` is what the lines lack, for people; empty when there is no one thing to name.
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
        """What came of the check: empty for checked, `cited`, or `not found there: OOMKilled, 137`."""
        match self.outcome:
            case "checked":
                return ""
            case "cited":
                return _CITED
            case "not_found":
                shown = ", ".join(filter(None, map(shown_missing, self.missing[:MAX_MISSING])))
                return f"{_NOT_FOUND}: {shown}" if shown else _NOT_FOUND

    def short(self, number: int) -> str:
        """The marker for people: `[1]`, `[2 cited]`, `[3 not found there: OOMKilled]`."""
        return f"[{number}{f' {self.words}' if self.words else ''}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerGroup:
    """Markers that follow each other and belong to one claim.

    `text` is what the model wrote, `before` up to 4,000 characters of the text in front of it.
    """

    text: str
    markers: tuple[Marker, ...]
    before: str


Piece: TypeAlias = str | MarkerGroup


class MarkerScanner:
    """Cuts text that arrives in pieces into plain text and markers. How it is cut into pieces changes nothing.

    Plain text comes out at once; only what may still become a marker, at most 200 characters, is held back.
    """

    def __init__(self) -> None:
        self._held = ""
        self._before = ""

    def feed(self, text: str) -> list[Piece]:
        """What is certain after `text`."""
        self._held += text
        return list(self._take(final=False))

    def finish(self) -> list[Piece]:
        """The rest: no more text follows."""
        return list(self._take(final=True))

    def _take(self, *, final: bool) -> Iterator[Piece]:
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
    """Whether one more marker of `group` may be on its way."""
    left = len(held) - group.end()
    if left >= MAX_MARKER_CHARACTERS + 3 or not _OPEN_GROUP.fullmatch(held, group.end()):
        return False
    return len(_ONE_MARKER.findall(group[0])) <= _MAX_FURTHER_MARKERS


def scan_markers(text: str) -> list[Piece]:
    """Plain text and marker groups of a whole text, in order."""
    scanner = MarkerScanner()
    return [*scanner.feed(text), *scanner.finish()]


def markers_in(text: str) -> tuple[Marker, ...]:
    """Every marker in `text`, in order, each once."""
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
    """`text` for where nothing can be opened: without what was checked, with words for what was not."""
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
    """`item` as it may stand in a marker: short, without brackets, commas and line feeds."""
    plain = " ".join(_NOT_SHOWN.sub(" ", item).split())
    return plain if len(plain) <= _MISSING_CHARACTERS else f"{plain[: _MISSING_CHARACTERS - 1].rstrip()}…"


def end_of_last_marker(text: str) -> int:
    """Where the last marker in `text` ends; 0 without one."""
    return max((match.end() for match in _ONE_MARKER.finditer(text)), default=0)
