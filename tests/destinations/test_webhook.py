"""The webhook: what is sent, how it is signed, and which answers are tried again."""

from __future__ import annotations

import base64
import hashlib
import json
import socket
import subprocess
import time

import httpx
import pytest

from holmes.destinations.destination import DeliveryFailed
from holmes.destinations.webhook import WebhookDestination
from tests.destinations.incidents import news
from tests.destinations.receiver import Answer, Received, Receiver

SECRET = "whsec-0123456789"


def webhook(client: httpx.AsyncClient, url: str, secret: str | None = SECRET) -> WebhookDestination:
    return WebhookDestination(client, name="ops", url=url, secret=secret)


async def failure_of(client: httpx.AsyncClient, url: str) -> DeliveryFailed:
    with pytest.raises(DeliveryFailed) as caught:
        await webhook(client, url).send(news(), None)
    message = str(caught.value)
    assert message.startswith("ops: ")
    assert "\n" not in message
    assert "path-secret" not in message
    assert SECRET not in message
    return caught.value


def is_signed(received: Received) -> bool:
    """What openssl says about the signature: not our code, and not Python's hmac."""
    signed = f"{received.headers['x-holmes-timestamp']}.".encode() + received.body
    command = ["openssl", "dgst", "-sha256", "-mac", "HMAC", "-macopt", f"key:{SECRET}", "-binary"]
    digest = subprocess.run(command, input=signed, capture_output=True, check=True).stdout
    return received.headers["x-holmes-signature"] == f"sha256={digest.hex()}"


async def test_the_body_is_the_documented_one_and_its_signature_can_be_verified(client: httpx.AsyncClient) -> None:
    with Receiver() as receiver:
        assert await webhook(client, receiver.url).send(news("answered"), None) is None
    (received,) = receiver.received
    assert is_signed(received)
    assert abs(time.time() - int(received.headers["x-holmes-timestamp"])) < 30
    assert received.headers["idempotency-key"] == "inc1/inv1/answered/ops/0"
    assert received.headers["content-type"] == "application/json"
    body = json.loads(received.body)
    assert (body["version"], body["event"], body["idempotency_key"]) == ("1", "answered", "inc1/inv1/answered/ops/0")
    assert body["incident"] == {
        "id": "inc1", "title": "KubePodCrashLooping: shop/checkout", "state": "open", "severity": "critical",
        "labels": {"namespace": "shop", "pod": "checkout-5d9"},
        "verdict": "cause_found", "summary": "the container is killed at its limit of 64Mi.",
        "root_cause": "the container is killed at its limit of 64Mi.", "reopened": 0,
        "opened_at": "2026-03-01T12:00:00Z", "updated_at": "2026-03-01T12:01:00Z", "closed_at": None,
        "url": "https://holmes.example/incidents/inc1",
    }  # fmt: skip
    assert body["alerts"][0]["summary"] == "It restarts."
    assert body["investigation"]["answer"].startswith("**Root cause:**")
    assert (body["investigation"]["cost_usd"], body["investigation"]["without_llm"]) == (0.0312, False)


async def test_without_a_secret_there_is_no_signature(client: httpx.AsyncClient) -> None:
    with Receiver() as receiver:
        await webhook(client, receiver.url, None).send(news(), None)
    assert "x-holmes-signature" not in receiver.received[0].headers


async def test_text_that_is_no_text_is_json_all_the_same(client: httpx.AsyncClient) -> None:
    with Receiver() as receiver:
        await webhook(client, receiver.url).send(
            news(title="half \ud800 \x00 <!channel>", labels={"a\n": "\u2028"}), None
        )
    assert json.loads(receiver.received[0].body)["incident"]["labels"] == {"a\n": "\u2028"}
    assert is_signed(receiver.received[0])


@pytest.mark.parametrize("status", [200, 201, 202, 204])
async def test_2xx_is_delivered(client: httpx.AsyncClient, status: int) -> None:
    with Receiver([Answer(status=status, body=b"")]) as receiver:
        assert await webhook(client, receiver.url).send(news(), None) is None


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
async def test_what_may_pass_is_tried_again_when_the_receiver_wants(client: httpx.AsyncClient, status: int) -> None:
    with Receiver([Answer(status=status, headers={"retry-after": "7"})]) as receiver:
        failure = await failure_of(client, receiver.url)
    assert failure.retryable
    assert failure.retry_after_seconds == 7
    assert f"HTTP {status}" in str(failure)


@pytest.mark.parametrize("status", [301, 307, 400, 401, 403, 404, 410, 413])
async def test_refusals_and_redirects_are_final(client: httpx.AsyncClient, status: int) -> None:
    with Receiver() as elsewhere, Receiver([Answer(status=status, headers={"location": elsewhere.url})]) as receiver:
        failure = await failure_of(client, receiver.url)
    assert not failure.retryable
    assert not elsewhere.received


@pytest.mark.parametrize("answer", [Answer(cut=True), Answer(delay_seconds=0.7)])
async def test_a_broken_or_silent_connection_is_tried_again(client: httpx.AsyncClient, answer: Answer) -> None:
    with Receiver([answer]) as receiver:
        assert (await failure_of(client, receiver.url)).retryable


async def test_nobody_listening_is_tried_again(client: httpx.AsyncClient) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        failure = await failure_of(client, f"http://127.0.0.1:{unused.getsockname()[1]}/path-secret")
    assert failure.retryable
    assert "cannot be reached" in str(failure)


async def test_an_endless_answer_is_not_read(client: httpx.AsyncClient) -> None:
    with Receiver([Answer(body=base64.b64encode(hashlib.sha256().digest()) * 500_000)]) as receiver:
        await webhook(client, receiver.url).send(news(), None)
        assert receiver.was_left.wait(30)
