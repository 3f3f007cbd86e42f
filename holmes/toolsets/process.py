"""Runs one program for a tool, and ends it together with all processes that it started.

The program runs in its own session. After a timeout, a cancellation, too much output or the end of the program, Holmes
ends the whole process group, first with SIGTERM, then with SIGKILL. On Linux, this includes processes that left the
group with setsid, unless the program has ended and its output is complete. When Holmes itself is killed, the guard
process in `leftovers` ends all processes. Standard input is closed, standard error is captured separately, and the size
of the output is limited. Callers decide which programs may run.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.toolsets.leftovers import VARIABLE, Guard, end_marked, marked, send
from holmes.values.errors import ToolError
from holmes.values.expressions import expression
from holmes.values.texts import without_last_word

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holmes.values.environment import Environment

DEFAULT_OUTPUT_LIMIT_BYTES = 64 * 1024 * 1024

# Grace period for processes after SIGTERM. The whole cleanup takes less than one second.
_GRACE_SECONDS = 0.4
# Time limit for reading output after the program has ended, if another process keeps the pipe open.
_DRAIN_SECONDS = 0.5
_POLL_SECONDS = 0.02
_GUARD = Guard()
_READ_BYTES = 256 * 1024
_LARGE_BYTES = 1024 * 1024

# The limit is RLIMIT_DATA instead of RLIMIT_AS, because Go programs reserve a lot of address space that they never use.
# If the system has a lower hard limit, that limit stays in force, so errors from `ulimit` are ignored.
_WITH_LIMITS = 'ulimit -c 0; ulimit -d "$1" 2>/dev/null; shift; exec "$@"'

_OUT_OF_MEMORY = expression(
    r"out of memory|cannot allocate|can't allocate|memory exhausted|MemoryError|std::bad_alloc|failed to allocate",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOutcome:
    """The output of a program, and how the program ended. `return_code` is negative if a signal ended the program.

    `output_truncated` means that the program was stopped at the output limit. The output up to the limit is kept.
    `memory_exceeded` means that the program reached the memory limit.
    """

    stdout: str
    stderr: str
    return_code: int
    elapsed_seconds: float
    timed_out: bool = False
    output_truncated: bool = False
    memory_exceeded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLimits:
    """Limits for one program. If `memory_limit_mb` is None, memory is not limited."""

    timeout_seconds: float = 60.0
    memory_limit_mb: int | None = None
    output_limit_bytes: int = DEFAULT_OUTPUT_LIMIT_BYTES


async def run_process(
    argv: Sequence[str], *, environment: Environment, limits: ProcessLimits, stdin: bytes | None = None
) -> ProcessOutcome:
    """Run `argv` until it ends.

    Its only environment variables are those in `environment` and one that marks the process.

    Raises `ToolError` if the program cannot be started. Cancellation ends the whole group within a second.
    """
    started_seconds = asyncio.get_running_loop().time()
    mark = _GUARD.next_mark()
    capture = _Capture(limits.output_limit_bytes)
    try:
        process = await _start(argv, environment.with_variables({VARIABLE: mark}), limits, capture, stdin)
        timed_out, ended = False, False
        try:
            feeding = _feed(process, stdin)
            timed_out = await _wait(process, capture, limits.timeout_seconds, feeding)
            # The process that keeps the pipe open may have left the group.
            ended = not timed_out and capture.finished.is_set()
        finally:
            await (_end_group(process) if ended else _end_all(process, mark))
        stdout, stderr = await capture.texts()
    finally:
        capture.close()
    return_code = process.returncode if process.returncode is not None else -signal.SIGKILL
    stopped = timed_out or capture.overflowed.is_set()
    return ProcessOutcome(
        stdout=stdout,
        stderr=stderr,
        return_code=return_code,
        elapsed_seconds=asyncio.get_running_loop().time() - started_seconds,
        timed_out=timed_out,
        output_truncated=capture.overflowed.is_set(),
        memory_exceeded=not stopped and limits.memory_limit_mb is not None and _ran_out_of_memory(return_code, stderr),
    )


class _Capture:
    """Reads two pipes into memory, at most `limit_bytes` in total. Sets `overflowed` if they contain more.

    Creates its own pipes, because `Process.wait` in some Python releases waits until a grandchild closes asyncio's
    pipes.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.overflowed = asyncio.Event()
        self.finished = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._left_bytes = limit_bytes
        self._contents: dict[int, bytearray] = {}
        self._open: set[int] = set()
        self._writers: list[int] = []
        for _ in range(2):
            reader, writer = os.pipe()
            os.set_blocking(reader, False)
            self._contents[reader] = bytearray()
            self._open.add(reader)
            self._writers.append(writer)

    @property
    def writers(self) -> tuple[int, int]:
        """The writing ends of the pipes for the program's standard output and standard error."""
        return self._writers[0], self._writers[1]

    def begin(self) -> None:
        """Start reading the pipes. Closes the writing ends, because the program now has its own copies."""
        self._close_writers()
        for reader in tuple(self._open):
            self._loop.add_reader(reader, self._read, reader)

    def _read(self, reader: int) -> None:
        try:
            piece = os.read(reader, min(_READ_BYTES, self._left_bytes + 1))
        except BlockingIOError:
            return
        if not piece:
            self._close_reader(reader)
            return
        self._contents[reader] += piece[: self._left_bytes]
        if len(piece) > self._left_bytes:
            self.overflowed.set()
            for other in tuple(self._open):
                self._close_reader(other)
            return
        self._left_bytes -= len(piece)

    async def texts(self) -> tuple[str, str]:
        """Return standard output and standard error as text, and free the bytes. Invalid UTF-8 becomes U+FFFD.

        If reading stopped early, the last word is removed, because it may be part of a secret.
        """
        stdout, stderr = (self._contents.pop(reader) for reader in tuple(self._contents))
        if len(stdout) + len(stderr) < _LARGE_BYTES:
            return self._text(stdout), self._text(stderr)
        return await asyncio.to_thread(lambda: (self._text(stdout), self._text(stderr)))

    def _text(self, content: bytearray) -> str:
        text = content.decode("utf-8", "replace")
        return without_last_word(text) if self.overflowed.is_set() else text

    def close(self) -> None:
        for reader in tuple(self._open):
            self._close_reader(reader)
        self._close_writers()

    def _close_reader(self, reader: int) -> None:
        self._loop.remove_reader(reader)
        os.close(reader)
        self._open.discard(reader)
        if not self._open:
            self.finished.set()

    def _close_writers(self) -> None:
        while self._writers:
            os.close(self._writers.pop())


