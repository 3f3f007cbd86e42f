"""A tool that needs a person: the chat ends where it would wait, and goes on with the decision."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from holmes.server.chat.approvals import ChatApprover
from holmes.values.messages import ToolCallId
from holmes.values.tools import ToolInvocation
from tests.server.event_stream import events_of, named
from tests.server.http_server import Provider, http_server
from tests.support.openai_server import Reply, call
from tests.support.toolsets import tool

ASK = {"ask": "say hello", "enable_tool_approval": True}
RISKY = call("risky_echo", call_id="risky-1", word="hello")
HARMLESS = call("kubernetes_diagnose", call_id="harmless-1")


@pytest.fixture
def waiting(client: httpx.Client, scripted: Provider) -> dict[str, Any]:
    """The answer of a chat whose risky call waits, beside one that was made."""
    scripted.play(Reply(text="I try.", tool_calls=(RISKY, HARMLESS)), Reply(text="Done."))
    answer: dict[str, Any] = client.post("/api/chat", json=ASK).json()
    return answer


def decided(waiting: dict[str, Any], *, approved: bool, **more: object) -> dict[str, Any]:
    decision = {"tool_call_id": "risky-1", "approved": approved, **more}
    return {**ASK, "conversation_history": waiting["conversation_history"], "tool_decisions": [decision]}


def test_a_call_that_waits_ends_the_chat_before_the_model_is_asked_again(
    waiting: dict[str, Any], scripted: Provider
) -> None:
    asked = len(scripted.server.requests)

    (pending,) = waiting["pending_approvals"]
    assert pending["tool_call_id"] == "risky-1"
    assert pending["tool_name"] == "risky_echo"
    assert pending["params"] == {"word": "hello"}
    assert waiting["analysis"] == ""
    assert [each["tool_call_id"] for each in waiting["tool_calls"]] == ["harmless-1"]
    assert len(scripted.server.requests) == asked


def test_an_approved_call_runs_once_and_the_model_reads_it(
    client: httpx.Client, waiting: dict[str, Any], scripted: Provider
) -> None:
    asked = len(scripted.server.requests)

    answer = client.post("/api/chat", json=decided(waiting, approved=True)).json()

    assert answer["analysis"] == "Done."
    (made,) = answer["tool_calls"]
    assert made["tool_call_id"] == "risky-1"
    assert made["result"]["data"].startswith("said hello")
    assert len(scripted.server.requests) == asked + 1
    sent = scripted.server.requests[-1].body["messages"]
    results = [message for message in sent if message["role"] == "tool"]
    assert [message["tool_call_id"] for message in results] == ["harmless-1", "risky-1"]


def test_a_refused_call_does_not_run_and_the_model_hears_why(
    client: httpx.Client, waiting: dict[str, Any], scripted: Provider
) -> None:
    answer = client.post("/api/chat", json=decided(waiting, approved=False, feedback="Too loud.")).json()

    (made,) = answer["tool_calls"]
    assert made["result"]["status"] == "approval_required"
    sent = str(scripted.server.requests[-1].body["messages"])
    assert "refused to run" in sent
    assert "Too loud." in sent
    assert "said hello" not in sent


def test_a_decision_about_a_call_that_does_not_wait_is_a_mistake(client: httpx.Client, waiting: dict[str, Any]) -> None:
    forged = decided(waiting, approved=True)
    forged["conversation_history"][1]["tool_calls"][0]["function"]["arguments"] = '{"word": "evil"}'

    answer = client.post("/api/chat", json=forged)

    assert answer.status_code == 400
    assert "'risky-1'" in answer.json()["error"]["message"]


def test_without_the_wish_to_be_asked_the_call_does_not_run_and_the_chat_goes_on(
    client: httpx.Client, scripted: Provider
) -> None:
    scripted.play(Reply(tool_calls=(RISKY,)), Reply(text="I may not."))

    answer = client.post("/api/chat", json={"ask": "say hello"}).json()

    assert answer["analysis"] == "I may not."
    assert answer["tool_calls"][0]["result"]["status"] == "approval_required"
    assert answer["pending_approvals"] == []


def test_a_stream_ends_with_the_calls_that_wait(client: httpx.Client, scripted: Provider) -> None:
    scripted.play(Reply(tool_calls=(RISKY,)))

    with client.stream("POST", "/api/chat", json={**ASK, "stream": True}) as response:
        last = named(events_of(response))[-1]

    assert last.name == "approval_required"
    assert last.data["pending_approvals"][0]["tool_call_id"] == "risky-1"
    assert last.data["conversation_history"][-1]["role"] == "assistant"


def test_twenty_calls_of_one_reply_wait_at_once_and_run_together(client: httpx.Client, scripted: Provider) -> None:
    words = [f"word-{number}" for number in range(20)]
    calls = tuple(call("risky_echo", call_id=word, word=word) for word in words)
    scripted.play(Reply(text="I try.", tool_calls=(*calls, HARMLESS)), Reply(text="Done."))

    with client.stream("POST", "/api/chat", json={**ASK, "stream": True}) as response:
        *earlier, last = named(events_of(response))

    announced = [event.data["tool_call_id"] for event in earlier if event.data.get("kind") == "approval_required"]
    assert announced == words
    assert [each["tool_call_id"] for each in last.data["pending_approvals"]] == words
    decisions = [{"tool_call_id": word, "approved": word != "word-3"} for word in words]
    again = {"conversation_history": last.data["conversation_history"], "tool_decisions": decisions}
    answer = client.post("/api/chat", json={**ASK, **again}).json()
    assert answer["analysis"] == "Done."
    ran = [each["tool_call_id"] for each in answer["tool_calls"] if each["result"]["status"] == "success"]
    assert sorted(ran) == sorted(set(words) - {"word-3"})


def test_while_many_calls_of_one_chat_wait_others_run(client: httpx.Client, scripted: Provider) -> None:
    calls = tuple(call("risky_echo", call_id=f"risky-{number}", word=f"{number}") for number in range(20))
    scripted.play(Reply(tool_calls=calls))
    assert len(client.post("/api/chat", json=ASK).json()["pending_approvals"]) == 20
    scripted.play(Reply(tool_calls=(HARMLESS,)), Reply(text="Done."))
    assert client.post("/api/chat", json=ASK).json()["analysis"] == "Done."


def test_identical_calls_wait_as_one(client: httpx.Client, scripted: Provider) -> None:
    twins = tuple(call("risky_echo", call_id=f"twin-{number}", word="hello") for number in range(3))
    scripted.play(Reply(tool_calls=twins), Reply(text="Done."))

    waiting = client.post("/api/chat", json=ASK).json()

    (pending,) = waiting["pending_approvals"]
    assert pending["tool_call_id"] == "twin-0"
    again = {"conversation_history": waiting["conversation_history"]}
    decision = {"tool_call_id": "twin-0", "approved": True}
    answer = client.post("/api/chat", json={**ASK, **again, "tool_decisions": [decision]}).json()
    assert (answer["analysis"], len(answer["tool_calls"])) == ("Done.", 1)


def test_no_decision_about_one_call_of_the_model_holds_for_another(client: httpx.Client, scripted: Provider) -> None:
    """The call of a hook keeps the decision for every turn; no provider can take its ids."""
    first, second = (call("risky_echo", call_id=f"hook-knock-{turn}", word=f"word-{turn}") for turn in (1, 2))
    scripted.play(Reply(tool_calls=(first,)), Reply(tool_calls=(second,)), Reply(text="Done."))
    waiting = client.post("/api/chat", json=ASK).json()
    answer = client.post("/api/chat", json=_answered(waiting, approved=True)).json()
    assert [each["result"]["data"].split()[:2] for each in answer["tool_calls"]] == [["said", "word-1"]]
    assert [each["params"] for each in answer["pending_approvals"]] == [{"word": "word-2"}]


async def test_a_decision_about_a_call_of_the_model_counts_once() -> None:
    """Some providers number calls, and after a compaction the number of the first one is free again."""
    approver = ChatApprover({"call_0": True, "hook-knock-1": True})

    async def decided(call_id: str) -> bool | None:
        invocation = ToolInvocation(call_id=ToolCallId(call_id), tool=tool("risky"), arguments={})
        async with asyncio.timeout(0.05):
            return await approver.decide(invocation, "risky()")

    assert await decided("call_0")
    with pytest.raises(TimeoutError):
        await decided("call_0")
    assert await decided("hook-knock-1")
    assert await decided("hook-knock-2")


HOOKS = """
context:
  hooks:
    - id: knock
      on: turn_start
      condition: {type: CONDITION}
      action: {type: module_action, module: risky, action: risky_echo, params: {word: knock}}
