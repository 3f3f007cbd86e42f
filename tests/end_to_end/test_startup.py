"""Nobody waits for the model's library in vain: not for a failure that is known already, and not after Ctrl-C.

Times are compared with a bare import of that library in the same run, since machines differ.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.command_line import Finished, Home, provider_config
from tests.support.kubernetes_api import KubernetesApi
from tests.support.openai_server import Hang, OpenAIServer


@pytest.fixture(scope="module")
def import_seconds(tmp_path_factory: pytest.TempPathFactory) -> float:
    """What importing litellm takes on this machine."""
    home = Home.make(tmp_path_factory.mktemp("home"))
    offline = {**home.environment(), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    started = time.monotonic()
    subprocess.run([sys.executable, "-c", "import litellm"], env=offline, check=True)
    return time.monotonic() - started


def timed_ask(home: Home, *options: str) -> tuple[Finished, float]:
    """A run of `holmes ask`, and its wall seconds."""
    started = time.monotonic()
    done = home.run("ask", "-n", "why?", *options)
    return done, time.monotonic() - started


def test_a_missing_cluster_is_said_before_the_library_is_there_and_before_a_missing_key(
    import_seconds: float, tmp_path: Path
) -> None:
    home = Home.make(tmp_path / "home")
    runs = [timed_ask(home, "--model", "gpt-4o") for _ in range(3)]
    for done, _ in runs:
        (line,) = done.stderr.splitlines()
        assert (done.exit_code, done.stdout) == (3, "")
        assert line.startswith("holmes: No cluster is configured")
    assert min(seconds for _, seconds in runs) <= import_seconds / 2


def test_a_mistake_in_a_file_is_said_before_a_missing_cluster(import_seconds: float, tmp_path: Path) -> None:
    misspelt = Home.make(tmp_path / "misspelt", config="max_stpes: 5\n")
    done, seconds = timed_ask(misspelt)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "unknown key 'max_stpes'" in done.stderr
    assert seconds <= import_seconds / 2
    toolset = tmp_path / "broken.yaml"
    toolset.write_text("toolsets:\n  a: {b: [}\n")
    done, seconds = timed_ask(Home.make(tmp_path / "home"), "-t", str(toolset))
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert f"{toolset}:2" in line
    assert seconds <= import_seconds / 2


@pytest.mark.parametrize(
    ("number", "delay_seconds", "exit_code"),
    [(signal.SIGINT, 0.0, 130), (signal.SIGINT, 0.5, 130), (signal.SIGINT, 1.5, 130), (signal.SIGTERM, 0.5, 143)],
)
def test_a_signal_while_the_library_is_imported_ends_at_once(
    *,
    number: signal.Signals,
    delay_seconds: float,
    exit_code: int,
    import_seconds: float,
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
            signalled = time.monotonic()
            stdout, stderr = process.communicate(timeout=30)
            seconds = time.monotonic() - signalled
    assert (process.returncode, stdout, stderr) == (exit_code, "", "holmes: interrupted\n")
    assert seconds <= max(1.0, import_seconds / 4)


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
