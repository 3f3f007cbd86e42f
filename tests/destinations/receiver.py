"""A receiver of webhooks on a real socket of 127.0.0.1 that plays given answers and records what came."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is answered; `cut` ends the connection instead, after the request was read."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b"ok"
    delay_seconds: float = 0.0
    cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One request; header names are lower case."""

    path: str
    headers: Mapping[str, str]
    body: bytes


class Receiver:
    """The server, while the context is open. The last answer is repeated."""

    def __init__(self, answers: Sequence[Answer] = (Answer(),)) -> None:
        self.received: list[Received] = []
        self.was_left = threading.Event()  # a client went away before it had the whole answer
        self._answers = list(answers)
        self._lock = threading.Lock()
        self._http = _HttpServer(("127.0.0.1", 0), _Handler)
        self._http.owner = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    @property
    def url(self) -> str:
        """The address, with a path that nobody may read in an error."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/hooks/path-secret"

    def take(self, request: Received) -> Answer:
        """Record a request, and what it is answered."""
        with self._lock:
            self.received.append(request)
            return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True
    owner: Receiver

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _HttpServer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the parent's parameter
        """Nothing: the requests are recorded."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.owner.take(Received(path=self.path, headers=headers, body=body))
        time.sleep(answer.delay_seconds)
        if answer.cut:
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        try:
            self.wfile.write(answer.body)
        except OSError:
            self.server.owner.was_left.set()
            raise

    def do_GET(self) -> None:
        self.do_POST()
