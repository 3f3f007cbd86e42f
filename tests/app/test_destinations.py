"""From a config file to destinations: HolmesGPT's keys too, and mistakes found before anything is sent."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from holmes.app.alerts import alert_routes, open_destinations
from holmes.investigations.deliveries.news import NewsComposer
from holmes.investigations.deliveries.worker import DeliveryWorker
from holmes.investigations.records.database import Database
from holmes.settings.load import load_settings
from holmes.settings.settings import Settings
from holmes.values.errors import ConfigError
from tests.destinations.incidents import news
from tests.destinations.receiver import Receiver
from tests.investigations.deliveries_of import IMPATIENT, add_incident, queue, settled
from tests.support.slack_server import SlackServer, Trouble, rate_limited

TOKEN = "xoxb-12345-very-secret"


def settings(tmp_path: Path, text: str) -> Settings:
    file = tmp_path / "config.yaml"
    file.write_text(text, encoding="utf-8")
    return load_settings({"HOME": str(tmp_path)}, file)


async def complaint(tmp_path: Path, text: str) -> str:
    """What is wrong, for one who starts the server."""
    loaded = settings(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        async with open_destinations(loaded):
            alert_routes(loaded, ())
    message = str(caught.value).replace(str(tmp_path), "~")
    assert "\n" not in message
    assert "very-secret" not in message
    return message


async def test_destinations_of_both_kinds_send_as_the_file_says(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with SlackServer() as slack, Receiver() as receiver:
        text = (
            "alerts:\n  destinations:\n"
            f'    team: {{type: slack, token: "{slack.token}\\n", channel: alerts, api_url: "{slack.api_url}"}}\n'
            f"    audit: {{type: webhook, url: '{receiver.url}', secret: s}}\n"
        )
        async with open_destinations(settings(tmp_path, text)) as destinations:
            for name in ("team", "audit"):
                assert destinations[name].name == name
                await destinations[name].send(news(), None)
        assert len(slack.messages("alerts")) == 1
        assert receiver.received[0].path == "/hooks/path-secret"
    assert "path-secret" not in caplog.text
    assert slack.token not in caplog.text


async def test_the_keys_of_holmesgpt_are_a_destination_that_routes_may_name(tmp_path: Path) -> None:
    text = f"slack_token: {TOKEN}\nslack_channel: '#alerts'\nalerts:\n  routes: [{{name: r, destinations: [slack]}}]\n"
    loaded = settings(tmp_path, text)
    assert loaded.ignored_keys == ()
    assert list(loaded.alerts.destinations) == ["slack"]
    async with open_destinations(loaded) as destinations:
        assert list(destinations) == ["slack"]
        alert_routes(loaded, ())


async def test_half_of_these_keys_or_a_second_destination_of_the_name_is_an_error_of_the_server_only(
    tmp_path: Path,
) -> None:
    assert await complaint(tmp_path, f"slack_token: {TOKEN}\n") == (
        "~/config.yaml:1: 'slack_token' requires 'slack_channel'"
    )
    assert await complaint(tmp_path, "slack_channel: a\n") == (
        "~/config.yaml:1: 'slack_channel' requires 'slack_token'"
    )
    other = "alerts: {destinations: {slack: {type: webhook, url: 'http://h/'}}}\n"
    assert "remove one of them" in await complaint(tmp_path, f"slack_token: {TOKEN}\nslack_channel: a\n{other}")


async def test_a_route_to_a_destination_that_is_not_there_names_the_nearest(tmp_path: Path) -> None:
    routes = "alerts:\n  routes: [{name: r, destinations: [aduit]}]\n"
    assert "unknown destination 'aduit'" in await complaint(tmp_path, routes)
    one = "  destinations: {audit: {type: webhook, url: 'http://h/'}}\n"
    assert "unknown destination 'aduit'; did you mean 'audit'?" in await complaint(tmp_path, f"{routes}{one}")


@pytest.mark.parametrize(
    ("destination", "expected"),
    [
        (f"{{type: slack, token: '{TOKEN} x', channel: a}}", "'d': `token` is empty or contains characters"),
        ("{type: slack, token: ' ', channel: a}", "destination 'd': `token` is empty"),
        ("{type: webhook, url: 'https:///very-secret'}", "destination 'd': `url` is not a valid URL"),
        ("{type: webhook, url: 'http://h:very-secret/'}", "destination 'd': `url` is not a valid URL"),
        (
            f"{{type: slack, token: {TOKEN}, channel: a, api_url: nowhere}}",
            "'d': `api_url` is not a valid URL",
        ),
    ],
)
async def test_what_cannot_be_sent_is_found_at_the_start_and_not_shown(
    tmp_path: Path, destination: str, expected: str
) -> None:
    message = await complaint(tmp_path, f"alerts:\n  destinations:\n    d: {destination}\n")
    assert message.startswith("~/config.yaml:3: ")
    assert expected in message


async def test_an_incident_is_followed_in_slack_through_rate_limits_and_broken_connections(tmp_path: Path) -> None:
    with SlackServer() as slack:
        slack.trouble(rate_limited(0), Trouble(status=503), Trouble(cut=True))
        own = f"{{type: slack, token: {slack.token}, channel: alerts, api_url: '{slack.api_url}'}}"
        database = await Database.open(f"sqlite:///{tmp_path / 'd.db'}")
        await add_incident(database, title="<!channel> PodStuck")
        loaded = settings(tmp_path, f"alerts: {{destinations: {{ops: {own}}}}}\n")
        async with open_destinations(loaded) as destinations:
            worker = DeliveryWorker(database, destinations, NewsComposer(database).compose, IMPATIENT)
            running = asyncio.create_task(worker.run())
            await queue(database, "opened", "reopened", "resolved")
            found = await settled(database, 3)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        await database.close()
        assert [(each.state, each.attempts) for each in found] == [("delivered", 4), ("delivered", 1), ("delivered", 1)]
        (root,) = slack.messages("alerts")
        assert "&lt;!channel&gt; PodStuck" in root.shown
        assert [reply.text[:8] for reply in slack.thread(root)] == [":repeat:"]
        assert root.updates == 2
