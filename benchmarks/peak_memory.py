"""Runs `holmes` and measures how much memory it took at most, for `benchmarks/memory.py`. Linux only."""

from __future__ import annotations

import subprocess
import sys

from tests.support.command_line import Home

# A process is charged with what its parent held when it was forked, so a small one stands between pytest and the run.
MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def peak_megabytes(home: Home, *arguments: str) -> float:
    """The peak resident memory, in megabytes, of `holmes` with these arguments or of the largest tool it started.

    Raises `CalledProcessError` when the run fails.
    """
    measured = [sys.executable, "-c", MEASURE, sys.executable, "-m", "holmes", *arguments]
    done = subprocess.run(measured, env=home.environment(), check=True, stdout=subprocess.PIPE, text=True, timeout=120)
    return float(done.stdout) / 1024
