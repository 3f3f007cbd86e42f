"""`/api/investigations`, `/api/incidents`, `/api/results` and `/api/checks`: with the queue, the demo and no LLM."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.server.event_stream import events_of, named
from tests.server.http_server import HttpServer, http_server

FAILING = "why is checkout failing in namespace shop?"


@pytest.fixture(scope="module")
def queued(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """A server whose queue runs investigations."""
    with http_server(tmp_path_factory.mktemp("queued"), queue=True) as running:
        yield running
        deadline = time.monotonic() + 30
        while unfinished(running):
            assert time.monotonic() < deadline
            time.sleep(0.1)


def unfinished(server: HttpServer) -> bool:
    address = f"{server.url}/api/investigations"
    return any(httpx.get(address, params={"state": state}).json()["investigations"] for state in ("queued", "running"))


@pytest.fixture(scope="module")
def api(queued: HttpServer) -> Iterator[httpx.Client]:
    """A client of it; it has no key."""
    with httpx.Client(base_url=queued.url, timeout=30) as made:
        yield made


@pytest.fixture(scope="module")
def answered(api: httpx.Client) -> dict[str, Any]:
    """An investigation that was answered, its events under `events`."""
    begun = api.post("/api/investigations", json={"question": FAILING, "namespace": "shop", "max_cost": 1.5})
    assert begun.status_code == 202
    with api.stream("GET", f"{begun.headers['location']}/events") as response:
        events = named(events_of(response))
    return {**api.get(begun.headers["location"]).json(), "events": events}


def test_an_investigation_is_watched_to_its_answer(answered: dict[str, Any]) -> None:
    names = [event.name for event in answered["events"]]
    numbers = [int(event.id) for event in answered["events"] if event.id]

    assert names[-2:] == ["ai_answer_end", "end"]
    assert "text_delta" not in names
    assert numbers == sorted(set(numbers))
    assert answered["state"] == "answered"
    assert answered["answered_by"] == "builtin/triage"
    assert "payments-config" in answered["answer"]
    assert answered["max_cost"] == 1.5
    assert answered["source"] == "api"


def test_watching_goes_on_after_the_last_event_that_was_read(api: httpx.Client, answered: dict[str, Any]) -> None:
    last = answered["events"][-3].id
    address = f"/api/investigations/{answered['id']}/events"
    with api.stream("GET", address, headers={"Last-Event-ID": last}) as response:
        rest = named(events_of(response))
    listed = api.get(address, headers={"Accept": "application/json", "Last-Event-ID": last}).json()

    assert [event.name for event in rest] == ["ai_answer_end", "end"]
    assert [event["event"] for event in listed["events"]] == ["ai_answer_end"]
    assert listed["events"][0]["data"] == rest[0].data
    assert api.get(address, headers={"Accept": "application/json"}, params={"after": last}).json() == listed
    assert api.get(address, headers={"Last-Event-ID": "x"}).status_code == 422


def test_investigations_are_listed_filtered_and_paged(api: httpx.Client, answered: dict[str, Any]) -> None:
    for number in range(2):
        api.post("/api/investigations", json={"question": f"what is {number}?", "title": f"Number {number}"})
    newest = api.get("/api/investigations", params={"limit": 1}).json()
    following = api.get("/api/investigations", params={"limit": 200, "before": newest["next"]}).json()

    assert newest["investigations"][0]["title"] == "Number 1"
    assert following["next"] is None
    assert answered["id"] in [each["id"] for each in following["investigations"]]
    found = api.get("/api/investigations", params={"text": "CHECKOUT", "source": "api"}).json()
    assert [each["id"] for each in found["investigations"]] == [answered["id"]]
    assert api.get("/api/investigations", params={"incident": "f" * 24}).json() == {"investigations": [], "next": None}
    assert api.get("/api/investigations", params={"state": "sleeping"}).status_code == 422


def test_a_finished_investigation_cannot_be_cancelled_and_an_unknown_one_is_not_there(
    api: httpx.Client, answered: dict[str, Any]
) -> None:
    assert api.delete(f"/api/investigations/{answered['id']}").status_code == 409
    assert api.delete(f"/api/investigations/{'0' * 24}").status_code == 404
    assert api.get(f"/api/investigations/{'0' * 24}/events").status_code == 404


def test_a_waiting_investigation_can_be_cancelled(client: httpx.Client) -> None:
    begun = client.post("/api/investigations", json={"question": "why?"}).json()  # this server has no queue

    assert client.delete(f"/api/investigations/{begun['id']}").status_code == 204
    shown = client.get(f"/api/investigations/{begun['id']}").json()
    assert shown["state"] == "cancelled"
    with client.stream("GET", f"/api/investigations/{begun['id']}/events") as response:
        assert [event.name for event in named(events_of(response))] == ["end"]


def test_a_question_with_a_secret_is_kept_without_it(api: httpx.Client) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    begun = api.post("/api/investigations", json={"question": f"why does {secret} not work?"}).json()

    assert secret not in api.get(f"/api/investigations/{begun['id']}").text


def test_an_unknown_model_is_refused_before_anything_is_queued(api: httpx.Client) -> None:
    refused = api.post("/api/investigations", json={"question": "why?", "model": "gpt-99"})
    assert refused.status_code == 400
    assert "builtin/triage" in refused.json()["error"]["message"]


def test_the_output_behind_a_citation_can_be_read_whole_and_by_lines(
    api: httpx.Client, answered: dict[str, Any]
) -> None:
    citation = answered["events"][-2].data["metadata"]["citations"][0]
    address = f"/api/results/{citation['result_id']}"
    whole = api.get(address)
    line = api.get(address, params={"lines": f"{citation['first_line']}-{citation['last_line']}"})

    assert whole.status_code == 200
    assert whole.headers["x-content-type-options"] == "nosniff"
    assert "payments-config" in line.text
    assert line.headers["content-type"].startswith("text/plain")
    assert api.get(address, params={"lines": "9-2"}).status_code == 400
    assert api.get(address, params={"lines": "999999"}).status_code == 404
    assert api.get("/api/results/00000000").status_code == 404


def test_an_incident_is_shown_with_everything_that_belongs_to_it(api: httpx.Client) -> None:
    labels = {"alertname": "KubePodCrashLooping", "namespace": "shop", "severity": "critical"}
    payload = {"version": "4", "groupKey": "g", "status": "firing", "alerts": [{"status": "firing", "labels": labels}]}
    taken = api.post("/api/alerts/alertmanager", json=payload)
    assert taken.status_code == 202
    (listed,) = api.get("/api/incidents", params={"state": "open"}).json()["incidents"]
    shown = api.get(f"/api/incidents/{listed['id']}").json()

    assert shown["alerts"][0]["labels"] == labels
    assert [each["id"] for each in shown["investigations"]] == taken.json()["investigations"]
    assert shown["deliveries"] == []
    assert api.get("/api/incidents/00").status_code == 404
    assert api.get("/api/incidents", params={"before": listed["updated_at"]}).status_code == 422


def test_without_an_llm_a_check_fails_when_the_diagnosis_finds_something_critical(api: httpx.Client) -> None:
    check = {"query": "all workloads of namespace shop are healthy", "name": "shop", "mode": "monitor"}
    answer = api.post("/api/checks/execute", json=check).json()

    assert set(answer) == {"status", "message", "rationale", "duration", "error", "model_used"}
    assert answer["status"] == "fail"
    assert "No LLM was used" in answer["rationale"]
    assert answer["model_used"] == "builtin/triage"


def test_metrics_and_the_document_are_there(api: httpx.Client) -> None:
    document = api.get("/openapi.json").json()

    assert document["info"]["title"] == "Holmes"
    assert "/api/chat" in document["paths"]
    assert set(document["components"]["securitySchemes"]) == {"key", "bearer", "session"}
    assert api.get("/healthz").status_code == 200
