"""A question whose model uses the tools of an MCP server: approval, large results, pictures, names that repeat."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.support.command_line import Finished, Home, provider_config, tool_results
from tests.support.openai_server import OpenAIServer, Reply, call
from tests.toolsets.mcp.running import PROCESS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.openai_server import RecordedRequest

_ANSWER = Reply(text="The tickets tell of a slow checkout.")


def _config(base_url: str, **servers: object) -> str:
    started = {"mode": "stdio", "command": PROCESS.command, "args": list(PROCESS.arguments)}
    entries = {name: {"config": started, **keys} for name, keys in servers.items()}  # type: ignore[dict-item]
    return provider_config(base_url, f"mcp_servers: {json.dumps(entries)}", "toolsets: {helm/core: {enabled: false}}")


def _ask(folder: Path, kubeconfig: Path, *replies: Reply, **servers: object) -> tuple[Finished, list[RecordedRequest]]:
    with OpenAIServer([*replies, _ANSWER]) as provider:
        home = Home.make(folder / "home", config=_config(provider.base_url, **servers), KUBECONFIG=str(kubeconfig))
        done = home.run("ask", "-n", "what do the tickets say?")
        return done, list(provider.requests)


def _names(request: RecordedRequest) -> set[str]:
    return {tool["function"]["name"] for tool in request.body["tools"]}


def test_what_only_reads_runs_and_the_rest_is_refused(kubeconfig: Path, tmp_path: Path) -> None:
    calls = Reply(tool_calls=(call("search", text="checkout", limit=2), call("close", ticket=5)))
    tickets = {"read_only": ["search"], "llm_instructions": "Be kind."}
    done, requests = _ask(tmp_path, kubeconfig, calls, tickets=tickets)
    assert done.exit_code == 0
    assert "tickets: search(text=checkout, limit=2)" in done.stderr
    found, refused = tool_results(requests[1].body)
    assert "ticket 1 about checkout" in found
    assert "'close' requires approval, and no person is available to approve it." in refused
    assert "Be kind." in str(requests[0].body["messages"][0])


def test_a_large_result_is_stored_behind_a_preview(kubeconfig: Path, tmp_path: Path) -> None:
    calls = Reply(tool_calls=(call("search", text="checkout " * 20, limit=20_000),))
    done, requests = _ask(tmp_path, kubeconfig, calls, tickets={"read_only": True})
    assert done.exit_code == 0
    (shown,) = tool_results(requests[1].body)
    assert len(shown) < 150_000
    assert "ticket 0 about checkout" in shown
    stored = [path.read_bytes() for path in (tmp_path / "home" / ".holmes" / "results").rglob("*") if path.is_file()]
    assert any(b"ticket 19999 about checkout" in content for content in stored)


def test_two_servers_with_the_same_tools_put_their_names_before_them(kubeconfig: Path, tmp_path: Path) -> None:
    calls = Reply(tool_calls=(call("eu_search", text="a", limit=1), call("us-1_search", text="b", limit=1)))
    done, requests = _ask(tmp_path, kubeconfig, calls, eu={"read_only": True}, **{"us-1": {"read_only": True}})
    assert done.exit_code == 0
    assert {"eu_search", "us-1_search"} <= _names(requests[0])
    assert "search" not in _names(requests[0])
    assert [result.split("\n")[0] for result in tool_results(requests[1].body)] == [
        "ticket 0 about a",
        "ticket 0 about b",
    ]


def test_a_server_that_is_away_takes_only_its_own_tools_away(kubeconfig: Path, tmp_path: Path) -> None:
    gone = {"config": {"mode": "stdio", "command": "no-such-program"}}
    done, requests = _ask(tmp_path, kubeconfig, tickets={"read_only": True}, gone=gone)
    assert done.exit_code == 0
    assert "search" in _names(requests[0])
    assert "toolset 'gone' cannot be used: MCP server 'gone': the program 'no-such-program' is not found" in done.stderr
    assert "- gone: MCP server 'gone'" in requests[0].body["messages"][0]["content"]


def test_without_an_llm_no_server_is_started(tmp_path: Path) -> None:
    mark = tmp_path / "started"
    servers = json.dumps({"a": {"config": {"mode": "stdio", "command": "touch", "args": [str(mark)]}}})
    config = f"model: builtin/triage\nmcp_servers: {servers}\n"
    done = Home.make(tmp_path / "home", config=config).run("ask", "-n", "--demo", "is all well?")
    assert done.exit_code == 0
    assert not mark.exists()
