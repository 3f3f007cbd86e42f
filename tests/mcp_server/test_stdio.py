"""`holmes mcp` as editors start it: a process that a client of the official SDK talks to."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import TextContent

from tests.support.command_line import Home, provider_config
from tests.support.openai_server import OpenAIServer, Reply, call

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mcp_types import CallToolResult


@asynccontextmanager
async def _client(home: Home, *options: str) -> AsyncIterator[Client]:
    started = StdioServerParameters(
        command=sys.executable, args=["-m", "holmes", "mcp", "--demo", *options], env=home.environment()
    )
    async with Client(started) as client:
        yield client


def _text(result: CallToolResult) -> str:
    (part,) = result.content
    assert isinstance(part, TextContent)
    return part.text


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.make(tmp_path / "home", config="model: builtin/triage\n")


async def test_the_tools_only_read_and_each_has_its_schema(home: Home) -> None:
    async with _client(home) as client:
        listed = (await client.list_tools()).tools
        names = [tool.name for tool in listed]
        assert client.server_info is not None
        assert client.server_info.name == "holmes"
    assert {"ask_holmes", "kubernetes_diagnose", "kubernetes_first_look", "kubernetes_logs", "kubectl_get"} <= set(
        names
    )
    assert len(names) == len(set(names))
    for tool in listed:
        assert tool.description
        assert tool.input_schema["type"] == "object"
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is True


async def test_a_question_is_answered_with_its_steps_and_readable_citations(home: Home) -> None:
    steps: list[str] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        assert (progress, total) == (len(steps) + 1, None)
        steps.append(message or "")

    async with _client(home) as client:
        question = {"question": "why is recommendations in namespace shop failing?"}
        result = await client.call_tool("ask_holmes", question, progress_callback=note)
        answer = _text(result)
        cited = re.search(r"\[\[([0-9a-f]+):(\d+)\]\]", answer)
        assert cited is not None
        place = {"result_id": cited[1], "first_line": int(cited[2]), "last_line": int(cited[2])}
        line = await client.call_tool("read_stored_result_lines", place)
    assert not result.is_error
    assert answer.startswith("**Root cause** (critical): ")
    assert steps == ["First look"]
    assert not line.is_error, _text(line)
    assert "recommendations" in _text(line)


async def test_calls_run_at_once_and_errors_are_results_of_one_line(home: Home) -> None:
    async with _client(home) as client:
        pods, logs, unknown, empty, wrong = await asyncio.gather(
            client.call_tool("kubectl_get", {"kind": "pods", "namespace": "shop"}),
            client.call_tool("kubernetes_logs", {"namespace": "shop", "name": "recommendations"}),
            client.call_tool("kubectl_delete", {}),
            client.call_tool("ask_holmes", {"question": " "}),
            client.call_tool("kubectl_get", {"kinds": "pods"}),
        )
    assert "catalog-" in _text(pods)
    assert logs.content
    assert unknown.is_error
    assert _text(unknown).startswith("unknown tool 'kubectl_delete'; available tools: ask_holmes, ")
    assert _text(empty) == "question is empty; ask for example: why is checkout failing?"
    assert wrong.is_error
    assert "unknown parameter 'kinds', did you mean 'kind'?" in _text(wrong)


async def test_a_model_answers_and_may_only_call_what_needs_no_approval(tmp_path: Path) -> None:
    risky = {
        "description": "for tests",
        "tools": [{"name": "risky_echo", "description": "Says a word.", "command": "echo said"}],
        "approval_required_tools": ["risky_*"],
    }
    with OpenAIServer([Reply(tool_calls=(call("risky_echo"),)), Reply(text="I was refused.")]) as provider:
        config = provider_config(provider.base_url, f"toolsets: {json.dumps({'risky': risky})}")
        async with _client(Home.make(tmp_path / "home", config=config)) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            answer = _text(await client.call_tool("ask_holmes", {"question": "say a word"}))
        sent = json.dumps(provider.requests[1].body["messages"])
    assert "risky_echo" not in names
    assert answer == "I was refused."
    assert "requires approval" in sent


def test_the_end_of_the_input_ends_the_process(home: Home) -> None:
    done = home.run("mcp", "--demo", stdin="")
    assert (done.exit_code, done.stdout) == (0, "")


def test_what_prevents_the_start_is_one_line_on_standard_error(tmp_path: Path) -> None:
    done = Home.make(tmp_path / "home", config="model: builtin/triage\n").run("mcp", stdin="")
    assert done.exit_code == 3
    assert done.stdout == ""
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("holmes: ")]
    assert "No cluster is configured" in line
