"""A real Jaeger on loopback, which keeps its traces in memory and takes spans as JSON of OTLP.

with jaeger(layout) as server:
    server.send(spans)
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx

from tests.services.go_programs import JAEGER, installed
from tests.services.service import Service, free_port

if TYPE_CHECKING:
    from holmes.values.json_types import JsonObject
    from tests.cluster.layout import Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Jaeger:
    """A running server: the URL of its API, and that which takes spans."""

    url: str
    intake: str

    def send(self, spans: JsonObject) -> None:
        """Store the spans of one request of OTLP."""
        httpx.post(f"{self.intake}/v1/traces", json=spans, timeout=30).raise_for_status()

    def is_ready(self) -> bool:
        """Whether both addresses respond."""
        try:
            empty: JsonObject = {"resourceSpans": []}
            self.send(empty)
            return httpx.get(f"{self.url}/api/services", timeout=5).is_success
        except httpx.HTTPError:
            return False


@contextmanager
def jaeger(layout: Layout) -> Iterator[Jaeger]:
    """Yield a ready Jaeger."""
    program = installed(JAEGER, layout)
    service = Service("jaeger", end_signal=signal.SIGTERM)
    api, intake = free_port(), free_port()
    collector = ("collector.http-server", "collector.grpc-server", "collector.otlp.grpc")
    options = [
        f"--query.http-server.host-port=127.0.0.1:{api}",
        f"--collector.otlp.http.host-port=127.0.0.1:{intake}",
        *(f"--{each}.host-port=127.0.0.1:{free_port()}" for each in ("query.grpc-server", *collector, "admin.http")),
    ]
    server = Jaeger(url=f"http://127.0.0.1:{api}", intake=f"http://127.0.0.1:{intake}")
    try:
        service.start([str(program), *options], server.is_ready)
        yield server
    finally:
        service.close()
