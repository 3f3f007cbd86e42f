"""The forms in which objects are shown. Called with objects whose secrets are removed already."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import yaml

from holmes.toolsets.kubernetes_view.paths import parse_columns, parse_path

if TYPE_CHECKING:
    from holmes.toolsets.kubernetes_view.contract import Json

_NO_VALUE = "<none>"
# A single long cell would make every row as long.
_WIDEST = 200


def items_of(document: Json) -> list[Json]:
    """The objects of a list, of a list of lists, or the one object; helm writes a list as a plain array."""
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
    """The objects as YAML documents."""
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return str(yaml.dump_all(documents, Dumper=dumper, sort_keys=False, allow_unicode=True, width=1000))


def _plain(result: Json) -> str:
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)


def show_columns(document: Json, specification: str) -> str:
    """A table of chosen columns, `NAME:.metadata.name,PHASE:.status.phase`. Raises `ViewError`."""
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
    """How many objects there are, grouped by the value at `path` when it is given. Raises `ViewError`."""
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
