"""Prepares the queries of a panel: their variables get values, and each names its data source.

Only data sources whose query language cannot change data are used: a panel can contain SQL, and a model chooses the
values of its variables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.observability.dashboards.grafana import DataSource
from holmes.observability.dashboards.variables import missing_variables, substituted, unlisted_variables
from holmes.values.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holmes.observability.dashboards.dashboard import Panel, SourceReference, Variable
    from holmes.values.json_types import JsonObject

READ_ONLY: Final = frozenset(
    {
        "prometheus", "loki", "elasticsearch", "grafana-opensearch-datasource", "graphite", "cloudwatch", "stackdriver",
        "victoriametrics-metrics-datasource", "victoriametrics-logs-datasource", "grafana-amazonprometheus-datasource",
        "grafana-azureprometheus-datasource", "__expr__",
    }
)  # fmt: skip
EXPRESSION: Final = DataSource(uid="__expr__", name="Expression", kind="__expr__")
_MIXED: Final = "-- Mixed --"
_INTERNAL: Final = frozenset({"-- Dashboard --", "-- Grafana --", "grafana", "-1"})


def prepared(panel: Panel, known: Mapping[str, Variable], sources: Sequence[DataSource]) -> list[JsonObject]:
    """Return what Grafana must run. Raises `ToolError` if a query cannot run, with the reason."""
    queries = [each for each in panel.queries if not each.hidden]
    if not queries:
        where = "is a library panel, whose queries are stored elsewhere" if panel.library else "has no queries"
        raise ToolError(f"panel {panel.id} {panel.title!r} {where}; choose another panel")
    found: list[JsonObject] = []
    for each in queries:
        source = resolved(each.source, known, sources)
        if source.kind not in READ_ONLY:
            raise ToolError(
                f"panel {panel.id} {panel.title!r} uses the data source type {source.kind or 'unknown'!r}, which is "
                "not run because its queries could change data; choose another panel"
            )
        if missing := missing_variables(each.written, known):
            raise ToolError(f"variable {missing[0]!r} of the dashboard has no value; give one with variables")
        if unlisted := unlisted_variables(each.written, known):
            raise ToolError(
                f"panel {panel.id} is not run: All of variable {unlisted[0].name!r} stands for the values that match "
                f"{unlisted[0].pattern!r}, which only Grafana's page finds; give values with variables"
            )
        own = substituted(each.target, known, source.kind)
        if isinstance(own, dict):
            found.append({**own, "refId": each.reference, "datasource": {"uid": source.uid, "type": source.kind}})
    return found


def resolved(reference: SourceReference, known: Mapping[str, Variable], sources: Sequence[DataSource]) -> DataSource:
    """Return the data source of a query. Raises `ToolError` if it cannot be determined."""
    written = substituted(reference.uid, known, "")
    name = written if isinstance(written, str) else ""
    if name == EXPRESSION.uid or reference.kind == EXPRESSION.kind:
        return EXPRESSION
    if name in _INTERNAL:
        raise ToolError("the panel shows results of another panel or of Grafana itself; choose another panel")
    if name in {"", "default", _MIXED}:
        found = next((each for each in sources if each.is_default), None)
    else:
        found = next((each for each in sources if name in {each.uid, each.name}), None)
    if found is not None:
        return found
    if reference.kind and name and not sources:
        return DataSource(uid=name, name=name, kind=reference.kind)
    if not sources:
        raise ToolError("the data source of the panel is unknown; the token needs the right to list data sources")
    names = ", ".join(each.name for each in sources[:20])
    raise ToolError(f"data source {name or 'default'!r} is not found; available data sources: {names}")