async def _start(
    argv: Sequence[str], environment: Environment, limits: ProcessLimits, capture: _Capture, stdin: bytes | None
) -> asyncio.subprocess.Process:
    command = list(argv)
    if limits.memory_limit_mb is not None:
        command = ["bash", "-c", _WITH_LIMITS, "holmes", str(limits.memory_limit_mb * 1024), *command]
    stdout, stderr = capture.writers
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE,
            stdout=stdout,
            stderr=stderr,
            env=environment.as_dict(),
            start_new_session=True,
        )
    )
    try:
        process = await asyncio.shield(starting)
    except asyncio.CancelledError:
        # The program may already be running although this function has no handle to it yet.
        # Ending the program takes less than a second, and further cancellations wait until it has ended.
        ending = asyncio.create_task(_end_when_started(starting, environment.get(VARIABLE) or ""))
        while not ending.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(ending)
        raise
    except (OSError, ValueError) as error:
        raise ToolError(f"{command[0]!r} cannot be started: {error}; check that it is installed and on PATH") from error
    capture.begin()
    return process


async def _end_when_started(starting: asyncio.Future[asyncio.subprocess.Process], mark: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        await _end_all(await starting, mark)


def _feed(process: asyncio.subprocess.Process, stdin: bytes | None) -> asyncio.Task[None] | None:
    if stdin is None or process.stdin is None:
        return None
    writer = process.stdin

    async def write() -> None:
        with contextlib.suppress(ConnectionError):
            writer.write(stdin)
            await writer.drain()
        writer.close()

    return asyncio.create_task(write())


async def _wait(
    process: asyncio.subprocess.Process, capture: _Capture, timeout_seconds: float, feeding: asyncio.Task[None] | None
) -> bool:
    """Wait until the program has ended and its output is read, or a limit is reached. Returns True after a timeout."""
    ended = asyncio.create_task(process.wait())
    overflowed = asyncio.create_task(capture.overflowed.wait())
    try:
        await asyncio.wait((ended, overflowed), timeout=timeout_seconds, return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            return not capture.overflowed.is_set()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(capture.finished.wait(), _DRAIN_SECONDS)
        return False
    finally:
        for task in (ended, overflowed, feeding):
            if task is not None:
                task.cancel()


async def _end_group(process: asyncio.subprocess.Process) -> None:
    """End every process in the group. A second cancellation sends SIGKILL at once."""
    try:
        if _signal_group(process.pid, signal.SIGTERM):
            # A suspended process does not handle SIGTERM until it continues.
            _signal_group(process.pid, signal.SIGCONT)
            await _until(lambda: process.returncode is not None and not _signal_group(process.pid, 0), _GRACE_SECONDS)
    finally:
        _signal_group(process.pid, signal.SIGKILL)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _GRACE_SECONDS)


async def _end_all(process: asyncio.subprocess.Process, mark: str) -> None:
    """End the group and the processes that left it. Find these processes first, because orphans lose their parent."""
    outside = {each for each in marked(mark) if not _is_in_group(each, process.pid)}
    for each in outside:
        send(each, signal.SIGTERM)
    try:
        await _end_group(process)
    finally:
        for each in outside:
            send(each, signal.SIGKILL)
        end_marked(mark)


def _is_in_group(process: int, group: int) -> bool:
    try:
        return os.getpgid(process) == group
    except ProcessLookupError:
        return True


async def _until(condition: Callable[[], bool], limit_seconds: float) -> None:
    waited_seconds = 0.0
    while not condition() and waited_seconds < limit_seconds:
        await asyncio.sleep(_POLL_SECONDS)
        waited_seconds += _POLL_SECONDS


def _signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group. Returns whether the group has processes that Holmes may signal."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        # Holmes cannot signal other users' processes (sudo). On macOS, a group of zombies also causes this error.
        return False
    return True


def _ran_out_of_memory(return_code: int, stderr: str) -> bool:
    killed = return_code in {-signal.SIGKILL, 128 + signal.SIGKILL}
    return killed or (return_code != 0 and _OUT_OF_MEMORY.search(stderr[-20_000:]) is not None)
