"""An HTTP server on loopback whose responses a test calculates from the requests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A response. `pieces` are sent after the body, one after the other, until the client leaves."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    pieces: Iterator[bytes] | None = None


@contextmanager
def serving(respond: Callable[[str, bytes], Reply]) -> Iterator[str]:
    """Yield the URL of a server. `respond` gets the path with its query, and the body."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            reply = respond(self.path, body)
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(reply.body)
                for piece in reply.pieces or ():
                    self.wfile.write(piece)
            except OSError:
                self.close_connection = True

        do_POST = do_GET  # noqa: N815  the parent's name

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
