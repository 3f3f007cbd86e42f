"""Parses lines into records: tables, `kubectl describe`, YAML, multi-line JSON, logs, events.

Parsing takes linear time. Lines in an unknown format become entries without fields.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from holmes.evidence.indented import objects_of
from holmes.evidence.records import Field, Record, parts_of, plain_key
from holmes.evidence.sources import UNKNOWN_SOURCE
from holmes.evidence.words import lexicon
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.evidence.sources import Source
    from holmes.values.json_types import JsonValue

Line = tuple[int, str]

_HEADER_CELL: Final = r"[A-Z][A-Z0-9()%/_.:-]*(?:\([a-z]+\))?(?: [A-Z(][A-Z0-9()%/_.:-]*){0,2}"
_HEADER = expression(rf"{_HEADER_CELL}(?:(?:[ ]{{2,200}}|\t){_HEADER_CELL})+\s*")
_TIGHT_HEADER = expression(r"[A-Z][A-Z()%-]+(?: [A-Z][A-Z()%-]+){2,20}")
_TWO_WORDS: Final = frozenset(
    {"LAST SEEN", "NOMINATED NODE", "READINESS GATES", "ACCESS MODES", "RECLAIM POLICY", "APP VERSION",
     "FIRST SEEN", "LAST SCHEDULE", "MIN AVAILABLE", "MAX UNAVAILABLE", "ALLOWED DISRUPTIONS", "NODE SELECTOR"}
)  # fmt: skip
_ABBREVIATED: Final = {
    f"{short}{end}": (measure, whole)
    for short, measure in (("cpu", "cpu"), ("mem", "memory"), ("memory", "memory"))
    for end, whole in (("req", "requests"), ("requests", "requests"), ("lim", "limits"), ("limits", "limits"))
}
_FEW_COLUMNS: Final = 3
_GAP = expression(r"\t|[ ]{2,}")
_STAMP = expression(
    r"\[?(?:\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d|[IWEF]\d{4} \d\d:\d\d:\d\d"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d)"
)
_STACK = expression(r"\s|at |Caused by|Traceback|\.\.\. \d+ more|goroutine |panic: |\}|\)")
_LEVEL = expression(r"\b(TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|ERR|FATAL|PANIC|CRITICAL)\b", re.IGNORECASE)
_KLOG = expression(r"([IWEF])\d{4} ")
_KLOG_LEVELS: Final = {"I": "info", "W": "warning", "E": "error", "F": "fatal"}
_PAIR = expression(r"(?<![\w.-])([A-Za-z_][\w.-]{0,60})=(\"[^\"\n]{0,500}\"|[^\s,;\"]{1,300})")
_HTTP_STATUS = expression(r"HTTP/\d(?:\.\d)?\"? (\d{3})\b")
_ERROR_LINE = expression(r"(?i:error(?: from server)?[ :(])")
_HEADING = expression(r"(?:===|---|#|\$) ?.*|\[result .*|showing .*")
_ANY_KEY = expression(r"\"?[A-Za-z][\w./ ()-]{0,60}\"?:(?:\s|$)")
_NAME_ONLY = expression(r"([a-z]{2,40}(?:\.[a-z0-9.-]{1,60})?)/([a-z0-9][a-z0-9.-]{0,252})\s*")
_OBJECT_LINE = expression(r"(?:apiVersion|kind|metadata|spec|status|items|data|Name|Events|- [A-Za-z]\w*)\s*:")


def records_of(lines: Sequence[Line], source: Source = UNKNOWN_SOURCE) -> tuple[Record, ...]:
    """Parse numbered `lines`, which may start anywhere in a result.

    `source` determines whether the lines are one object, and which columns a table without a header has.
    """
    first = next((text for _, text in lines if text.strip()), "")
    if _is_laid_out(first, lines):
        return tuple(objects_of(lines, is_one=len(source.names) == 1))
    records: list[Record] = []
    header = _Header.without_heading(first, source)
    entry: list[Line] = []
    stamped = any(_STAMP.match(text) for _, text in lines[:200])
    for number, text in lines:
        if found := _Header.of(text):
            records += _finished(entry)
            header, entry = found, []
        elif not text.strip():
            records += _finished(entry)
            header, entry = _Header.without_heading(first, source), []
        elif match := _NAME_ONLY.fullmatch(text):
            name = Field(path=("name",), value=match[2], line=number)
            records.append(
                Record(
                    form="row",
                    first_line=number,
                    last_line=number,
                    names=frozenset({match[2]}),
                    kind=match[1].partition(".")[0],
                    fields=(name,),
                    lines=((number, text),),
                )
            )
        elif header is not None and not _ERROR_LINE.match(text):
            records.append(header.row(number, text))
        elif entry and _goes_on(text, stamped=stamped):
            entry.append((number, text))
        else:
            records += _finished(entry)
            entry = [(number, text)]
    return (*records, *_finished(entry))


def _is_laid_out(first: str, lines: Sequence[Line]) -> bool:
    """Return whether the lines are one indented value in JSON, in YAML or in the format of `kubectl describe`."""
    if first.rstrip() in ("{", "[", "---", "[{"):
        return True
    if _OBJECT_LINE.match(first):
        return True
    shown = [text for _, text in lines[:30] if text.strip()]
    if _ANY_KEY.match(first) and sum(bool(_ANY_KEY.match(text.lstrip(" -"))) for text in shown) > 0.7 * len(shown):
        return not any(_STAMP.match(text) for text in shown)
    return first.startswith((" ", "\t")) and sum(":" in text for _, text in lines[:20]) >= min(3, len(lines))


def _goes_on(text: str, *, stamped: bool) -> bool:
    """Return whether a line belongs to the previous log entry, for example in a stack trace."""
    if _STAMP.match(text) or _HEADING.fullmatch(text) or text.startswith("{"):
        return False
    return stamped or bool(_STACK.match(text))


def _finished(entry: Sequence[Line]) -> Iterator[Record]:
    """Yield the record of a finished log entry. A heading yields no record."""
    if not entry or _HEADING.fullmatch(entry[0][1]):
        return
    number, text = entry[0]
    if "\t" in text and len(entry) == 1 and not _STAMP.match(text):
        yield _Header(cells=(), starts=()).row(number, text)
        return
    fields = _json_fields(number, text) or tuple(_text_fields(number, text))
    yield Record(form="entry", first_line=number, last_line=entry[-1][0], fields=fields, lines=tuple(entry))


def _json_fields(number: int, text: str) -> tuple[Field, ...]:
    start = text.find("{")
    if start < 0 or not text.rstrip().endswith("}"):
        return ()
    try:
        value: JsonValue = json.loads(text[start:])
    except (ValueError, RecursionError):
        return ()
    return tuple(_flattened(value, (), number)) if isinstance(value, dict) else ()


def _flattened(value: JsonValue, path: tuple[str, ...], number: int) -> Iterator[Field]:
    if isinstance(value, dict) and len(path) < 12:
        for key, each in value.items():
            yield from _flattened(each, (*path, plain_key(key)), number)
    elif isinstance(value, list) and len(path) < 12:
        for each in value:
            yield from _flattened(each, path, number)
    else:
        shown = value if isinstance(value, str) else json.dumps(value)
        yield Field(path=path, value=shown, line=number)


def _text_fields(number: int, text: str) -> Iterator[Field]:
    """Yield the level and the `key=value` pairs of a log line."""
    if klog := _KLOG.match(text):
        yield Field(path=("level",), value=_KLOG_LEVELS[klog[1]], line=number)
    elif level := _LEVEL.search(text[:80]):
        yield Field(path=("level",), value=level[1], line=number)
    if match := _HTTP_STATUS.search(text):
        yield Field(path=("status",), value=match[1], line=number)
    for match in _PAIR.finditer(text):
        yield Field(path=(plain_key(match[1]),), value=match[2].strip('"'), line=number)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Header:
    """The columns of a table, or no columns if only tabs separate the cells."""

    cells: tuple[str, ...]
    starts: tuple[int, ...]
    keys: tuple[str, ...] = field(default=())

    @classmethod
    def of(cls, text: str) -> _Header | None:
        line = text.rstrip()
        if len(line) > 2_000:
            return None
        if _HEADER.fullmatch(line):
            cells = tuple(cell.strip() for cell in _GAP.split(line.strip()))
        elif _TIGHT_HEADER.fullmatch(line) and line.split()[0] in {"NAME", "NAMESPACE", "LAST", "POD", "NODE"}:
            cells = tuple(_joined_words(line.split()))
        else:
            return None
        starts, position = [], 0
        for cell in cells:
            position = line.index(cell, position)
            starts.append(position)
            position += len(cell)
        keys = tuple(_key(cell) for cell in cells)
        return cls(cells=cells, starts=tuple(starts), keys=keys)

    @classmethod
    def without_heading(cls, first: str, source: Source) -> _Header | None:
        """Return the default columns of a kind if the command omitted the header, otherwise None."""
        keys = lexicon().columns.get(source.kind, ())
        if "--no-headers" not in source.words or not keys:
            return None
        keys = ("namespace", *keys) if source.namespace == "*" else keys
        count = len(_GAP.split(first.strip()))
        return cls(cells=keys, starts=(), keys=keys) if count == len(keys) else None

    def row(self, number: int, text: str) -> Record:
        cells = self._cells(text)
        keys = self.keys or tuple(f"column{index}" for index in range(len(cells)))
        fields = tuple(Field(path=_path(key), value=cell, line=number) for key, cell in zip(keys, cells, strict=False))
        fields += tuple(parts_of(fields))
        by_key = {each.key: each.value for each in fields}
        kind, form = self._kind(), "row"
        names: set[str] = set()
        if kind == "event":
            form = "event"
            kind, _, name = by_key.get("object", "").partition("/")
            names = {name}
        elif cells:
            whole = by_key.get("name") or by_key.get("pod") or cells[0]
            prefix, _, name = whole.rpartition("/")
            names = {name}
            kind = plain_key(prefix.partition(".")[0]) or kind
        return Record(
            form="event" if form == "event" else "row",
            first_line=number,
            last_line=number,
            names=frozenset(names - {""}),
            kind=kind,
            fields=fields,
            lines=((number, text),),
        )

    def _cells(self, text: str) -> tuple[str, ...]:
        """Split a row into cells at gaps, column positions or single spaces.

        The first method that fits the columns is used. The result is empty if none fits.
        """
        cells = tuple(cell.strip() for cell in _GAP.split(text.strip()))
        if not self.cells or len(cells) == len(self.cells):
            return cells
        aligned = bool(self.starts) and all(
            start == 0 or start > len(text) or text[start - 1].isspace() for start in self.starts
        )
        if aligned:
            ends = (*self.starts[1:], len(text))
            return tuple(text[start:end].strip() for start, end in zip(self.starts, ends, strict=True))
        words = tuple(text.split())
        return words if len(words) == len(self.cells) else ()

    def _kind(self) -> str:
        """Return the kind of object that these columns identify, or an empty string if it is ambiguous or unknown."""
        own = frozenset(self.keys)
        if {"reason", "object"} <= own and ("message" in own or "type" in own):
            return "event"
        fits = sorted((len(keys), kind) for kind, keys in lexicon().columns.items() if own >= {*keys})
        is_clear = len(fits) == 1 or (len(fits) > 1 and fits[-1][0] > fits[-2][0] and fits[-1][0] > _FEW_COLUMNS)
        return fits[-1][1] if is_clear and fits[-1][0] >= _FEW_COLUMNS else ""


def _key(cell: str) -> str:
    """Return the key of a column heading.

    `PORT(S)` means ports, `CPU(cores)` means CPU, and `MEMORY(%)` means the percentage of memory.
    """
    name, _, unit = cell.partition("(")
    return "ports" if cell == "PORT(S)" else plain_key(f"{name}%" if unit.startswith("%") else name)


def _path(key: str) -> tuple[str, ...]:
    """Return the field path of a column key: `MEMORY%` is the percentage of memory."""
    base = key.removesuffix("percent")
    return (base, "percent") if base != key and base else _ABBREVIATED.get(key, (key,))


def _joined_words(words: Sequence[str]) -> Iterator[str]:
    position = 0
    while position < len(words):
        pair = " ".join(words[position : position + 2])
        yield pair if pair in _TWO_WORDS else words[position]
        position += 2 if pair in _TWO_WORDS else 1
