"""`/api/incidents`: pages that lose nothing, bounded alerts, and closing by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.server.http_server import http_server

APPS = ("cart", "catalog", "checkout", "search", "web")


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a server that was sent one payload about five things; nothing runs."""
    folder: Path = tmp_path_factory.mktemp("incidents")
    with http_server(folder) as running, httpx.Client(base_url=running.url, timeout=30) as made:
        labels = [{"alertname": "Down", "namespace": "shop", "deployment": app} for app in APPS]
        alerts = [{"status": "firing", "labels": each, "startsAt": "2026-01-31T12:00:00Z"} for each in labels]
        assert made.post("/api/alerts/alertmanager", json={"alerts": alerts}).status_code == 202
        yield made


def test_pages_lose_no_incident_of_one_payload(api: httpx.Client) -> None:
    titles: list[str] = []
    parameters: dict[str, str] = {"limit": "2"}
    while True:
        page = api.get("/api/incidents", params=parameters).json()
        titles += [each["title"] for each in page["incidents"]]
        if page["next"] is None:
            break
        parameters["before"] = page["next"]
    assert sorted(titles) == [f"Down: shop/{app}" for app in APPS]
    assert api.get("/api/incidents", params={"before": "nonsense"}).status_code == 422


def test_an_open_incident_is_closed_once(api: httpx.Client) -> None:
    identity = api.get("/api/incidents").json()["incidents"][0]["id"]
    assert api.get(f"/api/incidents/{identity}").json()["alert_count"] == 1
    assert api.post(f"/api/incidents/{identity}/close").status_code == 204
    shown = api.get(f"/api/incidents/{identity}").json()
    assert (shown["state"], shown["closed_by"]) == ("closed", "hand")
    assert api.post(f"/api/incidents/{identity}/close").status_code == 409
    assert api.post("/api/incidents/00/close").status_code == 404
