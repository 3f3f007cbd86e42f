"""Who guesses keys in headers has to wait, as at the login; nobody else does."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.server.http_server import KEY, WEBHOOK_KEY, HttpServer, http_server

WEBHOOK = "/api/alerts/alertmanager"


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """A server behind a proxy, so that a test can come from any address."""
    with http_server(
        tmp_path_factory.mktemp("proxied"),
        HOLMES_API_KEY=KEY,
        HOLMES_WEBHOOK_KEY=WEBHOOK_KEY,
        HOLMES_TRUSTED_PROXIES="127.0.0.1",
    ) as running:
        yield running


def ask(server: HttpServer, client: str, path: str = "/api/model", **headers: str) -> httpx.Response:
    method = "POST" if path == WEBHOOK else "GET"
    return httpx.request(method, f"{server.url}{path}", headers={"X-Forwarded-For": client, **headers}, timeout=30)


@pytest.mark.parametrize(
    ("number", "path", "header", "form"),
    [
        (1, "/api/model", "X-API-Key", "{}"),
        (2, "/api/model", "Authorization", "Bearer {}"),
        (3, WEBHOOK, "Authorization", "Bearer {}"),
        (4, WEBHOOK, "X-API-Key", "{}"),
        (5, "/", "X-API-Key", "{}"),
        (6, "/metrics", "Authorization", "bearer {}"),
        (7, "/healthz", "X-API-Key", "{}"),
    ],
)
def test_wrong_keys_in_headers_have_to_wait(
    proxied: HttpServer, number: int, path: str, header: str, form: str
) -> None:
    client = f"198.51.100.{number}"
    answers = [ask(proxied, client, path, **{header: form.format(f"guess-{each}")}) for each in range(12)]
    assert 429 not in [answer.status_code for answer in answers[:10]]
    refused = answers[-1]
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) > 0
    assert refused.json()["error"]["code"] == "too_many_requests"
    assert ask(proxied, client, "/api/model", **{"X-API-Key": KEY}).status_code == 429, "who guesses learns nothing"
    assert ask(proxied, client, "/healthz").status_code == 200, "who brings no key does not guess"


def test_the_right_key_of_others_is_never_locked_out(proxied: HttpServer) -> None:
    for each in range(20):
        ask(proxied, "203.0.113.1", **{"X-API-Key": f"guess-{each}"})
    assert ask(proxied, "203.0.113.2", **{"X-API-Key": KEY}).status_code == 200
    assert ask(proxied, "203.0.113.2", WEBHOOK, Authorization=f"Bearer {WEBHOOK_KEY}").status_code == 400


def test_a_right_key_in_the_wrong_place_is_no_guess(proxied: HttpServer) -> None:
    answers = {ask(proxied, "203.0.113.3", **{"X-API-Key": WEBHOOK_KEY}).status_code for _ in range(20)}
    assert answers == {401}
    assert ask(proxied, "203.0.113.3", **{"X-API-Key": KEY}).status_code == 200


def test_who_has_the_key_of_the_webhooks_cannot_guess_the_other_one_beside_it(proxied: HttpServer) -> None:
    right = {"Authorization": f"Bearer {WEBHOOK_KEY}"}
    answers = [ask(proxied, "203.0.113.6", **right, **{"X-API-Key": f"guess-{each}"}) for each in range(12)]
    assert [answer.status_code for answer in answers] == [401] * 10 + [429] * 2
    assert ask(proxied, "203.0.113.6", WEBHOOK, **right).status_code == 429


def test_the_api_key_beside_what_a_proxy_adds_is_no_guess(proxied: HttpServer) -> None:
    headers = {"X-API-Key": KEY, "Authorization": "Bearer a token of the proxy"}
    assert {ask(proxied, "203.0.113.7", **headers).status_code for _ in range(12)} == {200}


def test_where_the_right_key_came_from_before_it_still_counts(proxied: HttpServer) -> None:
    """Behind one address may be many: who guesses there must not silence the others."""
    assert ask(proxied, "203.0.113.4", WEBHOOK, Authorization=f"Bearer {WEBHOOK_KEY}").status_code == 400
    guesses = [ask(proxied, "203.0.113.4", **{"X-API-Key": f"guess-{each}"}).status_code for each in range(12)]
    assert guesses[-1] == 429
    assert ask(proxied, "203.0.113.4", WEBHOOK, Authorization=f"Bearer {WEBHOOK_KEY}").status_code == 400
    assert ask(proxied, "203.0.113.4", **{"X-API-Key": "one more"}).status_code == 429


def test_the_size_that_a_guess_may_send_tells_nothing(proxied: HttpServer) -> None:
    for each in range(11):
        ask(proxied, "203.0.113.5", **{"X-API-Key": f"guess-{each}"})
    body = b"x" * 100_000
    for key in (KEY, "guess"):
        headers = {"X-Forwarded-For": "203.0.113.5", "X-API-Key": key}
        assert httpx.post(f"{proxied.url}/api/chat", content=body, headers=headers).status_code == 429


def test_without_a_key_nothing_is_a_guess(tmp_path_factory: pytest.TempPathFactory) -> None:
    with http_server(tmp_path_factory.mktemp("keyless")) as running:
        answers = {httpx.get(f"{running.url}/api/model", headers={"X-API-Key": "any"}).status_code for _ in range(20)}
    assert answers == {200}
