"""A Slack workspace on a real socket of 127.0.0.1, as far as messages of a bot go.

Used by the tests of `holmes.destinations` and by end-to-end tests, also from another process:

    with SlackServer() as slack:
        ...  # destination: type slack, token slack.token, channel "#alerts", api_url slack.api_url
        answer = slack.wait_for(lambda message: "root cause" in message.shown)
        assert answer.thread_ts == slack.messages()[0].ts

It knows `chat.postMessage`, `chat.update` and `auth.test` with JSON and form bodies, and files in their three steps. It
refuses what Slack refuses (token, channel, content), and has `trouble` on demand. As in Slack, an update needs the id
of the channel, not its name, and leaves the blocks alone when it brings none. It has no history to be read and no
limits of its own on the rate.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import parse_qsl

from tests.support.slack_messages import SlackCall, SlackFile, SlackMessage, Trouble, fault_of, rate_limited

if TYPE_CHECKING:
    from types import TracebackType

    from holmes.values.json_types import JsonObject

__all__ = ["SlackCall", "SlackMessage", "SlackServer", "Trouble", "rate_limited"]

CHANNELS: Final[Mapping[str, str]] = {"alerts": "C0ALERTS01", "shop": "C0SHOP0001"}
API: Final = "/api/"
UPLOAD: Final = "/upload/v1/"


class SlackServer:
    """The workspace, running in its own threads while the context is open. `channels` are ids by name."""

    def __init__(self, *, channels: Mapping[str, str] = CHANNELS) -> None:
        self.token = "xoxb-not-a-secret"
        self._channels = channels
        self._changed = threading.Condition()
        self._messages: dict[str, SlackMessage] = {}
        self._files: dict[str, SlackFile] = {}
        self._calls: list[SlackCall] = []
        self._trouble: deque[Trouble] = deque()
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
    def api_url(self) -> str:
        """What `api_url` of a destination must be."""
        return f"http://127.0.0.1:{self._http.server_address[1]}{API}"

    @property
    def calls(self) -> tuple[SlackCall, ...]:
        """Everything received so far, in order, also what was refused."""
        with self._changed:
            return tuple(self._calls)

    def trouble(self, *trouble: Trouble) -> None:
        """Let the next calls have these troubles, one each."""
        with self._changed:
            self._trouble.extend(trouble)

    def messages(self, channel: str | None = None) -> tuple[SlackMessage, ...]:
        """The messages that are no replies, in order; of one channel (`alerts`) or of all."""
        return tuple(message for message in self._of(channel) if message.thread_ts is None)

    def thread(self, parent: SlackMessage) -> tuple[SlackMessage, ...]:
        """The replies to a message, in order."""
        return tuple(message for message in self._of(None) if message.thread_ts == parent.ts)

    def wait_for(self, wanted: Callable[[SlackMessage], bool], *, timeout_seconds: float = 30) -> SlackMessage:
        """The first message, reply or not, that is as wanted, now or later; TimeoutError shows what is there."""
        with self._changed:
            self._changed.wait_for(lambda: any(map(wanted, self._messages.values())), timeout_seconds)
            found = next(filter(wanted, self._messages.values()), None)
            shown = [message.shown for message in self._messages.values()]
        if found is None:
            raise TimeoutError(f"no such message within {timeout_seconds} s; there are {shown!r}")
        return found

    def wait_for_calls(self, count: int, *, timeout_seconds: float = 30) -> bool:
        """Whether so many calls have come within the time, refused ones included."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self._calls) >= count, timeout_seconds)

    def _of(self, channel: str | None) -> tuple[SlackMessage, ...]:
        with self._changed:
            wanted = None if channel is None else self._channels[channel]
            return tuple(message for message in self._messages.values() if wanted in {None, message.channel})

    def _receive(self, call: SlackCall) -> tuple[JsonObject, Trouble | None]:
        """What the method answers, and the trouble on the way."""
        with self._changed:
            self._calls.append(call)
            trouble = self._trouble.popleft() if self._trouble else None
            happens = trouble is None or trouble.after_it_happened
            answer = self._answer(call) if happens else {}
            self._changed.notify_all()
        return answer, trouble

    def _answer(self, call: SlackCall) -> JsonObject:
        token = call.headers.get("authorization", "").removeprefix("Bearer ") or call.arguments.get("token")
        if not token:
            return _error("not_authed")
        if token != self.token:
            return _error("invalid_auth")
        methods = {
            "chat.postMessage": self._post,
            "chat.update": self._update,
            "auth.test": _identity,
            "files.getUploadURLExternal": self._begin_upload,
            "files.completeUploadExternal": self._complete_upload,
        }
        method = methods.get(call.method)
        return method(call.arguments) if method else _error("unknown_method")

    def _post(self, arguments: JsonObject) -> JsonObject:
        name = str(arguments.get("channel", ""))
        channel = name if name in self._channels.values() else self._channels.get(name.removeprefix("#"))
        if channel is None:
            return _error("channel_not_found")
        parent = arguments.get("thread_ts")
        # The clock may stand still between two messages; their timestamps may not.
        ts = f"{int(time.time())}.{len(self._messages) + 1:06d}"
        message = SlackMessage(
            channel=channel, ts=ts, text="", thread_ts=str(parent) if parent else None, arguments=arguments
        )
        return self._store(message, arguments)

    def _update(self, arguments: JsonObject) -> JsonObject:
        if arguments.get("channel") not in self._channels.values():
            return _error("channel_not_found")
        message = self._messages.get(str(arguments.get("ts")))
        if message is None or message.channel != arguments["channel"]:
            return _error("message_not_found")
        return self._store(replace(message, updates=message.updates + 1, arguments=arguments), arguments)

    def _begin_upload(self, arguments: JsonObject) -> JsonObject:
        """Promise a place for a file. A length that is not known is refused, as are arguments in JSON."""
        name, length = str(arguments.get("filename", "")), arguments.get("length")
        if not name or not isinstance(length, str) or not length.isdecimal():
            return _error("invalid_arguments")
        file = SlackFile(
            id=f"F{len(self._files):08}", name=name, length=int(length), alt=str(arguments.get("alt_txt", ""))
        )
        self._files[file.id] = file
        return {"ok": True, "upload_url": f"{self.api_url.removesuffix(API)}{UPLOAD}{file.id}", "file_id": file.id}

    def upload(self, identity: str, content: bytes, headers: Mapping[str, str]) -> int:
        """Keep the bytes of a promised file, and return the status. The address itself is the permission."""
        with self._changed:
            file = self._files.get(identity)
            if file is None or len(content) != file.length or "authorization" in headers:
                return 400
            self._files[identity] = replace(file, content=content)
            return 200

    def _complete_upload(self, arguments: JsonObject) -> JsonObject:
        if arguments.get("channel_id") not in self._channels.values():
            return _error("channel_not_found")
        chosen = json.loads(str(arguments.get("files")))
        files = tuple(
            replace(self._files[each["id"]], title=each.get("title", ""))
            for each in chosen
            if each["id"] in self._files
        )
        if not files or any(not file.content for file in files):
            return _error("file_not_found")
        parent = arguments.get("thread_ts")
        ts = f"{int(time.time())}.{len(self._messages) + 1:06d}"
        self._messages[ts] = SlackMessage(
            channel=str(arguments["channel_id"]),
            ts=ts,
            text="",
            thread_ts=str(parent) if parent else None,
            files=files,
            arguments=arguments,
        )
        return {"ok": True, "files": [{"id": file.id, "title": file.title} for file in files]}

    def _store(self, message: SlackMessage, arguments: JsonObject) -> JsonObject:
        text = str(arguments.get("text") or "")
        given = arguments.get("blocks")
        try:
            blocks = json.loads(given) if isinstance(given, str) else given
        except json.JSONDecodeError:
            return _error("invalid_blocks_format")
        if blocks is not None and not (isinstance(blocks, list) and all(isinstance(block, dict) for block in blocks)):
            return _error("invalid_blocks_format")
        fault = fault_of(text, blocks or ())
        if fault is not None:
            return _error(fault)
        kept = message.blocks if blocks is None else tuple(blocks)
        self._messages[message.ts] = replace(message, text=text, blocks=kept)
        content = {"type": "message", "subtype": "bot_message", "text": text, "ts": message.ts, "bot_id": "B0HOLMES01"}
        return {"ok": True, "channel": message.channel, "ts": message.ts, "text": text, "message": content}


