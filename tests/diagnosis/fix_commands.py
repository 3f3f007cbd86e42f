"""Tries the steps of a report with kubectl, without changing anything."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Iterator
from typing import Final

from holmes.values.findings import DiagnosisReport
from holmes.values.fixes import fix_line

Run = Callable[..., subprocess.CompletedProcess[str]]
"""Runs kubectl with the given arguments."""

_WITHOUT_DRY_RUN: Final = ["rollout", "restart"]


def refused_steps(report: DiagnosisReport, kubectl: Run, dry_run: str) -> Iterator[str]:
    """Yield each step that kubectl or the API server refuses, with the reason."""
    for line in tried_lines(report):
        program, *arguments = shlex.split(line)
        assert program == "kubectl", line
        if arguments[2:4] == _WITHOUT_DRY_RUN:
            arguments[2:4] = ["get"]
        else:
            arguments.append(f"--dry-run={dry_run}")
        done = kubectl(*arguments)
        if done.returncode != 0:
            yield f"{line}: {done.stderr.strip()}"


def tried_lines(report: DiagnosisReport) -> tuple[str, ...]:
    steps = (step for incident in report.incidents for step in incident.fix)
    return tuple(fix_line(step) for step in steps if step.kind != "instruction")
