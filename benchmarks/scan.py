"""What a scan of a large cluster costs: `python benchmarks/scan.py [PODS EVENTS]`.

A server of its own plays a cluster of 5,000 pods and 50,000 events; the scanner is the `holmes scan` command in a
process of its own. A second, small cluster shows what grows. Exits with 1 when a promise is broken:

- at most 10 s and 700 MB for the large cluster;
- as many lists for the large one as for the small one, and at most 20 logs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from holmes.values.findings import DiagnosisReport
from holmes.values.findings_json import report_from_json
from tests.support.command_line import Home
from tests.support.scanning import synthetic_server

MAX_CPU_SECONDS = 10.0
MAX_MEGABYTES = 600.0
MAX_LOGS = 20
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


def scanned(pods: int, events: int) -> MeasuredScan:
    """A scan of a synthetic cluster of this size."""
    with tempfile.TemporaryDirectory() as folder, synthetic_server(Path(folder), pods, events) as kubeconfig:
        return measured_scan(kubeconfig)


def show(name: str, scan: MeasuredScan) -> None:
    cost = scan.report.cost
    print(
        f"{name}: {scan.seconds:.1f} s, {scan.cpu_seconds:.1f} s CPU, {scan.peak_megabytes:.0f} MB, "
        f"{cost.list_calls} lists in {cost.requests} requests, {cost.logs_read} logs, "
        f"{len(scan.report.incidents)} incidents"
    )


def main() -> None:
    pods, events = (int(sys.argv[1]), int(sys.argv[2])) if len(sys.argv) > 2 else (5_000, 50_000)
    small, large = scanned(50, 500), scanned(pods, events)
    show("50 pods, 500 events", small)
    show(f"{pods:,} pods, {events:,} events", large)
    broken = []
    if large.cpu_seconds > MAX_CPU_SECONDS:
        broken.append(f"the scan took {large.cpu_seconds:.1f} s of CPU, at most {MAX_CPU_SECONDS:g} are promised")
    if large.peak_megabytes > MAX_MEGABYTES:
        broken.append(f"the scanner took {large.peak_megabytes:.0f} MB, at most {MAX_MEGABYTES:g} are promised")
    if large.report.cost.list_calls != small.report.cost.list_calls:
        broken.append("the number of lists grows with the cluster")
    if large.report.cost.logs_read > MAX_LOGS:
        broken.append(f"{large.report.cost.logs_read} logs were read, at most {MAX_LOGS} are promised")
    for line in broken:
        print(f"NOT MET: {line}")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
