"""How many investigations may be begun, and what happens to those that failed, were cancelled or have no money."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from sqlalchemy import insert, update

from holmes.investigations.records.records import add_investigation
from holmes.investigations.records.schema import DELIVERIES, INVESTIGATIONS
from holmes.investigations.records.values import InvestigationId, NewInvestigation
from tests.server.http_server import HttpServer, http_server


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """A server with small limits, no money, and proxies; nothing is run."""
    with http_server(
        tmp_path_factory.mktemp("small"),
        HOLMES_INVESTIGATIONS_PER_CLIENT="2",
        HOLMES_QUEUE_LIMIT="5",
        HOLMES_MAX_COST_PER_DAY="0",
        HOLMES_TRUSTED_PROXIES="127.0.0.1",
    ) as running:
        yield running


@pytest.fixture
def api(small: HttpServer) -> Iterator[httpx.Client]:
    """A client of it; nothing is queued."""
    finish_all(small)
    with httpx.Client(base_url=small.url, timeout=30) as made:
        yield made


def begin(api: httpx.Client, client: str) -> httpx.Response:
    return api.post("/api/investigations", json={"question": "why?"}, headers={"X-Forwarded-For": client})


def finish_all(server: HttpServer, state: str = "failed") -> None:
    statement = update(INVESTIGATIONS).values(state=state)
    server.run(lambda: server.service.database.transaction(lambda connection: connection.execute(statement).rowcount))


def finished(api: httpx.Client, outcome: str, source: str) -> float:
    """The figure of `/metrics`."""
    name = f'holmes_investigations_finished_total{{answered_by="nobody",outcome="{outcome}",source="{source}"}}'
    lines = api.get("/metrics").text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


def test_one_client_cannot_fill_the_queue_and_gets_its_places_back(small: HttpServer, api: httpx.Client) -> None:
    with ThreadPoolExecutor(4) as clients:
        answers = list(clients.map(lambda _: begin(api, "198.51.100.1"), range(4)))
    assert sorted(answer.status_code for answer in answers) == [202, 202, 429, 429]
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert int(refused.headers["retry-after"]) > 0
    assert refused.json()["error"]["code"] == "too_many_requests"
    assert begin(api, "198.51.100.2").status_code == 202
    finish_all(small)
    assert begin(api, "198.51.100.1").status_code == 202


def test_all_clients_together_cannot_fill_the_queue(api: httpx.Client) -> None:
    assert [begin(api, f"198.51.100.{30 + number}").status_code for number in range(6)] == [*[202] * 5, 429]


def test_without_money_builtin_triage_answers(api: httpx.Client) -> None:
    begun = begin(api, "198.51.100.50")
    assert begun.status_code == 202
    assert "budget is exhausted" in api.get(begun.headers["location"]).json()["without_llm"]


def test_a_cancelled_investigation_is_counted_once(api: httpx.Client) -> None:
    before = finished(api, "cancelled", "api")
    address = begin(api, "198.51.100.60").headers["location"]
    assert [api.delete(address).status_code for _ in range(2)] == [204, 409]
    assert finished(api, "cancelled", "api") == before + 1
    page = begin(api, "198.51.100.61").headers["location"].removeprefix("/api")
    for _ in range(2):
        api.post(f"{page}/cancel", headers={"Sec-Fetch-Site": "same-origin"})
    assert finished(api, "cancelled", "api") == before + 2


def test_what_failed_is_asked_again_as_it_was(small: HttpServer, api: httpx.Client) -> None:
    new = NewInvestigation(
        question="why?",
        title="It",
        source="alertmanager",
        route="payments",
        namespace="shop",
        model="builtin/triage",
        max_cost=2.5,
    )
    first = stored(small, new)
    assert api.post(f"/api/investigations/{first}/retry").status_code == 409
    finish_all(small)
    again = api.post(f"/api/investigations/{first}/retry")
    assert again.status_code == 202
    assert again.headers["location"] == f"/api/investigations/{again.json()['id']}"
    asked = ("question", "title", "source", "incident_id", "route", "namespace", "model", "max_cost")
    old, made = (api.get(f"/api/investigations/{each}").json() for each in (first, again.json()["id"]))
    assert {name: made[name] for name in asked} == {name: old[name] for name in asked}
    assert made["state"] == "queued"
    finish_all(small, "answered")
    assert api.post(f"/api/investigations/{first}/retry").status_code == 409
    assert api.post("/api/investigations/ff/retry").status_code == 404


def test_a_failed_delivery_is_listed_and_tried_again(small: HttpServer, api: httpx.Client) -> None:
    row = {
        "key": "k",
        "destination": "ops",
        "event": "opened",
        "incident_id": "ab",
        "state": "failed",
        "attempts": 3,
        "created_at": time.time(),
        "due_at": time.time(),
        "last_error": "invalid_auth",
        "gave_up": False,
    }
    small.run(
        lambda: small.service.database.transaction(
            lambda connection: connection.execute(insert(DELIVERIES), [row]).rowcount
        )
    )
    (failed,) = api.get("/api/deliveries", params={"state": "failed", "incident": "ab"}).json()["deliveries"]
    assert (failed["last_error"], failed["incident_id"]) == ("invalid_auth", "ab")
    retried = api.post(f"/api/deliveries/{failed['id']}/retry")
    assert (retried.status_code, retried.json()["state"]) == (202, "waiting")
    assert api.post(f"/api/deliveries/{failed['id']}/retry").status_code == 409
    assert api.post("/api/deliveries/999/retry").status_code == 404
    assert api.get("/api/deliveries", params={"state": "failed"}).json() == {"deliveries": [], "next": None}


def test_a_server_that_ends_begins_no_investigation(tmp_path: Path) -> None:
    with http_server(tmp_path) as ending:
        failed = stored(ending, NewInvestigation(question="why?", title="It", source="api"))
        finish_all(ending)
        ending.loop.call_soon_threadsafe(ending.application.state.draining.begin)
        with httpx.Client(base_url=ending.url) as api:
            for answer in (begin(api, "198.51.100.1"), api.post(f"/api/investigations/{failed}/retry")):
                assert answer.status_code == 503
                assert answer.json()["error"]["code"] == "draining"
                assert int(answer.headers["retry-after"]) > 0


def stored(server: HttpServer, new: NewInvestigation) -> InvestigationId:
    """An investigation as the intake stores one."""
    database = server.service.database
    return server.run(lambda: database.transaction(lambda connection: add_investigation(connection, new, time.time())))
