"""The two processes of `holmes serve`: they work together, hear of each other's end, and end in order."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.services.service import free_port
from tests.support.alert_load import payload
from tests.support.command_line import Home, provider_config
from tests.support.deadlines import ends_before
from tests.support.openai_server import Body, Hang, OpenAIServer, Reply, Scripted, call

pytestmark = pytest.mark.slow

QUESTION = "why is checkout failing in namespace shop?"
TOOLSETS = """
toolsets:
  signals:
    description: for tests
    tools:
      - name: ignored_signals
        description: Which signals a tool ignores.
        command: "grep SigIgn /proc/self/status"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server on the demo cluster."""

    process: subprocess.Popen[str]
    url: str
    database: Path

    @property
    def worker(self) -> psutil.Process:
        """The process that investigates."""
        (worker,) = psutil.Process(self.process.pid).children()
        return worker

    def ask(self) -> str:
        """Queue an investigation; returns its address."""
        reply = httpx.post(f"{self.url}/api/investigations", json={"question": QUESTION}, timeout=30)
        return f"{self.url}{reply.headers['location']}"

    def end(self, how: signal.Signals = signal.SIGTERM) -> list[dict[str, Any]]:
        """Send a signal and wait; returns what was logged."""
        self.process.send_signal(how)
        return self.log()

    def log(self) -> list[dict[str, Any]]:
        """Wait for the end; returns what was logged."""
        _, stderr = self.process.communicate(timeout=120)
        return [json.loads(line) for line in stderr.splitlines()]

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What its database says."""
        with closing(sqlite3.connect(self.database)) as connection:
            return connection.execute(query).fetchall()


