"""An OAuth 2 token server for client credentials, and a source of metrics that requires its tokens, on one port."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

from holmes.values.json_types import JsonObject, JsonValue

CLIENT = "holmes:1"
SECRET = "s3cret/+ of holmes"


@dataclass
class Asked:
    """A request as a server has received it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class TokenServer:
    """A token server, and a source that accepts its `tokens`. With `answer`, the token server always answers so."""

    url: str = ""
    tokens: list[str] = field(default_factory=list)
    issued: list[Asked] = field(default_factory=list)
    read: list[Asked] = field(default_factory=list)
    lasts: JsonValue = 3_600
    takes_header: bool = True
    answer: tuple[int, bytes] | None = None
    target: str = ""

    def respond(self, asked: Asked) -> tuple[int, bytes]:
        if asked.path != "/token":
            self.read.append(asked)
            if self.target:
                return 302, b""
            is_known = asked.headers.get("Authorization") in {f"Bearer {each}" for each in self.tokens}
            data = b'{"status": "success", "data": {"resultType": "vector", "result": []}}'
            return (200, data) if is_known else (401, b"x" * 1_000)
        self.issued.append(asked)
        if self.answer is not None:
            return self.answer
        if not self.knows(asked):
            return 401, json.dumps({"error": "invalid_client", "error_description": f"not {SECRET}"}).encode()
        self.tokens = [f"token-{len(self.issued)}"]
        told: JsonObject = {"access_token": self.tokens[0], "token_type": "Bearer", "expires_in": self.lasts}
        return 200, json.dumps(told).encode()

    def knows(self, asked: Asked) -> bool:
        form = {name: values[0] for name, values in parse_qs(asked.body.decode()).items()}
        if self.takes_header:
            login = base64.b64decode(asked.headers.get("Authorization", "Basic ").removeprefix("Basic ")).decode()
            return login == "holmes%3A1:s3cret%2F%2B+of+holmes"
        return (form.get("client_id"), form.get("client_secret")) == ("holmes:1", SECRET)


@contextmanager
def serving(state: TokenServer) -> Iterator[TokenServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            status, answer = state.respond(Asked(self.command, self.path, dict(self.headers), body))
            self.send_response(status)
            if state.target and status == 302:
                self.send_header("Location", state.target)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST  # noqa: N815  the parent's name

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
