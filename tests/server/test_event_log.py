"""The log of a chat is bounded, and no reader that keeps up misses an event."""

from __future__ import annotations

import asyncio

from holmes.investigations.records.wire_events import WireEvent
from holmes.server.chat.chat_runs import EventLog


def event(number: int, size: int = 0) -> WireEvent:
    return WireEvent(name="text_delta", data={"number": number, "content": "x" * size})


def number_of(frame: bytes) -> int:
    return int(frame.split(b"\n", 1)[0].rpartition(b":")[2])


async def numbers(log: EventLog, after: int = 0) -> list[int]:
    return [number_of(frame) async for frame in log.read(after)]


async def test_a_reader_gets_everything_also_what_was_before_it_came() -> None:
    log = EventLog("run")
    await log.append(event(1))
    reading = asyncio.create_task(numbers(log))
    late = asyncio.create_task(numbers(log, after=1))
    await asyncio.sleep(0)
    await log.append(event(2))
    await log.close(event(3))

    assert await reading == [1, 2, 3]
    assert await late == [2, 3]
    assert await numbers(log, after=3) == []


async def test_without_a_reader_the_oldest_events_go() -> None:
    log = EventLog("run", max_bytes=1_000)
    for number in range(1, 51):
        await log.append(event(number, size=100))
    await log.close()

    kept = await numbers(log)

    assert kept[-1] == 50
    assert 1 < len(kept) < 10
    assert kept == list(range(kept[0], 51))


async def test_a_slow_reader_slows_the_writer_down_and_misses_nothing() -> None:
    log = EventLog("run", max_bytes=1_000)
    frames = log.read()
    await log.append(event(1, size=100))
    seen = [number_of(await anext(frames))]

    async def write() -> None:
        for number in range(2, 31):
            await log.append(event(number, size=100))
        await log.close()

    writing = asyncio.create_task(write())
    await asyncio.sleep(0.05)
    assert not writing.done()
    seen.extend([number_of(frame) async for frame in frames])
    await writing

    assert seen == list(range(1, 31))


async def test_a_reader_that_leaves_lets_the_writer_go_on() -> None:
    log = EventLog("run", max_bytes=500)
    frames = log.read()
    await log.append(event(1, size=100))
    await anext(frames)
    writing = asyncio.create_task(_fill(log))
    await asyncio.sleep(0.01)
    assert not writing.done()

    await frames.aclose()
    async with asyncio.timeout(5):
        await writing


async def _fill(log: EventLog) -> None:
    for number in range(50):
        await log.append(event(number, size=100))
