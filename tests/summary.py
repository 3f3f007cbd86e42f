"""Prints the slowest and the failed tests of some runs: `python -m tests.summary REPORT.xml ...` after `--junitxml`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

ROWS = 20
REASON_CHARACTERS = 1_500


def durations(report: ET.Element) -> Iterator[tuple[float, str]]:
    """Seconds and name of each test of a report, fixtures included."""
    for case in report.iter("testcase"):
        yield float(case.get("time", 0)), _name(case)


def failures(report: ET.Element) -> Iterator[str]:
    """Each failed test with the beginning of its reason, since a long log is cut in its middle."""
    for case in report.iter("testcase"):
        for outcome in (*case.iter("failure"), *case.iter("error")):
            yield f"FAILED {_name(case)}\n{outcome.get('message', '')[:REASON_CHARACTERS]}"


def summary(files: Sequence[Path]) -> str:
    """The slowest tests of all reports, how long each report took, and the failures."""
    reports = {file.name: ET.parse(file).getroot() for file in files}  # noqa: S314  pytest wrote it
    runs = {name: list(durations(report)) for name, report in reports.items()}
    slowest = sorted((test for tests in runs.values() for test in tests), reverse=True)[:ROWS]
    lines = [f"Slowest {len(slowest)} tests", *(f"{seconds:8.1f} s  {name}" for seconds, name in slowest)]
    for name, tests in runs.items():
        lines.append(f"{sum(seconds for seconds, _ in tests):8.1f} s  all {len(tests)} tests of {name}")
    return "\n".join([*lines, *(each for report in reports.values() for each in failures(report))])


def _name(case: ET.Element) -> str:
    return f"{case.get('classname')}::{case.get('name')}"


if __name__ == "__main__":
    sys.stdout.write(summary([Path(argument) for argument in sys.argv[1:]]) + "\n")
