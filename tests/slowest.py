"""Prints the slowest tests of some runs as one table: `python -m tests.slowest REPORT.xml ...` after `--junitxml`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

ROWS = 30


def durations(report: Path) -> Iterator[tuple[float, str]]:
    """Seconds and name of each test of a report, fixtures included."""
    for case in ET.parse(report).iter("testcase"):  # noqa: S314  pytest wrote it
        yield float(case.get("time", 0)), f"{case.get('classname')}::{case.get('name')}"


def table(reports: Sequence[Path]) -> str:
    """The slowest tests of all reports, then how long each report took."""
    runs = {report: list(durations(report)) for report in reports}
    slowest = sorted((test for tests in runs.values() for test in tests), reverse=True)[:ROWS]
    lines = [f"Slowest {len(slowest)} tests", *(f"{seconds:8.1f} s  {name}" for seconds, name in slowest)]
    for report, tests in runs.items():
        lines.append(f"{sum(seconds for seconds, _ in tests):8.1f} s  all {len(tests)} tests of {report.name}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(table([Path(argument) for argument in sys.argv[1:]]) + "\n")