@contextmanager
def running(folder: Path, config: str = "model: builtin/triage\n", **variables: str) -> Iterator[Server]:
    database = folder / "investigations.db"
    settings = {"HOLMES_DRAIN_SECONDS": "1", "HOLMES_DATABASE_URL": f"sqlite:///{database}", **variables}
    home = folder / f"home-{sum(1 for _ in folder.iterdir())}"
    with Home.make(home, config=config, **settings).start("serve", "--demo", "--port", "0") as process:
        assert process.stdout is not None
        try:
            yield Server(process=process, url=process.stdout.readline().split()[-1], database=database)
        finally:
            process.kill()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Without an LLM."""
    with running(tmp_path) as started:
        yield started


def until(condition: Callable[[], bool]) -> None:
    """Wait for it, however busy the machine is."""
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def is_answered(address: str) -> bool:
    return bool(httpx.get(address, timeout=30).json()["state"] == "answered")


def test_without_the_process_that_investigates_the_server_ends_and_says_so(server: Server) -> None:
    server.worker.kill()

    (error,) = [each for each in server.log() if each["level"] == "error"]

    assert server.process.returncode == 1
    assert "the investigation process was killed by SIGKILL; the server exits" in error["message"]


@pytest.mark.parametrize("stopped", [False, True])
def test_the_process_that_investigates_does_not_outlive_the_server(server: Server, *, stopped: bool) -> None:
    worker = server.worker
    if stopped:
        worker.suspend()

    server.process.kill()

    assert psutil.wait_procs([worker], timeout=5)[1] == []


def test_a_signal_for_the_process_that_investigates_alone_ends_nothing(server: Server) -> None:
    worker = server.worker

    for number in (signal.SIGTERM, signal.SIGINT):
        worker.send_signal(number)

    asked = server.ask()
    until(lambda: is_answered(asked))
    assert worker.is_running()


def test_what_both_processes_count_is_one_figure(server: Server) -> None:
    asked = server.ask()
    until(lambda: is_answered(asked))
    chat = httpx.post(f"{server.url}/api/chat", json={"ask": QUESTION}, timeout=30)

    text = httpx.get(f"{server.url}/metrics").text

    assert chat.status_code == 200
    families = {each.name: each for each in text_string_to_metric_families(text)}
    finished = {sample.labels["source"]: sample.value for sample in families["holmes_investigations_finished"].samples}
    assert finished == {"api": 1, "chat": 1}
    memory = families["process_resident_memory_bytes"].samples[0].value
    assert memory > psutil.Process(server.process.pid).memory_info().rss
    assert families["holmes_build_info"].samples[0].value == 1


def test_what_runs_may_finish_when_the_server_ends(tmp_path: Path) -> None:
    with OpenAIServer(lambda _: Reply(text="Just in time.", delay_seconds=3)) as provider:
        config = provider_config(provider.base_url)
        with running(tmp_path, config, HOLMES_DRAIN_SECONDS="30") as server:
            server.ask()
            until(lambda: bool(provider.requests))
            log = server.end()

    assert server.process.returncode == 0
    assert server.rows("SELECT state, answer FROM holmes_investigations") == [("answered", "Just in time.")]
    assert server.rows("SELECT * FROM holmes_replicas") == []
    assert not [each for each in log if each["level"] == "error"]


def test_what_cannot_finish_is_handed_over_to_whoever_comes_next(tmp_path: Path) -> None:
    replies: list[Scripted] = [Hang()]
    with OpenAIServer(lambda _: replies[-1]) as provider:
        config = provider_config(provider.base_url)
        with running(tmp_path, config) as server:
            asked = server.ask()
            until(lambda: bool(provider.requests))
            with ends_before(60):
                log = server.end()
        replies.append(Reply(text="Later."))
        left = server.rows("SELECT * FROM holmes_replicas")
        with running(tmp_path, config) as again:
            address = asked.replace(server.url, again.url)
            until(lambda: is_answered(address))

    assert server.process.returncode == 0
    assert any("waiting up to 1 s for running investigations: 1" in each["message"] for each in log)
    assert left == []


def test_a_tool_of_an_investigation_ignores_no_signal(tmp_path: Path) -> None:
    def respond(body: Body) -> Scripted:
        is_first = all(message["role"] != "tool" for message in body["messages"])
        return Reply(tool_calls=(call("ignored_signals"),)) if is_first else Reply(text="Done.")

    with (
        OpenAIServer(respond) as provider,
        running(tmp_path, provider_config(provider.base_url) + TOOLSETS) as server,
    ):
        asked = server.ask()
        until(lambda: is_answered(asked))

    (result,) = [message for message in provider.requests[-1].body["messages"] if message["role"] == "tool"]
    ignored = int(result["content"].split()[1], base=16)
    assert not any(ignored >> (number - 1) & 1 for number in (signal.SIGINT, signal.SIGTERM))


def test_a_process_that_has_stopped_holds_up_nobody(server: Server) -> None:
    """Alerts are stored, probes and scrapes answered; at the end it is killed, which is said."""
    server.worker.suspend()
    alerts = f"{server.url}/api/alerts/alertmanager"

    with httpx.Client(timeout=5) as client:
        statuses = {client.post(alerts, json=payload([number])).status_code for number in range(400)}
        assert client.get(f"{server.url}/metrics").status_code == 200
        assert client.get(f"{server.url}/healthz").status_code == 200
        with ends_before(60):
            log = server.end()

    assert statuses == {202}
    assert "did not exit in time, so the server kills it" in log[-1]["message"]
    assert server.process.returncode == 1
    assert server.rows("SELECT count(*) FROM holmes_alerts") == [(400,)]


@pytest.mark.long
def test_a_process_that_says_nothing_for_a_minute_is_started_again_with_the_server(server: Server) -> None:
    server.worker.suspend()

    with ends_before(150):
        messages = [each["message"] for each in server.log() if each["level"] == "error"]

    assert server.process.returncode == 1
    assert "has not replied for a minute, so the server kills it" in messages[0]
    assert "the server exits" in messages[1]


def test_a_signal_during_the_start_ends_both(tmp_path: Path) -> None:
    home = Home.make(tmp_path / "home", config="model: builtin/triage\n")
    for delay in (0.3, 1.0, 1.5):
        with home.start("serve", "--demo", "--port", "0") as process:
            time.sleep(delay)
            children = psutil.Process(process.pid).children()
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)
            assert process.returncode in {0, -signal.SIGTERM}
            assert psutil.wait_procs(children, timeout=5)[1] == []


def test_a_signal_in_the_middle_of_the_fork_ends_both(tmp_path: Path) -> None:
    home = Home.make(tmp_path / "home", config="model: builtin/triage\n")
    with home.start("serve", "--demo", "--port", "0") as process:
        parent, deadline = psutil.Process(process.pid), time.monotonic() + 30
        while not (children := parent.children()):
            assert time.monotonic() < deadline
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert psutil.wait_procs(children, timeout=5)[1] == []


def test_long_lines_of_two_processes_do_not_mix() -> None:
    program = (
        "import logging, os; from holmes.server.logs import set_up_logs; set_up_logs('INFO', None); child = os.fork()\n"
        "for number in range(200): logging.info('%d %d %s', child, number, 'x' * 6000)\n"
        "if child: os.waitpid(child, 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True, check=True)

    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert len(lines) == 400


def test_a_server_without_standard_output_serves(tmp_path: Path) -> None:
    home = Home.make(tmp_path / "home", config="model: builtin/triage\n")
    port = free_port()
    command = f"exec {sys.executable} -m holmes serve --demo --port {port} >&-"
    with subprocess.Popen(["sh", "-c", command], env=home.environment(), stderr=subprocess.DEVNULL) as process:
        until(lambda: answers(f"http://127.0.0.1:{port}/readyz"))
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=5).status_code == 200
    except httpx.HTTPError:
        return False
