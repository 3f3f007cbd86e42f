"""`holmes serve` as a process: what it says, what it refuses, and how it ends."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from holmes.server.logs import JsonLines
from tests.server.event_stream import events_of, named
from tests.server.http_server import KEY
from tests.support.command_line import Home
from tests.support.openai_server import Body, Hang, OpenAIServer, Reply, Scripted


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.make(tmp_path / "home", HOLMES_DRAIN_SECONDS="5")


@pytest.fixture
def process(home: Home) -> Iterator[subprocess.Popen[str]]:
    """A server on a free port, without an LLM."""
    with home.start("serve", "--demo", "--port", "0", "--model", "builtin/triage") as running:
        yield running
        if running.poll() is None:
            running.kill()


def url_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("holmes: listening on http://127.0.0.1:")
    return line.split()[-1]


def test_it_says_where_it_listens_logs_lines_of_json_and_ends_on_sigterm(process: subprocess.Popen[str]) -> None:
    url = url_of(process)
    assert httpx.get(f"{url}/readyz").status_code == 200

    process.send_signal(signal.SIGTERM)
    stdout, stderr = process.communicate(timeout=30)

    assert process.returncode == 0
    assert stdout == ""
    lines = [json.loads(line) for line in stderr.splitlines()]
    assert {"time", "level", "logger", "message"} <= set(lines[0])
    assert any("recorded demo cluster" in line["message"] for line in lines)
    assert not any("readyz" in line["message"] for line in lines)


@pytest.mark.parametrize(
    ("arguments", "variables", "code", "problem"),
    [
        (["--host", "::"], {}, 2, "HOLMES_API_KEY"),
        (["--model", "gpt-4o"], {"LOG_LEVEL": "loud"}, 2, "LOG_LEVEL"),
        (["--demo", "--context", "x"], {}, 2, "mutually exclusive"),
        (["--port", "99999"], {}, 2, "99999"),
        ([], {"HOLMES_API_KEY": "short"}, 2, "HOLMES_API_KEY: must have at least 8 characters"),
        ([], {"HOLMES_DATABASE_URL": "mysql://x"}, 2, "HOLMES_DATABASE_URL"),
    ],
)
def test_what_cannot_work_is_one_line_with_the_fix(
    tmp_path: Path, arguments: list[str], variables: dict[str, str], code: int, problem: str
) -> None:
    done = Home.make(tmp_path / "home", **variables).run("serve", *arguments)

    assert done.exit_code == code
    assert problem in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""


def test_an_empty_key_is_told_and_a_signal_ends_it_also_while_it_waits_for_the_database(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    address = f"postgresql://me:hidden@127.0.0.1:{port}/holmes"
    home = Home.make(tmp_path / "home", HOLMES_DATABASE_URL=address, HOLMES_API_KEY=" ")
    with home.start("serve", "--port", "0", "--model", "builtin/triage") as process:
        assert process.stderr is not None
        empty, waits = (json.loads(process.stderr.readline()) for _ in range(2))
        process.send_signal(signal.SIGTERM)
        rest, stderr = process.communicate(timeout=10)

    assert empty["level"] == "warning"
    assert "HOLMES_API_KEY is empty" in empty["message"]
    assert "waiting for the database" in waits["message"]
    assert str(port) in waits["message"]
    assert "hidden" not in waits["message"]
    assert process.returncode == 0
    assert rest == ""
    assert "Traceback" not in stderr


def test_a_port_that_is_taken_is_one_line(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = home.run("serve", "--port", str(taken.getsockname()[1]))

    assert done.exit_code == 2
    assert "--port" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.slow
def test_a_chat_may_finish_while_the_server_ends_and_one_that_hangs_is_told(tmp_path: Path) -> None:
    def respond(body: Body) -> Scripted:
        return Hang() if "hang" in str(body["messages"][-1]) else Reply(text="Just in time.", delay_seconds=1)

    with OpenAIServer(respond) as provider:
        variables = {"OPENAI_API_KEY": "any", "OPENAI_API_BASE": provider.base_url, "HOLMES_API_KEY": KEY}
        home = Home.make(tmp_path / "home", HOLMES_DRAIN_SECONDS="3", **variables)
        arguments = ("serve", "--demo", "--host", "127.0.0.1", "--port", "0", "--model", "openai/scripted")
        with home.start(*arguments) as process:
            url = url_of(process)
            with httpx.Client(base_url=url, headers={"X-API-Key": KEY}, timeout=60) as client:
                client.post("/api/chat", json={"ask": "first"})
                threading.Timer(0.5, process.send_signal, (signal.SIGTERM,)).start()
                with client.stream("POST", "/api/chat", json={"ask": "hang", "stream": True}) as hanging:
                    finishing = client.post("/api/chat", json={"ask": "in time"})
                    last = named(events_of(hanging))[-1]
            process.communicate(timeout=30)

    assert finishing.json()["analysis"] == "Just in time."
    assert last.name == "error"
    assert "stopping" in last.data["description"]
    assert process.returncode == 0


def test_a_destination_that_cannot_work_is_one_line(tmp_path: Path) -> None:
    config = "alerts:\n  destinations:\n    slack:\n      type: slack\n      channel: C1\n      token: ''\n"

    done = Home.make(tmp_path / "home", config=config).run("serve", "--demo", "--port", "0")

    assert done.exit_code == 2
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_log_line_is_one_line_whatever_is_logged() -> None:
    import logging

    record = logging.LogRecord("x", logging.ERROR, "f", 1, "two\nlines %s", ("\u2028",), None)
    assert "\n" not in JsonLines().format(record)
    assert json.loads(JsonLines().format(record))["message"] == "two\nlines \u2028"
