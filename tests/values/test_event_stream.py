"""The generator around a producer of events: order, errors, closing."""

from __future__ import annotations

import asyncio

import pytest

from holmes.values.errors import ModelError
from holmes.values.events import AgentEvent, TextDelta
from holmes.values.model import EmitEvent
from holmes.values.steps import concurrently, stream_events


async def collect(produce_count: int) -> list[AgentEvent]:
    async def produce(emit: EmitEvent) -> None:
        for number in range(produce_count):
            await emit(TextDelta(text=str(number)))

    return [event async for event in stream_events(produce)]


async def test_events_arrive_in_order_and_the_stream_ends_also_beyond_the_size_of_the_queue() -> None:
    assert await collect(1000) == [TextDelta(text=str(number)) for number in range(1000)]


async def test_a_slow_reader_slows_the_producer_down() -> None:
    produced = 0

    async def produce(emit: EmitEvent) -> None:
        nonlocal produced
        for _ in range(10_000):
            await emit(TextDelta(text="x"))
            produced += 1

    stream = stream_events(produce)
    await anext(stream)
    await asyncio.sleep(0.05)
    assert 0 < produced < 1000
    await stream.aclose()


async def test_what_the_producer_raises_reaches_the_reader_after_its_events() -> None:
    async def produce(emit: EmitEvent) -> None:
        await emit(TextDelta(text="before"))
        raise ModelError("the provider is gone", provider="p", model="m", retryable=False)

    stream = stream_events(produce)
    assert await anext(stream) == TextDelta(text="before")
    with pytest.raises(ModelError, match="the provider is gone"):
        await anext(stream)


async def test_closing_cancels_the_producer_and_waits_for_its_cleanup_even_when_the_queue_is_full() -> None:
    cleaned_up = False

    async def produce(emit: EmitEvent) -> None:
        nonlocal cleaned_up
        try:
            while True:
                await emit(TextDelta(text="x"))
        finally:
            await asyncio.sleep(0.01)
            cleaned_up = True

    stream = stream_events(produce)
    await anext(stream)
    await asyncio.sleep(0.01)
    async with asyncio.timeout(1):
        await stream.aclose()
    assert cleaned_up


async def test_a_failure_among_several_tasks_of_the_producer_ends_the_stream_too() -> None:
    """A task group cancels its parent and takes that back; on Python 3.11 the parent still looks cancelled."""

    async def fail() -> None:
        raise ModelError("one of many", provider="p", model="m", retryable=False)

    async def produce(emit: EmitEvent) -> None:
        await emit(TextDelta(text="before"))
        await concurrently([fail(), asyncio.sleep(3600)])

    stream = stream_events(produce)
    assert await anext(stream) == TextDelta(text="before")
    async with asyncio.timeout(2):
        with pytest.raises(ModelError, match="one of many"):
            await anext(stream)
