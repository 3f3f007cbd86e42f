"""Pictures in the thread of an incident: their pixels, and that they never hold up the news."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest

from holmes.charts import draw_picture
from holmes.charts.picture import LINE_COLOURS, THRESHOLD_COLOUR
from holmes.destinations.destination import DeliveryFailed, PictureNews
from holmes.destinations.slack import SlackDestination
from holmes.destinations.slack_api import SlackApi
from holmes.values.charts import alt_text
from tests.destinations.incidents import ANSWERED, news
from tests.destinations.workspace import Workspace
from tests.support.charts import MEMORY
from tests.support.pixels import Pixels
from tests.support.slack_server import SlackMessage, Trouble

PICTURE = PictureNews(
    id="0123456789ab",
    title="Query metrics of the last 1h: memory",
    alt=alt_text(MEMORY),
    content=draw_picture(MEMORY),
)
TOLD = news("answered", investigation=replace(ANSWERED, pictures=(PICTURE, replace(PICTURE, id="ba9876543210"))))
CHANNEL = "C0ALERTS01"


@pytest.fixture
def slack() -> Iterator[Workspace]:
    with Workspace() as server:
        yield server


@pytest.fixture
def ops(slack: Workspace) -> SlackDestination:
    api = SlackApi(name="ops", url=slack.api_url.rstrip("/"), token=slack.token, timeout_seconds=5)
    return SlackDestination(api, channel=CHANNEL)


def thread(slack: Workspace) -> tuple[SlackMessage, ...]:
    (root,) = slack.messages()
    return slack.thread(root)


async def test_the_pictures_of_an_answer_follow_it_in_the_thread(slack: Workspace, ops: SlackDestination) -> None:
    await ops.send(TOLD, None)
    answer, *pictures = thread(slack)
    assert "killed at its limit" in answer.shown
    assert len(pictures) == 2
    for message in pictures:
        (file,) = message.files
        assert (file.title, file.alt) == (PICTURE.title, PICTURE.alt)
        assert file.name.endswith(".png")
        pixels = Pixels.of(file.content)
        for colour in (LINE_COLOURS[0], LINE_COLOURS[1], THRESHOLD_COLOUR):
            assert len(pixels.places(colour, left=74, bottom=300)) > 200
        assert pixels.share_of_dark(0, 24) > 0.02


async def test_news_of_other_kinds_bring_no_pictures(slack: Workspace, ops: SlackDestination) -> None:
    await ops.send(replace(TOLD, kind="reopened", key="another"), None)
    assert [message.files for message in thread(slack)] == [()]


async def test_without_the_scope_the_answer_arrives_and_the_log_tells_the_scope(
    slack: Workspace, ops: SlackDestination, caplog: pytest.LogCaptureFixture
) -> None:
    reference = await ops.send(news(), None)
    refused = len(slack.calls) + 3  # after the update and the answer
    slack.trouble_at(refused, Trouble(error="missing_scope"))
    await ops.send(TOLD, reference)
    assert [message.files for message in thread(slack)] == [()]
    (record,) = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert record.message == (
        "ops: a picture of incident inc1 is left out: missing_scope; add the scope `files:write` to the app"
    )


async def test_a_picture_that_failed_is_tried_once_more_and_nothing_comes_twice(
    slack: Workspace, ops: SlackDestination
) -> None:
    reference = await ops.send(news(), None)
    slack.trouble_at(len(slack.calls) + 4, Trouble(cut=True, after_it_happened=True))  # the first picture has arrived
    with pytest.raises(DeliveryFailed) as caught:
        await ops.send(TOLD, reference)
    await ops.send(replace(TOLD, repeated=True), caught.value.reference)
    assert [len(message.files) for message in thread(slack)] == [0, 1, 1]


async def test_a_picture_that_fails_again_is_left_out(slack: Workspace, ops: SlackDestination) -> None:
    reference = await ops.send(news(), None)
    slack.trouble_at(len(slack.calls) + 4, Trouble(error="internal_error"))  # the update, the history, the answer
    await ops.send(replace(TOLD, repeated=True), reference)
    assert [len(message.files) for message in thread(slack)] == [0]
