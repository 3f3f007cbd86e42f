"""The webhook: what is answered 202 is stored, and nothing that can be sent makes it fail."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from holmes.app.alerts import alert_intake
from holmes.app.serving import Service
from holmes.investigations.alerts.intake import AlertIntake
from holmes.investigations.records.database import Database
from holmes.investigations.records.records import IncidentRecords, InvestigationQuery, InvestigationRecords
from holmes.redaction.redactor import Redactor
from holmes.server.api import alerts
from holmes.server.bodies import BoundedBodies
from holmes.server.errors import add_error_handlers
from holmes.server.security import Keys
from holmes.settings.load import load_settings
from holmes.settings.server import ServerSettings
from holmes.telemetry.metrics import Metrics
from tests.services.fixtures import PostgresqlServer

WEBHOOK_KEY, API_KEY = "key-of-webhooks", "key-of-people"
PATH = "/api/alerts/alertmanager"
PAYLOAD = {
    "version": "4", "groupKey": "{}:{}", "status": "firing", "receiver": "holmes",
    "alerts": [
        {
            "status": "firing", "labels": {"alertname": "KubePodCrashLooping", "namespace": "shop", "pod": "cart-0"},
            "annotations": {"summary": "password=hunter2hunter2 in an annotation"}, "startsAt": "2026-01-31T12:00:00Z",
        }
    ],
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertService:
    """The part of a `Service` that the webhook works with."""

    intake: AlertIntake
    redactor: Redactor | None
    metrics: Metrics


@asynccontextmanager
async def served(database: Database, *, max_bytes: int = 1_000_000) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application that has the webhook and nothing else."""
    intake = alert_intake(load_settings({"HOME": "/nonexistent"}), database, (), lambda: None)
    service = AlertService(intake=intake, redactor=Redactor(b"0123456789abcdef"), metrics=Metrics(models=()))
    keys = Keys(ServerSettings(api_key=SecretStr(API_KEY), webhook_key=SecretStr(WEBHOOK_KEY)))
    application = FastAPI()
    application.state.keys = keys
    application.include_router(alerts.router(cast("Service", service)))
    add_error_handlers(application)
    application.add_middleware(BoundedBodies, keys=keys, max_bytes=max_bytes)
    headers = {"Authorization": f"Bearer {WEBHOOK_KEY}"}
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://holmes", headers=headers) as client:
        yield client


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = await Database.open(f"sqlite:///{tmp_path / 'investigations.db'}")
    yield database
    await database.close()


async def test_what_is_answered_202_is_stored(database: Database) -> None:
    async with served(database) as client:
        first = await client.post(PATH, json=PAYLOAD)
        again = await client.post(PATH, json=PAYLOAD)

    (incident,) = (await IncidentRecords(database).list()).incidents
    (investigation,) = await InvestigationRecords(database).list(InvestigationQuery())
    assert first.status_code == again.status_code == 202
    assert first.json() == {
        "incidents": [incident.id], "investigations": [investigation.id], "accepted": 1, "duplicates": 0,
        "resolved": 0, "ignored": 0, "queued": 1,
    }  # fmt: skip
    assert (again.json()["duplicates"], again.json()["queued"]) == (1, 0)
    assert (incident.title, investigation.source) == ("KubePodCrashLooping: shop/cart", "alertmanager")


async def test_secrets_in_alerts_are_not_kept(database: Database) -> None:
    async with served(database) as client:
        await client.post(PATH, json=PAYLOAD)
    (incident,) = (await IncidentRecords(database).list()).incidents
    (known,) = await IncidentRecords(database).alerts(incident.id)
    (investigation,) = await InvestigationRecords(database).list(InvestigationQuery())
    assert "in an annotation" in known.alert.annotations["summary"]
    assert "hunter2hunter2" not in f"{known} {investigation}"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": f"Bearer {WEBHOOK_KEY}"}, 202),
        ({"Authorization": "", "X-API-Key": WEBHOOK_KEY}, 202),
        ({"Authorization": f"Bearer {API_KEY}"}, 401),
        ({"Authorization": "Bearer nonsense"}, 401),
        ({"Authorization": ""}, 401),
    ],
)
async def test_only_the_key_of_webhooks_opens_it(database: Database, headers: dict[str, str], status: int) -> None:
    async with served(database) as client:
        answer = await client.post(PATH, json=PAYLOAD, headers=headers)
    assert answer.status_code == status
    assert bool((await IncidentRecords(database).list()).incidents) is (status == 202)


