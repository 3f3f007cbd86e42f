"""Programs of tools end with everything they started, and cannot fill the memory of ours."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from holmes.toolsets.process import ProcessLimits, ProcessOutcome, run_process
from holmes.values.environment import Environment
from holmes.values.errors import ToolError
from tests.support.deadlines import ends_before

if TYPE_CHECKING:
    from pathlib import Path

_ENVIRONMENT = Environment.of({"PATH": os.environ["PATH"]})


async def _bash(script: str, limits: ProcessLimits | None = None, stdin: bytes | None = None) -> ProcessOutcome:
    return await run_process(
        ("bash", "-c", script), environment=_ENVIRONMENT, limits=limits or ProcessLimits(), stdin=stdin
    )


def _is_running(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _words(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []


async def _pids(file: Path, count: int) -> list[int]:
    for _ in range(200):
        listed = _words(file)
        if len(listed) == count:
            return [int(pid) for pid in listed]
        await asyncio.sleep(0.02)
    raise AssertionError(f"{file} never listed {count} processes")


async def _gone_within(pids: list[int], limit_seconds: float) -> bool:
    end = time.monotonic() + limit_seconds
    while any(_is_running(pid) for pid in pids):
        if time.monotonic() > end:
            return False
        await asyncio.sleep(0.02)
    return True


async def test_output_and_errors_are_kept_apart_with_the_exit_code() -> None:
    outcome = await _bash("echo out; echo err >&2; exit 3")
    assert (outcome.stdout, outcome.stderr, outcome.return_code) == ("out\n", "err\n", 3)
    assert (outcome.timed_out, outcome.output_truncated, outcome.memory_exceeded) == (False, False, False)


async def test_standard_input_is_closed_unless_it_is_given() -> None:
    assert (await _bash("cat; echo end")).stdout == "end\n"
    assert (await _bash("cat", stdin=b"x" * 300_000)).stdout == "x" * 300_000
    assert (await _bash("exit 0", stdin=b"x" * 300_000)).return_code == 0


async def test_only_the_given_variables_are_seen() -> None:
    outcome = await run_process(
        ("env",), environment=Environment.of({"PATH": os.environ["PATH"], "A": "1"}), limits=ProcessLimits()
    )
    lines = {line for line in outcome.stdout.split() if not line.startswith("HOLMES_TOOL_PROCESS=")}
    assert lines == {f"PATH={os.environ['PATH']}", "A=1"}


async def test_invalid_utf8_is_replaced() -> None:
    assert (await _bash(r"printf 'a\xff\xfeb'")).stdout == "a\ufffd\ufffdb"


async def test_a_program_that_is_missing_is_a_tool_error_and_behind_the_limits_an_exit_code() -> None:
    with pytest.raises(ToolError, match="'no-such-program' cannot be started"):
        await run_process(("no-such-program",), environment=_ENVIRONMENT, limits=ProcessLimits())
    limited = await run_process(
        ("no-such-program",), environment=_ENVIRONMENT, limits=ProcessLimits(memory_limit_mb=800)
    )
    assert limited.return_code == 127


async def test_a_timeout_ends_children_and_grandchildren_and_keeps_the_output(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    script = f"echo begun; (sleep 60 & echo $! >> {file}; wait) & echo $! >> {file}; echo $$ >> {file}; wait"
    with ends_before(30):
        outcome = await _bash(script, ProcessLimits(timeout_seconds=0.7))
    assert outcome.timed_out
    assert outcome.stdout == "begun\n"
    assert await _gone_within(await _pids(file, 3), 10)


async def test_a_program_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    script = (
        f"trap '' TERM; (trap '' TERM; echo $BASHPID >> {file}; while :; do sleep 1; done) & echo $$ >> {file}; wait"
    )
    outcome = await _bash(script, ProcessLimits(timeout_seconds=0.5))
    assert outcome.timed_out
    assert outcome.return_code == -9
    assert await _gone_within(await _pids(file, 2), 10)


async def test_cancelling_ends_the_whole_group(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    script = f"trap '' TERM; (sleep 60 & echo $! >> {file}; wait) & echo $! >> {file}; echo $$ >> {file}; wait"
    task = asyncio.create_task(_bash(script, ProcessLimits(memory_limit_mb=800)))
    pids = await _pids(file, 3)
    task.cancel()
    with ends_before(30), pytest.raises(asyncio.CancelledError):
        await task
    assert await _gone_within(pids, 10)


@pytest.mark.parametrize("times", [1, 2])
async def test_cancelling_at_any_moment_of_the_start_leaves_nothing_behind(times: int) -> None:
    marker = f"6{times}{os.getpid()}.5"
    for delay_seconds in (0.0, 0.001, 0.002, 0.004, 0.008, 0.016):
        task = asyncio.create_task(_bash(f"sleep {marker} & wait", ProcessLimits(memory_limit_mb=800)))
        await asyncio.sleep(delay_seconds)
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task
    left = [process for process in psutil.process_iter(["cmdline"]) if marker in (process.info["cmdline"] or [])]
    assert left == []


async def test_a_second_cancellation_does_not_spare_the_group(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    task = asyncio.create_task(_bash(f"trap '' TERM; echo $$ >> {file}; while :; do sleep 0.1; done"))
    pids = await _pids(file, 1)
    task.cancel()
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await _gone_within(pids, 10)


async def test_a_background_process_that_holds_the_pipe_does_not_hang_us(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    with ends_before(30):
        outcome = await _bash(f"sleep 60 & echo $! >> {file}; echo done")
    assert outcome.stdout == "done\n"
    assert outcome.return_code == 0
    assert await _gone_within(await _pids(file, 1), 10)


async def test_a_flood_is_stopped_at_the_limit() -> None:
    outcome = await _bash("tr '\\0' x < /dev/zero", ProcessLimits(output_limit_bytes=8_000_000))
    assert outcome.output_truncated
    assert not outcome.timed_out
    assert len(outcome.stdout) == 8_000_000


async def test_output_that_is_stopped_does_not_end_in_half_of_a_token() -> None:
    outcome = await _bash("echo login with a-long-token failed; sleep 5", ProcessLimits(output_limit_bytes=16))
    assert outcome.output_truncated
    assert outcome.stdout == "login with "


async def test_both_streams_together_count_against_the_limit() -> None:
    outcome = await _bash("yes >&2 & yes", ProcessLimits(output_limit_bytes=100_000))
    assert outcome.output_truncated
    assert len(outcome.stdout) + len(outcome.stderr) <= 100_000


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA bounds mappings on Linux only")
async def test_a_program_over_the_memory_limit_fails_and_the_outcome_says_so() -> None:
    # The mapping counts against the limit without a page of it being touched: what else fills the machine is no matter.
    script = f"{sys.executable} -I -S -c 'import mmap; print(len(mmap.mmap(-1, 400_000_000, flags=34)))'"
    outcome = await _bash(script, ProcessLimits(memory_limit_mb=200))
    assert outcome.memory_exceeded, outcome
    assert outcome.return_code != 0
    enough = await _bash(script, ProcessLimits(memory_limit_mb=800))
    assert (enough.stdout, enough.memory_exceeded) == ("400000000\n", False), enough
    allocating = await _bash(f"{sys.executable} -I -S -c 'bytearray(400_000_000)'", ProcessLimits(memory_limit_mb=200))
    assert allocating.memory_exceeded, allocating


async def test_a_go_program_runs_under_the_default_memory_limit() -> None:
    folder = os.path.dirname(sys.executable)  # noqa: PTH120  the folder of the interpreter as it was called
    environment = Environment.of({"PATH": f"{folder}:{os.environ['PATH']}"})
    outcome = await run_process(
        ("kubectl", "version", "--client"), environment=environment, limits=ProcessLimits(memory_limit_mb=800)
    )
    assert "Client Version" in outcome.stdout, outcome


async def test_many_programs_at_once_leave_no_open_files_behind() -> None:
    before = psutil.Process().num_fds()
    outcomes = await asyncio.gather(*(_bash(f"echo {number}") for number in range(24)))
    assert [outcome.stdout for outcome in outcomes] == [f"{number}\n" for number in range(24)]
    assert psutil.Process().num_fds() <= before + 2


_OUTSIDE = """
(trap '' TERM; exec setsid sleep 61) & echo $! >> {file}
setsid bash -c '(exec setsid sleep 61 </dev/null >/dev/null 2>&1) & echo $! >> {file}' &
env -i {setsid} sleep 61 & echo $! >> {file}
wait; sleep 61
"""
_linux = pytest.mark.skipif(sys.platform != "linux", reason="processes outside of the group are found in /proc")


def _outside(file: Path) -> str:
    """A script with three processes in sessions of their own: with a parent, without one, without variables."""
    return _OUTSIDE.format(file=file, setsid=shutil.which("setsid"))


@_linux
async def test_a_timeout_ends_what_left_the_group(tmp_path: Path) -> None:
    outcome = await _bash(_outside(tmp_path / "pids"), ProcessLimits(timeout_seconds=1))
    assert outcome.timed_out
    assert await _gone_within(await _pids(tmp_path / "pids", 3), 10)


@_linux
async def test_cancelling_ends_what_left_the_group(tmp_path: Path) -> None:
    task = asyncio.create_task(_bash(_outside(tmp_path / "pids"), ProcessLimits(memory_limit_mb=800)))
    pids = await _pids(tmp_path / "pids", 3)
    assert all(_is_running(pid) for pid in pids)
    task.cancel()
    with ends_before(30), pytest.raises(asyncio.CancelledError):
        await task
    assert await _gone_within(pids, 10)


@_linux
async def test_other_programs_are_not_ended_with_one_that_is_cancelled(tmp_path: Path) -> None:
    others = [asyncio.create_task(_bash(f"echo $$ >> {tmp_path / 'others'}; sleep 1; echo whole")) for _ in range(12)]
    await _pids(tmp_path / "others", 12)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(_bash("sleep 61"), 0.1)
    assert {outcome.stdout for outcome in await asyncio.gather(*others)} == {"whole\n"}


_HOLMES_LIKE = """
import asyncio, os, sys
from holmes.values.environment import Environment
from holmes.toolsets.process import ProcessLimits, run_process
environment = Environment.of({"PATH": os.environ["PATH"]})
limits = ProcessLimits(memory_limit_mb=800)
asyncio.run(run_process(("bash", "-c", sys.argv[1]), environment=environment, limits=limits))
"""


@_linux
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_when_holmes_is_killed_no_program_of_a_tool_stays(tmp_path: Path, number: int) -> None:
    file = tmp_path / "pids"
    script = f"echo $$ >> {file}; sleep 61 | cat & echo $! >> {file}; {_outside(file)}"
    holmes = await asyncio.create_subprocess_exec(sys.executable, "-c", _HOLMES_LIKE, script)
    pids = await _pids(file, 5)
    guards = psutil.Process(holmes.pid).children()
    assert all(_is_running(pid) for pid in pids)
    holmes.send_signal(number)
    assert await holmes.wait() == -number
    assert await _gone_within([*pids, *(guard.pid for guard in guards)], 10)


@_linux
async def test_the_guard_goes_when_holmes_ends_by_itself(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    holmes = await asyncio.create_subprocess_exec(sys.executable, "-c", _HOLMES_LIKE, f"echo $PPID > {file}; sleep 0.5")
    await _pids(file, 1)
    guards = psutil.Process(holmes.pid).children()
    assert len(guards) == 2
    assert await holmes.wait() == 0
    assert await _gone_within([guard.pid for guard in guards], 10)
