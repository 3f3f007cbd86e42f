"""The tables of custom resources, as their definition describes them. Called by `layouts`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import children, integer, text
from holmes.snapshot.server.tables.jsonpath import find
from holmes.snapshot.server.tables.layout import Cells, Column, Layout, age, columns, name_of, since

if TYPE_CHECKING:
    from datetime import datetime

    from holmes.values.json_types import JsonObject, JsonScalar, JsonValue

_AGE_ONLY: Final = Layout(columns=columns("Name", "Age:date"), cells=lambda item, now: [name_of(item), age(item, now)])


def custom_layout(definition: JsonObject, version: str) -> Layout:
    """The table of the resource that a CustomResourceDefinition defines, in one of its versions."""
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
    """The first value as the column's type wants it; None when there is none or it is of another type."""
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
