"""Stands in for Tempo, which the tests must not fetch: the parts of its public HTTP API that the toolset uses.

It is written after Tempo's documentation and holds the spans that Jaeger gets in the other tests. Its TraceQL has only
the conditions that we write. Like Tempo, it writes ids of spans in base64, names of enumerations, and only traces that
have a span with all conditions.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, urlsplit

from tests.toolsets.traces.shop import KINDS, otlp, requests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.values.json_types import JsonObject
    from tests.toolsets.traces.shop import Sent

VERSION: Final = "2.7.1"
GRAFANA: Final = "/api/datasources/proxy/uid/tempo-1"
"""The path below which Grafana forwards the API of a data source."""
_CONDITION: Final = re.compile(
    r"""(?P<field>resource\.service\.name|name|duration|status|\.[\w./-]+)\s*(?P<sign>>=|=)\s*"""
    r"""(?P<value>"(?:[^"\\]|\\.)*"|[\w.]+)"""
)


@contextmanager
def tempo(*, has_second_api: bool = True) -> Iterator[tuple[str, list[str]]]:
    """Yield the URL of a server with the traces of the shop, and the queries that it has seen."""
    queries: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            given = {name: values[0] for name, values in parse_qs(parts.query).items()}
            if "q" in given:
                queries.append(given["q"])
            answer = _answer(parts.path, given, has_second_api=has_second_api)
            body = b"not found" if answer is None else json.dumps(answer).encode()
            self.send_response(404 if answer is None else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", queries
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _answer(path: str, given: dict[str, str], *, has_second_api: bool) -> JsonObject | None:
    known = {identity: (began, sent) for identity, began, sent in requests()}
    answer: JsonObject | None = None
    match path.removeprefix(GRAFANA).strip("/").split("/"):
        case ["api", "status", "buildinfo"]:
            answer = {"version": VERSION, "goVersion": "go1.24"}
        case ["api", "v2", "search", "tag", "resource.service.name", "values"]:
            answer = _values({each.service for _, sent in known.values() for each in sent})
        case ["api", "v2", "search", "tag", "name", "values"]:
            answer = _values({each.name for _, sent in known.values() for each in sent if _matches(each, given["q"])})
        case ["api", "search"]:
            answer = _search(given)
        case ["api", "v2", "traces", identity] if has_second_api and identity in known:
            answer = {"trace": {"resourceSpans": _protobuf(identity, *known[identity])}, "status": "COMPLETE"}
        case ["api", "traces", identity] if identity in known:
            answer = {"batches": _protobuf(identity, *known[identity])}
        case _:
            pass
    return answer


def _values(found: set[str]) -> JsonObject:
    return {"tagValues": [{"type": "string", "value": each} for each in sorted(found)], "metrics": {}}


def _search(given: dict[str, str]) -> JsonObject:
    low, high = int(given["start"]) * 1_000, int(given["end"]) * 1_000
    traces: list[JsonObject] = []
    for identity, began, sent in requests():
        matched = [each for each in sent if _matches(each, given["q"])]
        if not matched or not low <= began <= high:
            continue
        services = {each.service for each in sent}
        spans = [{"spanID": "0", "durationNanos": str((each.end - each.start) * 1_000_000)} for each in matched[:3]]
        traces.append(
            {
                "traceID": identity.lstrip("0"),
                "rootServiceName": sent[0].service,
                "rootTraceName": sent[0].name,
                "startTimeUnixNano": str(began * 1_000_000),
                "durationMs": max(each.end for each in sent),
                "spanSets": [{"spans": spans, "matched": len(matched)}],
                "serviceStats": {
                    service: {
                        "spanCount": sum(each.service == service for each in sent),
                        "errorCount": sum(each.service == service and bool(each.error) for each in sent),
                    }
                    for service in services
                },
            }
        )
    newest = sorted(traces, key=lambda each: str(each["startTimeUnixNano"]), reverse=True)
    return {"traces": newest[: int(given["limit"])], "metrics": {"inspectedTraces": len(traces)}}


def _matches(sent: Sent, query: str) -> bool:
    """Whether a span has all conditions of a query, of which those in brackets are alternatives."""
    inner = query.strip()[1:-1].strip()
    assert query.strip()[0] + query.strip()[-1] == "{}", query
    return all(any(_is_met(sent, each) for each in part.strip("() ").split(" || ")) for part in inner.split(" && "))


def _is_met(sent: Sent, condition: str) -> bool:
    if condition == "true":
        return True
    found = _CONDITION.fullmatch(condition)
    assert found is not None, f"not TraceQL that Tempo knows: {condition}"
    field, value = found["field"], found["value"]
    if field == "duration":
        assert found["sign"] == ">="
        assert value.endswith("us")
        return (sent.end - sent.start) * 1_000 >= int(value[:-2])
    if field == "status":
        return bool(sent.error) == (value == "error")
    own: dict[str, object] = {"resource.service.name": sent.service, "name": sent.name}
    own |= {f".{name}": each for name, each in sent.attributes.items()}
    return field in own and json.dumps(own[field]) == value


def _protobuf(identity: str, began: int, sent: list[Sent]) -> list[JsonObject]:
    """Return the resource spans as the JSON form of protobuf writes them."""
    written = json.loads(json.dumps(otlp(identity, began, sent)))["resourceSpans"]
    for span in (each for resource in written for scope in resource["scopeSpans"] for each in scope["spans"]):
        for key in ("traceId", "spanId", "parentSpanId"):
            span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
        span["kind"] = f"SPAN_KIND_{KINDS[span['kind']].upper()}"
        if span["status"]:
            span["status"]["code"] = "STATUS_CODE_ERROR"
    return list(written)
