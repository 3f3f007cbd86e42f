"""A server that plays the Kubernetes API: canned answers over real HTTP or HTTPS, also slow, refused and cut-off ones.

Used by fast tests of the client and of toolsets; the real API server is in `tests.cluster`. Objects are made by the
small builders at the end. It answers only what a test has told it; everything else is a 404 as Kubernetes writes it.
"""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from holmes.kubernetes.kinds import EVENT, KINDS, api_path
from holmes.kubernetes.state_reader import LEASES

if TYPE_CHECKING:
    from pathlib import Path

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a client asked."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the server says. `cut_after` ends the connection after so many bytes, `pause_seconds` waits before the body.

    `body` may be an iterator of pieces; they are sent chunked as they come.
    """

    status: int = 200
    body: bytes | Callable[[], Iterator[bytes]] = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_seconds: float = 0.0
    pause_seconds: float = 0.0
    cut_after: int | None = None


Responder: TypeAlias = Callable[[Request], Answer]


class KubernetesApi:
    """The server. `requests` are all that came, in order."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.url = ""
        self.stopping = threading.Event()
        self._lock = threading.Lock()
        self._answers: dict[str, list[Answer | Responder]] = {}

    def on(self, path: str, *answers: Answer | Responder) -> None:
        """Answer `path` with these, one after the other; the last one stays."""
        self._answers[path] = list(answers)

    def paths(self) -> tuple[str, ...]:
        """Every path that has an answer."""
        return tuple(self._answers)

    def asked(self, path: str) -> list[Request]:
        """The requests for `path`."""
        return [request for request in self.requests if request.path == path]

    def answer(self, request: Request) -> Answer:
        """The next answer for `request`."""
        with self._lock:
            self.requests.append(request)
            answers = self._answers.get(request.path)
            if not answers:
                return status(404, "NotFound", f'"{request.path}" not found')
            chosen = answers.pop(0) if len(answers) > 1 else answers[0]
        return chosen if isinstance(chosen, Answer) else chosen(request)


@contextmanager
def kubernetes_api(*, tls: ssl.SSLContext | None = None) -> Iterator[KubernetesApi]:
    """Yield a running server on loopback."""
    api = KubernetesApi()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def do_GET(self) -> None:
            _reply(self, api)

        def do_POST(self) -> None:
            _reply(self, api)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

        def handle_error(self, *_: object) -> None:
            """A client that hangs up is no error of this server."""

        def get_request(self) -> tuple[Any, Any]:
            connection, address = super().get_request()
            if tls is None:
                return connection, address
            connection.settimeout(5)
            wrapped = tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
            wrapped.settimeout(30)
            return wrapped, address

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    api.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}"
    try:
        yield api
    finally:
        api.stopping.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _reply(handler: BaseHTTPRequestHandler, api: KubernetesApi) -> None:
    parts = urlsplit(handler.path)
    headers = {name.lower(): value for name, value in handler.headers.items()}
    request = Request(method=handler.command, path=parts.path, query=dict(parse_qsl(parts.query)), headers=headers)
    handler.rfile.read(int(headers.get("content-length", "0")))
    answer = api.answer(request)
    api.stopping.wait(answer.delay_seconds)
    handler.send_response_only(answer.status)
    for name, value in {"Date": handler.date_time_string(), **answer.headers}.items():
        handler.send_header(name, value)
    if isinstance(answer.body, bytes):
        handler.send_header("Content-Length", str(len(answer.body)))
        handler.end_headers()
        api.stopping.wait(answer.pause_seconds)
        handler.wfile.write(answer.body[: answer.cut_after])
        if answer.cut_after is not None:
            handler.close_connection = True
        return
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    sent = 0
    for piece in answer.body():
        if answer.cut_after is not None and sent >= answer.cut_after:
            handler.close_connection = True
            return
        handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        sent += len(piece)
    handler.wfile.write(b"0\r\n\r\n")


def document(content: Json) -> Answer:
    """A good answer with one object."""
    return Answer(body=json.dumps(content).encode(), headers={"Content-Type": "application/json"})


def status(code: int, reason: str, message: str, headers: Mapping[str, str] | None = None) -> Answer:
    """A refusal as Kubernetes writes it."""
    content = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
    return Answer(status=code, body=json.dumps(content).encode(), headers=dict(headers or {}))


