"""`/api/checks/execute` with a model."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.server.http_server import Provider
from tests.support.openai_server import Hang, Reply, Scripted

# A call that is cancelled while litellm prepares it leaves a coroutine of litellm's behind.
CHECK = {"query": "payments can reach its gateway", "name": "gateway"}


@pytest.mark.parametrize(
    ("replies", "status", "rationale"),
    [
        ([Reply(text='{"passed": true, "rationale": "It answers."}')], "pass", "It answers."),
        ([Reply(text='```json\n{"passed": false, "rationale": "It does not."}\n```')], "fail", "It does not."),
        ([Reply(text='Here: {"passed": true, "rationale": "Yes."} as asked.')], "pass", "Yes."),
        ([Reply(text="It holds."), Reply(text='{"passed": true, "rationale": "Repaired."}')], "pass", "Repaired."),
    ],
)
def test_a_check_passes_or_fails_with_its_reason(
    client: httpx.Client, scripted: Provider, replies: list[Scripted], status: str, rationale: str
) -> None:
    scripted.play(*replies)

    answer: dict[str, Any] = client.post("/api/checks/execute", json=CHECK).json()

    assert answer["status"] == status
    assert answer["rationale"] == rationale
    assert answer["model_used"] == "scripted"
    assert answer["error"] is None
    assert answer["message"].startswith("gateway: ")


def test_a_verdict_that_is_none_is_an_error(client: httpx.Client, scripted: Provider) -> None:
    scripted.play(Reply(text='{"passed": "maybe"}'))

    answer = client.post("/api/checks/execute", json=CHECK).json()

    assert answer["status"] == "error"
    assert "$.passed" in answer["error"] or "rationale" in answer["error"]


def test_a_check_that_takes_too_long_is_an_error_and_ends(client: httpx.Client, scripted: Provider) -> None:
    scripted.play(Hang())
    scripted.server._disconnected.clear()

    answer = client.post("/api/checks/execute", json={**CHECK, "timeout": 0.5}).json()

    assert answer["status"] == "error"
    assert answer["error"] == "the check exceeded its time limit of 0.5 seconds"
    assert 0.5 <= answer["duration"] < 5
    assert scripted.server.wait_for_disconnect(10)