def _identity(_: JsonObject) -> JsonObject:
    return {"ok": True, "url": "https://shop.slack.example/", "team": "Shop", "user": "holmes", "bot_id": "B0HOLMES01"}


def _error(name: str) -> JsonObject:
    return {"ok": False, "error": name}


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True
    owner: SlackServer

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _HttpServer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the parent's parameter
        """Nothing: the calls are recorded."""

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", "0")))
        if self.path.startswith(UPLOAD):
            headers = {name.lower(): value for name, value in self.headers.items()}
            status = self.server.owner.upload(self.path.removeprefix(UPLOAD), raw, headers)
            self._send(status, f"OK - {len(raw)}", None)
            return
        call = SlackCall(
            method=self.path.removeprefix(API),
            headers={name.lower(): value for name, value in self.headers.items()},
            arguments=self._arguments(raw.decode()),
            at_seconds=time.monotonic(),
        )
        answer, trouble = self.server.owner._receive(call)
        if trouble is None:
            self._send(200, json.dumps(answer), None)
            return
        time.sleep(trouble.delay_seconds)
        if trouble.cut:
            self.close_connection = True
            return
        body = json.dumps(_error(trouble.error)) if trouble.body is None else trouble.body
        self._send(trouble.status, body, trouble.retry_after_seconds)

    def _arguments(self, text: str) -> JsonObject:
        if self.headers.get_content_type() != "application/json":
            return dict(parse_qsl(text))
        content = json.loads(text)
        return content if isinstance(content, dict) else {}

    def _send(self, status: int, body: str, retry_after_seconds: int | None) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json; charset=utf-8")
        if retry_after_seconds is not None:
            self.send_header("retry-after", str(retry_after_seconds))
        data = body.encode()
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
