"""Reads Jaeger over the HTTP API of its user interface, which Jaeger 1 and 2 share."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import quote

from holmes.observability.json_reading import items, read_object, text, texts, whole
from holmes.observability.traces.reading import error_message, is_time
from holmes.observability.traces.source import Span, SpanKind, Trace, TraceSummary
from holmes.values.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.observability.access import SourceAccess, SourceClient
    from holmes.observability.traces.source import TraceQuery
    from holmes.values.json_types import JsonObject, JsonValue

_VERSION: Final = re.compile(rb'"gitVersion"\s*:\s*"v?([^"]{1,40})"')
_KINDS: Final = frozenset({"internal", "server", "client", "producer", "consumer"})
_TRUE: Final = frozenset({"true", "1"})


class JaegerSource:
    """A source of traces. Every method raises `ToolError` if the source does not answer as the API requires."""

    def __init__(self, client: SourceClient) -> None:
        self._client = client

    @property
    def access(self) -> SourceAccess:
        return self._client.access

    async def version(self) -> str:
        """Return for example `Jaeger 1.76.0`. The API has no version, but the page of the user interface has."""
        await self.services()
        page = await self._client.read("/", accepts=frozenset({404}))
        found = _VERSION.search(page.body)
        return f"Jaeger {found[1].decode('utf-8', 'replace')}" if found else "Jaeger"

    async def services(self) -> tuple[str, ...]:
        return texts(await self._answer("/api/services"), "data")

    async def operations(self, service: str) -> tuple[str, ...]:
        return texts(await self._answer(f"/api/services/{quote(service, safe='')}/operations"), "data")

    async def search(self, query: TraceQuery) -> tuple[TraceSummary, ...]:
        """Search the traces of one service. The source returns whole traces."""
        if not query.service:
            raise ToolError("service is required by Jaeger; " + await self._known_services())
        parameters = [
            ("service", query.service),
            ("start", str(query.start_us)),
            ("end", str(query.end_us)),
            ("limit", str(query.limit)),
        ]
        tags = dict(query.tags) | ({"error": "true"} if query.only_errors else {})
        parameters += [("operation", query.operation)] if query.operation else []
        parameters += [("minDuration", f"{query.minimum_us}us")] if query.minimum_us else []
        parameters += [("tags", json.dumps(tags))] if tags else []
        answer = await self._answer("/api/traces", parameters)
        return await asyncio.to_thread(_summaries, answer, query)

    async def trace(self, trace_id: str) -> Trace:
        answer = await read_object(self._client, f"/api/traces/{trace_id}", missing=True)
        found = items(answer, "data")
        if not found:
            raise ToolError(
                f"{self.access.name}: trace {trace_id!r} not found; check the id, or it is older than the source keeps"
            )
        return await asyncio.to_thread(_trace, found[0])

    async def _known_services(self) -> str:
        known = await self.services()
        return f"available services: {', '.join(known[:30])}" if known else "the source has no services"

    async def _answer(self, path: str, parameters: list[tuple[str, str]] | None = None) -> JsonObject:
        answer = await read_object(self._client, path, parameters or [])
        if answer is None or "data" not in answer:
            raise ToolError(f"{self.access.name}: {path} did not return data of the Jaeger API; check type and url")
        if reasons := [text(each, "msg") for each in items(answer, "errors")]:
            raise ToolError(f"{self.access.name}: {' '.join(reasons[0].split())[:300]}; change the search")
        return answer


def _summaries(answer: JsonObject, query: TraceQuery) -> tuple[TraceSummary, ...]:
    traces = (_trace(each) for each in items(answer, "data"))
    return tuple(_summary(trace, query) for trace in traces if trace.spans)


def _summary(trace: Trace, query: TraceQuery) -> TraceSummary:
    known = {span.id for span in trace.spans}
    roots = [span for span in trace.spans if span.parent not in known] or list(trace.spans)
    root = max(roots, key=lambda span: (not span.parent, span.duration_us))
    matched = [
        span.duration_us
        for span in trace.spans
        if span.service == query.service and query.operation in {"", span.operation}
    ]
    start = min(span.start_us for span in trace.spans)
    return TraceSummary(
        id=trace.id,
        service=root.service,
        operation=root.operation,
        start_us=start,
        duration_us=max(span.end_us for span in trace.spans) - start,
        matched_us=max(matched, default=root.duration_us),
        spans=len(trace.spans),
        errors=sum(span.failed for span in trace.spans),
        services=tuple(sorted({span.service for span in trace.spans})),
    )


def _trace(written: JsonObject) -> Trace:
    processes = written.get("processes")
    known = {
        name: (text(each, "serviceName"), _attributes(each, "tags"))
        for name, each in (processes.items() if isinstance(processes, dict) else ())
    }
    rows = written.get("spans")
    spans = [_span(each, known) for each in (rows if isinstance(rows, list) else ())]
    kept = tuple(span for span in spans if span is not None)
    return Trace(id=text(written, "traceID"), spans=kept, damaged=len(spans) - len(kept))


def _span(written: JsonValue, processes: Mapping[str, tuple[str, dict[str, str]]]) -> Span | None:
    start, duration = whole(written, "startTime"), whole(written, "duration")
    if start is None or duration is None or duration < 0 or not is_time(start) or not is_time(start + duration):
        return None
    own = _attributes(written, "tags")
    service, resource = processes.get(text(written, "processID"), ("", {}))
    events = [_attributes(each, "fields") for each in items(written, "logs")]
    kind, failed = own.get("span.kind", ""), own.get("error", "").lower() in _TRUE
    parent, detached = _parent(written)
    return Span(
        id=text(written, "spanID"),
        parent=parent,
        service=service or "unknown service",
        operation=text(written, "operationName"),
        start_us=start,
        duration_us=duration,
        kind=cast("SpanKind", kind if kind in _KINDS else ""),
        failed=failed,
        error=error_message(own, events) if failed else "",
        detached=detached,
        attributes=tuple(sorted((resource | own).items())),
    )


def _parent(written: JsonValue) -> tuple[str, bool]:
    """Return the id of the parent, and whether it does not wait: its reference is FOLLOWS_FROM."""
    own = [each for each in items(written, "references") if text(each, "traceID") == text(written, "traceID")]
    ordered = sorted(own, key=lambda each: text(each, "refType") != "CHILD_OF")
    if not ordered:
        return "", False
    return text(ordered[0], "spanID"), text(ordered[0], "refType") == "FOLLOWS_FROM"


def _attributes(written: JsonValue, key: str) -> dict[str, str]:
    return {text(each, "key"): _written(each.get("value")) for each in items(written, key)}


def _written(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
