"""Watches the origin, the size and the first bytes of the HTTP responses that litellm reads.

A redirect to another origin would send the prompt and the key to that origin. The size and the first bytes are watched
because litellm buffers lines of any length, and drops content that is not an event. An httpx response hook receives the
responses before litellm. Import this module only after litellm, because importing httpx is slow, and litellm imports it
anyway.
"""

from __future__ import annotations

import html
import re
import zlib
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx

from holmes.llm.errors import UnusableAnswer, named_status, provider_text
from holmes.values.expressions import expression
from holmes.values.texts import excerpt

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

_BEGINNING_BYTES = 16_384
_DECOMPRESSED_BYTES = 65_536
_MAX_PLACE_CHARACTERS = 200
_MARKUP = expression(r"<(?:style|script)\b.*?</(?:style|script)>|<[^>]*>", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerLimits:
    """The maximum size and duration of one reply. `line_bytes` limits one line, which contains one stream event.

    `bytes` and `line_bytes` limit the HTTP body. `characters` limits the decoded reply, and `pieces` limits the number
    of its chunks. Real replies are far smaller. For example, 128,000 tokens are about 50 MB of events.
    """

    bytes: int = 256 * 1024 * 1024
    line_bytes: int = 8 * 1024 * 1024
    characters: int = 32 * 1024 * 1024
    pieces: int = 400_000
    seconds: float = 3600.0


class RedirectRefused(httpx.RequestError):
    """The provider redirected to another origin. `place` is the target URL without the user, query and fragment."""

    def __init__(self, place: str, request: httpx.Request) -> None:
        message = f"the server redirects to another origin, {place}; the prompt was not sent there"
        super().__init__(message, request=request)
        self.place = place


class AnswerWatch:
    """Watches the response to one model request."""

    def __init__(self, limits: AnswerLimits) -> None:
        self.limits = limits
        self._body: _WatchedBytes | None = None

    def see(self, response: httpx.Response) -> None:
        """Watch the body of `response`. A later response to the same request replaces the earlier response."""
        self._body = _WatchedBytes(response, self.limits)

    def foreign_content(self) -> UnusableAnswer | None:
        """Return an error that describes a body without stream events, or None for stream events or an empty body."""
        return None if self._body is None else self._body.foreign_content()

    async def aclose(self) -> None:
        """Close the connection, because litellm closes only the connections of the OpenAI client."""
        if self._body is not None:
            await self._body.aclose()


_current: ContextVar[AnswerWatch | None] = ContextVar("answer_watch", default=None)


@contextmanager
def watched_answer(limits: AnswerLimits) -> Iterator[AnswerWatch]:
    """Watch the responses to the requests of this task until the `with` block ends."""
    watch = AnswerWatch(limits)
    token = _current.set(watch)
    try:
        yield watch
    finally:
        _current.reset(token)


class _WatchedBytes(httpx.AsyncByteStream):
    """The body of a response. Keeps the first bytes, and raises `UnusableAnswer` if the body is too large.

    Also decompresses the body, because a few compressed bytes can expand to an endless line.
    """

    def __init__(self, response: httpx.Response, limits: AnswerLimits) -> None:
        self._inner: Any = response.stream
        self._headers = response.headers
        self._limits = limits
        self._beginning = bytearray()
        self._gzip = (
            zlib.decompressobj(zlib.MAX_WBITS | 16) if self._headers.get("content-encoding") == "gzip" else None
        )
        if self._gzip is not None:
            del response.headers["content-encoding"]
        response.stream = self

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total, line = 0, 0
        async for piece in self._inner:
            for part in (piece,) if self._gzip is None else _decompressed(self._gzip, piece):
                if len(self._beginning) < _BEGINNING_BYTES:
                    self._beginning += part[:_BEGINNING_BYTES]
                newline = part.rfind(b"\n")
                total, line = total + len(part), line + len(part) if newline < 0 else len(part) - newline - 1
                if total > self._limits.bytes or line > self._limits.line_bytes:
                    reason = f"the server sent {total:,} bytes, more than the maximum size of a reply"
                    raise UnusableAnswer(reason, "use another model")
                yield part

    async def aclose(self) -> None:
        """Close the connection or return it to the pool."""
        await self._inner.aclose()

    def foreign_content(self) -> UnusableAnswer | None:
        """Describe a body without stream events by its error message or first words.

        Returns None for stream events or an empty body.
        """
        text = self._beginning.decode("utf-8", "replace").strip()
        if not text or re.match(r"(data|event|id|retry)?:", text):
            return None
        told = provider_text(text) if text[0] in "{[" else None
        if told is not None:
            advice = "check the model settings and the base URL"
            return UnusableAnswer(told, advice, status=named_status(text))
        kind = self._headers.get("content-type", "").partition(";")[0].strip() or "no content type"
        plain = " ".join(html.unescape(_MARKUP.sub(" ", text)).split())
        reason = f"the response is not an event stream ({kind}) and starts with {excerpt(plain, 200)!r}"
        return UnusableAnswer(reason, "check the base URL")


def _decompressed(gzip: Any, piece: bytes) -> Iterator[bytes]:  # noqa: ANN401  zlib does not export its class
    while True:
        try:
            part = gzip.decompress(piece, _DECOMPRESSED_BYTES)
        except zlib.error as error:
            reason = f"the response is marked as gzip but cannot be decompressed ({error})"
            raise UnusableAnswer(reason, "check the base URL") from error
        yield part
        piece = gzip.unconsumed_tail
        if not piece and len(part) < _DECOMPRESSED_BYTES:
            return


def watch_clients(litellm: Any) -> None:  # noqa: ANN401  litellm's types do not pass strict checking
    """Add the hook to every client that litellm creates after this call. Call this function once.

    litellm accepts a client from its caller only for some providers, and the type differs by provider. Therefore, this
    function wraps the functions that create clients, including private functions. A client without the hook could send
    the key to another origin.
    """
    from openai import _base_client as openai_clients

    handlers = litellm.llms.custom_httpx.http_handler
    for owner, name, is_async in (
        (openai_clients, "AsyncHttpxClientWrapper", True),  # the SDK's default client
        (openai_clients, "SyncHttpxClientWrapper", False),
        (handlers.AsyncHTTPHandler, "create_client", True),
        (handlers.HTTPHandler, "create_client", False),
        (litellm.llms.openai.common_utils.BaseOpenAILLM, "_get_async_http_client", True),
        (litellm.llms.openai.common_utils.BaseOpenAILLM, "_get_sync_http_client", False),
    ):
        described = owner.__dict__[name]
        made = _hooked(getattr(described, "__func__", described), is_async=is_async)
        setattr(owner, name, staticmethod(made) if isinstance(described, staticmethod) else made)


def _hooked(make: Callable[..., Any], *, is_async: bool) -> Callable[..., Any]:
    """Wrap `make` to add the hook to the clients that it creates."""

    def made(*args: object, **keywords: object) -> Any:  # noqa: ANN401  an httpx client, or None
        client = make(*args, **keywords)
        if client is not None:
            hooks = client.event_hooks
            hook = _see if is_async else _refuse_foreign_origin
            client.event_hooks = {**hooks, "response": [hook, *hooks["response"]]}
        return client

    return made


async def _see(response: httpx.Response) -> None:
    _refuse_foreign_origin(response)
    watch = _current.get()
    if watch is not None and response.is_success:
        watch.see(response)


def _refuse_foreign_origin(response: httpx.Response) -> None:
    if not response.has_redirect_location:
        return
    try:
        target = httpx.URL(response.headers["location"])
        if target.scheme and not target.host:  # httpx parses `http:///x` with the default port but without a host
            target = target.copy_with(host=response.request.url.host)
        target = response.request.url.join(target)
    except httpx.InvalidURL:
        return  # httpx rejects this redirect
    if _origin(target) != _origin(response.request.url):
        place = str(target.copy_with(username=None, password=None, query=None, fragment=None))
        raise RedirectRefused(excerpt(place, _MAX_PLACE_CHARACTERS), response.request)


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
