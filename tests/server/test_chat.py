"""`/api/chat`: the compatible fields, streams that can be resumed, and ends that end everything."""

from __future__ import annotations

import time
from pathlib import Path

import httpx
import pytest

from tests.server.event_stream import events_of, named
from tests.server.http_server import HttpServer, Provider
from tests.support.openai_server import ErrorReply, Hang, Reply, call

ASK = {"ask": "why is checkout failing?"}
STREAMED = {**ASK, "stream": True}
PATIENCE_SECONDS = 10


def test_a_chat_answers_with_the_fields_of_the_compatible_interface(client: httpx.Client, scripted: Provider) -> None:
    scripted.play(Reply(text="Let me look.", tool_calls=(call("kubernetes_diagnose"),)), Reply(text="It is the key."))

    answer = client.post("/api/chat", json=ASK)

    assert answer.status_code == 200
    body = answer.json()
    assert set(body) == {
        "analysis", "conversation_history", "tool_calls", "follow_up_actions", "pending_approvals", "metadata",
    }  # fmt: skip
    assert body["analysis"] == "It is the key."
    (made,) = body["tool_calls"]
    assert set(made) == {"tool_call_id", "tool_name", "description", "result"}
    assert made["tool_name"] == "kubernetes_diagnose"
    assert made["result"]["status"] == "success"
    assert [message["role"] for message in body["conversation_history"]] == [
        "system", "user", "assistant", "tool", "assistant",
    ]  # fmt: skip
    assert body["metadata"]["model"] == "scripted"
    assert body["metadata"]["costs"]["total_cost"] == pytest.approx(0.24)
    assert body["metadata"]["max_tokens"] > 0


def test_halves_of_characters_that_a_model_writes_fail_no_chat(client: httpx.Client, scripted: Provider) -> None:
    scripted.play(Reply(tool_calls=(call("risky_echo", word="\ud800"),)), Reply(text="All is \ud800 well."))
    waiting = client.post("/api/chat", json={"ask": "why?", "enable_tool_approval": True}).json()
    assert waiting["pending_approvals"][0]["params"] == {"word": "\N{REPLACEMENT CHARACTER}"}
    answer = client.post("/api/chat", json={"ask": "why?"}).json()
    assert answer["analysis"] == "All is \N{REPLACEMENT CHARACTER} well."


def test_a_stream_has_the_compatible_events_and_ours(client: httpx.Client, scripted: Provider) -> None:
    scripted.play(Reply(text="Let me look.", tool_calls=(call("kubernetes_diagnose"),)), Reply(text="It is the key."))

    with client.stream("POST", "/api/chat", json=STREAMED) as response:
        run = response.headers["x-holmes-run"]
        events = named(events_of(response))

    assert [event.id for event in events] == [f"{run}:{number}" for number in range(1, len(events) + 1)]
    names = [event.name for event in events]
    for name in ("turn_started", "text_delta", "ai_message", "token_count", "start_tool_calling"):
        assert name in names
    by_name = {event.name: event.data for event in events}
    assert set(by_name["start_tool_calling"]) >= {"tool_name", "id"}
    assert set(by_name["tool_calling_result"]) >= {"tool_call_id", "name", "description", "role", "result"}
    assert set(by_name["ai_message"]) == {"content", "reasoning", "metadata"}
    assert set(by_name["token_count"]["metadata"]) == {"usage", "tokens", "max_tokens", "max_output_tokens", "costs"}
    assert names[-1] == "ai_answer_end"
    assert by_name["ai_answer_end"]["analysis"] == "It is the key."
    assert set(by_name["ai_answer_end"]) >= {"analysis", "conversation_history", "follow_up_actions", "metadata"}
    assert "".join(event.data["content"] for event in events if event.name == "text_delta").endswith("It is the key.")


