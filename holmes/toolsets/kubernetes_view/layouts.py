"""Formats objects as YAML, as a table of columns, or as counts. Secrets must already have been removed.

Columns and counts use kubectl's paths: `.metadata.name`, `.spec.containers[*].image`, `[?(@.type=="Ready")]`. Paths may
contain names with escaped dots, quoted names, indices, `*`, and a comparison with one constant. Other paths are
rejected with a hint to use jq.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import yaml

from holmes.toolsets.kubernetes_view import ViewError
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.toolsets.kubernetes_view import Json

_NO_VALUE = "<none>"
# Maximum width of a column, because one long cell must not widen every row.
_WIDEST = 200
_STEP = expression(
    r"""\.?\[\s*(?:'(?P<single>[^']*)'|"(?P<double>[^"]*)"|(?P<index>-?\d+)|(?P<all>\*)
    |\?\(\s*@(?P<path>\.[^=!<>\s]+)\s*(?P<operator>==|!=)\s*(?:'(?P<value1>[^']*)'|"(?P<value2>[^"]*)"|(?P<value3>[\w.-]+))\s*\)
    )\s*\]
    |\.(?P<name>\*|(?:\\.|[^.\[\]\\\s])+)""",
    re.VERBOSE,
)


def items_of(document: Json) -> list[Json]:
    """Return the objects of a list or of nested lists, or the single object. helm writes a list as a JSON array."""
    if isinstance(document, list):
        return [item for entry in document for item in items_of(entry)]
    if isinstance(document, dict) and isinstance(document.get("items"), list) and _is_list(document):
        return [item for entry in _as_list(document["items"]) for item in items_of(entry)]
    return [document]


def _is_list(document: dict[str, Json]) -> bool:
    return str(document.get("kind", "List")).endswith("List")


def _as_list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def show_yaml(documents: list[Json]) -> str:
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return str(yaml.dump_all(documents, Dumper=dumper, sort_keys=False, allow_unicode=True, width=1000))


def _plain(result: Json) -> str:
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)


def show_columns(document: Json, specification: str) -> str:
    """Format a table with columns such as `NAME:.metadata.name,PHASE:.status.phase`. Raises `ViewError`."""
    columns = parse_columns(specification)
    rows = [[column.title for column in columns]]
    rows += [[_cell(column.path.find(item)) for column in columns] for item in items_of(document)]
    return _table(rows)


def _cell(found: list[Json]) -> str:
    if not found:
        return _NO_VALUE
    return ",".join(" ".join(_plain(value).split()) for value in found)


def _table(rows: list[list[str]]) -> str:
    widths = [min(_WIDEST, max(len(row[index]) for row in rows)) for index in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "".join(f"{line}\n" for line in lines)


def show_count(document: Json, path: str | None) -> str:
    """Count the objects, grouped by the value at `path` if given. Raises `ViewError`."""
    items = items_of(document)
    if not path:
        return f"{len(items)}\n"
    wanted = parse_path(path)
    counts: dict[str, int] = {}
    for item in items:
        cell = _cell(wanted.find(item))
        counts[cell] = counts.get(cell, 0) + 1
    rows = [["COUNT", path], *([str(count), cell] for cell, count in sorted(counts.items(), key=lambda each: -each[1]))]
    return f"{_table(rows)}total {len(items)}\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Condition:
    path: Path
    equal: bool
    value: str

    def holds(self, item: Json) -> bool:
        found = {_text(value) for value in self.path.find(item)}
        return (self.value in found) == self.equal


class _Everything:
    """The step `*` of a path, which selects every item."""


_Step: TypeAlias = str | int | _Condition | _Everything


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    steps: tuple[_Step, ...]

    def find(self, value: Json) -> list[Json]:
        """Return all values at this path, except null."""
        found = [value]
        for step in self.steps:
            found = [child for parent in found for child in _children(parent, step)]
        return [value for value in found if value is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    title: str
    path: Path


def parse_columns(specification: str) -> tuple[Column, ...]:
    """Parse `TITLE:path,TITLE:path`. Raises `ViewError`."""
    columns: list[Column] = []
    for part in re.split(r",(?=[^,:\[\]]+:)", specification.strip()):
        title, separator, path = part.partition(":")
        if not separator or not title.strip():
            raise ViewError(f"invalid column {part!r}; expected for example NAME:.metadata.name,PHASE:.status.phase")
        columns.append(Column(title=title.strip(), path=parse_path(path.strip())))
    return tuple(columns)


def parse_path(text: str) -> Path:
    """Parse one path. Raises `ViewError`."""
    rest = text.strip().removeprefix("{").removesuffix("}")
    if not rest.startswith((".", "[")):
        rest = f".{rest}"
    steps: list[_Step] = []
    position = 0
    while position < len(rest):
        found = _STEP.match(rest, position)
        if found is None:
            raise ViewError(f"the path {text!r} is not supported at {rest[position:]!r}; use jq")
        steps.append(_step(found))
        position = found.end()
    return Path(steps=tuple(steps))


def _step(found: re.Match[str]) -> _Step:
    parts = found.groupdict()
    if parts["all"] or parts["name"] == "*":
        return _Everything()
    if parts["index"] is not None:
        return int(parts["index"])
    if parts["path"] is not None:
        value = next(parts[name] for name in ("value1", "value2", "value3") if parts[name] is not None)
        return _Condition(path=parse_path(parts["path"]), equal=parts["operator"] == "==", value=value)
    if parts["name"] is not None:
        return re.sub(r"\\(.)", r"\1", parts["name"])
    return str(parts["single"] if parts["single"] is not None else parts["double"])


def _children(parent: Json, step: _Step) -> Iterator[Json]:
    match step:
        case str():
            if isinstance(parent, dict) and step in parent:
                yield parent[step]
        case int():
            if isinstance(parent, list) and -len(parent) <= step < len(parent):
                yield parent[step]
        case _Condition():
            if isinstance(parent, list):
                yield from (item for item in parent if step.holds(item))
        case _Everything():
            if isinstance(parent, list):
                yield from parent
            elif isinstance(parent, dict):
                yield from parent.values()


def _text(value: Json) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
