"""One real server process on loopback: started, awaited, stopped. Used by `postgresql` and `monitoring`.

Its `guard` ends it together with the test session, also when that is killed.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.cluster.errors import ClusterError, tail

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

START_SECONDS: Final = 60
STOP_SECONDS: Final = 20
GUARD: Final = Path(__file__).with_name("guard.py")
# Below those that the kernel gives to outgoing connections.
PORTS: Final = range(20_000, 30_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Who runs a service: services that refuse root get another account."""

    user: int
    group: int

    @classmethod
    def unprivileged(cls, preferred: str) -> Account | None:
        """The account `preferred`, else nobody's; None: whoever runs the tests, who is not root."""
        if os.geteuid() != 0:
            return None
        known = {entry.pw_name: entry for entry in pwd.getpwall()}
        entry = known.get(preferred) or known["nobody"]
        return cls(user=entry.pw_uid, group=entry.pw_gid)


class Service:
    """One server; `stop` and `start` may follow each other, `close` ends it for good and removes its folder."""

    def __init__(self, name: str, *, account: Account | None = None, end_signal: signal.Signals) -> None:
        self.name = name
        self.folder = Path(tempfile.mkdtemp(prefix=f"holmes-{name}-"))
        self._account = account
        self._end_signal = end_signal
        self._guard: subprocess.Popen[bytes] | None = None
        if account is not None:
            os.chown(self.folder, account.user, account.group)

    @property
    def log(self) -> Path:
        """Return the file with all output of the service."""
        return self.folder / "service.log"

    @property
    def is_running(self) -> bool:
        """Whether the process is there."""
        return self._guard is not None and self._guard.poll() is None

    def run(self, *command: str) -> None:
        """Run a short command as the service's account; ClusterError shows what it printed."""
        account = self._account
        done = subprocess.run(
            command,
            cwd=self.folder,
            capture_output=True,
            text=True,
            user=account.user if account else None,
            group=account.group if account else None,
            extra_groups=[] if account else None,
            check=False,
        )
        if done.returncode != 0:
            raise ClusterError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")

    def start(
        self, command: Sequence[str], is_ready: Callable[[], bool], *, start_seconds: float = START_SECONDS
    ) -> None:
        """Start the process and wait until `is_ready` says so; ClusterError shows the end of its log."""
        if self.is_running:
            raise ClusterError(f"{self.name} runs already")
        account = f"{self._account.user}:{self._account.group}" if self._account else ""
        guard = [sys.executable, "-E", "-s", str(GUARD)]
        with self.log.open("ab") as log:
            self._guard = subprocess.Popen(
                [*guard, str(int(self._end_signal)), str(self.folder), account, *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
            )
        self._wait_until(is_ready, start_seconds)

    def stop(self, how: signal.Signals | None = None) -> None:
        """End the process by `how`, by default in its own regular way; its folder stays for the next `start`."""
        guard, self._guard = self._guard, None
        if guard is None:
            return
        with contextlib.suppress(BrokenPipeError, ValueError):
            guard.communicate(f"{int(how or self._end_signal)}\n".encode(), timeout=STOP_SECONDS)

    def close(self) -> None:
        """End the process and remove its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _wait_until(self, is_ready: Callable[[], bool], start_seconds: float) -> None:
        deadline = time.monotonic() + start_seconds
        while not is_ready():
            if not self.is_running or time.monotonic() > deadline:
                state = f"is not ready after {start_seconds:g} s" if self.is_running else "ended at once"
                end = tail(self.log)
                self.close()
                raise ClusterError(f"{self.name} {state}, the end of its log:\n{end}")
            time.sleep(0.02)


def free_port() -> int:
    """Return a port of loopback that nobody listens on now, and that no outgoing connection will be given."""
    while True:
        port = secrets.choice(PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
