"""Who gets in, with what, and what a browser may do with the answers."""

from __future__ import annotations

import time
from collections.abc import Iterator

import httpx
import pytest
from pydantic import SecretStr

from holmes.investigations.records.database import DatabaseUnavailable
from holmes.server.errors import api_error
from holmes.server.security import SESSION_COOKIE, Keys
from holmes.settings.server import ServerSettings
from tests.server.http_server import KEY, WEBHOOK_KEY, HttpServer, http_server

OPEN = {"/healthz", "/readyz"}
WEBHOOKS = {"/api/alerts/alertmanager"}
ID = "0" * 24


def keys(**more: object) -> Keys:
    return Keys(ServerSettings.model_validate({"api_key": SecretStr(KEY), **more}))


@pytest.fixture(scope="module")
def keyless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """A server without a key."""
    with http_server(tmp_path_factory.mktemp("keyless")) as running:
        yield running


def routes(server: HttpServer) -> list[tuple[str, str]]:
    with server.client() as client:
        paths = client.get("/openapi.json").json()["paths"]
    return [(method.upper(), path) for path, methods in paths.items() for method in methods]


def test_every_route_but_the_open_ones_wants_the_key(server: HttpServer) -> None:
    found = [*routes(server), ("GET", "/openapi.json")]
    assert len(found) >= 15
    with httpx.Client(base_url=server.url) as nobody:
        for method, path in found:
            answer = nobody.request(method, path.replace("{identity}", ID).replace("{run_id}", ID), json={"ask": "x"})
            if path in OPEN:
                assert answer.status_code == 200, path
            else:
                assert answer.status_code == 401, (method, path)
                assert set(answer.json()["error"]) == {"code", "message"}
                assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"X-API-Key": KEY}, 200),
        ({"Authorization": f"Bearer {KEY}"}, 200),
        ({"Authorization": f"bearer {KEY}"}, 200),
        ({"X-API-Key": f"{KEY}x"}, 401),
        ({"X-API-Key": KEY[:-1]}, 401),
        ({"X-API-Key": ""}, 401),
        ({"X-API-Key": "schlüssel".encode()}, 401),
        ({"X-API-Key": WEBHOOK_KEY}, 401),
        ({"Authorization": f"Basic {KEY}"}, 401),
        ({"Authorization": KEY}, 401),
        ({"Cookie": f"{SESSION_COOKIE}={keys().new_session()}"}, 200),
        ({"Cookie": f"{SESSION_COOKIE}={keys(session_hours=1e-9).new_session()}"}, 401),
        ({"Cookie": f"{SESSION_COOKIE}={KEY}"}, 401),
        ({"Cookie": f"{SESSION_COOKIE}=1.2.3"}, 401),
    ],
)
def test_the_key_opens_by_header_and_a_session_by_cookie(
    server: HttpServer, headers: dict[str, str | bytes], status: int
) -> None:
    raw = [(name.encode(), value if isinstance(value, bytes) else value.encode()) for name, value in headers.items()]
    assert httpx.get(f"{server.url}/api/model", headers=raw).status_code == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://[broken"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 404),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "https://behind.a.proxy"}, 404),
    ],
)
def test_a_session_changes_nothing_for_foreign_pages(server: HttpServer, headers: dict[str, str], status: int) -> None:
    cookies = {"Cookie": f"{SESSION_COOKIE}={keys().new_session()}"}
    answer = httpx.delete(f"{server.url}/api/investigations/{ID}", headers={**cookies, **headers})
    assert answer.status_code == status
    own = {**cookies, "Origin": server.url}
    assert httpx.delete(f"{server.url}/api/investigations/{ID}", headers=own).status_code == 404


def test_webhooks_have_a_key_that_opens_nothing_else(server: HttpServer) -> None:
    address = f"{server.url}/api/alerts/alertmanager"
    assert httpx.post(address, json={}, headers={"Authorization": f"Bearer {WEBHOOK_KEY}"}).status_code == 400
    assert httpx.post(address, json={}, headers={"X-API-Key": KEY}).status_code == 401


@pytest.mark.parametrize("path", ["/healthz", "/api/model", "/nowhere", "/api/results/00000000"])
def test_all_answers_carry_the_security_headers(server: HttpServer, path: str) -> None:
    answer = httpx.get(f"{server.url}{path}", headers={"X-API-Key": KEY})
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-store"
    assert "server" not in answer.headers


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:5050", 200),
        ("localhost:5050", 200),
        ("[::1]:5050", 200),
        ("holmes.localhost", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("10.0.0.1", 421),
        ("[broken", 421),
    ],
)
def test_without_a_key_only_loopback_names_are_answered(keyless: HttpServer, host: str, status: int) -> None:
    assert httpx.get(f"{keyless.url}/api/model", headers={"Host": host}).status_code == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 404),
        ({"Origin": "https://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "none"}, 404),
    ],
)
def test_without_a_key_pages_of_others_change_nothing(
    keyless: HttpServer, headers: dict[str, str], status: int
) -> None:
    assert httpx.delete(f"{keyless.url}/api/investigations/{ID}", headers=headers).status_code == status


def test_a_session_holds_in_every_replica_and_ends_with_the_key() -> None:
    token = keys().new_session()

    assert keys().valid_session(token)
    assert not Keys(ServerSettings.model_validate({"api_key": SecretStr("another-key")})).valid_session(token)
    expiry, rest = token.split(".", 1)
    assert int(expiry) == pytest.approx(time.time() + 12 * 3_600, abs=60)
    assert not keys().valid_session(f"{int(expiry) + 1}.{rest}")
    assert not keys().valid_session("\ud800.x")
    assert not keys().valid_session(None)


def test_a_bug_is_told_by_an_id_only(server: HttpServer, client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> tuple[str, ...]:
        raise ZeroDivisionError(KEY)

    monkeypatch.setattr(server.service.investigators, "model_names", broken)
    answer = client.get("/api/model")

    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "internal"
    assert KEY not in answer.text
    assert "ZeroDivisionError" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_when_the_database_is_gone_its_address_is_not_told() -> None:
    error = api_error(DatabaseUnavailable("'postgresql://holmes@10.1.2.3/holmes'", "refused"))

    assert error.status_code == 503
    assert error.headers == {"Retry-After": "5"}
    assert "10.1.2.3" not in str(error.detail)
