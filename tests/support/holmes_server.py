"""`holmes serve` as users run it: a process of its own with a home of its own, on a free port of loopback.

    with holmes_server(Home.make(folder, config=..., HOLMES_API_KEY=KEY)) as server:
        server.client(KEY).get("/api/incidents")

The process is ended by SIGTERM; a test may end it before by a signal of its choice. What it logs is in `server.log`.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.support.command_line import Home

STOP_SECONDS = 60
_ANNOUNCEMENT = "holmes: listening on "


@dataclass(frozen=True, slots=True, kw_only=True)
class HolmesServer:
    """A server that listens."""

    url: str
    process: subprocess.Popen[str]
    log_file: Path

    @property
    def log(self) -> str:
        """Everything that it has written to standard error."""
        return self.log_file.read_text(errors="replace")

    def client(self, key: str | None = None) -> httpx.Client:
        """A client whose requests carry the key."""
        headers = {"authorization": f"Bearer {key}"} if key else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=30)

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """End the process and return its exit code."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(how)
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise


@contextmanager
def holmes_server(home: Home, *arguments: str, port: int = 0) -> Iterator[HolmesServer]:
    """Yield a server that answers; AssertionError shows the log of one that does not come up."""
    log_file = home.path / "serve.log"
    with log_file.open("a") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "holmes", "serve", f"--port={port}", *arguments],
            env=home.environment(),
            cwd=home.path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    with process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith(_ANNOUNCEMENT), f"it did not start:\n{log_file.read_text()[-3000:]}"
        server = HolmesServer(url=line.removeprefix(_ANNOUNCEMENT).strip(), process=process, log_file=log_file)
        try:
            yield server
        finally:
            server.end()
