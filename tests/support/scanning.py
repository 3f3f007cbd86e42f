"""Runs `holmes scan` in a process of its own against a synthetic cluster in another, and measures it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from holmes.values.findings import DiagnosisReport
from holmes.values.findings_json import report_from_json
from tests.support.command_line import Home

ROOT = Path(__file__).resolve().parent.parent.parent
# A process is charged with what its parent held when it was forked, so a small one stands between.
_MEASURE = """
import json, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([used.ru_maxrss / 1024, used.ru_utime + used.ru_stime, done.stdout]))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredScan:
    """A report and what it took: wall and CPU seconds of the whole process, and its peak of memory."""

    report: DiagnosisReport
    seconds: float
    cpu_seconds: float
    peak_megabytes: float


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


def measured_scan(kubeconfig: Path) -> MeasuredScan:
    """Scan the whole cluster of a kubeconfig."""
    home = Home.make(kubeconfig.parent / "home")
    scan = ["-m", "holmes", "scan", "-A", "-o", "json", f"--kubeconfig={kubeconfig}"]
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, sys.executable, *scan],
        env=home.environment(),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
    )
    seconds = time.monotonic() - started
    peak_megabytes, cpu_seconds, text = json.loads(done.stdout)
    return MeasuredScan(
        report=report_from_json(text), seconds=seconds, cpu_seconds=cpu_seconds, peak_megabytes=peak_megabytes
    )
