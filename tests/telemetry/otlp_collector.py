"""A collector for OTLP over HTTP on a real socket of 127.0.0.1, which decodes what it gets.

    with OtlpCollector() as collector:
        ...  # OTEL_EXPORTER_OTLP_ENDPOINT=collector.url
    collector.spans()

`status` is what it answers; with `hangs` it does not answer at all.
"""

from __future__ import annotations

import gzip
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType

Value = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedSpan:
    """A span as it came over the wire. Ids are hexadecimal; `parent_id` is empty for a root."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: int
    started_ns: int
    ended_ns: int
    is_error: bool
    description: str
    attributes: Mapping[str, Value]
    events: tuple[str, ...]
    resource: Mapping[str, Value]


class OtlpCollector:
    """The collector, running in its own threads while the context is open."""

    def __init__(self, *, status: int = 200, hangs: bool = False) -> None:
        self.status = status
        self.hangs = hangs
        self.headers: list[Mapping[str, str]] = []
        self.paths: list[str] = []
        self.requested = threading.Event()
        self._requests: list[ExportTraceServiceRequest] = []
        self._stopping = threading.Event()
        self._http = _HttpServer(("127.0.0.1", 0), _Handler)
        self._http.owner = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    @property
    def url(self) -> str:
        """What OTEL_EXPORTER_OTLP_ENDPOINT must be."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def spans(self) -> list[ReceivedSpan]:
        """Everything received, by start; a parent before its children."""
        found = [
            _span(span, _values(group.resource.attributes))
            for request in self._requests
            for group in request.resource_spans
            for scope in group.scope_spans
            for span in scope.spans
        ]
        return sorted(found, key=lambda span: (span.started_ns, span.parent_id != "", span.ended_ns))

    def root(self) -> ReceivedSpan:
        """The only span of a run."""
        (root,) = (span for span in self.spans() if span.name == "invoke_agent holmes")
        return root

    def children(self) -> list[ReceivedSpan]:
        """The spans right below it; there are no others."""
        root = self.root()
        rest = [span for span in self.spans() if span != root]
        assert {(span.parent_id, span.trace_id) for span in rest} <= {(root.span_id, root.trace_id)}
        return rest


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True
    owner: OtlpCollector


class _Handler(BaseHTTPRequestHandler):
    server: _HttpServer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the parent's parameter
        """Nothing."""

    def do_POST(self) -> None:
        owner = self.server.owner
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        owner.headers.append({name.lower(): value for name, value in self.headers.items()})
        owner.paths.append(self.path)
        owner.requested.set()
        if owner.hangs:
            owner._stopping.wait(30)
            return
        if owner.status == 200:
            owner._requests.append(ExportTraceServiceRequest.FromString(body))
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(owner.status)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


def _span(span: object, resource: Mapping[str, Value]) -> ReceivedSpan:
    from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

    assert isinstance(span, Span)
    return ReceivedSpan(
        name=span.name,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        kind=span.kind,
        started_ns=span.start_time_unix_nano,
        ended_ns=span.end_time_unix_nano,
        is_error=span.status.code == Status.STATUS_CODE_ERROR,
        description=span.status.message,
        attributes=_values(span.attributes),
        events=tuple(event.name for event in span.events),
        resource=resource,
    )


def _values(attributes: Iterable[KeyValue]) -> dict[str, Value]:
    return {attribute.key: _value(attribute.value) for attribute in attributes}


def _value(value: AnyValue) -> Value:
    field = value.WhichOneof("value")
    assert field is not None
    found = getattr(value, field)
    assert isinstance(found, str | int | float | bool)
    return found
