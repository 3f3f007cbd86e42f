"""Reads one streamed reply of litellm into a `ReplyAssembler`. Called by `LitellmModel`.

Every wait is bounded: the first piece and each one after it. A stream that ends without a finish reason is a cut
stream, which litellm hides behind a finish reason of its own.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holmes.core.events import TextDelta
from holmes.llm.errors import StreamCut

if TYPE_CHECKING:
    from holmes.core.model import EmitEvent
    from holmes.llm.reply_assembler import ReplyAssembler


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamUsage:
    """`usage` is litellm's object, or None. `reported` says whether the provider sent it; else litellm counted.

    `billed_cost` is in US dollars, when the provider says what it charges.
    """

    usage: Any
    reported: bool
    billed_cost: float | None


async def read_stream(
    stream: Any,  # noqa: ANN401  litellm's CustomStreamWrapper has no usable types
    assembler: ReplyAssembler,
    emit: EmitEvent,
    *,
    timeout_seconds: float,
) -> StreamUsage:
    """Read to the end, emitting `TextDelta`. Raises `StreamCut`, `TimeoutError`, or what litellm raises."""
    usage: Any = None
    chunks = aiter(stream)
    while True:
        async with asyncio.timeout(timeout_seconds):
            chunk = await anext(chunks, None)
        if chunk is None:
            break
        usage = getattr(chunk, "usage", None) or usage
        for choice in chunk.choices[:1]:
            await _add_choice(choice, assembler, emit)
    reported = [found for part in getattr(stream, "chunks", ()) if (found := getattr(part, "usage", None)) is not None]
    if not reported and getattr(stream, "received_finish_reason", "unknown") is None:
        raise StreamCut("the stream ended in the middle of the reply")
    cost = getattr(reported[-1], "cost", None) if reported else None
    return StreamUsage(
        usage=usage, reported=bool(reported), billed_cost=float(cost) if isinstance(cost, int | float) else None
    )


async def _add_choice(choice: Any, assembler: ReplyAssembler, emit: EmitEvent) -> None:  # noqa: ANN401  litellm's
    delta = choice.delta
    if reasoning := getattr(delta, "reasoning_content", None):
        assembler.add_reasoning(reasoning)
    if blocks := getattr(delta, "thinking_blocks", None):
        assembler.add_thinking_blocks([dict(block) for block in blocks])
    for call in delta.tool_calls or ():
        assembler.add_tool_call(
            index=call.index, call_id=call.id, name=call.function.name, arguments=call.function.arguments
        )
    if choice.finish_reason:
        assembler.finish_reason = choice.finish_reason
    if delta.content:
        assembler.add_text(delta.content)
        await emit(TextDelta(text=delta.content))
