"""Watches the answer of a provider below litellm: its bytes, and what it says about usage. Made by `read_stream`.

litellm waits for the end of a line however long it grows, drops whatever is not an event, and gives up an answer that
came whole because of a number beside it. It imports httpx, so it is imported where it is used, after litellm.
"""

from __future__ import annotations

import html
import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx

from holmes.llm.errors import UnusableAnswer, named_status, provider_text
from holmes.values.texts import excerpt

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from holmes.llm.litellm_loader import LitellmModule

_BEGINNING_BYTES = 16_384
_DECOMPRESSED_BYTES = 65_536
_MARKUP = re.compile(r"<(?:style|script)\b.*?</(?:style|script)>|<[^>]*>", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerLimits:
    """How large and how long one reply may be. `line_bytes` is one line, which holds one event of the stream.

    They are far above what models write (128 000 tokens are about 50 MB of events), and far below what hurts.
    """

    bytes: int = 256 * 1024 * 1024
    line_bytes: int = 8 * 1024 * 1024
    characters: int = 32 * 1024 * 1024
    pieces: int = 400_000
    seconds: float = 3600.0


class WatchedBytes(httpx.AsyncByteStream):
    """The body of an answer, with its beginning kept for the diagnosis. Raises `UnusableAnswer` for too much of it.

    It takes over `response`, and its decompression with it: a few compressed bytes may stand for a line without end.
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
                    reason = f"it sent {total:,} bytes without an end, more than any reply has"
                    raise UnusableAnswer(reason, "use another model")
                yield part

    async def aclose(self) -> None:
        """Close the connection, or give it back."""
        await self._inner.aclose()

    def foreign_content(self) -> UnusableAnswer | None:
        """What came in place of events, in the provider's own words; None when nothing came or it was events."""
        text = self._beginning.decode("utf-8", "replace").strip()
        if not text or re.match(r"(data|event|id|retry)?:", text):
            return None
        told = provider_text(text) if text[0] in "{[" else None
        if told is not None:
            advice = "check the model's settings and the API base address"
            return UnusableAnswer(told, advice, status=named_status(text))
        kind = self._headers.get("content-type", "").partition(";")[0].strip() or "no content type"
        plain = " ".join(html.unescape(_MARKUP.sub(" ", text)).split())
        return UnusableAnswer(
            f"it is not an event stream ({kind}); it begins with {excerpt(plain, 200)!r}", "check the API base address"
        )


def _decompressed(gzip: Any, piece: bytes) -> Iterator[bytes]:  # noqa: ANN401  zlib does not export its class
    while True:
        try:
            part = gzip.decompress(piece, _DECOMPRESSED_BYTES)
        except zlib.error as error:
            raise UnusableAnswer(f"it is not gzip, as it says ({error})", "check the API base address") from error
        yield part
        piece = gzip.unconsumed_tail
        if not piece and len(part) < _DECOMPRESSED_BYTES:
            return


class ChunksWithSoundUsage:
    """The chunks of the OpenAI client without usage that cannot be counted, for which litellm would end the reply."""

    def __init__(self, inner: Any, litellm: LitellmModule) -> None:  # noqa: ANN401  the client's AsyncStream
        self._inner = inner
        self._litellm = litellm

    def __aiter__(self) -> ChunksWithSoundUsage:
        return self

    async def __anext__(self) -> Any:  # noqa: ANN401  the client's chunk
        chunk = await anext(self._inner)
        usage = getattr(chunk, "usage", None)
        if usage is not None and not self._can_be_counted(usage):
            chunk.usage = None
        return chunk

    async def aclose(self) -> None:
        """Close the connection."""
        await self._inner.close()

    def _can_be_counted(self, usage: Any) -> bool:  # noqa: ANN401  whatever stands under `usage`
        try:
            self._litellm.Usage(**usage.model_dump(warnings=False))
        except (AttributeError, TypeError, ValueError):
            return False
        return True


def watch(stream: Any, litellm: LitellmModule, limits: AnswerLimits) -> WatchedBytes | None:  # noqa: ANN401  litellm's
    """Watch the answer that litellm's `stream` reads; None when it cannot be reached (cloud clients without httpx).

    Must be called before the first piece is read.
    """
    source = getattr(stream, "completion_stream", None)
    response = getattr(source, "response", None)
    if isinstance(response, httpx.Response):
        stream.completion_stream = ChunksWithSoundUsage(source, litellm)
    else:
        # litellm's own readers hold the lines of the response, a generator that has not started, and nothing else.
        frame = getattr(getattr(source, "streaming_response", None), "ag_frame", None)
        response = frame.f_locals.get("self") if frame is not None else None
    if not isinstance(response, httpx.Response) or response.is_stream_consumed:
        return None
    return WatchedBytes(response, limits)
