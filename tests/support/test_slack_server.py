"""The Slack of the tests is as strict as the real one where it matters."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.support.slack_server import SlackServer, Trouble, rate_limited


@pytest.fixture
def slack() -> Iterator[SlackServer]:
    with SlackServer() as server:
        yield server


def call(slack: SlackServer, method: str, **arguments: object) -> httpx.Response:
    headers = {"authorization": f"Bearer {slack.token}"}
    return httpx.post(f"{slack.api_url}{method}", json=arguments, headers=headers)


def test_a_message_gets_a_thread_and_is_updated_in_place(slack: SlackServer) -> None:
    posted = call(slack, "chat.postMessage", channel="#alerts", text="PodStuck").json()
    assert posted["ok"]
    call(slack, "chat.postMessage", channel=posted["channel"], thread_ts=posted["ts"], text="why")
    assert call(slack, "chat.update", channel=posted["channel"], ts=posted["ts"], text="resolved").json()["ok"]
    (parent,) = slack.messages("alerts")
    assert (parent.text, parent.updates) == ("resolved", 1)
    assert [reply.text for reply in slack.thread(parent)] == ["why"]
    assert slack.messages("shop") == ()


def test_a_form_body_is_understood_too(slack: SlackServer) -> None:
    blocks = [{"type": "section", "text": {"type": "mrkdwn", "text": "*bold*"}}]
    form = {"token": slack.token, "channel": "shop", "blocks": json.dumps(blocks)}
    assert httpx.post(f"{slack.api_url}chat.postMessage", data=form).json()["ok"]
    assert slack.wait_for(lambda message: "*bold*" in message.shown).channel == slack.messages("shop")[0].channel


def test_an_update_without_blocks_leaves_them_as_they_are(slack: SlackServer) -> None:
    blocks = [{"type": "section", "text": {"type": "mrkdwn", "text": "old"}}]
    posted = call(slack, "chat.postMessage", channel="alerts", text="a", blocks=blocks).json()
    call(slack, "chat.update", channel=posted["channel"], ts=posted["ts"], text="b")
    (message,) = slack.messages()
    assert (message.text, message.shown) == ("b", "old")


@pytest.mark.parametrize(
    ("method", "arguments", "error"),
    [
        ("chat.postMessage", {"channel": "nowhere", "text": "a"}, "channel_not_found"),
        ("chat.postMessage", {"channel": "alerts"}, "no_text"),
        ("chat.postMessage", {"channel": "alerts", "text": "a" * 40_001}, "msg_too_long"),
        ("chat.postMessage", {"channel": "alerts", "blocks": [{"type": "divider"}] * 51}, "invalid_blocks"),
        ("chat.postMessage", {"channel": "alerts", "blocks": [{"type": "section"}]}, "invalid_blocks"),
        ("chat.update", {"channel": "alerts", "ts": "1.1", "text": "a"}, "channel_not_found"),
        ("chat.update", {"channel": "C0ALERTS01", "ts": "1.1", "text": "a"}, "message_not_found"),
        ("chat.delete", {}, "unknown_method"),
    ],
)
def test_what_slack_refuses_is_refused(
    slack: SlackServer, method: str, arguments: dict[str, object], error: str
) -> None:
    assert call(slack, method, **arguments).json() == {"ok": False, "error": error}
    assert slack.messages() == ()


def test_a_token_is_needed_and_must_be_the_right_one(slack: SlackServer) -> None:
    headers = {"authorization": "Bearer xoxb-other"}
    assert httpx.post(f"{slack.api_url}auth.test", headers=headers).json()["error"] == "invalid_auth"
    assert httpx.post(f"{slack.api_url}auth.test").json()["error"] == "not_authed"
    assert call(slack, "auth.test").json()["user"] == "holmes"


def test_trouble_comes_on_demand_one_call_each(slack: SlackServer) -> None:
    slack.trouble(rate_limited(3), Trouble(status=500, body="oops"), Trouble(cut=True, after_it_happened=True))
    limited = call(slack, "chat.postMessage", channel="alerts", text="a")
    assert (limited.status_code, limited.headers["retry-after"]) == (429, "3")
    assert limited.json()["error"] == "ratelimited"
    assert call(slack, "chat.postMessage", channel="alerts", text="a").text == "oops"
    assert slack.messages() == ()
    with pytest.raises(httpx.RemoteProtocolError):
        call(slack, "chat.postMessage", channel="alerts", text="arrived")
    assert [message.text for message in slack.messages()] == ["arrived"]
    assert slack.wait_for_calls(3, timeout_seconds=0)
    with pytest.raises(TimeoutError, match="arrived"):
        slack.wait_for(lambda message: message.text == "never", timeout_seconds=0)