def test_a_conversation_goes_on_with_what_tools_said(client: httpx.Client, scripted: Provider) -> None:
    scripted.play(Reply(tool_calls=(call("kubernetes_diagnose"),)), Reply(text="It is the key."))
    first = client.post("/api/chat", json=ASK).json()
    scripted.play(Reply(text="As I said."))

    again = {"ask": "are you sure?", "conversation_history": first["conversation_history"]}
    second = client.post("/api/chat", json=again)

    assert second.json()["analysis"] == "As I said."
    sent = scripted.server.requests[-1].body["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert "shop/payments-config" in str(sent[3]["content"])


def test_when_the_provider_refuses_the_built_in_model_answers_and_says_so(
    client: httpx.Client, scripted: Provider
) -> None:
    scripted.play(ErrorReply(status=401, message="no such key"))

    answer = client.post("/api/chat", json=ASK).json()

    assert answer["metadata"]["model"] == "builtin/triage"
    assert "No LLM was used" in answer["analysis"]


def test_silence_is_filled_with_heartbeats(client: httpx.Client, scripted: Provider) -> None:
    scripted.play(Reply(text="Late.", delay_seconds=0.6))

    with client.stream("POST", "/api/chat", json=STREAMED) as response:
        comments = [event.id for event in events_of(response) if not event.name]

    assert comments[0] == "holmes"
    assert "heartbeat" in comments


def test_a_broken_stream_is_resumed_without_asking_again(client: httpx.Client, scripted: Provider) -> None:
    scripted.play(Reply(text="A long answer in many pieces.", pause_seconds=0.05))
    asked = len(scripted.server.requests)

    with client.stream("POST", "/api/chat", json=STREAMED) as response:
        first = next(event for event in events_of(response) if event.name == "text_delta")
    with client.stream("POST", "/api/chat", json=STREAMED, headers={"Last-Event-ID": first.id}) as response:
        second = next(event for event in events_of(response) if event.name == "text_delta")
    run, _, number = second.id.partition(":")
    with client.stream("GET", f"/api/chat/{run}/events", headers={"Last-Event-ID": second.id}) as response:
        rest = named(events_of(response))

    assert int(number) > int(first.id.partition(":")[2])
    assert rest[0].id == f"{run}:{int(number) + 1}"
    assert rest[-1].data["analysis"] == "A long answer in many pieces."
    assert len(scripted.server.requests) == asked + 1


def test_a_stream_that_nobody_comes_back_to_closes_the_connection_to_the_provider(
    client: httpx.Client, scripted: Provider
) -> None:
    scripted.play(Hang())
    scripted.server._disconnected.clear()

    with client.stream("POST", "/api/chat", json=STREAMED) as response:
        run = response.headers["x-holmes-run"]
        next(event for event in events_of(response) if event.name == "turn_started")
        assert not scripted.server._disconnected.is_set()

    assert scripted.server.wait_for_disconnect(PATIENCE_SECONDS)
    wait_until(lambda: client.get(f"/api/chat/{run}/events").status_code == 404)


def test_a_client_that_leaves_a_plain_chat_cancels_it_at_once(client: httpx.Client, scripted: Provider) -> None:
    scripted.play(Hang())
    scripted.server._disconnected.clear()

    with pytest.raises(httpx.ReadTimeout):
        client.post("/api/chat", json=ASK, timeout=0.7)

    assert scripted.server.wait_for_disconnect(PATIENCE_SECONDS)


def test_delete_ends_the_chat_and_its_tools_and_the_reader_hears_why(
    client: httpx.Client, scripted: Provider, tmp_path: Path
) -> None:
    file = tmp_path / "pid"
    scripted.play(Reply(tool_calls=(call("slow_tool", file=str(file)),)))

    with client.stream("POST", "/api/chat", json=STREAMED) as response:
        run = response.headers["x-holmes-run"]
        events = events_of(response)
        next(event for event in events if event.name == "start_tool_calling")
        wait_until(lambda: file.exists() and file.read_text().strip() != "")
        assert client.delete(f"/api/chat/{run}").status_code == 204
        last = named(events)[-1]

    assert last.name == "error"
    assert set(last.data) >= {"description", "error_code", "msg", "success"}
    assert "cancelled" in last.data["description"]
    wait_until(lambda: not Path(f"/proc/{file.read_text().strip()}").exists())


def test_an_unknown_model_is_a_mistake_that_names_the_known_ones(client: httpx.Client) -> None:
    answer = client.post("/api/chat", json={**ASK, "model": "gpt-99"})

    assert answer.status_code == 400
    assert "scripted" in answer.json()["error"]["message"]


def test_an_answer_must_fit_the_wanted_form_and_may_be_repaired_once(client: httpx.Client, scripted: Provider) -> None:
    schema = {"type": "object", "properties": {"cause": {"type": "string"}}, "required": ["cause"]}
    wanted = {**ASK, "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}
    scripted.play(Reply(text="It is the key."), Reply(text='```json\n{"cause": "the key"}\n```'))
    repaired = client.post("/api/chat", json=wanted)
    scripted.play(Reply(text='{"reason": 1}'))
    refused = client.post("/api/chat", json=wanted)

    assert repaired.json()["analysis"] == '{"cause": "the key"}'
    assert "JSON schema" in scripted.server.requests[-1].body["messages"][0]["content"]
    assert refused.status_code == 422
    assert "'cause' is a required property" in refused.json()["error"]["message"]


def test_more_chats_than_allowed_are_told_to_come_back(client: httpx.Client, scripted: Provider) -> None:
    scripted.play(Hang())
    runs: list[str] = []
    for _ in range(3):
        with client.stream("POST", "/api/chat", json=STREAMED) as response:
            runs.append(response.headers["x-holmes-run"])

    refused = client.post("/api/chat", json=ASK)
    for run in runs:
        client.delete(f"/api/chat/{run}")

    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) > 0
    assert refused.json()["error"]["code"] == "too_many_requests"
    scripted.play(Reply(text="Welcome back."))
    wait_until(lambda: client.post("/api/chat", json=ASK).status_code == 200)


def test_older_clients_get_an_answer_in_sections(client: httpx.Client, scripted: Provider) -> None:
    scripted.play(Reply(text="## Root cause\nThe key.\n\n## Fix\nAdd it."))

    answer = client.post("/api/investigate", json={"source": "prometheus", "title": "KubePodCrashLooping"}).json()

    assert set(answer) == {"analysis", "sections", "tool_calls", "instructions"}
    assert answer["sections"] == {"Root cause": "The key.", "Fix": "Add it."}
    assert "KubePodCrashLooping" in scripted.server.requests[-1].body["messages"][-1]["content"]


def test_the_models_are_a_json_list_in_a_string(client: httpx.Client) -> None:
    assert client.get("/api/model").json() == {"model_name": '["scripted", "builtin/triage"]'}


def test_costs_of_chats_count_for_the_budget_of_the_day(
    server: HttpServer, client: httpx.Client, scripted: Provider
) -> None:
    def spent() -> float:
        return server.run(server.service.investigations.spent_today)

    before = spent()
    scripted.play(Reply(text="Let me look.", tool_calls=(call("kubernetes_diagnose"),)), Hang())
    with client.stream("POST", "/api/chat", json=STREAMED) as response:
        events = events_of(response)
        assert any(event.name == "tool_calling_result" for event in events)
        assert spent() == pytest.approx(before + 0.12)  # while it runs
        client.delete(f"/api/chat/{response.headers['x-holmes-run']}")
        assert [event.name for event in events][-1] == "error"
    scripted.play(Reply(text="Cheap."))
    client.post("/api/chat", json=ASK)
    assert spent() == pytest.approx(before + 0.24)


def wait_until(condition: object) -> None:
    """Until `condition` holds; fails when it does not in time."""
    assert callable(condition)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
