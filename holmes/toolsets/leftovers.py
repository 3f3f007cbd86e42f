"""Finds and ends processes that a tool's program started outside its process group. Works only on Linux.

An environment variable marks each program. A program that calls setsid leaves the group and may lose its parent, but it
keeps this variable.

This file is also the program of the guard process. `python -I -S leftovers.py MARK` waits until the pipe on its
standard input closes. Then it ends all processes with the mark. The pipe also closes when Holmes is killed with
SIGKILL.

The search misses orphans that clear their variables, and processes of other users. On systems without /proc it finds
nothing.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Final

VARIABLE: Final = "HOLMES_TOOL_PROCESS"
_ROUNDS: Final = 20
_PROC: Final = Path("/proc")


def marked(mark: str) -> set[int]:
    """Return the ids of the processes that have a variable with this mark, and the ids of their descendants."""
    variable = f"{VARIABLE}={mark}".encode()
    parents: dict[int, int] = {}
    found: set[int] = set()
    for folder in _PROC.glob("[0-9]*"):
        process = int(folder.name)
        state_and_parent = _read(folder / "stat").rpartition(b")")[2].split()[:2]
        if len(state_and_parent) < 2 or state_and_parent[0] in {b"Z", b"X"}:
            continue
        parents[process] = int(state_and_parent[1])
        variables = _read(folder / "environ")
        if variables.startswith(variable) or b"\0" + variable in variables:
            found.add(process)
    return _with_descendants(found, parents)


def _with_descendants(found: set[int], parents: dict[int, int]) -> set[int]:
    size = -1
    while size != len(found):
        size = len(found)
        found |= {process for process, parent in parents.items() if parent in found}
    return found - {os.getpid()}


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def end_marked(mark: str) -> None:
    """Kill the processes with the mark, including those that start during the call."""
    for _ in range(_ROUNDS):
        found = marked(mark)
        for process in found:
            send(process, signal.SIGKILL)
        if not found:
            return


def send(process: int, number: int) -> None:
    """Send a signal to a process. A process that has ended or belongs to another user is ignored."""
    try:
        os.kill(process, number)
    except (ProcessLookupError, PermissionError):
        return


class Guard:
    """Starts the guard process when it is first needed, and creates a mark for each program."""

    def __init__(self) -> None:
        self._owner = 0
        self._pipe = -1
        self._mark = ""
        self._number = 0

    def next_mark(self) -> str:
        """Return a mark for one program. On Linux, the first call in a process starts the guard."""
        if self._owner != os.getpid():
            self._owner = os.getpid()
            self._mark = f"{self._owner}-{os.urandom(8).hex()}-"
            if sys.platform == "linux":
                self._start()
        self._number += 1
        return f"{self._mark}{self._number}-"

    def _start(self) -> None:
        reader, self._pipe = os.pipe()
        arguments = [sys.executable, "-I", "-S", __file__, self._mark]
        silence = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)]
        try:
            # The guard has its own session, because Ctrl-C in a terminal must not reach it.
            os.posix_spawn(
                sys.executable,
                arguments,
                {},
                file_actions=[(os.POSIX_SPAWN_DUP2, reader, 0), *silence],
                setsid=True,
            )
        except (OSError, NotImplementedError):
            # Continue without a guard, because it is needed only if Holmes is killed.
            os.close(self._pipe)
        finally:
            os.close(reader)


def main() -> None:
    """Wait until the pipe closes, then end the remaining processes."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while os.read(0, 1):
        pass
    end_marked(sys.argv[1])


if __name__ == "__main__":
    main()
