"""Routes out of the settings, and who hears of incidents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sqlalchemy import select

from holmes.app.alerts import alert_intake, alert_routes
from holmes.investigations.alerts.intake_plan import investigations_of
from holmes.investigations.alerts.routes import NO_ROUTE, Routes
from holmes.investigations.records.database import Database
from holmes.investigations.records.schema import DELIVERIES
from holmes.investigations.records.values import Alert, AlertGroup
from holmes.settings.load import load_settings
from holmes.settings.settings import Settings
from holmes.values.errors import ConfigError

DESTINATIONS = """
  destinations:
    team: {type: webhook, url: "http://team"}
    all: {type: webhook, url: "http://all"}
"""
MODELS = ("small", "builtin/triage")


def settings_of(folder: Path, routes: str) -> Settings:
    file = folder / "config.yaml"
    file.write_text(f"alerts:{DESTINATIONS}  routes:\n{routes}")
    return load_settings({"HOME": str(folder)}, file)


def firing(**labels: str) -> Alert:
    return Alert(fingerprint=str(labels), status="firing", labels=labels, annotations={})


def test_routes_are_read_in_order_with_everything_they_say(tmp_path: Path) -> None:
    route = (
        '    - {name: shop, match: {namespace: "shop|cart"}, model: small, max_cost: 1, max_per_hour: 5, '
        "destinations: [team], investigate: false}\n"
    )
    routes = alert_routes(settings_of(tmp_path, route), MODELS)
    found = routes.of({"namespace": "cart"})
    assert (found.name, found.model, found.max_cost, found.max_per_hour, found.destinations, found.investigate) == (
        "shop", "small", 1, 5, ("team",), False,
    )  # fmt: skip
    assert routes.of({"namespace": "other"}) is NO_ROUTE


@pytest.mark.parametrize(
    ("routes", "reason"),
    [
        ("    - {name: a, model: large}\n", "'a': unknown model 'large'; available models: small, builtin/triage"),
        ("    - {name: a, destinations: [nobody]}\n", "'a': unknown destination 'nobody'; valid keys: all, team"),
        ("    - {name: a}\n    - {name: a}\n", "'a': duplicate route name"),
        (
            "    - {name: a, match: {team: '((a{100}){100}){100}'}}\n",
            "'a': team '((a{100}){100}){100}' repeats too much",
        ),
    ],
)
def test_a_route_that_cannot_work_is_refused_before_anything_starts(tmp_path: Path, routes: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(reason)):
        alert_routes(settings_of(tmp_path, routes), MODELS)


def test_without_a_server_alerts_become_the_same_investigations() -> None:
    group = AlertGroup(key="", alerts=(firing(deployment="web"), firing(deployment="web", a="b"), firing(node="n")))
    titles = [each.title for each in investigations_of(group, Routes())]
    assert titles == ["alert: web (2 alerts)", "alert: n"]


async def test_who_is_named_by_the_route_hears_of_an_incident_once(tmp_path: Path) -> None:
    routes = "    - {name: shop, match: {namespace: shop}, destinations: [team]}\n"
    database = await Database.open(f"sqlite:///{tmp_path / 'investigations.db'}")
    try:
        intake = alert_intake(settings_of(tmp_path, routes), database, MODELS, lambda: None)
        for _ in range(2):
            await intake.take(AlertGroup(key="one", alerts=(firing(namespace="shop"),)), "alertmanager")
        await intake.take(AlertGroup(key="two", alerts=(firing(namespace="other"),)), "alertmanager")
        query = select(DELIVERIES.c.destination, DELIVERIES.c.event).order_by(DELIVERIES.c.id)
        rows = await database.transaction(lambda connection: connection.execute(query).all())
    finally:
        await database.close()
    assert [tuple(row) for row in rows] == [("team", "opened"), ("team", "opened"), ("all", "opened")]
