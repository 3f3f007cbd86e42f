"""The tools of `grafana/dashboards`. Descriptions are short, because all of them are part of every request."""

from __future__ import annotations

from typing import Final

from holmes.values.tools import Parameter, ParameterSchema, Tool


def _text(name: str, description: str, *, required: bool = False) -> Parameter:
    return Parameter(name=name, schema=ParameterSchema(types=("string",), description=description), required=required)


_UID: Final = _text("dashboard", "Uid from search_dashboards", required=True)
_VARIABLES: Final = _text(
    "variables", "Values of variables, e.g. namespace=shop, pod=web-1|web-2. Default: the current"
)

SEARCH: Final = Tool(
    name="search_dashboards",
    description="Find dashboards of Grafana by words, with their uids.",
    parameters=(
        _text("words", "Words of title, folder or tags. Default: all"),
        _text("folder", "Only dashboards in this folder"),
        _text("tags", "Only dashboards with all of these tags, separated by commas"),
    ),
)
READ: Final = Tool(
    name="read_dashboard",
    description="Read a dashboard: its variables, and its panels with unit, thresholds, data source and queries.",
    parameters=(_UID, _text("words", "Only panels with these words in title, row or queries"), _VARIABLES),
)
RUN: Final = Tool(
    name="run_panel",
    description=(
        "Run the queries of a panel. Shows for each series first, last, min, max, mean, p95, trend, and when it "
        "changed."
    ),
    parameters=(
        _UID,
        _text("panel", "Id or title of the panel", required=True),
        _VARIABLES,
        _text("since", "Start: an age such as 1h or 2d, or an RFC 3339 time. Default: 1h"),
        _text("until", "End, in the same formats. Default: now"),
    ),
)
TOOLS: Final = (SEARCH, READ, RUN)
