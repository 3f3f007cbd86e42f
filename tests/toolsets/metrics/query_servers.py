"""Stand in for Thanos Query and Mimir, after the public documentation of their HTTP APIs.

Both answer with two series for each selector but `missing`. Thanos warns about a store that it could not read if it
`is_partial`. Mimir is below a prefix, requires a tenant, and scrapes nothing.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final
from urllib.parse import parse_qs, urlsplit

from holmes.values.json_types import JsonObject, JsonValue

TENANT: Final = "shop"
WARNING: Final = "receive series from Addr: store-gateway:10901 LabelSets: {}: rpc error: code = Unavailable"
_BUILD: Final[JsonObject] = {
    "revision": "abc",
    "branch": "HEAD",
    "buildUser": "a",
    "buildDate": "b",
    "goVersion": "go1.24",
}


@contextmanager
def thanos(*, is_partial: bool = False) -> Iterator[str]:
    def respond(path: str, given: dict[str, str], _: str | None) -> tuple[int, JsonObject]:
        if path == "/api/v1/status/buildinfo":
            return 200, {"status": "success", "data": {"version": "0.35.1", **_BUILD}}
        if path == "/api/v1/stores":
            store: JsonObject = {"name": "store-gateway:10901", "lastError": None, "labelSets": []}
            return 200, {"status": "success", "data": {"store": [store]}}
        if path == "/api/v1/format_query":
            return 404, {}
        data = _data(path, given)
        warned: JsonObject = {"warnings": [WARNING]} if is_partial else {}
        return (404, {}) if data is None else (200, {"status": "success", "data": data, **warned})

    with _serving(respond) as url:
        yield url


@contextmanager
def mimir() -> Iterator[str]:
    def respond(path: str, given: dict[str, str], tenant: str | None) -> tuple[int, JsonObject]:
        if not path.startswith("/prometheus/"):
            return 404, {}
        if tenant != TENANT:
            return 401, {}
        path = path.removeprefix("/prometheus")
        if path == "/api/v1/status/buildinfo":
            build: JsonObject = {"application": "Grafana Mimir", "version": "2.16.0", **_BUILD}
            return 200, {"status": "success", "data": build}
        data = None if path == "/api/v1/targets" else _data(path, given)
        return (404, {}) if data is None else (200, {"status": "success", "data": data})

    with _serving(respond) as url:
        yield f"{url}/prometheus"


def _data(path: str, given: dict[str, str]) -> JsonValue:
    query = given.get("query", "")
    answer: JsonValue = None
    match path.removeprefix("/api/v1/").split("/"):
        case ["query"]:
            if query.startswith("count("):
                answer = {"resultType": "vector", "result": [{"metric": {}, "value": [0, "2"]}]}
            else:
                rows: list[JsonValue] = [] if "missing" in query else [_series(each, value=[0, "1"]) for each in "ab"]
                answer = {"resultType": "vector", "result": rows}
        case ["query_range"]:
            start, end, step = (float(given[name]) for name in ("start", "end", "step"))
            samples: list[JsonValue] = [[start + place * step, "1"] for place in range(int((end - start) / step) + 1)]
            answer = {"resultType": "matrix", "result": [_series(each, values=samples) for each in "ab"]}
        case ["rules"]:
            rule: JsonObject = {
                "name": "Down",
                "type": "alerting",
                "query": "up == 0",
                "state": "inactive",
                "alerts": [],
            }
            answer = {"groups": [{"name": "g", "rules": [rule]}]}
        case ["label", "__name__", "values"]:
            answer = ["missing", "up"]
        case ["labels"]:
            answer = ["__name__", "pod"]
        case ["label", "pod", "values"]:
            answer = ["a", "b"]
        case ["metadata"]:
            answer = {"up": [{"type": "gauge", "help": "Whether the target is up", "unit": ""}]}
        case ["targets"]:
            answer = {"activeTargets": []}
        case _:
            pass
    return answer


def _series(pod: str, **samples: JsonValue) -> JsonObject:
    return {"metric": {"__name__": "up", "pod": pod}, **samples}


@contextmanager
def _serving(respond: Callable[[str, dict[str, str], str | None], tuple[int, JsonObject]]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            parts = urlsplit(self.path)
            form = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
            given = {name: values[0] for name, values in parse_qs(f"{parts.query}&{form}").items()}
            status, answer = respond(parts.path, given, self.headers.get("X-Scope-OrgID"))
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST  # noqa: N815  the parent's name

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
