"""Nobody waits for the model's library in vain: not for a failure that is known already, and not after Ctrl-C.

A package in the place of the library never finishes its import.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.command_line import Home, provider_config
from tests.support.kubernetes_api import KubernetesApi
from tests.support.openai_server import Hang, OpenAIServer

# It asks for a module now and then, as every import does: that is where it can be told to stop.
ENDLESS = """
import time
while True:
    time.sleep(0.05)
    try:
        import missing
    except ImportError:
        pass
"""


@pytest.fixture
def endless(tmp_path: Path) -> dict[str, str]:
    """The environment in which importing litellm takes for ever."""
    package = tmp_path / "endless" / "litellm"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(ENDLESS)
    return {"PYTHONPATH": str(package.parent)}


def test_a_missing_cluster_is_said_before_the_library_is_there_and_before_a_missing_key(
    endless: dict[str, str], tmp_path: Path
) -> None:
    home = Home.make(tmp_path / "home", **endless)
    done = home.run("ask", "-n", "why?", "--model", "gpt-4o")
    (line,) = done.stderr.splitlines()
    assert (done.exit_code, done.stdout) == (3, "")
    assert line.startswith("holmes: No cluster is configured")


def test_a_mistake_in_a_file_is_said_before_a_missing_cluster(endless: dict[str, str], tmp_path: Path) -> None:
    misspelt = Home.make(tmp_path / "misspelt", config="max_stpes: 5\n", **endless)
    done = misspelt.run("ask", "-n", "why?")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "unknown key 'max_stpes'" in done.stderr
    toolset = tmp_path / "broken.yaml"
    toolset.write_text("toolsets:\n  a: {b: [}\n")
    done = Home.make(tmp_path / "home", **endless).run("ask", "-n", "why?", "-t", str(toolset))
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert f"{toolset}:2" in line


@pytest.mark.parametrize(
    ("number", "delay_seconds", "exit_code"),
    [(signal.SIGINT, 0.0, 130), (signal.SIGINT, 0.5, 130), (signal.SIGINT, 1.5, 130), (signal.SIGTERM, 0.5, 143)],
)
def test_a_signal_while_the_library_is_imported_ends_at_once(
    *,
    number: signal.Signals,
    delay_seconds: float,
    exit_code: int,
    quiet_cluster: KubernetesApi,
    kubeconfig: Path,
    tmp_path: Path,
) -> None:
    with OpenAIServer([Hang()]) as server:
        home = Home.make(tmp_path / "home", config=provider_config(server.base_url), KUBECONFIG=str(kubeconfig))
        with home.start("ask", "-n", "why?") as process:
            deadline = time.monotonic() + 30
            while not quiet_cluster.asked("/version"):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            time.sleep(delay_seconds)
            process.send_signal(number)
            stdout, stderr = process.communicate(timeout=30)
    assert (process.returncode, stdout, stderr) == (exit_code, "", "holmes: interrupted\n")


def test_ctrl_c_before_anything_is_opened_says_the_same(tmp_path: Path) -> None:
    home = Home.make(tmp_path / "home", HOLMES_STDIN_TIMEOUT_SECONDS="60")
    with subprocess.Popen(
        [sys.executable, "-m", "holmes", "ask", "why?"],
        env=home.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        assert "standard input" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=30)
    assert (process.returncode, stdout, stderr.strip()) == (130, "", "holmes: interrupted")
