"""Money, pictures, and what a client is told when there is no more of it."""

from __future__ import annotations

import base64
from pathlib import Path

import httpx
import pytest

from holmes.server.chat.chat_jobs import MAX_IMAGES, ImageError, images_of
from holmes.values.json_types import JsonValue
from tests.server.http_server import KEY, Provider, http_server
from tests.support.openai_server import Reply, call

PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 10
TEXT = base64.b64encode(PNG).decode()


def test_when_the_budget_of_the_day_is_spent_chats_are_refused_until_midnight(tmp_path: Path) -> None:
    with http_server(tmp_path, HOLMES_MAX_COST_PER_DAY="0") as poor:
        refused = httpx.post(f"{poor.url}/api/chat", json={"ask": "why?"})

    assert refused.status_code == 429
    assert refused.json()["error"]["code"] == "budget_spent"
    assert 0 < int(refused.headers["retry-after"]) <= 86_400


def test_a_chat_that_has_spent_its_budget_is_answered_without_an_llm(scripted: Provider, tmp_path: Path) -> None:
    scripted.play(Reply(text="Let me look.", tool_calls=(call("kubernetes_diagnose"),)), Reply(text="It is the key."))
    with (
        http_server(
            tmp_path, provider_url=scripted.server.base_url, HOLMES_MAX_COST="0.05", HOLMES_API_KEY=KEY
        ) as thrifty,
        thrifty.client() as client,
    ):
        answer = client.post("/api/chat", json={"ask": "why?"}).json()

    assert answer["metadata"]["model"] == "builtin/triage"
    assert "No LLM was used" in answer["analysis"]
    assert answer["metadata"]["costs"]["total_cost"] == pytest.approx(0.12)  # the first reply, and no more


@pytest.mark.parametrize(
    "entry",
    [
        TEXT,
        f"data:image/jpeg;base64,{TEXT}",
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{TEXT}"}},
        {"type": "image_url", "image_url": TEXT},
        {"url": f"data:image/png;base64,{TEXT}", "detail": "high"},
    ],
)
def test_pictures_come_in_many_wrappings(entry: JsonValue) -> None:
    (image,) = images_of([entry])
    assert image.data == PNG
    assert image.media_type == "image/png"


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        (["http://169.254.169.254/latest/meta-data"], "not fetched"),
        ([{"image_url": {"url": "file:///etc/passwd"}}], "not fetched"),
        (["data:text/html,<script>"], "base64"),
        (["!"], "not valid base64"),
        ([base64.b64encode(b"<svg/>").decode()], "not a PNG"),
        ([5], "expected"),
        ([TEXT] * (MAX_IMAGES + 1), "the maximum is"),
        ([base64.b64encode(PNG + b"x" * 5_000_000).decode()], "larger than"),
    ],
)
def test_what_is_no_picture_is_refused_and_nothing_is_fetched(entries: list[JsonValue], problem: str) -> None:
    with pytest.raises(ImageError, match=problem):
        images_of(entries)
