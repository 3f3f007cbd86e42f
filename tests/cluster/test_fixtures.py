"""A machine that cannot run the cluster: its tests are skipped with the reason, and fail in continuous integration."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEST = "def test_that_needs_the_cluster(cluster):\n    pass\n"


def run_on_a_bare_machine(folder: Path, ci: str) -> subprocess.CompletedProcess[str]:
    """Run one test that needs the cluster where nothing is built."""
    file = folder / "test_one.py"
    file.write_text(TEST)
    variables = {"HOLMES_TEST_CACHE": str(folder / "cache"), "HOLMES_TEST_CLUSTER_DIR": str(folder / "run"), "CI": ci}
    options = ["-q", "-rA", "-p", "tests.cluster.fixtures", "-p", "no:cacheprovider", "--rootdir", str(folder)]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-c", os.devnull, str(file)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("ci", ["", "false"])
def test_a_cluster_that_cannot_run_skips_its_tests_and_says_why(ci: str, tmp_path: Path) -> None:
    done = run_on_a_bare_machine(tmp_path, ci)
    assert done.returncode == 0, done.stdout
    assert "1 skipped" in done.stdout
    assert "SKIPPED" in done.stdout
    assert "cluster" in done.stdout.split("SKIPPED", 1)[1]


@pytest.mark.parametrize("ci", ["true", "True"])
def test_with_ci_true_it_fails_them_instead(ci: str, tmp_path: Path) -> None:
    done = run_on_a_bare_machine(tmp_path, ci)
    assert done.returncode == 1, done.stdout
    assert "skipped" not in done.stdout
    assert "no test cluster: " in done.stdout
