"""A server says which toolsets cannot be used, tries them again, and uses them as soon as they work."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.server.http_server import KEY
from tests.support.command_line import Home, provider_config
from tests.support.holmes_server import HolmesServer, holmes_server
from tests.support.openai_server import Body, OpenAIServer, Reply, Scripted, call

pytestmark = pytest.mark.slow

CONFIG = """
toolsets:
  late:
    description: works as soon as its file is there
    prerequisites:
      - command: "cat {file}"
        expected_output: ready
    tools:
      - name: late_tool
        description: Says a word.
        command: echo hello
  odd:
    description: never works
    prerequisites:
      - env: [HOLMES_TEST_NOBODY_SETS_THIS]
    tools:
      - name: odd_tool
        description: Says a word.
        command: echo odd
"""


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 45
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.fixture
def asked() -> list[Body]:
    return []


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "ready.txt"


@pytest.fixture
def server(tmp_path: Path, file: Path, asked: list[Body]) -> Iterator[HolmesServer]:
    def respond(body: Body) -> Scripted:
        asked.append(body)
        results = [message for message in body["messages"] if message["role"] == "tool"]
        if len(results) >= 2 or "twice" not in json.dumps(body["messages"]):
            return Reply(text="All is well.")
        if results:
            file.write_text("ready")
            until(lambda: _state(running[0], "late") == "enabled")
        return Reply(tool_calls=(call("kubectl_get", kind="pod"),))

    running: list[HolmesServer] = []
    with OpenAIServer(respond) as provider:
        home = Home.make(
            tmp_path / "home",
            config=provider_config(provider.base_url) + CONFIG.replace("{file}", str(file)),
            HOLMES_API_KEY=KEY,
            HOLMES_TOOLSET_RETRY_SECONDS="0.2",
            HOLMES_DATABASE_URL=f"sqlite:///{tmp_path / 'i.db'}",
        )
        with holmes_server(home, "--demo") as started:
            running.append(started)
            until(lambda: _state(started, "late") is not None)
            yield started


def _states(server: HolmesServer) -> dict[str, dict[str, Any]]:
    with server.client(KEY) as client:
        return {each["name"]: each for each in client.get("/readyz").raise_for_status().json()["toolsets"]}


def _state(server: HolmesServer, name: str) -> str | None:
    return _states(server).get(name, {}).get("state")


def _tools(body: Body) -> set[str]:
    return {tool["function"]["name"] for tool in body["tools"]}


def _investigated(server: HolmesServer, question: str) -> None:
    with server.client(KEY) as client:
        address = client.post("/api/investigations", json={"question": question}).headers["location"]
        until(lambda: client.get(address).json()["state"] in {"answered", "failed"})
        assert client.get(address).json()["state"] == "answered"


def _up(server: HolmesServer) -> dict[str, float]:
    with server.client(KEY) as client:
        families = text_string_to_metric_families(client.get("/metrics").text)
    samples = [sample for family in families for sample in family.samples if sample.name == "holmes_toolset_up"]
    assert len(samples) == len({sample.labels["toolset"] for sample in samples})
    return {sample.labels["toolset"]: sample.value for sample in samples}


def _said(server: HolmesServer, *words: str) -> list[str]:
    lines = [json.loads(line)["message"] for line in server.log.splitlines() if line.startswith("{")]
    return [line for line in lines if all(word in line for word in words)]


def test_a_toolset_that_failed_is_reported_everywhere(server: HolmesServer, file: Path) -> None:
    states = _states(server)
    assert str(file) in states["late"]["reason"]
    assert "HOLMES_TEST_NOBODY_SETS_THIS" in states["odd"]["reason"]
    assert states["kubernetes/core"] == {"name": "kubernetes/core", "state": "enabled", "reason": None, "cluster": None}
    with server.client() as stranger:
        assert "toolsets" not in stranger.get("/readyz").json(), "what is installed is nobody's business"
    up = _up(server)
    assert (up["late"], up["odd"], up["kubernetes/core"]) == (0, 0, 1)
    with server.client(KEY) as client:
        for path in ("/", "/investigations"):
            assert "Toolset late is not available: " in client.get(path).text
    time.sleep(1)
    assert len(_said(server, "toolset 'late' cannot be used: ", str(file))) == 1, "one line, however often it is tried"
    assert len(_said(server, "toolset 'odd'", "HOLMES_TEST_NOBODY_SETS_THIS")) == 1


def test_it_is_used_as_soon_as_it_works_and_reported_when_it_fails_later(
    server: HolmesServer, file: Path, asked: list[Body]
) -> None:
    with server.client(KEY) as client:
        client.post("/api/chat", json={"ask": "before?"}, timeout=60).raise_for_status()
    _investigated(server, "before?")
    assert all("late_tool" not in _tools(body) for body in asked)
    file.write_text("ready")
    until(lambda: _state(server, "late") == "enabled")
    assert _up(server)["late"] == 1
    asked.clear()
    with server.client(KEY) as client:
        client.post("/api/chat", json={"ask": "after?"}, timeout=60).raise_for_status()
        assert "Toolset late" not in client.get("/").text
    _investigated(server, "after?")
    assert len(asked) == 2
    assert all("late_tool" in _tools(body) for body in asked), "both processes agree"
    file.unlink()
    until(lambda: _state(server, "late") == "failed")
    assert _up(server)["late"] == 0
    assert _said(server, "toolset 'late' can no longer be used")
    asked.clear()
    _investigated(server, "later?")
    assert "late_tool" not in _tools(asked[0])


def test_the_tools_of_a_run_do_not_change_while_it_runs(server: HolmesServer, asked: list[Body]) -> None:
    _investigated(server, "look twice")
    assert len(asked) == 3
    assert [body["tools"] for body in asked] == [asked[0]["tools"]] * 3
    assert "late_tool" not in _tools(asked[-1])
    assert _state(server, "late") == "enabled"


def test_a_file_that_is_broken_meanwhile_is_reported_and_costs_nothing_that_works(tmp_path: Path) -> None:
    extra = tmp_path / "extra.yaml"
    extra.write_text("toolsets: {}\n")
    home = Home.make(
        tmp_path / "home",
        config=f"model: builtin/triage\ncustom_toolsets: [{extra}]\n",
        HOLMES_TOOLSET_RETRY_SECONDS="0.1",
    )
    with holmes_server(home, "--demo") as server:
        until(lambda: _state(server, "kubernetes/core") == "enabled")
        _investigated(server, "before?")
        extra.write_text("toolsets: [\n")
        until(lambda: _state(server, "toolset files") == "failed")
        assert str(extra) in _states(server)["toolset files"]["reason"]
        _investigated(server, "why?")
        extra.write_text("toolsets: {}\n")
        until(lambda: _state(server, "toolset files") is None)


def test_a_server_without_one_usable_toolset_is_not_ready(tmp_path: Path) -> None:
    names = ("kubernetes/core", "kubernetes/logs", "kubernetes/diagnosis", "helm/core")
    off = "".join(f"  {name}: {{enabled: false}}\n" for name in names)
    tool = "{name: x, description: d, command: echo}"
    broken = f"  odd: {{description: d, prerequisites: [{{env: [HOLMES_TEST_NOBODY]}}], tools: [{tool}]}}\n"
    home = Home.make(tmp_path / "home", config=f"model: builtin/triage\ntoolsets:\n{off}{broken}")
    with holmes_server(home, "--demo") as server, server.client() as client:
        until(lambda: client.get("/readyz").status_code == httpx.codes.SERVICE_UNAVAILABLE)
        assert client.get("/readyz").json()["error"]["code"] == "no_toolset"


def test_the_list_of_the_command_line_says_the_same(server: HolmesServer, tmp_path: Path) -> None:
    listed = Home(path=tmp_path / "home", variables={}).run("toolset", "list")
    shown = {line.split()[0]: line.split()[1] for line in listed.stdout.splitlines()}
    told = {name: each["state"] for name, each in _states(server).items()}
    same = ("late", "odd", "kubernetes/core", "helm/core")
    assert {name: shown[name] for name in same} == {name: told[name] for name in same}
