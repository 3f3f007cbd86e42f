"""Stands between a test session and one service: `python guard.py SIGNAL FOLDER USER:GROUP COMMAND...`.

Started by `service`, which holds the other end of its standard input. A line there is the number of a signal: the
service gets it and its folder stays, for the next start. The end of the input means that the test session is over,
however it ended: the service gets SIGNAL, and the folder goes too. A service that does not end in time is killed.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys

PATIENCE_SECONDS = 10


def main() -> int:
    """Run the service until it ends or shall end; the exit code is the service's."""
    end_signal, folder, account, *command = sys.argv[1:]
    # A Ctrl-C is for pytest, which then ends its services in its own order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    service = _start(command, account)
    descriptor = os.pidfd_open(service.pid)
    readable, _, _ = select.select([sys.stdin, descriptor], [], [])
    line = sys.stdin.readline() if sys.stdin in readable else f"{end_signal}\n"
    if service.poll() is None:
        service.send_signal(int(line or end_signal))
        _wait(service)
    if not line:
        shutil.rmtree(folder, ignore_errors=True)
    return service.returncode


def _start(command: list[str], account: str) -> subprocess.Popen[bytes]:
    """Start the service; this process keeps its rights, since another account may not even read this file."""
    user, _, group = account.partition(":")
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        user=int(user) if user else None,
        group=int(group) if group else None,
        extra_groups=[] if group else None,
        # An ignored signal would stay ignored in the service.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  one thread here
    )


def _wait(service: subprocess.Popen[bytes]) -> None:
    try:
        service.wait(PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        service.kill()
        service.wait()


if __name__ == "__main__":
    sys.exit(main())
