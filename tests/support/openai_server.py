"""An OpenAI-compatible provider that plays given replies on a real socket of 127.0.0.1.

Used by the tests of `holmes.llm`, by end-to-end tests of the command line (also from another process) and by the
benchmarks. It answers `POST …/chat/completions`, streamed or not, one scripted reply per request:

    with OpenAIServer([Reply(tool_calls=(call("kubectl_get", kind="pod"),)), Reply(text="done")]) as server:
        ...  # litellm: model="openai/anything", api_base=server.base_url, api_key="any"
    assert server.requests[1].body["messages"][-1]["role"] == "tool"

An entry of the script may be a function of the received body, and so may the whole script: that is how a test plays
an investigation. A script that is over answers 400, which no client retries, and says so.

As a program, `python -m tests.support.openai_server script.json` prints the base URL on its first line and serves until
it is ended; the file holds a list of objects with the fields of `Reply` (or of `ErrorReply`: `status`, `message`), and
the last one is repeated for ever.

It does not check the request, know models, or count tokens.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import select
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeAlias

from tests.support.openai_replies import (
    Body,
    Call,
    ErrorReply,
    EventStream,
    Hang,
    Reply,
    Scripted,
    Usage,
    call,
    chunks,
    read_entry,
    whole_reply,
)

if TYPE_CHECKING:
    from types import TracebackType

__all__ = [
    "Body",
    "Call",
    "ErrorReply",
    "EventStream",
    "Hang",
    "OpenAIServer",
    "RecordedRequest",
    "Reply",
    "Responder",
    "Script",
    "Scripted",
    "Usage",
    "call",
    "read_script",
]

# OpenAI, Anthropic, Bedrock, Gemini.
_PATHS = ("/completions", "/messages", "/converse-stream", ":streamGenerateContent")

Responder: TypeAlias = Callable[[Body], Scripted]
Script: TypeAlias = Sequence[Scripted | Responder] | Responder


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRequest:
    """What came in. `at_seconds` is on the monotonic clock; header names are lower case."""

    path: str
    headers: Mapping[str, str]
    raw_body: bytes
    body: Body
    at_seconds: float


class OpenAIServer:
    """The server, running in its own threads while the context is open."""

    def __init__(self, script: Script, *, tls: ssl.SSLContext | None = None) -> None:
        self._script = script
        self._scheme = "https" if tls else "http"
        self._lock = threading.Lock()
        self._requests: list[RecordedRequest] = []
        self._connections: set[socket.socket] = set()
        self._disconnected = threading.Event()
        self._received = threading.Event()
        self._stopping = threading.Event()
        self._http = _HttpServer(("127.0.0.1", 0), _Handler)
        self._http.owner = self
        if tls:
            self._http.socket = tls.wrap_socket(self._http.socket, server_side=True)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._http.shutdown()
        self._thread.join()
        with self._lock:
            connections = tuple(self._connections)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._http.server_close()

    @property
    def base_url(self) -> str:
        """What `api_base` must be."""
        return f"{self._scheme}://127.0.0.1:{self._http.server_address[1]}/v1"

    @property
    def requests(self) -> tuple[RecordedRequest, ...]:
        """Everything received so far, in order."""
        with self._lock:
            return tuple(self._requests)

    def wait_for_request(self, timeout_seconds: float) -> bool:
        """Whether a first request came within the time."""
        return self._received.wait(timeout_seconds)

    def wait_for_disconnect(self, timeout_seconds: float) -> bool:
        """Whether a client went away from a hanging reply within the time."""
        return self._disconnected.wait(timeout_seconds)

    def _next_reply(self, request: RecordedRequest) -> Scripted:
        with self._lock:
            index = len(self._requests)
            self._requests.append(request)
        self._received.set()
        if callable(self._script):
            return self._script(request.body)
        if index >= len(self._script):
            return ErrorReply(status=400, message=f"the script is over: it has {len(self._script)} replies")
        entry = self._script[index]
        return entry(request.body) if callable(entry) else entry


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = True
    owner: OpenAIServer

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is part of the tests; anything else is printed as usual."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _HttpServer

    def setup(self) -> None:
        super().setup()
        with self.server.owner._lock:
            self.server.owner._connections.add(self.connection)

    def finish(self) -> None:
        with self.server.owner._lock:
            self.server.owner._connections.discard(self.connection)
        super().finish()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the parent's parameter
        """Nothing: the requests are recorded."""

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", "0"))
        raw = self.rfile.read(length)
        if len(raw) < length:
            return  # whoever asked was killed
        if not self.path.partition("?")[0].endswith(_PATHS):
            self._send_error(ErrorReply(status=404, message=f"no such path: {self.path}"))
            return
        request = RecordedRequest(
            path=self.path,
            headers={name.lower(): value for name, value in self.headers.items()},
            raw_body=raw,
            body=json.loads(raw),
            at_seconds=time.monotonic(),
        )
        reply = self.server.owner._next_reply(request)
        if isinstance(reply, Reply):
            self._send_reply(reply, request.body)
        elif isinstance(reply, ErrorReply):
            self._send_error(reply)
        elif isinstance(reply, EventStream):
            self._send_events(reply)
        else:
            self._hang()

    def _send_events(self, reply: EventStream) -> None:
        self._start_stream()
        for event in reply.events:
            self._send_chunk(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        self.wfile.write(b"0\r\n\r\n")

    def _start_stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def _send_reply(self, reply: Reply, body: Body) -> None:
        time.sleep(reply.delay_seconds)
        if body.get("stream"):
            self._stream(reply, body)
        else:
            self._send_json(200, whole_reply(reply, str(body.get("model"))), {})

    def _stream(self, reply: Reply, body: Body) -> None:
        self._start_stream()
        wants_usage = bool((body.get("stream_options") or {}).get("include_usage"))
        pieces = chunks(reply, str(body.get("model")), wants_usage=wants_usage)
        for chunk in itertools.islice(pieces, reply.stop_after_chunks):
            time.sleep(reply.pause_seconds)
            self._send_chunk(f"data: {json.dumps(chunk)}\n\n".encode())
        if reply.stop_after_chunks is None:
            self._send_chunk(b"data: [DONE]\n\n")
        elif reply.stop == "hang":
            self._hang()
            return
        elif reply.stop == "reset":
            self.close_connection = True
            return
        self.wfile.write(b"0\r\n\r\n")

    def _send_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def _send_error(self, reply: ErrorReply) -> None:
        error = {"message": reply.message, "type": "scripted", "param": None, "code": reply.code}
        self._send_json(reply.status, {"error": error} if reply.body is None else reply.body, reply.headers)

    def _send_json(self, status: int, content: Body | str, headers: Mapping[str, str]) -> None:
        data = (content if isinstance(content, str) else json.dumps(content)).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _hang(self) -> None:
        owner = self.server.owner
        self.close_connection = True
        while not owner._stopping.is_set():
            readable, _, _ = select.select([self.connection], [], [], 0.02)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                owner._disconnected.set()
                return


def read_script(path: Path) -> Responder:
    """The replies of a JSON file, the last one for ever."""
    entries = tuple(read_entry(entry) for entry in json.loads(path.read_text(encoding="utf-8")))
    lock = threading.Lock()
    position = 0

    def respond(body: Body) -> Scripted:  # noqa: ARG001  a script in a file does not look at the request
        nonlocal position
        with lock:
            entry = entries[min(position, len(entries) - 1)]
            position += 1
        return entry

    return respond


def main() -> None:
    """Serve the script named on the command line until the process is ended."""
    with OpenAIServer(read_script(Path(sys.argv[1]))) as server:
        print(server.base_url, flush=True)  # noqa: T201  the caller reads it
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
