"""Dashboards as values, read from the JSON that Grafana stores.

Versions of Grafana write the same thing in several forms: panels follow rows, or rows contain panels, and a data source
is a name, an object or missing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.observability.json_reading import inner, items, text, texts, whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holmes.values.json_types import JsonObject, JsonValue

_DEEPEST: Final = 3
_QUERY_KEYS: Final = ("expr", "query", "rawSql", "expression", "target", "rawQuery", "queryText")
ALL: Final = "$__all"
_ALL_SHOWN: Final = "All"
GENERAL: Final = "General"
"""The folder of dashboards without a folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardHit:
    """A dashboard in a search result."""

    uid: str
    title: str
    folder: str = GENERAL
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReference:
    """A data source as a panel names it: by id, by name or by a variable. Both empty: the default one."""

    uid: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelQuery:
    """One query of a panel. `written` is its text for people, and `target` is what Grafana runs."""

    reference: str
    written: str
    source: SourceReference
    target: JsonObject
    hidden: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A panel. `row` is the title of the row that it belongs to. A library panel has its queries elsewhere."""

    id: int
    title: str
    kind: str
    row: str = ""
    unit: str = ""
    thresholds: tuple[str, ...] = ()
    queries: tuple[PanelQuery, ...] = ()
    library: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A variable with its current values.

    `everything` is what stands for all values, if the dashboard defines it. `pattern` filters the results of a query.
    `is_fixed` means that Grafana does not repeat the query, so that the `options` are all values.
    """

    name: str
    kind: str
    values: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    everything: str = ""
    pattern: str = ""
    is_fixed: bool = False
    several: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    uid: str
    title: str
    folder: str = GENERAL
    tags: tuple[str, ...] = ()
    variables: tuple[Variable, ...] = ()
    panels: tuple[Panel, ...] = ()


def dashboard_of(written: JsonObject) -> Dashboard:
    """Read the answer of `/api/dashboards/uid/...`."""
    model = inner(written, "dashboard")
    panels = [panel for row in items(model, "rows") for panel in _panels(row, text(row, "title"), _DEEPEST)]
    return Dashboard(
        uid=text(model, "uid"),
        title=text(model, "title"),
        folder=text(inner(written, "meta"), "folderTitle") or GENERAL,
        tags=texts(model, "tags"),
        variables=tuple(_variable(each) for each in items(inner(model, "templating"), "list") if text(each, "name")),
        panels=(*panels, *_panels(model, "", _DEEPEST)),
    )


def _panels(holder: JsonObject, row: str, deepest: int) -> Iterator[Panel]:
    """Return the panels below a dashboard or a row. An open row ends where the next one begins."""
    for each in items(holder, "panels"):
        if text(each, "type") == "row":
            row = text(each, "title")
            if deepest:
                yield from _panels(each, row, deepest - 1)
        else:
            yield _panel(each, row)


def _panel(written: JsonObject, row: str) -> Panel:
    defaults = inner(written, "fieldConfig", "defaults")
    own = _source(written.get("datasource"))
    steps = items(inner(defaults, "thresholds"), "steps")
    library = inner(written, "libraryPanel")
    return Panel(
        id=whole(written, "id") or 0,
        title=text(written, "title") or text(library, "name"),
        kind=text(written, "type"),
        row=row,
        unit=text(defaults, "unit") or text(written, "format"),
        # The first step has no value: it is the colour below all others.
        thresholds=tuple(str(each["value"]) for each in steps if isinstance(each.get("value"), int | float)),
        queries=tuple(_query(each, own) for each in items(written, "targets")),
        library=text(library, "uid"),
    )


def _query(target: JsonObject, panel_source: SourceReference) -> PanelQuery:
    own = _source(target.get("datasource"))
    written = next((text(target, key) for key in _QUERY_KEYS if text(target, key)), "")
    return PanelQuery(
        reference=text(target, "refId") or "A",
        written=written or json.dumps({key: target[key] for key in target if key != "datasource"}, ensure_ascii=False),
        source=own if own.uid or own.kind else panel_source,
        target=target,
        hidden=target.get("hide") is True,
    )


def _source(written: JsonValue) -> SourceReference:
    if isinstance(written, str):
        return SourceReference(uid=written)
    return SourceReference(uid=text(written, "uid"), kind=text(written, "type"))


def _variable(written: JsonObject) -> Variable:
    current = _values(inner(written, "current").get("value"))
    kind = text(written, "type")
    if kind in {"constant", "textbox"} and not current:
        current = _values(written.get("query"))
    options = tuple(value for each in items(written, "options") for value in _values(each.get("value")) if value != ALL)
    offers_all = written.get("includeAll") is True or bool(text(written, "allValue"))
    shown = current or _values(inner(written, "current").get("text"))
    # Dashboards that people wrote by hand have only the text for all values.
    if ALL in current or (offers_all and shown == (_ALL_SHOWN,) and _ALL_SHOWN not in options):
        current = (ALL,)
    return Variable(
        name=text(written, "name"),
        kind=kind,
        values=current,
        options=options,
        everything=text(written, "allValue"),
        pattern=text(written, "regex") if kind == "query" else "",
        is_fixed=written.get("refresh") == 0,
        several=written.get("multi") is True or written.get("includeAll") is True,
    )


def _values(written: JsonValue) -> tuple[str, ...]:
    found = written if isinstance(written, list) else [written]
    return tuple(str(each) for each in found if isinstance(each, str | int | float) and str(each))


def with_values(variables: tuple[Variable, ...], given: Mapping[str, str]) -> Mapping[str, Variable]:
    """Return the variables by name, with given values instead of the current ones. A `|` separates several."""
    known = {each.name: each for each in variables}
    for name, value in given.items():
        if name in known:
            parts = tuple(part.strip() for part in value.split("|"))
            is_all = any(part.lower() in {"all", ALL} and part not in known[name].options for part in parts)
            known[name] = replace(known[name], values=(ALL,) if is_all else parts)
    return known