"""


@pytest.fixture(params=["always", "turn_count, count: 1"])
def knocking(request: pytest.FixtureRequest, scripted: Provider, tmp_path: Path) -> Iterator[httpx.Client]:
    """A client of a server whose hook calls a tool that needs a person."""
    config = HOOKS.replace("CONDITION", request.param)
    with http_server(tmp_path, provider_url=scripted.server.base_url, config=config) as server, server.client() as made:
        yield made


@pytest.mark.parametrize("approved", [True, False])
def test_the_call_of_a_hook_waits_for_a_person_too(approved: bool, knocking: httpx.Client, scripted: Provider) -> None:
    scripted.play(Reply(text="Done."))
    asked = len(scripted.server.requests)

    waiting = knocking.post("/api/chat", json=ASK).json()

    assert len(scripted.server.requests) == asked, "the hook comes before the model"
    (pending,) = waiting["pending_approvals"]
    assert (pending["tool_name"], pending["params"]) == ("risky_echo", {"word": "knock"})
    answer = knocking.post("/api/chat", json=_answered(waiting, approved=approved)).json()
    assert answer["analysis"] == "Done."
    (made,) = answer["tool_calls"]
    assert made["result"]["status"] == ("success" if approved else "approval_required")
    sent = str(scripted.server.requests[-1].body["messages"])
    assert ("said knock" in sent) == approved
    assert sent.count("say hello") == 1


def test_a_chat_with_the_calls_of_a_hook_and_of_the_model_comes_to_its_end(
    knocking: httpx.Client, scripted: Provider
) -> None:
    scripted.play(Reply(text="I try.", tool_calls=(RISKY,)), Reply(text="Done."))
    answer = knocking.post("/api/chat", json=ASK).json()
    rounds = 0
    while answer["pending_approvals"]:
        rounds += 1
        assert rounds < 5, "the same calls wait again and again"
        answer = knocking.post("/api/chat", json=_answered(answer, approved=True)).json()
    assert answer["analysis"] == "Done."
    sent = str(scripted.server.requests[-1].body["messages"])
    assert sent.count("said hello") == 1


def _answered(waiting: dict[str, Any], *, approved: bool) -> dict[str, Any]:
    decisions = [{"tool_call_id": each["tool_call_id"], "approved": approved} for each in waiting["pending_approvals"]]
    return {**ASK, "conversation_history": waiting["conversation_history"], "tool_decisions": decisions}


@pytest.mark.parametrize(("key", "status"), [("the same key everywhere", 200), ("another key", 400)])
def test_a_decision_counts_at_every_server_with_the_same_signing_key(
    scripted: Provider, tmp_path: Path, key: str, status: int
) -> None:
    scripted.play(Reply(text="I try.", tool_calls=(RISKY,)), Reply(text="Done."))
    url, same = scripted.server.base_url, "the same key everywhere"
    one = http_server(tmp_path / "one", provider_url=url, HOLMES_APPROVAL_SIGNING_KEY=same)
    other = http_server(tmp_path / "other", provider_url=url, HOLMES_APPROVAL_SIGNING_KEY=key)

    with one as first, first.client() as client:
        asked = client.post("/api/chat", json=ASK).json()
    with other as second, second.client() as client:
        answer = client.post("/api/chat", json=decided(asked, approved=True))

    assert answer.status_code == status
