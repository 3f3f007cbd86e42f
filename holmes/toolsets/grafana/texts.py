"""Writes dashboards and results of panels for the model: short, and with the count of everything that is left out."""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Final

from holmes.observability.dashboards.dashboard import ALL
from holmes.observability.dashboards.panel_queries import resolved
from holmes.observability.dashboards.variables import everything_of, substituted, used_variables
from holmes.observability.metrics.series import QueryResult
from holmes.toolsets.metrics.ranges import TimeRange
from holmes.toolsets.metrics.texts import instant_text, range_rows, range_text
from holmes.values.errors import ToolError
from holmes.values.texts import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holmes.observability.dashboards.dashboard import Dashboard, DashboardHit, Panel, PanelQuery, Variable
    from holmes.observability.dashboards.frames import PanelResult, Table
    from holmes.observability.dashboards.grafana import DataSource
    from holmes.observability.metrics.series import Series

_MOST_LISTED: Final = 30
_MOST_PANELS: Final = 40
_MOST_ROWS: Final = 20
_MOST_OPTIONS: Final = 8
_QUERY_CHARACTERS: Final = 300
_CELL_CHARACTERS: Final = 60


def hits_text(hits: Sequence[DashboardHit]) -> str:
    """List dashboards. Returns an empty string if there are none."""
    if not hits:
        return ""
    shown = hits[:_MOST_LISTED]
    lines = [_counted(len(shown), len(hits), "dashboard")]
    for each in shown:
        tags = f" tags: {', '.join(each.tags)}" if each.tags else ""
        lines.append(_one_line(f"{each.uid} {each.title!r} in {each.folder}{tags}", _QUERY_CHARACTERS))
    return "\n".join(lines)


def dashboard_text(
    dashboard: Dashboard, panels: Sequence[Panel], known: Mapping[str, Variable], sources: Sequence[DataSource]
) -> str:
    """Describe a dashboard and some of its panels, with variables replaced by their values."""
    counted = _counted(len(panels), len(dashboard.panels), "panel")
    lines = [_one_line(f"{dashboard.title} in {dashboard.folder}, {counted}", 200)]
    lines += [f"variable {_variable_text(each)}" for each in known.values()]
    row = ""
    for panel in panels[:_MOST_PANELS]:
        if panel.row != row:
            row = panel.row
            lines.append(f"row {row}:")
        lines += _panel_lines(panel, known, sources)
    if len(panels) > _MOST_PANELS:
        lines.append(f"not shown: {len(panels) - _MOST_PANELS} panels; choose panels with words")
    return "\n".join(lines)


def _variable_text(variable: Variable) -> str:
    current = _all_text(variable, "") if ALL in variable.values else _some(variable.values) or "no value"
    options = f" (of {_some(variable.options)})" if variable.options else ""
    return _one_line(f"{variable.name} = {current}{options}", _QUERY_CHARACTERS)


def _all_text(variable: Variable, kind: str) -> str:
    if variable.pattern and not variable.everything:
        return f"All that match {variable.pattern}"
    own = "allValue " if variable.everything else ""
    return f"All, as {own}{everything_of(variable, kind) or 'each option'}"


def _some(names: Sequence[str]) -> str:
    """List the first names, with the count of all if there are more."""
    listed = ", ".join(names[:_MOST_OPTIONS])
    return f"{listed}, … {_MOST_OPTIONS} of {len(names)}" if len(names) > _MOST_OPTIONS else listed


def all_text(panel: Panel, known: Mapping[str, Variable], sources: Sequence[DataSource]) -> str:
    """Tell which variables of a panel stand for all values, and as what. Returns an empty string without any."""
    told: dict[str, None] = {}
    for query in panel.queries:
        kind = query.source.kind if query.hidden else resolved(query.source, known, sources).kind
        for each in used_variables(query.written, known):
            if ALL in each.values and not query.hidden:
                told[f"variable {each.name} = {_all_text(each, kind)}"] = None
    return "\n".join(told)


def _panel_lines(panel: Panel, known: Mapping[str, Variable], sources: Sequence[DataSource]) -> Iterator[str]:
    facts = [panel.kind, *([f"unit {panel.unit}"] if panel.unit else [])]
    facts += [f"thresholds {', '.join(panel.thresholds)}"] if panel.thresholds else []
    facts += ["library panel"] if panel.library else []
    yield _one_line(f"- {panel.id} {panel.title!r} ({'; '.join(facts)})", _QUERY_CHARACTERS)
    for each in panel.queries:
        hidden = " (hidden)" if each.hidden else ""
        source = _source_text(each, known, sources)
        line = _one_line(f"{each.reference} [{source}]{hidden}: {_written(each, known)}", _QUERY_CHARACTERS)
        yield f"  {line}"


def _written(query: PanelQuery, known: Mapping[str, Variable]) -> str:
    return str(substituted(query.written, known, query.source.kind))


def _source_text(query: PanelQuery, known: Mapping[str, Variable], sources: Sequence[DataSource]) -> str:
    try:
        source = resolved(query.source, known, sources)
    except ToolError:
        return query.source.uid or "default"
    return f"{source.name}, {source.kind}"


def result_text(panel: Panel, result: PanelResult, asked: TimeRange) -> str:
    """Describe the results of a panel. Returns an empty string if there are none."""
    unit = f" ({panel.unit})" if panel.unit else ""
    title = _one_line(f"{panel.title or f'panel {panel.id}'}{unit}", 120)
    parts = []
    ranges = tuple(each for each in result.series if len(each.values) > 1)
    singles = tuple(each for each in result.series if len(each.values) == 1)
    if ranges:
        step = _step(ranges, asked.step_seconds)
        span = TimeRange(start=asked.start, end=asked.end, step_seconds=step)
        found = QueryResult(series=ranges)
        parts.append(range_text(title, found, span, range_rows(found, span)))
    if singles:
        parts.append(instant_text(title, QueryResult(series=singles), max(each.times[-1] for each in singles)))
    parts += [_table_text(title, each) for each in result.tables]
    parts += [f"query {reference} failed: {reason}" for reference, reason in result.errors.items()]
    if parts and panel.thresholds:
        parts.append(f"thresholds of the panel: {', '.join(panel.thresholds)}")
    return "\n".join(parts)


def _step(series: Sequence[Series], asked_seconds: float) -> float:
    """Return the distance of samples, which the data source can make larger than the one that was asked for."""
    times = max(series, key=lambda each: len(each.times)).times
    usual = median(after - before for before, after in pairwise(times))
    return max(asked_seconds, usual)


def _table_text(title: str, table: Table) -> str:
    shown = table.rows[:_MOST_ROWS]
    lines = [f"{title}: {_counted(len(shown), len(table.rows), 'row')}", " | ".join(table.columns)]
    return "\n".join([*lines, *(" | ".join(_one_line(each, _CELL_CHARACTERS) for each in row) for row in shown)])


def _counted(shown: int, total: int, noun: str) -> str:
    counted = f"{total:,} {noun}{'' if total == 1 else 's'}"
    return counted if shown >= total else f"{shown} of {counted}"


def _one_line(text: str, most: int) -> str:
    return excerpt(" ".join(text.split()), most)
