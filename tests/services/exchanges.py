"""Exchanges with a real server that takes long to build: recorded from it by `make test-long`, replayed by `make test`.

    with served(FILE, real=jaeger, server="Jaeger 1.76.0") as url:
        ...

The long form asks the real server. With `HOLMES_RECORD=1` it also writes the file, with date and server. Tests fix
their times, so that they send the same requests in both forms.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
from pydantic import TypeAdapter

from tests.support.long_form import LONG

if TYPE_CHECKING:
    from pathlib import Path

RECORDING: Final = os.environ.get("HOLMES_RECORD") == "1"
Respond: TypeAlias = Callable[["Request"], "Response"]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Request:
    """A request; query and form are sorted, because their order means nothing."""

    method: str
    path: str
    query: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The status, content type and body of a response."""

    status: int
    content_type: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Exchange:
    request: Request
    response: Response


@contextmanager
def served(file: Path, *, real: Callable[[], AbstractContextManager[str]], server: str) -> Iterator[str]:
    """Yield the URL of the real server, or of one that repeats its responses in `file`.

    `real` starts the server with its data and gives its URL, only in the long form. `server` is its name and version.
    """
    if not LONG:
        recorded = _recorded(file)
        with _serving(lambda request: recorded.get(request) or _unknown(request, file)) as url:
            yield url
        return
    with real() as upstream, httpx.Client(base_url=upstream, timeout=60) as client:
        heard: dict[Request, Response] = {}

        def forward(request: Request) -> Response:
            heard[request] = _forwarded(client, request)
            return heard[request]

        with _serving(forward) as url:
            yield url
        if RECORDING:
            exchanges = [asdict(_Exchange(request=request, response=heard[request])) for request in sorted(heard)]
            content = {"server": server, "date": time.strftime("%Y-%m-%d", time.gmtime()), "exchanges": exchanges}
            file.write_text(f"{json.dumps(content, indent=1, ensure_ascii=False)}\n")


def _recorded(file: Path) -> dict[Request, Response]:
    exchanges = TypeAdapter(list[_Exchange]).validate_python(json.loads(file.read_text())["exchanges"])
    return {each.request: each.response for each in exchanges}


def _unknown(request: Request, file: Path) -> Response:
    text = f"{request} is not in {file.name}: record it with HOLMES_RECORD=1 HOLMES_TESTS=long"
    return Response(status=501, content_type="text/plain", body=text)


def _forwarded(client: httpx.Client, request: Request) -> Response:
    is_form = request.method == "POST" and not request.body.startswith(("{", "["))
    kind = "application/x-www-form-urlencoded" if is_form else "application/json"
    answer = client.request(
        request.method,
        f"{request.path}{'?' if request.query else ''}{request.query}",
        content=request.body.encode() or None,
        headers={"Content-Type": kind} if request.body else {},
    )
    return Response(
        status=answer.status_code, content_type=answer.headers.get("Content-Type", "text/plain"), body=answer.text
    )


@contextmanager
def _serving(respond: Respond) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._respond()

        def do_POST(self) -> None:
            self._respond()

        def _respond(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            if "form" in self.headers.get("Content-Type", ""):
                body = _sorted(body)
            response = respond(Request(method=self.command, path=parts.path, query=_sorted(parts.query), body=body))
            content = response.body.encode()
            self.send_response(response.status)
            self.send_header("Content-Type", response.content_type)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name of the base class
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _sorted(pairs: str) -> str:
    return urlencode(sorted(parse_qsl(pairs, keep_blank_values=True)))
