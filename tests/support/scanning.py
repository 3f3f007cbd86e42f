"""Runs `holmes scan` in a process of its own against a synthetic cluster in another."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holmes.values.findings import DiagnosisReport
from holmes.values.findings_json import report_from_json
from tests.support.command_line import Home

ROOT = Path(__file__).resolve().parent.parent.parent


@contextmanager
def synthetic_server(folder: Path, pods: int, events: int) -> Iterator[Path]:
    """Serve a synthetic cluster of this size and yield its kubeconfig."""
    command = [sys.executable, "-m", "tests.support.synthetic_cluster", str(folder), str(pods), str(events)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        try:
            yield folder / "kubeconfig"
        finally:
            server.terminate()


def scan(kubeconfig: Path) -> DiagnosisReport:
    """Scan the whole cluster of a kubeconfig."""
    home = Home.make(kubeconfig.parent / "home")
    done = home.run("scan", "-A", "-o", "json", f"--kubeconfig={kubeconfig}", timeout_seconds=170)
    assert done.exit_code == 0, done.stderr
    return report_from_json(done.stdout)
