"""Reads one streamed litellm reply into a `ReplyAssembler`.

The wait for each chunk, the duration of the reply and the size of the reply are limited. A stream without a finish
reason was interrupted, and litellm hides this by adding a finish reason. A response that is not a reply (a login page,
an error, unexpected data) raises `UnusableAnswer`.
"""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holmes.llm.errors import StreamCut, UnusableAnswer, causes, unusable_answer
from holmes.values.events import TextDelta

if TYPE_CHECKING:
    from holmes.llm.reply_assembler import ReplyAssembler
    from holmes.llm.watched_answer import AnswerLimits, AnswerWatch
    from holmes.values.model import EmitEvent

# Malformed data raises these errors. They include JSON, Unicode and pydantic errors, which are ValueErrors.
_WRONG_SHAPE = (AttributeError, KeyError, IndexError, TypeError, ValueError, RecursionError)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamUsage:
    """The token usage that is known at the end of a stream. `usage` is the litellm object, or None.

    `reported` is false if litellm counted the tokens itself. `billed_cost` is the charge in US dollars, if the provider
    reports it.
    """

    usage: Any
    reported: bool
    billed_cost: float | None


async def read_stream(
    stream: Any,  # noqa: ANN401  litellm's CustomStreamWrapper has no usable types
    assembler: ReplyAssembler,
    emit: EmitEvent,
    *,
    watch: AnswerWatch,
    timeout_seconds: float,
) -> StreamUsage:
    """Read the complete stream, and emit its text as `TextDelta` events.

    `timeout_seconds` applies to each chunk. Raises `UnusableAnswer`, `StreamCut`, `TimeoutError`, or a litellm error.
    """
    reader = _Reader(stream, assembler, watch.limits, timeout_seconds)
    try:
        while (text := await reader.next_text()) is not None:
            if text:
                await emit(TextDelta(text=text))
    except reader.failures as error:
        foreign = watch.foreign_content() if assembler.is_empty else None
        if foreign is None:
            raise
        raise foreign from error
    finally:
        await watch.aclose()
    return reader.usage()


class _Reader:
    """Reads the chunks of a stream.

    The chunks do not show whether the provider or litellm ended the reply and counted the tokens. Only the stream's
    undocumented attributes `received_finish_reason` and `chunks` show this, so the litellm version is pinned.
    """

    def __init__(
        self,
        stream: Any,  # noqa: ANN401  see `read_stream`
        assembler: ReplyAssembler,
        limits: AnswerLimits,
        timeout_seconds: float,
    ) -> None:
        self.limits = limits
        self._stream = stream
        self._chunks = aiter(stream)
        self._assembler = assembler
        self._timeout_seconds = timeout_seconds
        self._begun_seconds = time.monotonic()
        self.failures = _failures()
        self._pieces = 0
        self._usage: Any = None

    async def next_text(self) -> str | None:
        """Return the text of the next chunk, which may be empty, or None at the end."""
        try:
            async with asyncio.timeout(self._timeout_seconds):
                chunk = await anext(self._chunks, None)
            text = None if chunk is None else self._add(chunk)
        except self.failures as error:
            self._judge(error)
            return None
        if text is None:
            self._check_end()
        else:
            self._check_size()
        return text

    def usage(self) -> StreamUsage:
        reported = self._reported()
        cost: Any = getattr(reported[-1], "cost", None) if reported else None
        is_sum = isinstance(cost, int | float) and math.isfinite(cost) and cost >= 0
        return StreamUsage(usage=self._usage, reported=bool(reported), billed_cost=float(cost) if is_sum else None)

    def _add(self, chunk: Any) -> str:  # noqa: ANN401  a litellm chunk has no usable types
        """Add the content of `chunk` to the assembler. Raises one of `_WRONG_SHAPE` if `chunk` is malformed."""
        self._pieces += 1
        self._usage = getattr(chunk, "usage", None) or self._usage
        return "".join(_add_choice(choice, self._assembler) for choice in chunk.choices[:1])

    def _judge(self, error: BaseException) -> None:
        """Raise `error`, converted if necessary. Malformed data after a complete reply does not raise an error.

        After the end of the reply, only the usage is read.
        """
        unusable = unusable_answer(error)
        if unusable is not None:
            raise unusable from error
        wrong = _wrong_shape(error)
        if wrong is None:
            raise error
        finish_reason = getattr(self._stream, "received_finish_reason", None)
        if finish_reason is None:
            raise UnusableAnswer(
                f"the reply is malformed ({type(wrong).__name__}: {wrong})",
                "check the base URL, or try again later",
                max_attempts=2,
            ) from error
        self._assembler.finish_reason = self._assembler.finish_reason or finish_reason

    def _reported(self) -> list[Any]:
        chunks = getattr(self._stream, "chunks", ())
        return [found for chunk in chunks if (found := getattr(chunk, "usage", None)) is not None]

    def _check_end(self) -> None:
        if getattr(self._stream, "received_finish_reason", "unknown") is None and not self._reported():
            raise StreamCut("the stream ended before the reply was complete")

    def _check_size(self) -> None:
        too_large = self._assembler.characters > self.limits.characters or self._pieces > self.limits.pieces
        if too_large:
            size = f"{self._assembler.characters:,} characters in {self._pieces:,} chunks"
            raise UnusableAnswer(f"the reply did not end after {size}", "use another model")
        if time.monotonic() - self._begun_seconds > self.limits.seconds:
            raise UnusableAnswer(f"the reply did not end within {self.limits.seconds:g} s", "use another model")


def _add_choice(choice: Any, assembler: ReplyAssembler) -> str:  # noqa: ANN401  litellm has no usable types
    delta = choice.delta
    if reasoning := _text(getattr(delta, "reasoning_content", None)):
        assembler.add_reasoning(reasoning)
    if blocks := getattr(delta, "thinking_blocks", None):
        assembler.add_thinking_blocks([dict(block) for block in blocks])
    for call in delta.tool_calls or ():
        assembler.add_tool_call(
            index=call.index,
            call_id=_text(call.id),
            name=_text(call.function.name),
            arguments=_text(call.function.arguments),
        )
    if choice.finish_reason:
        assembler.finish_reason = _text(choice.finish_reason)
    text = _text(delta.content)
    if text:
        assembler.add_text(text)
    return text


def _text(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"expected a string in a chunk of the reply, found {type(value).__name__}")
    return value


def _failures() -> tuple[type[BaseException], ...]:
    """Return the error types that reading a stream can raise, except timeouts and operating system errors."""
    import httpx
    import openai

    return (openai.OpenAIError, httpx.HTTPError, UnusableAnswer, StreamCut, *_WRONG_SHAPE)


def _wrong_shape(error: BaseException) -> BaseException | None:
    """Return the underlying error if the data is malformed or litellm could not classify `error`, else None."""
    chain = causes(error)
    if any(isinstance(cause, OSError) or type(cause).__module__.partition(".")[0] == "httpx" for cause in chain):
        return None
    if not isinstance(error, _WRONG_SHAPE) and all(type(cause).__name__ != "APIConnectionError" for cause in chain):
        return None
    return next((cause for cause in chain if isinstance(cause, _WRONG_SHAPE)), chain[-1])
