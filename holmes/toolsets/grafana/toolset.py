"""The toolset `grafana/dashboards` and its factory. Each call opens its own connection."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from holmes.observability.access import SourceAccess
from holmes.toolsets.grafana.tools import READ, RUN, SEARCH, TOOLS
from holmes.toolsets.instances import Instances, SourceFactory, SourceKind
from holmes.toolsets.pairs import pairs_argument
from holmes.values.errors import ToolError
from holmes.values.tool_arguments import text_argument
from holmes.values.tools import ToolResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from holmes.observability.access import SourceClient
    from holmes.observability.dashboards.dashboard import Dashboard, DashboardHit, Panel, Variable
    from holmes.observability.dashboards.grafana import Grafana
    from holmes.values.json_types import JsonObject
    from holmes.values.tools import Tool, ToolInvocation, Toolset

KIND: Final[SourceKind[SourceAccess]] = SourceKind(
    toolset="grafana/dashboards",
    single="grafana",
    old_names={"api_url": "url", "api_key": "bearer_token", "additional_headers": "headers"},
)
_MOST_SEARCHED: Final = 1_000


class GrafanaToolset:
    def __init__(self, instances: Sequence[SourceAccess]) -> None:
        self._instances = Instances(instances)

    @property
    def name(self) -> str:
        return KIND.toolset

    @property
    def instructions(self) -> str:
        return ""

    @property
    def tools(self) -> tuple[Tool, ...]:
        return self._instances.offered(TOOLS)

    def describe(self, invocation: ToolInvocation) -> str:
        """Return one line for the user, for example `Find dashboards about 'checkout'`."""
        given = invocation.arguments
        words = {
            SEARCH.name: f"Find dashboards about {text_argument(given, 'words')!r}",
            READ.name: f"Read dashboard {text_argument(given, 'dashboard')}",
            RUN.name: f"Run panel {text_argument(given, 'panel')} of dashboard {text_argument(given, 'dashboard')}",
        }
        return words[invocation.tool.name]

    async def call(self, invocation: ToolInvocation) -> ToolResult:
        """Read Grafana. Raises `ToolError` with the source, the reason and the next step."""
        from holmes.observability.access import open_source
        from holmes.observability.dashboards.grafana import Grafana

        runs: dict[str, Callable[[Grafana, JsonObject], Awaitable[str]]] = {
            SEARCH.name: _search,
            READ.name: _read,
            RUN.name: _run,
        }
        access = self._instances.chosen(invocation.arguments)
        async with open_source(access) as client:
            text = await runs[invocation.tool.name](Grafana(client), invocation.arguments)
        described = f"{access.name}: {self.describe(invocation)}"
        return ToolResult(status="success" if text else "no_data", data=text, invocation=described)


async def _search(grafana: Grafana, arguments: JsonObject) -> str:
    """Search titles as Grafana does. If nothing is found, words are searched in folders and tags as well."""
    from holmes.toolsets.grafana.texts import hits_text

    words, folder = text_argument(arguments, "words"), text_argument(arguments, "folder").lower()
    tags = [each.strip() for each in text_argument(arguments, "tags").split(",") if each.strip()]
    found = await grafana.search(words, tags, _MOST_SEARCHED)
    if not found and words:
        found = tuple(_best_matches(await grafana.search("", tags, _MOST_SEARCHED), words.lower().split()))
    return hits_text([each for each in found if folder in each.folder.lower()])


def _best_matches(hits: Sequence[DashboardHit], words: Sequence[str]) -> list[DashboardHit]:
    """Return the dashboards with the most of the words. Words in titles count double."""

    def score(hit: DashboardHit) -> int:
        title, about = hit.title.lower(), f"{hit.folder} {' '.join(hit.tags)}".lower()
        return sum(2 * (word in title) + (word in about) for word in words)

    scored = sorted(((score(hit), hit) for hit in hits), key=lambda pair: (-pair[0], pair[1].title))
    return [hit for points, hit in scored if points]


async def _opened(grafana: Grafana, arguments: JsonObject) -> tuple[Dashboard, Mapping[str, Variable]]:
    """Read the dashboard of a call, and its variables with the given values. Raises `ToolError` for unknown names."""
    from holmes.observability.dashboards.dashboard import with_values

    dashboard = await grafana.dashboard(text_argument(arguments, "dashboard"))
    given = dict(pairs_argument(arguments, "variables", "namespace=shop, pod=web-1|web-2"))
    known = with_values(dashboard.variables, given)
    if unknown := sorted(given.keys() - known.keys()):
        available = ", ".join(known) or "none"
        raise ToolError(f"dashboard has no variable {unknown[0]!r}; available variables: {available}")
    return dashboard, known


async def _read(grafana: Grafana, arguments: JsonObject) -> str:
    from holmes.toolsets.grafana.texts import dashboard_text

    dashboard, known = await _opened(grafana, arguments)
    words = text_argument(arguments, "words").lower().split()
    panels = [each for each in dashboard.panels if all(word in _searched(each) for word in words)]
    if words and not panels:
        return ""
    return dashboard_text(dashboard, panels, known, await grafana.data_sources())


def _searched(panel: Panel) -> str:
    return " ".join([panel.title, panel.row, *(each.written for each in panel.queries)]).lower()


async def _run(grafana: Grafana, arguments: JsonObject) -> str:
    from holmes.observability.dashboards.grafana import QueryRange
    from holmes.observability.dashboards.panel_queries import prepared
    from holmes.toolsets.grafana.texts import all_text, result_text
    from holmes.toolsets.metrics.ranges import time_range

    since, until = text_argument(arguments, "since"), text_argument(arguments, "until")
    asked = time_range(since=since, until=until, step="", now=time.time())
    dashboard, known = await _opened(grafana, arguments)
    panel = _panel(dashboard, text_argument(arguments, "panel"))
    sources = await grafana.data_sources()
    queries = prepared(panel, known, sources)
    span = QueryRange(start=asked.start, end=asked.end, step_seconds=asked.step_seconds)
    result = await grafana.run(queries, span)
    if result.errors and not result.series and not result.tables:
        reference, reason = next(iter(result.errors.items()))
        raise ToolError(f"query {reference} of panel {panel.title!r} failed: {reason}")
    text = await asyncio.to_thread(result_text, panel, result, asked)
    return "\n".join(filter(None, (text, all_text(panel, known, sources)))) if text else ""


def _panel(dashboard: Dashboard, wanted: str) -> Panel:
    """Return a panel by its id or title. Raises `ToolError` if there is none, or more than one."""
    found = [each for each in dashboard.panels if str(each.id) == wanted]
    found = found or [each for each in dashboard.panels if each.title.lower() == wanted.lower()]
    found = found or [each for each in dashboard.panels if wanted.lower() in each.title.lower()]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(f"{each.id} {each.title!r}" for each in (found or dashboard.panels)[:20])
    if found:
        raise ToolError(f"{len(found)} panels match {wanted!r}; give the id of one: {listed}")
    raise ToolError(f"unknown panel {wanted!r}; available panels: {listed or 'none'}")


class GrafanaFactory(SourceFactory[SourceAccess]):
    kind = KIND
    description = "Finds and reads dashboards of Grafana, and runs the queries of their panels"
    reads_all = "panels"

    async def version(self, client: SourceClient) -> str:
        from holmes.observability.dashboards.grafana import Grafana

        return await Grafana(client).version()

    def toolset(self, instances: Sequence[SourceAccess]) -> Toolset:
        return GrafanaToolset(instances)