@pytest.mark.parametrize("body", [b"", b"nonsense", b"[]", b"{}", b'{"alerts": 1}', b"[" * 50_000, b"\xff"])
@pytest.mark.parametrize("kind", ["application/json", "text/plain"])
async def test_nonsense_is_refused_in_one_line(database: Database, body: bytes, kind: str) -> None:
    async with served(database) as client:
        answer = await client.post(PATH, content=body, headers={"Content-Type": kind})
    assert answer.status_code == 400
    message = answer.json()["error"]["message"]
    assert message
    assert "\n" not in message


async def test_what_is_too_large_is_refused(database: Database) -> None:
    async with served(database, max_bytes=1_000) as client:
        answer = await client.post(PATH, content=b" " * 2_000)
    assert answer.status_code == 413


async def test_without_a_database_the_sender_is_told_to_try_again(postgresql: PostgresqlServer) -> None:
    database = await Database.open(postgresql.create_database())
    try:
        async with served(database) as client:
            postgresql.stop("crash")
            away = await client.post(PATH, json=PAYLOAD)
            postgresql.start()
            back = await client.post(PATH, json=PAYLOAD)
    finally:
        await database.close()
    assert (away.status_code, away.json()["error"]["code"]) == (503, "database_unavailable")
    assert int(away.headers["Retry-After"]) > 0
    assert (back.status_code, back.json()["accepted"]) == (202, 1)


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
BRANCHES = LEAVES | st.lists(LEAVES, max_size=4) | st.dictionaries(st.text(max_size=10), LEAVES, max_size=4)
JSON = BRANCHES | st.lists(BRANCHES, max_size=3) | st.dictionaries(st.text(max_size=10), BRANCHES, max_size=3)
LABELS = st.dictionaries(
    st.sampled_from(("alertname", "namespace", "pod", "deployment", "node", "severity")) | st.text(max_size=5),
    st.sampled_from(("shop", "cart-0", "critical")) | JSON,
    max_size=6,
)
TIMES = st.datetimes().map(lambda at: f"{at.isoformat()}Z") | st.just("0001-01-01T00:00:00Z") | JSON
ALERT = st.fixed_dictionaries(
    {},
    optional={
        "status": st.sampled_from(("firing", "resolved")) | JSON, "labels": LABELS | JSON,
        "annotations": LABELS | JSON, "startsAt": TIMES, "endsAt": TIMES, "generatorURL": JSON,
        "fingerprint": st.sampled_from(("", "a", "b")) | JSON,
    },
)  # fmt: skip
FUZZED = st.fixed_dictionaries(
    {"alerts": st.lists(ALERT | JSON, max_size=5) | JSON},
    optional={"groupKey": st.sampled_from(("", "one", "two")) | JSON, "groupLabels": JSON, "truncatedAlerts": JSON},
)


@pytest.fixture
async def post(postgresql_url: str) -> AsyncIterator[Callable[[bytes], Awaitable[httpx.Response]]]:
    """Sends to a server with PostgreSQL, which keeps less than SQLite."""
    database = await Database.open(postgresql_url)
    async with served(database) as client:
        yield lambda body: client.post(PATH, content=body)
    await database.close()


async def test_names_that_are_too_long_to_index_are_taken_too(
    post: Callable[[bytes], Awaitable[httpx.Response]],
) -> None:
    """Random text, because PostgreSQL would compress other text until it fits."""
    name = "".join(chr(0x20000 + number) for number in random.Random(1).sample(range(40_000), 1_000))  # noqa: S311
    for key in ({}, {"groupKey": name * 3}):
        payload = {"alerts": [{"status": "firing", "labels": {"alertname": name}}], **key}
        assert (await post(json.dumps(payload).encode())).status_code == 202


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(FUZZED)
async def test_fuzzed_payloads_are_answered_202_or_400(
    post: Callable[[bytes], Awaitable[httpx.Response]], payload: object
) -> None:
    answer = await post(json.dumps(payload).encode())
    assert answer.status_code in {202, 400}
