"""Parses indented objects: YAML, JSON with one value per line, and `kubectl describe`.

The parser uses a stack of open keys instead of recursion, so its running time is linear at any nesting depth.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from holmes.evidence.records import Field, Record, parts_of, plain_key
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.values.json_types import JsonValue

Line = tuple[int, str]

_KEY = expression(r"(\"[^\"]{1,300}\"|'[^']{1,300}'|[A-Za-z0-9_<./][^:\n]{0,200}?)\s*:(?:\s+|$)")
_NAMES_OF_ELEMENTS: Final = ("name", "type", "key", "ip", "host", "path")
_ELEMENTS_IN_DESCRIPTIONS: Final = frozenset({"containers", "initcontainers", "volumes", "ephemeralcontainers"})
_RULE = expression(r"\s*-{3,}(?:\s+-{3,})*\s*")
_GAP = expression(r"\t|[ ]{2,}")
_EVENT_COLUMNS: Final = frozenset({"reason", "message"})
_IGNORED_KEYS: Final = frozenset({"managedfields", "lastappliedconfiguration"})
_MAX_DEPTH = 40
_PATH_PARTS = expression(r"\.|\[\d{1,6}\]")
_COUNTED = expression(r"\d+ [A-Za-z]+(?: \(\d+ [A-Za-z]+\))?(?: [|/] \d+ [A-Za-z]+){1,8}")
_PAIRS = expression(r"(?<![\w=])#?([a-z]\w{2,30})=(\S{1,60})")
_PAIRED: Final = frozenset({"labels", "annotations", "selector", "nodeselectors"})
_SETTING = expression(r"([A-Za-z][\w.-]{0,80})\s*=\s*(\S.{0,300})")
_COUNTS = expression(r"(\d+) ([A-Za-z]+)")


@dataclass(slots=True, kw_only=True)
class _Open:
    """A key or list element that can still contain more deeply indented lines."""

    indent: int
    key: str
    is_element: bool = False
    label: str = ""
    rank: int = 99


@dataclass(slots=True, kw_only=True)
class _Draft:
    """An object whose lines are being read. Each value is stored with the open keys that contain it."""

    first_line: int
    lines: list[Line] = field(default_factory=list)
    values: list[tuple[tuple[_Open, ...], str, str, int]] = field(default_factory=list)
    events: list[Record] = field(default_factory=list)
    description: bool = False
    is_element: bool = False

    def record(self) -> Iterator[Record]:
        """Yield the object, then the events at the end of a description."""
        if not self.values and not self.events:
            return
        fields = tuple(
            Field(path=(*(_part(each) for each in around[self.is_element :]), key), value=value, line=number)
            for around, key, value, number in self.values
        )
        fields += (*_pointed(fields), *parts_of(fields))
        own = [each for each in fields if not each.labels]
        names = {each.value for each in own if each.path in (("name",), ("metadata", "name"))}
        kind = next((plain_key(each.value) for each in own if each.path == ("kind",)), "")
        record = Record(
            form="object",
            first_line=self.first_line,
            last_line=self.lines[-1][0],
            names=frozenset(names),
            kind=kind,
            fields=fields,
            lines=tuple(self.lines),
        )
        if self.values:
            yield record
        for event in self.events:
            yield Record(
                form="event",
                first_line=event.first_line,
                last_line=event.last_line,
                names=record.names,
                kind=record.kind,
                fields=event.fields,
                lines=event.lines,
            )


def _pointed(fields: Sequence[Field]) -> Iterator[Field]:
    """Yield the field that each pair of adjacent `path` and `value` keys describes."""
    for before, each in pairwise(fields):
        if before.key == "path" and each.key == "value" and before.path[:-1] == each.path[:-1]:
            path = tuple(plain_key(part) for part in _PATH_PARTS.split(before.value) if part)
            yield Field(path=(*each.path[:-1], *path), value=each.value, line=each.line)


def objects_of(lines: Sequence[Line], *, is_one: bool = False) -> Iterator[Record]:
    """Yield the objects of `lines`: a single object, the elements of a list, or several objects in sequence."""
    elements = frozenset() if is_one else _starts_of_elements(lines)
    indent_of_elements = _indent(lines[min(elements)][1]) if elements else 0
    draft = _Draft(first_line=lines[0][0] if lines else 1)
    opened: list[_Open] = []
    table: tuple[str, ...] = ()
    above = ""
    for index, (number, text) in enumerate(lines):
        stripped = text.strip()
        starts_new = text.startswith("---") or (text.startswith("Name:") and bool(draft.values))
        ends_list = (
            draft.is_element and bool(stripped) and index not in elements and _indent(text) <= indent_of_elements
        )
        if ends_list and stripped[0] in "}]":
            ends_list = _indent(text) < indent_of_elements
        if starts_new or ends_list or index in elements:
            yield from draft.record()
            draft, opened, table = _Draft(first_line=number, is_element=index in elements), [], ()
        draft.lines.append((number, text))
        draft.description = draft.description or text.startswith("Name:")
        if not stripped or stripped in ("{", "}", "[", "]", "},", "],", "---"):
            if stripped == "{" and (opened or index in elements):
                _open(opened, _Open(indent=_indent(text), key="", is_element=True))
            table = () if not stripped else table
        elif _RULE.fullmatch(text) and above.strip():
            table = tuple(plain_key(cell) for cell in _GAP.split(above.strip()))
            if draft.values and draft.values[-1][3] == number - 1:
                draft.values.pop()  # the heading was read as a value
        elif table and (not _KEY.match(stripped) or text.startswith(" ")):
            _table_row(draft, opened, table, number, text)
        elif not (table := _heading(opened, stripped, above)):
            following = next((line for _, line in lines[index + 1 : index + 2]), "")
            _read(draft, opened, number, text, is_last=_indent(following) <= _indent(text))
        above = text
    yield from draft.record()


def _read(draft: _Draft, opened: list[_Open], number: int, text: str, *, is_last: bool) -> None:
    """Read a line that contains a key, a list element or only a value."""
    indent, rest = _opened_elements(opened, text)
    match = _KEY.match(rest)
    if rest == "{":
        return
    if match is None:
        _close(opened, indent)
        _read_plain(draft, opened, number, rest)
        return
    key, value = plain_key(match[1].strip("\"'")), rest[match.end() :].strip()
    _close(opened, indent)
    if value in ("", "{", "[", "|", ">", "|-", ">-", "|+"):
        is_element = draft.description and bool(opened) and opened[-1].key in _ELEMENTS_IN_DESCRIPTIONS
        label = match[1].strip() if is_element else ""
        opened.append(_Open(indent=indent, key=key, is_element=is_element, label=label, rank=-1 if is_element else 99))
        draft.values += [(tuple(opened), "name", label, number)] if is_element else []
        if draft.description and is_last and not value:
            draft.values.append((tuple(opened[:-1]), key, "", number))
    elif len(opened) < _MAX_DEPTH and key not in _IGNORED_KEYS:
        inner = tuple(_inline(value, (*opened, _Open(indent=indent, key=key)))) if value[0] in "{[" else ()
        draft.values += [(around, name, said, number) for around, name, said in inner]
        if not inner:
            _read_value(draft, opened, _Open(indent=indent, key=key), _value(value), number)


def _read_plain(draft: _Draft, opened: list[_Open], number: int, text: str) -> None:
    """Read a line without a key.

    The line belongs to the open key, and may be a setting in a text block.
    """
    draft.values += [(tuple(opened[:-1]), opened[-1].key, _value(text), number)] if text and opened else []
    if opened and (setting := _SETTING.fullmatch(text)):
        draft.values.append((tuple(opened), plain_key(setting[1]), setting[2], number))


def _read_value(draft: _Draft, opened: list[_Open], own: _Open, shown: str, number: int) -> None:
    """Read a key with its value. The value may be the name of its list element, or contain several values."""
    element = opened[-1] if opened and opened[-1].is_element else None
    rank = _NAMES_OF_ELEMENTS.index(own.key) if own.key in _NAMES_OF_ELEMENTS else 99
    if element is not None and rank < element.rank and (own.key != "path" or shown.startswith("/")):
        element.label, element.rank = shown, rank
    draft.values.append((tuple(opened), own.key, shown, number))
    if draft.description and len(pairs := _PAIRS.findall(shown)) > 1:
        draft.values += [((*opened, own), plain_key(name), said, number) for name, said in pairs]
    if draft.description and _COUNTED.fullmatch(shown):
        draft.values += [((*opened, own), plain_key(name), count, number) for count, name in _COUNTS.findall(shown)]
    if draft.description and own.key in _PAIRED and (setting := _SETTING.fullmatch(shown)):
        draft.values.append(((*opened, own), plain_key(setting[1]), setting[2], number))
    if draft.description and own.key != "message":
        # Lines under `State: Running` belong to this key, and `Labels: a=b` continues under its first value.
        opened.append(own)


def _inline(text: str, around: tuple[_Open, ...]) -> Iterator[tuple[tuple[_Open, ...], str, str]]:
    """Yield the values of one-line JSON, each with its open keys and its key."""
    try:
        value: JsonValue = json.loads(text.rstrip().removesuffix(","))
    except (ValueError, RecursionError):
        return
    waiting = [(around, value)]
    while waiting:
        outer, inner = waiting.pop()
        for key, each in inner.items() if isinstance(inner, dict) else ():
            if isinstance(each, dict) and len(outer) < _MAX_DEPTH:
                waiting.append(((*outer, _Open(indent=99, key=plain_key(key))), each))
            elif not isinstance(each, list):
                yield outer, plain_key(key), each if isinstance(each, str) else json.dumps(each)


def _opened_elements(opened: list[_Open], text: str) -> tuple[int, str]:
    """Open the list elements that start on a line. Returns the indentation of the remaining text, and that text."""
    indent, rest = _indent(text), text.strip()
    while rest.startswith("- ") or rest == "-":
        _open(opened, _Open(indent=indent, key="", is_element=True))
        shifted = rest[1:].lstrip()
        indent, rest = indent + len(rest) - len(shifted), shifted
    if rest == "{":
        _open(opened, _Open(indent=indent, key="", is_element=True))
    return indent, rest


def _table_row(draft: _Draft, opened: list[_Open], table: tuple[str, ...], number: int, text: str) -> None:
    """Read a table row in a description: an event, a condition, or allocated resources."""
    cells = [cell.strip() for cell in _GAP.split(text.strip(), maxsplit=max(0, len(table) - 1))]
    if len(cells) != len(table):
        words = text.split()
        cells = words if len(words) == len(table) else cells
    values = tuple(Field(path=(key,), value=cell, line=number) for key, cell in zip(table, cells, strict=False))
    if frozenset(table) >= _EVENT_COLUMNS and "status" not in table:
        line = ((number, text),)
        fields = (*values, *parts_of(values))
        draft.events.append(Record(form="event", first_line=number, last_line=number, fields=fields, lines=line))
        draft.lines.pop()
        return
    row = _Open(indent=_indent(text), key="", is_element=True, label=cells[0])
    for value in values:
        draft.values.append(((*opened, row), value.key, value.value, number))


def _heading(opened: Sequence[_Open], stripped: str, above: str) -> tuple[str, ...]:
    """Return the columns of a table that has no dashes under its heading, for example the conditions of a pod."""
    cells = _GAP.split(stripped)
    is_first = bool(opened) and above.rstrip().endswith(":") and plain_key(above) == opened[-1].key
    if is_first and len(cells) > 1 and ":" not in stripped and all(cell[:1].isupper() for cell in cells):
        return tuple(map(plain_key, cells))
    return ()


def _starts_of_elements(lines: Sequence[Line]) -> frozenset[int]:
    """Return the start positions of the objects in the outermost list. The result is empty for a single object."""
    for position, (_, text) in enumerate(lines[:2_000]):
        stripped = text.strip()
        if plain_key(stripped.partition(":")[0]) == "metadata" and _indent(text) <= 2 and position < 6:
            following = lines[position + 1][1] if position + 1 < len(lines) else ""
            if "resourceVersion" not in following:
                return frozenset()
        is_outermost = position < 2 or _indent(text) == _indent(lines[1][1])
        opens_list = stripped == "[" or (stripped.endswith(": [") and is_outermost)
        opens_list = opens_list or (stripped == "items:" and not _indent(text))
        if opens_list or (position == 0 and stripped.startswith("- ")):
            start = position + (0 if stripped.startswith("- ") else 1)
            if (start < len(lines) and lines[start][1].strip() == "{") or _is_dash(lines, start):
                indent = _indent(lines[start][1])
                mark = lines[start][1].strip()[0]
                return frozenset(
                    index
                    for index in range(start, len(lines))
                    if _indent(lines[index][1]) == indent and lines[index][1].strip()[:1] == mark
                )
            return frozenset()
    return frozenset()


def _is_dash(lines: Sequence[Line], start: int) -> bool:
    return (
        start < len(lines)
        and lines[start][1].strip().startswith("- ")
        and bool(_KEY.match(lines[start][1].strip()[2:]))
    )


def _part(opened: _Open) -> str:
    if opened.is_element:
        return f"={opened.label}"
    return opened.key


def _open(opened: list[_Open], new: _Open) -> None:
    _close(opened, new.indent, keeps_key=True)
    if len(opened) < _MAX_DEPTH:
        opened.append(new)


def _close(opened: list[_Open], indent: int, *, keeps_key: bool = False) -> None:
    """Close the keys that end at `indent`. A list may start at the indentation of its key."""
    while opened and (
        opened[-1].indent > indent
        or (opened[-1].indent == indent and not (keeps_key and not opened[-1].is_element and opened[-1].key))
    ):
        opened.pop()


def _value(text: str) -> str:
    plain = text.rstrip(",").strip() if text.endswith(",") else text
    if len(plain) > 1 and plain[0] == plain[-1] and plain[0] in "\"'":
        return plain[1:-1]
    return plain


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())
