"""A source that hangs where a chart needs more than its series: the result comes without a threshold and marks."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import pytest

from holmes.observability.metrics import marks
from tests.toolsets.metrics.calling import call

QUERY = 'sum by (pod) (errors{namespace="shop"})'


class _HalfDead(BaseHTTPRequestHandler):
    """Answers the query itself, and nothing else before the end of the test."""

    ended = threading.Event()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the parent's parameter
        pass

    def do_POST(self) -> None:
        given = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
        series: list[object] = []
        if given["query"] == [QUERY]:
            now = int(time.time())
            values = [[now - 60 * back, str(back)] for back in range(30, 0, -1)]
            series = [{"metric": {"pod": "a"}, "values": values}]
        elif given["query"] != [f"count({QUERY})"]:
            self.ended.wait(30)
        kind = "matrix" if self.path.endswith("query_range") else "vector"
        body = json.dumps({"status": "success", "data": {"resultType": kind, "result": series}}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.ended.wait(30)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is the point of the test."""


@pytest.fixture
def url() -> Iterator[str]:
    server = _Server(("127.0.0.1", 0), _HalfDead)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    _HalfDead.ended.set()
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_chart_does_not_wait_for_rules_and_marks_that_never_come(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "PATIENCE_SECONDS", 0.5)
    answered = call("query_metrics_range", {"prometheus_url": url}, query=QUERY)
    assert not _HalfDead.ended.is_set()
    assert answered.chart is not None
    assert (answered.chart.threshold, answered.chart.marks) == (None, ())
    assert "first 30" in answered.data
