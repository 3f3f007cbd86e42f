"""Creates the `Table` that kubectl shows. CustomResourceDefinitions define the layouts of custom resources."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import children, integer, text
from holmes.snapshot.discovery import crd_of
from holmes.snapshot.server import cluster_tables, network_tables, pod_tables, storage_tables, workload_tables
from holmes.snapshot.server.table_layout import Cells, Column, Layout, age, columns, name_of, partial, since
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from holmes.snapshot.discovery import ResourceType
    from holmes.snapshot.recording import Recording
    from holmes.values.json_types import JsonObject, JsonScalar, JsonValue

_BUILT_IN: Final = {
    **pod_tables.LAYOUTS,
    **workload_tables.LAYOUTS,
    **network_tables.LAYOUTS,
    **cluster_tables.LAYOUTS,
    **storage_tables.LAYOUTS,
}
# The layout of kinds that have no specific columns, such as Role, LimitRange and CustomResourceDefinition.
_PLAIN: Final = Layout(
    columns=columns("Name", "Created At:date"),
    cells=lambda item, _: [name_of(item), text(item, "metadata", "creationTimestamp")],
)


def layout_of(recording: Recording, kind: ResourceType) -> Layout:
    built_in = _BUILT_IN.get((kind.group, kind.plural))
    if built_in is not None:
        return built_in
    for definition in recording.items("apiextensions.k8s.io", "customresourcedefinitions"):
        if crd_of(definition) == (kind.group, kind.plural):
            return _custom_layout(definition, kind.version)
    return _PLAIN


def table(
    layout: Layout, items: Sequence[JsonObject], *, now: datetime, metadata: JsonObject, include: str
) -> JsonObject:
    """Create the `Table` of `items`.

    `include` selects the part of each object that its row contains: None, Metadata or Object.
    """
    rows: list[JsonValue] = []
    for item in sorted(items, key=layout.order) if layout.order else items:
        row: dict[str, JsonValue] = {"cells": layout.cells(item, now)}
        if include == "Object":
            row["object"] = item
        elif include != "None":
            row["object"] = partial(item)
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [
            {
                "name": column.name,
                "type": column.type,
                "format": column.format,
                "description": "",
                "priority": 1 if column.wide else 0,
            }
            for column in layout.columns
        ],
        "rows": rows,
    }


_STEP = expression(
    r"\.(?P<field>(?:[^.\[\]\\]|\\.)+)"
    r"|\[(?:'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\")\]"
    r"|\[(?P<index>-?\d+)\]"
    r"|(?P<every>\[\*\])"
    r"|\[\?\(\s*@(?P<path>[^=!<>\s]*)\s*(?:(?P<operator>[=!<>]=?)\s*(?P<literal>[^)]+?)\s*)?\)\]"
)


def find(path: str, value: JsonValue) -> list[JsonValue]:
    """Return all values at the JSONPath `path`, which starts with a dot, in order."""
    found = [value]
    position = 0
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            return []
        found = [result for each in found for result in _taken(step, each)]
        position = step.end()
    return found


def _taken(step: re.Match[str], value: JsonValue) -> Iterator[JsonValue]:
    field = step["single"] if step["single"] is not None else step["double"]
    if step["field"] is not None:
        field = re.sub(r"\\(.)", r"\1", step["field"])
    if field == "*" or step["every"]:
        yield from _members(value)
    elif field is not None:
        if isinstance(value, dict) and field in value:
            yield value[field]
    elif step["index"] is not None:
        if isinstance(value, list) and -len(value) <= int(step["index"]) < len(value):
            yield value[int(step["index"])]
    else:
        yield from (each for each in _members(value) if _passes(step, each))


def _members(value: JsonValue) -> list[JsonValue]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _passes(step: re.Match[str], value: JsonValue) -> bool:
    results = find(step["path"], value)
    if step["operator"] is None:
        return bool(results)
    if not results:
        return False
    wanted = _literal(step["literal"])
    if step["operator"] in {"=", "=="}:
        return results[0] == wanted
    if step["operator"] == "!=":
        return results[0] != wanted
    left, right = results[0], wanted
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        return False
    return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[step["operator"]]


def _literal(text: str) -> JsonValue:
    if text[:1] in {"'", '"'}:
        return text[1:-1]
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, str | int | float | bool) else text


_AGE_ONLY: Final = Layout(columns=columns("Name", "Age:date"), cells=lambda item, now: [name_of(item), age(item, now)])


def _custom_layout(definition: JsonObject, version: str) -> Layout:
    """Create the layout from the printer columns of one version of a CustomResourceDefinition."""
    versions = children(definition, "spec", "versions")
    entry = next((each for each in versions if text(each, "name") == version), {})
    described = children(entry, "additionalPrinterColumns")
    if not described:
        return _AGE_ONLY
    shown = [
        Column(
            name=text(each, "name"),
            type=text(each, "type"),
            format=text(each, "format"),
            wide=integer(each, "priority") > 0,
        )
        for each in described
    ]
    paths = [(text(each, "jsonPath"), text(each, "type")) for each in described]

    def cells(item: JsonObject, now: datetime) -> Cells:
        return [name_of(item), *(_cell(find(path, item), kind, now) for path, kind in paths)]

    return Layout(columns=(*columns("Name"), *shown), cells=cells)


def _cell(found: list[JsonValue], kind: str, now: datetime) -> JsonScalar:
    """Convert the first value to the type of the column. Returns None if it is missing or has another type."""
    value = found[0] if found else None
    match kind:
        case "string" if value is not None:
            return _in_words(value)
        case "integer" if isinstance(value, int | float) and not isinstance(value, bool):
            return int(value)
        case "number" if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        case "boolean" if isinstance(value, bool):
            return value
        case "date" if isinstance(value, str):
            shown = since(value, now)
            return "<invalid>" if shown == "<unknown>" else shown
    return None


def _in_words(value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, separators=(",", ":"), sort_keys=True)
