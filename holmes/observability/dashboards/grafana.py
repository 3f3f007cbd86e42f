"""Speaks the HTTP API of Grafana: searches and reads dashboards, and runs queries through its data sources."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from holmes.observability.dashboards.dashboard import GENERAL, DashboardHit, dashboard_of
from holmes.observability.dashboards.frames import result_of
from holmes.observability.json_reading import objects, read_object, read_value, text, texts
from holmes.values.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.observability.access import SourceAccess, SourceClient
    from holmes.observability.dashboards.dashboard import Dashboard
    from holmes.observability.dashboards.frames import PanelResult
    from holmes.values.json_types import JsonObject, JsonValue

_FAILED: Final = frozenset({400, 404, 500})
"""The statuses with which Grafana reports that a query failed, with the reason in JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSource:
    """A data source that queries can use."""

    uid: str
    name: str
    kind: str
    is_default: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRange:
    """The range of a query in seconds since 1970, and the step between two samples."""

    start: float
    end: float
    step_seconds: float


class Grafana:
    """A server with dashboards. Every method raises `ToolError` if it does not answer as the API requires."""

    def __init__(self, client: SourceClient) -> None:
        self._client = client

    @property
    def access(self) -> SourceAccess:
        return self._client.access

    async def version(self) -> str:
        """Return for example `Grafana 11.3.1`. The search checks the credentials, which the version does not need."""
        health = await read_object(self._client, "/api/health")
        await self.search("", (), 1)
        return f"Grafana {text(health, 'version')}".strip()

    async def search(self, words: str, tags: Sequence[str], limit: int) -> tuple[DashboardHit, ...]:
        """Return at most `limit` dashboards with the words in their title, in the order of Grafana."""
        parameters = [("type", "dash-db"), ("limit", str(limit)), *(("tag", each) for each in tags)]
        _, found = await read_value(self._client, "/api/search", [*parameters, *([("query", words)] if words else [])])
        if not isinstance(found, list):
            raise ToolError(f"{self.access.name}: /api/search did not return a list of dashboards; check the url")
        return tuple(
            DashboardHit(
                uid=text(each, "uid"),
                title=text(each, "title"),
                folder=text(each, "folderTitle") or GENERAL,
                tags=texts(each, "tags"),
            )
            for each in objects(found)
            if text(each, "uid")
        )

    async def dashboard(self, uid: str) -> Dashboard:
        written = await read_object(self._client, f"/api/dashboards/uid/{quote(uid, safe='')}", missing=True)
        if written is None:
            raise ToolError(f"{self.access.name} has no dashboard with the uid {uid!r}; search_dashboards finds uids")
        return await asyncio.to_thread(dashboard_of, written)

    async def data_sources(self) -> tuple[DataSource, ...]:
        """Return the data sources, or none if the credentials do not allow to list them."""
        status, found = await read_value(self._client, "/api/datasources", accepts=frozenset({401, 403}))
        if status != 200:
            return ()
        return tuple(
            DataSource(
                uid=text(each, "uid"),
                name=text(each, "name"),
                kind=text(each, "type"),
                is_default=each.get("isDefault") is True,
            )
            for each in objects(found)
        )

    async def run(self, queries: Sequence[JsonObject], span: QueryRange) -> PanelResult:
        """Run queries that name their data source."""
        milliseconds = int(span.step_seconds * 1_000)
        points = int((span.end - span.start) / span.step_seconds) + 1
        own: list[JsonValue] = [{**each, "intervalMs": milliseconds, "maxDataPoints": points} for each in queries]
        body: JsonObject = {"queries": own, "from": f"{span.start * 1_000:.0f}", "to": f"{span.end * 1_000:.0f}"}
        status, found = await read_value(self._client, "/api/ds/query", body=body, accepts=_FAILED)
        if not isinstance(found, dict) or (status != 200 and "results" not in found):
            reason = " ".join((text(found, "message") or "no reason").split())[:300]
            raise ToolError(f"{self.access.name}: the query failed (HTTP {status}): {reason}; check the data source")
        return await asyncio.to_thread(result_of, found)
