"""What storing large results costs: `python benchmarks/storing.py`.

Puts results of 20 MB through the spill into a store on disk, while a ticker on the event loop measures how long it is
kept from running: a log as it is, the same log with redaction and preview, and a JSON of 20 MB in a process of its own,
whose peak of memory is compared with the same process on 1 KB. Small results are timed too, since every result is
stored. Exits with 1 when a figure is worse than promised.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from holmes.core.tools_utils.tool_context_window_limiter import spill_oversized_tool_result, store_tool_message
from holmes.redaction.redactor import Redactor, redact_off_loop
from holmes.stores.result_store import FileResultStore
from holmes.tokens import TokenCounter
from holmes.values.messages import Text, ToolCallId, ToolMessage

SIZE_BYTES = 20_000_000
CAP_TOKENS = 25_000
MAX_STORE_SECONDS = 0.5
MAX_WHOLE_SECONDS = 3.0
MAX_LAG_SECONDS = 0.05
MAX_JSON_MEGABYTES = 150.0
MAX_SMALL_MILLISECONDS = 2.0
SMALL_RESULTS = 300
TICK_SECONDS = 0.002

MEASURE_JSON = """
import asyncio, sys, tempfile
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from benchmarks.storing import json_text, peak_megabytes, spill
from holmes.tokens import TokenCounter
from holmes.stores.result_store import FileResultStore

counter = TokenCounter()
counter.count_text("warm up")
text = json_text(int(sys.argv[1]))
Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
before = peak_megabytes()
with tempfile.TemporaryDirectory() as folder:
    asyncio.run(spill(text, FileResultStore(Path(folder)), counter))
print(peak_megabytes() - before)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """Seconds a piece of work took, and the longest time in which the event loop could not run."""

    seconds: float
    lag_seconds: float


def log_text(size_bytes: int) -> str:
    """A log with what makes it slow: times, addresses, a secret now and then, and text beyond ASCII."""
    lines: list[str] = []
    length = number = 0
    while length < size_bytes:
        level = "ERROR" if number % 997 == 0 else "INFO"
        line = (
            f"2026-11-21T10:{number // 60 % 60:02d}:{number % 60:02d}Z {level} checkout-{number % 7} "
            f"request {number * 7919 % 1_000_003:08x} of 10.0.{number % 256}.{number % 200} took {number % 900} ms … ok"
        )
        if number % 5_000 == 0:
            line += f" password=hunter{number}"
        lines.append(line)
        length += len(line) + 1
        number += 1
    return "\n".join(lines)


def json_text(size_bytes: int) -> str:
    """A list of pods as the API server writes it, on one line."""
    items: list[str] = []
    length = number = 0
    while length < size_bytes:
        pod = {
            "metadata": {"name": f"pod-{number}", "namespace": f"team-{number % 40}", "labels": {"app": "checkout"}},
            "status": {"phase": "Failed" if number == 4_711 else "Running", "restarts": number % 3},
        }
        items.append(json.dumps(pod))
        length += len(items[-1]) + 2
        number += 1
    return "[" + ", ".join(items) + "]"


def peak_megabytes() -> float:
    """The most memory that this process has had. Linux only."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


async def spill(text: str, store: FileResultStore, counter: TokenCounter) -> None:
    """Store `text` as the result of a tool, and make its pointer."""
    message = ToolMessage(call_id=ToolCallId("c"), tool_name="logs", status="success", parts=(Text(text=text),))
    outcome = await spill_oversized_tool_result(
        message, cap_tokens=CAP_TOKENS, counter=counter, store=store, label=True
    )
    assert outcome.stored


async def timed(work: Callable[[], Awaitable[object]]) -> Timed:
    """Run `work` beside a ticker."""
    longest = 0.0
    done = asyncio.Event()

    async def tick() -> None:
        nonlocal longest
        while not done.is_set():
            started = time.perf_counter()
            await asyncio.sleep(TICK_SECONDS)
            longest = max(longest, time.perf_counter() - started - TICK_SECONDS)

    ticker = asyncio.create_task(tick())
    await asyncio.sleep(5 * TICK_SECONDS)
    longest = 0.0
    started = time.perf_counter()
    await work()
    seconds = time.perf_counter() - started
    done.set()
    await ticker
    return Timed(seconds=seconds, lag_seconds=longest)


async def store_raw(text: str, folder: Path) -> Timed:
    """Only the bytes: encode, hash, write."""
    message = ToolMessage(call_id=ToolCallId("c"), tool_name="logs", status="success", parts=(Text(text=text),))
    return await timed(lambda: store_tool_message(message, FileResultStore(folder)))


async def redact_store_preview(text: str, folder: Path, counter: TokenCounter) -> Timed:
    """The whole way of a result from its tool into the conversation."""
    redactor = Redactor(b"a key of this benchmark, 32 bytes")

    async def work() -> None:
        await spill(await redact_off_loop(redactor, text), FileResultStore(folder), counter)

    return await timed(work)


async def small_milliseconds(folder: Path, counter: TokenCounter) -> float:
    """CPU milliseconds that storing and labelling a result of 1 KB adds: the best of three batches."""
    store = FileResultStore(folder)
    batches: list[float] = []
    for batch in range(3):
        started = time.process_time()
        for number in range(SMALL_RESULTS):
            await spill(f"{batch} {number} " + "x" * 1_000, store, counter)
        batches.append((time.process_time() - started) / SMALL_RESULTS * 1_000)
    return min(batches)


def json_megabytes(size_bytes: int) -> float:
    """Memory at the peak, beyond the text itself, of storing and previewing a JSON in a process of its own."""
    root = str(Path(__file__).resolve().parent.parent)
    command = [sys.executable, "-c", MEASURE_JSON, str(size_bytes), root]
    return float(subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout)


async def measure(folder: Path) -> list[tuple[str, float, float, str]]:
    """Name, measured, promised and unit of every figure."""
    counter = TokenCounter()
    counter.count_text("warm up")
    text = log_text(SIZE_BYTES)
    raw = await store_raw(text, folder / "raw")
    whole = await redact_store_preview(text, folder / "whole", counter)
    small = await small_milliseconds(folder / "small", counter)
    return [
        ("store 20 MB", raw.seconds, MAX_STORE_SECONDS, "s"),
        ("  longest lag of the event loop", raw.lag_seconds, MAX_LAG_SECONDS, "s"),
        ("redact, store and preview 20 MB", whole.seconds, MAX_WHOLE_SECONDS, "s"),
        ("  longest lag of the event loop", whole.lag_seconds, MAX_LAG_SECONDS, "s"),
        ("store and label 1 KB", small, MAX_SMALL_MILLISECONDS, "ms of CPU"),
    ]


def main() -> int:
    """Print the table; 1 when a promise is broken."""
    with tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(measure(Path(folder)))
    figures.append(("peak memory for a JSON of 20 MB", json_megabytes(SIZE_BYTES), MAX_JSON_MEGABYTES, "MB"))
    for name, measured, promised, unit in figures:
        print(f"{name:<34} {measured:8.3f} {unit} (at most {promised:g})")
    return 0 if all(measured <= promised for _, measured, promised, _ in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
