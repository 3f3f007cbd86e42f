"""Stands in for Grafana, which the tests must not fetch: the parts of its public HTTP API that the toolset uses.

It is written after Grafana's documentation. Its queries are real: like Grafana's data source for Prometheus, it
replaces the variables of the server, asks a real Prometheus, and answers with data frames.
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

import httpx

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN: Final = "glsa_not-a-secret"
VERSION: Final = "11.3.1"
PROMETHEUS: Final = {"type": "prometheus", "uid": "prom-1"}
REQUESTS: Final = 'sum by (pod) (rate(http_requests_total{namespace="$namespace", pod=~"$pod"}[$__rate_interval]))'
SOURCES: Final = [
    {"uid": "prom-1", "name": "Prometheus", "type": "prometheus", "isDefault": True},
    {"uid": "sql-1", "name": "Orders", "type": "postgres", "isDefault": False},
]
CHECKOUT: Final = {
    "uid": "checkout-1",
    "title": "Checkout overview",
    "tags": ["shop", "sre"],
    "templating": {
        "list": [
            {"name": "source", "type": "datasource", "current": {"text": "Prometheus", "value": "prom-1"}},
            {
                "name": "namespace",
                "type": "custom",
                "current": {"text": "shop", "value": "shop"},
                "options": [{"value": "shop"}, {"value": "bank"}],
            },
            {
                "name": "pod",
                "type": "query",
                "multi": True,
                "includeAll": True,
                "current": {"text": ["All"], "value": ["$__all"]},
            },
            {"name": "customer", "type": "textbox", "query": "", "current": {}},
        ]
    },
    "panels": [
        {
            "id": 1,
            "title": "Requests",
            "type": "timeseries",
            "datasource": {"type": "prometheus", "uid": "${source}"},
            "fieldConfig": {"defaults": {"unit": "reqps", "thresholds": {"steps": [{"value": None}, {"value": 8}]}}},
            "targets": [
                {
                    "refId": "A",
                    "expr": REQUESTS,
                    "range": True,
                    "legendFormat": "{{pod}}",
                },
                {"refId": "B", "expr": "vector(1)", "hide": True},
            ],
        },
        {"id": 2, "title": "Memory", "type": "row", "collapsed": False, "panels": []},
        {
            "id": 3,
            "title": "Memory now",
            "type": "stat",
            "fieldConfig": {"defaults": {"unit": "bytes"}},
            "targets": [{"refId": "A", "expr": 'sum(memory_bytes{namespace="[[namespace]]"})', "instant": True}],
        },
        {
            "id": 4,
            "title": "Storage",
            "type": "row",
            "collapsed": True,
            "panels": [
                {
                    "id": 5,
                    "title": "Orders",
                    "type": "table",
                    "datasource": {"type": "postgres", "uid": "sql-1"},
                    "targets": [{"refId": "A", "rawSql": "SELECT * FROM orders WHERE customer = '$customer'"}],
                },
                {
                    "id": 6,
                    "title": "Broken",
                    "type": "timeseries",
                    "datasource": "Prometheus",
                    "targets": [{"refId": "A", "expr": "sum(memory_bytes"}],
                },
                {
                    "id": 7,
                    "title": "Per customer",
                    "type": "timeseries",
                    "datasource": PROMETHEUS,
                    "targets": [{"refId": "A", "expr": 'memory_bytes{customer="$customer"}'}],
                },
            ],
        },
        {"id": 8, "title": "", "type": "timeseries", "libraryPanel": {"uid": "lib-1", "name": "Shared errors"}},
        {"id": 9, "title": "Copy", "type": "timeseries", "datasource": {"uid": "-- Dashboard --"}, "targets": [{}]},
        {"id": 10, "title": "Notes", "type": "text"},
    ],
}
HITS: Final = [
    {"uid": "checkout-1", "title": "Checkout overview", "folderTitle": "Shop", "tags": ["shop", "sre"]},
    {"uid": "nodes-1", "title": "Nodes", "folderTitle": "Platform", "tags": ["kubernetes"]},
    {"uid": "pods-1", "title": "Pods", "tags": ["kubernetes"]},
]


@dataclass(slots=True)
class Server:
    """What the server has seen, and what it does."""

    url: str = ""
    queries: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    lists_sources: bool = True


@contextmanager
def grafana(prometheus: str = "") -> Iterator[Server]:
    """Yield a running server, whose data source is the Prometheus at a URL."""
    seen = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            seen.headers.append(dict(self.headers))
            status, answer = _read(parts.path, parse_qs(parts.query), seen)
            if parts.path != "/api/health" and self.headers.get("Authorization") != f"Bearer {TOKEN}":
                status, answer = 401, {"message": "Unauthorized"}
            self._send(status, answer)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.queries.append(body)
            results = {each["refId"]: _run(each, body, prometheus) for each in body["queries"]}
            self._send(400 if any("error" in each for each in results.values()) else 200, {"results": results})

        def _send(self, status: int, answer: object) -> None:
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        seen.url = f"http://127.0.0.1:{server.server_port}"
        yield seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _read(path: str, given: dict[str, list[str]], seen: Server) -> tuple[int, object]:
    if path == "/api/health":
        return 200, {"database": "ok", "version": VERSION}
    if path == "/api/search":
        words, tags = given.get("query", [""])[0].lower(), set(given.get("tag", []))
        found = [each for each in HITS if words in str(each["title"]).lower() and tags <= set(each["tags"])]
        return 200, found[: int(given["limit"][0])]
    if path == "/api/datasources":
        return (200, SOURCES) if seen.lists_sources else (403, {"message": "You'll need additional permissions"})
    if path == "/api/dashboards/uid/checkout-1":
        return 200, {"dashboard": CHECKOUT, "meta": {"folderTitle": "Shop"}}
    return 404, {"message": "Dashboard not found"}


def _run(query: dict[str, Any], body: dict[str, Any], prometheus: str) -> dict[str, Any]:
    """Ask Prometheus, as its data source in Grafana does."""
    assert query["datasource"] == PROMETHEUS
    step = query["intervalMs"] / 1_000
    expression = query["expr"].replace("$__rate_interval", f"{4 * step:.0f}s").replace("$__interval", f"{step:.0f}s")
    start, end = int(body["from"]) / 1_000, int(body["to"]) / 1_000
    at = {"time": end} if query.get("instant") else {"start": start, "end": end, "step": step}
    path = "query" if query.get("instant") else "query_range"
    answer = httpx.get(f"{prometheus}/api/v1/{path}", params={"query": expression, **at}, timeout=20).json()
    if answer["status"] != "success":
        return {"status": 400, "error": answer["error"], "frames": []}
    return {"status": 200, "frames": [_frame(each) for each in answer["data"]["result"]]}


def _frame(row: dict[str, Any]) -> dict[str, Any]:
    samples = row["values"] if "values" in row else [row["value"]]
    number = {"name": "Value", "type": "number", "labels": row["metric"]}
    return {
        "schema": {"fields": [{"name": "Time", "type": "time"}, number]},
        "data": {"values": [[time * 1_000 for time, _ in samples], [float(value) for _, value in samples]]},
    }
