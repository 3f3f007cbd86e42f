"""A flood of alerts does not start more paid investigations than an hour may have."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import pytest

from holmes.app.alerts import alert_intake
from holmes.investigations.records.database import Database
from holmes.settings.load import load_settings
from tests.server.http_server import KEY, HttpServer, http_server, provider
from tests.support.alert_load import payload
from tests.support.openai_server import Reply

GROUPS = 75
LIMIT = 30
SECONDS = 240  # a group costs about ten flushes of the database, which take long while other tests keep the disk busy
UNLIMITED = {"HOLMES_MAX_INVESTIGATIONS_PER_HOUR": "unlimited"}


def answered(server: HttpServer, asked: str) -> list[dict[str, object]]:
    with server.client() as client:
        listed = client.get("/api/investigations", params={"state": "answered", "limit": 200}).json()["investigations"]
    return [each for each in listed if (each["answered_by"] == "builtin/triage") == (asked == "rules")]


@pytest.mark.timeout(400)
def test_a_flood_begins_at_most_thirty_investigations_with_a_model(tmp_path: Path) -> None:
    with provider() as model:
        model.play(Reply(text="Root cause: the pod cannot start."))
        variables = {"HOLMES_API_KEY": KEY, "HOLMES_INVESTIGATION_CONCURRENCY": "8"}
        with http_server(tmp_path, provider_url=model.server.base_url, queue=True, **variables) as server:
            with server.client() as client:
                for number in range(GROUPS):
                    assert client.post("/api/alerts/alertmanager", json=payload([number])).status_code == 202
            deadline = time.monotonic() + SECONDS
            while len(answered(server, "model")) < LIMIT or not answered(server, "rules"):
                assert time.monotonic() < deadline, "not answered in time"
                time.sleep(0.5)
            without = answered(server, "rules")[0]
            with server.client() as client:
                record = client.get(f"/api/investigations/{without['id']}").json()
                page = client.get(f"/investigations/{without['id']}").text
        assert len(model.server.requests) == LIMIT, "each of these answers at once"
    reason = "investigations with an LLM have reached their hourly limit (alerts.max_per_hour: 30)"
    assert record["without_llm"] == reason
    assert record["answer"].endswith(f"Answered without an LLM: {reason}.")
    assert reason in page


@pytest.mark.parametrize(
    ("variables", "warned"),
    [
        ({**UNLIMITED, "MODEL": "gpt-4o"}, True),
        ({**UNLIMITED, "MODEL": "gpt-4o", "HOLMES_MAX_COST_PER_DAY": "5"}, False),
        ({"MODEL": "gpt-4o"}, False),
        (UNLIMITED, False),
    ],
    ids=["no limit", "a budget", "the default", "no LLM"],
)
async def test_without_any_limit_the_start_warns(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, variables: dict[str, str], *, warned: bool
) -> None:
    database = await Database.open(f"sqlite:///{tmp_path / 'investigations.db'}")
    settings = load_settings({"HOME": str(tmp_path), **variables})
    with caplog.at_level(logging.WARNING):
        alert_intake(settings, database, (), lambda: None)
    await database.close()
    assert ("HOLMES_MAX_INVESTIGATIONS_PER_HOUR" in caplog.text) == warned


def test_the_limit_is_a_number_or_unlimited(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    for written, expected in (("7", 7), ("0", 0), ("unlimited", None), ("null", LIMIT)):
        config.write_text(f"alerts: {{max_per_hour: {written}}}")
        assert load_settings({"HOME": str(tmp_path)}, config).alerts.max_per_hour == expected
    assert load_settings({"HOME": str(tmp_path), **UNLIMITED}).alerts.max_per_hour is None
    assert load_settings({"HOME": str(tmp_path)}).alerts.max_per_hour == LIMIT
