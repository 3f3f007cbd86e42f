"""Slack: one message that follows the incident, answers in its thread, and what happens when something goes wrong."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest

from holmes.destinations.destination import DeliveryFailed, IncidentNews
from holmes.destinations.slack import SlackDestination
from holmes.destinations.slack_api import SlackApi, SlackFailed
from tests.destinations.incidents import ANSWERED, news
from tests.destinations.workspace import Workspace
from tests.support.slack_server import SlackServer, Trouble, rate_limited


@pytest.fixture
def slack() -> Iterator[Workspace]:
    with Workspace() as server:
        yield server


def destination(slack: SlackServer, *, channel: str = "#alerts", token: str | None = None) -> SlackDestination:
    api = SlackApi(name="ops", url=slack.api_url.rstrip("/"), token=token or slack.token, timeout_seconds=0.5)
    return SlackDestination(api, channel=channel)


async def failure_of(slack: SlackDestination, told: IncidentNews, reference: str | None = None) -> DeliveryFailed:
    with pytest.raises(DeliveryFailed) as caught:
        await slack.send(told, reference)
    assert "\n" not in str(caught.value)
    assert "xoxb" not in str(caught.value).replace("(xoxb-...)", "")
    return caught.value


async def test_one_message_follows_the_incident_and_answers_are_its_thread(slack: Workspace) -> None:
    ops = destination(slack)
    reference = await ops.send(news(), None)
    assert json.loads(str(reference)) == {"channel": "C0ALERTS01", "ts": slack.messages()[0].ts}
    for kind in ("answered", "resolved", "reopened", "failed"):
        reference = await ops.send(news(kind), reference)
    (root,) = slack.messages("alerts")
    assert root.updates == 4
    assert "failed" in root.shown
    answer, again, failed = slack.thread(root)
    assert "killed at its limit of 64Mi" in answer.shown
    assert "OOMKilled &lt;137&gt;" in answer.shown
    assert "Firing again since" in again.shown
    assert "The provider refused the key." in failed.shown


async def test_the_root_cause_and_the_end_are_in_the_root_message(slack: Workspace) -> None:
    ops = destination(slack)
    reference = await ops.send(news("answered"), await ops.send(news(), None))
    assert "*Root cause:*" in slack.messages()[0].shown
    await ops.send(news("resolved"), reference)
    assert "Resolved" in slack.messages()[0].shown
    assert len(slack.thread(slack.messages()[0])) == 1


async def test_nothing_in_a_message_may_mention_link_or_unfurl_by_itself(slack: Workspace) -> None:
    ops = destination(slack)
    await ops.send(news("answered", title="<!channel> @here"), await ops.send(news(title="<!channel> @here"), None))
    for call in slack.calls:
        assert (call.arguments["parse"], call.arguments["link_names"]) == ("none", False)
        assert "<!channel>" not in json.dumps(call.arguments)
        assert call.arguments.get("unfurl_links", False) is False
        for block in call.arguments["blocks"]:  # type: ignore[union-attr]
            for text in block.get("elements", [block.get("text")]):  # type: ignore[union-attr]
                assert text["verbatim"] is True  # type: ignore[index,call-overload]


async def test_an_answer_without_a_root_message_brings_one(slack: Workspace) -> None:
    await destination(slack).send(news("answered"), None)
    (root,) = slack.messages()
    assert len(slack.thread(root)) == 1


@pytest.mark.parametrize("reference", ["{}", "no json", "[]", '{"channel": "C0ALERTS01", "ts": "1.000001"}', "null"])
async def test_a_root_message_that_is_gone_or_unknown_is_written_anew(slack: Workspace, reference: str) -> None:
    renewed = await destination(slack).send(news("answered"), reference)
    (root,) = slack.messages()
    assert json.loads(str(renewed))["ts"] == root.ts
    assert len(slack.thread(root)) == 1


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        ("invalid_auth", "set a valid bot token"),
        ("token_revoked", "set a valid bot token"),
        ("channel_not_found", "check `channel`"),
        ("not_in_channel", "invite the app"),
        ("is_archived", "unarchive"),
        ("missing_scope", "chat:write"),
    ],
)
async def test_what_only_a_person_can_change_is_final_and_says_what_to_do(
    slack: Workspace, error: str, advice: str
) -> None:
    slack.trouble(Trouble(error=error))
    failure = await failure_of(destination(slack), news())
    assert not failure.retryable
    assert f"Slack rejected chat.postMessage: {error}: " in str(failure)
    assert advice in str(failure)


@pytest.mark.parametrize(
    "trouble",
    [
        Trouble(error="internal_error"),
        Trouble(error="service_unavailable"),
        Trouble(error="something_new"),
        Trouble(status=500, body="<html>oops"),
        Trouble(status=503, body="{}"),
        Trouble(cut=True),
        Trouble(delay_seconds=0.7),
        Trouble(body="no json"),
        Trouble(body="[1]"),
        Trouble(body="null"),
    ],
)
async def test_what_may_pass_is_tried_again(slack: Workspace, trouble: Trouble) -> None:
    slack.trouble(trouble)
    assert (await failure_of(destination(slack), news())).retryable


async def test_an_error_in_json_is_not_blamed_on_the_address(slack: Workspace) -> None:
    slack.trouble(Trouble(status=500, error="fatal_error"))
    assert str(await failure_of(destination(slack), news())).endswith("responded to chat.postMessage with HTTP 500")


async def test_an_address_without_a_server_is_named_without_internals() -> None:
    api = SlackApi(name="team", url="https://127.0.0.1:9/api/", token="xoxb-unused", timeout_seconds=5)
    with pytest.raises(SlackFailed) as caught:
        await api.write("chat.postMessage", {})
    assert "cannot be reached: 127.0.0.1:9: " in str(caught.value)
    assert "SSLContext" not in str(caught.value)


async def test_the_rate_limit_says_for_how_long(slack: Workspace) -> None:
    slack.trouble(rate_limited(30))
    failure = await failure_of(destination(slack), news())
    assert (failure.retryable, failure.retry_after_seconds) == (True, 30)


async def test_a_wrong_token_is_in_no_error_and_in_no_log(slack: Workspace, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    token = "xoxb-12345-very-secret"
    failure = await failure_of(destination(slack, token=token), news())
    assert not failure.retryable
    assert "very-secret" not in f"{failure}{caplog.text}"
    assert "very-secret" not in str(await failure_of(destination(slack, token=f"{token}\n"), news()))


@pytest.mark.parametrize("error", ["invalid_blocks", "msg_blocks_too_long", "metadata_must_be_sent_from_app"])
async def test_blocks_that_slack_does_not_like_become_plain_text(slack: Workspace, error: str) -> None:
    slack.trouble(Trouble(error=error))
    await destination(slack).send(news(), None)
    (root,) = slack.messages()
    assert root.blocks == ()
    assert "KubePodCrashLooping" in root.text
    assert "Open in Holmes" in root.text


async def test_after_an_unknown_outcome_the_message_that_arrived_is_found(slack: Workspace) -> None:
    ops = destination(slack, channel="C0ALERTS01")
    slack.trouble(Trouble(cut=True, after_it_happened=True))
    await failure_of(ops, news())
    reference = await destination(slack, channel="C0ALERTS01").send(news(repeated=True), None)
    assert len(slack.messages()) == 1
    slack.trouble(Trouble(error="internal_error"), Trouble(cut=True, after_it_happened=True))
    failure = await failure_of(ops, news("answered"), reference)
    assert failure.reference == reference
    failure = await failure_of(ops, news("answered"), reference)
    await ops.send(news("answered", repeated=True), failure.reference)
    assert len(slack.thread(slack.messages()[0])) == 1


@pytest.mark.parametrize("channel", ["#alerts", "C0ALERTS01"])
async def test_without_the_right_to_look_a_message_may_come_twice_but_comes(channel: str) -> None:
    with Workspace(history=False) as slack:
        slack.trouble(Trouble(cut=True, after_it_happened=True))
        await failure_of(destination(slack, channel=channel), news())
        await destination(slack, channel=channel).send(news(repeated=True), None)
        assert len(slack.messages()) == 2


async def test_replies_that_arrived_are_not_sent_again_even_without_a_history() -> None:
    told = news("answered", investigation=replace(ANSWERED, answer="many words in a line " * 1_000))
    with Workspace(history=False) as slack:
        ops = destination(slack)
        reference = await ops.send(news(), None)
        slack.trouble_at(
            len(slack.calls) + 3, rate_limited(0)
        )  # the update and the first reply arrive, the second reply does not
        failure = await failure_of(ops, told, reference)
        assert len(slack.thread(slack.messages()[0])) == 1
        done = await ops.send(replace(told, repeated=True), failure.reference)
        assert done == reference
        assert [reply.text[-3:] for reply in slack.thread(slack.messages()[0])] == ["Mi.", "(2)", "(3)"]
