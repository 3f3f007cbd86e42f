"""Reads Tempo over its HTTP API. Searches are written in TraceQL. Grafana forwards the same API below a path."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Final

from holmes.observability.json_reading import items, read_object, text, whole
from holmes.observability.traces.otlp import spans_of
from holmes.observability.traces.source import Trace, TraceSummary
from holmes.values.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.observability.access import SourceAccess, SourceClient
    from holmes.observability.traces.source import TraceQuery
    from holmes.values.json_types import JsonObject, JsonValue

_SERVICE: Final = "resource.service.name"
_PLAIN: Final = re.compile(r"[A-Za-z_][\w./-]*", re.ASCII)
_NUMBER: Final = re.compile(r"-?\d{1,15}(\.\d{1,6})?", re.ASCII)
_MATCHES: Final = "100"
"""Matching spans of a trace that are returned, which decide its matched duration. By default, Tempo returns three."""
_HEXADECIMAL: Final = re.compile(r"[0-9a-f]{1,32}")


class TempoSource:
    """A source of traces. Every method raises `ToolError` if the source does not answer as the API requires."""

    def __init__(self, client: SourceClient) -> None:
        self._client = client

    @property
    def access(self) -> SourceAccess:
        return self._client.access

    async def version(self) -> str:
        """Return for example `Tempo 2.6.1`. Services that forward the API need not tell a version."""
        answer = await read_object(self._client, "/api/status/buildinfo", missing=True)
        if answer is None:
            await self.services()
            return "Tempo"
        known = answer.get("data") if isinstance(answer.get("data"), dict) else answer
        return f"Tempo {text(known, 'version').removeprefix('v')}".strip()

    async def services(self) -> tuple[str, ...]:
        return await self._values(_SERVICE)

    async def operations(self, service: str) -> tuple[str, ...]:
        return await self._values("name", f"{{ {_SERVICE} = {_quoted(service)} }}")

    async def search(self, query: TraceQuery) -> tuple[TraceSummary, ...]:
        parameters = [
            ("q", traceql(query)),
            ("limit", str(query.limit)),
            ("spss", _MATCHES),
            ("start", str(query.start_us // 1_000_000)),
            ("end", str(-(-query.end_us // 1_000_000))),
        ]
        answer = await self._answer("/api/search", parameters, "traces")
        found = (_summary(each) for each in items(answer, "traces"))
        return tuple(each for each in found if each is not None)

    async def trace(self, trace_id: str) -> Trace:
        """Return a trace. Versions before 2.7 lack the second form of the API."""
        answer = await read_object(self._client, f"/api/v2/traces/{trace_id}", missing=True)
        if answer is None:
            answer = await read_object(self._client, f"/api/traces/{trace_id}", missing=True)
        trace = await asyncio.to_thread(_trace, trace_id, answer or {})
        if not trace.spans and not trace.damaged:
            raise ToolError(
                f"{self.access.name}: trace {trace_id!r} not found; check the id, or it is older than the source keeps"
            )
        return trace

    async def _values(self, tag: str, query: str = "") -> tuple[str, ...]:
        path = f"/api/v2/search/tag/{tag}/values"
        answer = await self._answer(path, [("q", query)] if query else [], "tagValues")
        return tuple(sorted({found for each in items(answer, "tagValues") if (found := text(each, "value"))}))

    async def _answer(self, path: str, parameters: list[tuple[str, str]], key: str) -> JsonObject:
        """Return a response. Tempo leaves out `key` if there is nothing, and then has `metrics`."""
        answer = await read_object(self._client, path, parameters)
        if answer is None or (key not in answer and answer and "metrics" not in answer):
            raise ToolError(f"{self.access.name}: {path} did not return data of the Tempo API; check type and url")
        return answer


def traceql(query: TraceQuery) -> str:
    """Write the search in TraceQL, for example `{ resource.service.name = "shop" && duration >= 1000us }`."""
    return f"{{ {' && '.join(_conditions(query)) or 'true'} }}"


def _conditions(query: TraceQuery) -> Iterator[str]:
    if query.service:
        yield f"{_SERVICE} = {_quoted(query.service)}"
    if query.operation:
        yield f"name = {_quoted(query.operation)}"
    if query.minimum_us:
        yield f"duration >= {query.minimum_us}us"
    if query.only_errors:
        yield "status = error"
    for name, value in query.tags:
        attribute = f".{name if _PLAIN.fullmatch(name) else _quoted(name)}"
        # Comparison respects the type, which is not known here.
        others = [value] if _NUMBER.fullmatch(value) or value in {"true", "false"} else []
        found = [f"{attribute} = {each}" for each in (_quoted(value), *others)]
        yield found[0] if len(found) == 1 else f"({' || '.join(found)})"


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _summary(written: JsonObject) -> TraceSummary | None:
    start, milliseconds = whole(written, "startTimeUnixNano"), whole(written, "durationMs")
    trace_id = text(written, "traceID").lower()
    if start is None or start < 0 or not _HEXADECIMAL.fullmatch(trace_id):
        return None
    # Tempo leaves out a duration of less than one millisecond.
    duration = max(0, milliseconds or 0) * 1_000
    statistics = written.get("serviceStats")
    counted = statistics if isinstance(statistics, dict) else {}
    return TraceSummary(
        id=trace_id,
        service=text(written, "rootServiceName"),
        operation=text(written, "rootTraceName"),
        start_us=start // 1_000,
        duration_us=duration,
        matched_us=max(_matched(written), default=duration),
        spans=_total(counted, "spanCount"),
        errors=_total(counted, "errorCount") if counted else None,
        services=tuple(sorted(counted)),
    )


def _matched(written: JsonObject) -> Iterator[int]:
    """Return the durations of the spans that the search matched. Older versions return one set only."""
    sets = (*items(written, "spanSets"), *filter(None, [_object(written.get("spanSet"))]))
    for each in sets:
        for span in items(each, "spans"):
            duration = whole(span, "durationNanos")
            if duration is not None and duration >= 0:
                yield duration // 1_000


def _object(written: JsonValue) -> JsonObject | None:
    return written if isinstance(written, dict) else None


def _total(counted: JsonObject, key: str) -> int | None:
    return sum(whole(each, key) or 0 for each in counted.values()) if counted else None


def _trace(trace_id: str, answer: JsonObject) -> Trace:
    inner = _object(answer.get("trace"))
    written = answer if inner is None else inner
    found = spans_of((*items(written, "resourceSpans"), *items(written, "batches")))
    kept = tuple(span for span in found if span is not None)
    is_partial = text(answer, "status").upper() == "PARTIAL" or answer.get("status") == 1
    return Trace(id=trace_id, spans=kept, damaged=len(found) - len(kept), incomplete=is_partial)