def listing(items: Sequence[Json]) -> Responder:
    """A list that is served in pages and honours `limit`, `continue` and `labelSelector` of the form `a=b,c=d`."""

    def respond(request: Request) -> Answer:
        selected = [item for item in items if _selected(item, request.query.get("labelSelector", ""))]
        begin = int(request.query.get("continue", "0"))
        end = begin + int(request.query.get("limit", str(len(selected) or 1)))
        more = {"continue": str(end), "remainingItemCount": len(selected) - end} if end < len(selected) else {}
        return document({"kind": "List", "metadata": {"resourceVersion": "1", **more}, "items": selected[begin:end]})

    return respond


def empty_cluster(api: KubernetesApi, namespace: str | None = None) -> None:
    """Every kind that a scan lists exists, and nothing of it."""
    for kind in (EVENT, *KINDS):
        place = namespace if kind.namespaced else None
        api.on(api_path(kind.group_version, kind.resource, namespace=place), listing([]))
        if kind.name == "Lease":
            api.on(api_path(kind.group_version, kind.resource, namespace=LEASES), listing([]))


def _selected(item: Json, selector: str) -> bool:
    labels = item.get("metadata", {}).get("labels", {})
    for term in selector.split(",") if selector and " in " not in selector else []:
        key, _, value = term.partition("=")
        if labels.get(key) != value:
            return False
    if " in " in selector:
        key, _, values = selector.partition(" in ")
        return labels.get(key) in values.strip("()").split(",")
    return True


def log(lines: Sequence[str], *, step_seconds: int = 1) -> Responder:
    """A container's log that honours `tailLines`; line n was written n * `step_seconds` after 2025-01-31 10:00 UTC."""
    stamped = [f"{log_time(number * step_seconds)} {line}\n".encode() for number, line in enumerate(lines)]

    def respond(request: Request) -> Answer:
        count = int(request.query.get("tailLines", str(len(stamped))))
        return Answer(body=b"".join(stamped[len(stamped) - min(count, len(stamped)) :]))

    return respond


def log_time(seconds: int) -> str:
    """The time so many seconds after 2025-01-31 10:00 UTC, as a node writes it."""
    moment = time.gmtime(1_738_317_600 + seconds)
    return time.strftime("%Y-%m-%dT%H:%M:%S", moment) + ".123456789Z"


def pod(name: str, *, namespace: str = "shop", owner: str = "", labels: Json | None = None, **extra: Json) -> Json:
    """A Pod. `containers`, `init` and `ephemeral` map names to statuses; `owner` is the uid of its controller."""
    spec: Json = {"nodeName": "node-1"}
    state: Json = {"phase": "Running", **extra.get("status", {})}
    roles = (
        ("init", "initContainers", "initContainerStatuses"),
        ("containers", "containers", "containerStatuses"),
        ("ephemeral", "ephemeralContainers", "ephemeralContainerStatuses"),
    )
    for role, spec_key, status_key in roles:
        containers: dict[str, Json] = extra.get(role, {"app": running()} if role == "containers" else {})
        spec[spec_key] = [{"name": one, "image": f"registry.example/{one}:1"} for one in containers]
        state[status_key] = [{"name": one, **content} for one, content in containers.items() if content]
    owners = [{"kind": "ReplicaSet", "name": "any", "uid": owner, "controller": True}] if owner else []
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": labels or {}}
    return {"metadata": {**metadata, "ownerReferences": owners}, "spec": spec, "status": state}


def running(*, restarts: int = 0, last: Json | None = None, ready: bool = True) -> Json:
    """The status of a container that runs."""
    state = {"running": {"startedAt": "2025-01-31T10:00:00Z"}}
    return {"ready": ready, "restartCount": restarts, "state": state, "lastState": {"terminated": last} if last else {}}


def waiting(reason: str, message: str = "", *, restarts: int = 0, last: Json | None = None) -> Json:
    """The status of a container that waits."""
    state = {"waiting": {"reason": reason, "message": message}}
    return {
        "ready": False,
        "restartCount": restarts,
        "state": state,
        "lastState": {"terminated": last} if last else {},
    }


def ended(exit_code: int, reason: str = "Error") -> Json:
    """How an instance ended."""
    return {"exitCode": exit_code, "reason": reason, "finishedAt": "2025-01-31T09:59:00Z"}


def write_kubeconfig(folder: Path, server: str, **parts: Json) -> Path:
    """A kubeconfig with one context `test` in namespace `shop`; `cluster` and `user` add to the entries."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "c", "user": "u", "namespace": "shop"}}],
        "clusters": [{"name": "c", "cluster": {"server": server, **parts.get("cluster", {})}}],
        "users": [{"name": "u", "user": parts.get("user", {})}],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(content))
    return path
