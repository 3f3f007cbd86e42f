"""Who gets in: the form, its cookie, and what is closed without them."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from fastapi.routing import APIRoute

from holmes.server.limits import Guesses
from holmes.server.pages.page_login import local_address
from holmes.server.pages.pages import inside_routes
from tests.server.page.serving import KEY, RunningServer


@pytest.fixture
def client(locked_server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=locked_server.url, headers={"Origin": locked_server.url}) as client:
        yield client


def log_in(client: httpx.Client, key: str = KEY, target: str = "/", **headers: str) -> httpx.Response:
    return client.post("/login", data={"key": key, "next": target}, headers=headers)


def test_every_page_but_the_login_leads_to_it(locked_server: RunningServer, client: httpx.Client) -> None:
    closed = {route.path for route in inside_routes(locked_server.service).routes if isinstance(route, APIRoute)}
    assert len(closed) >= 9
    for path in closed:
        address = path.replace("{identity}", "x").replace("{event_id}", "1")
        if address.endswith(("/cancel", "/close")):
            assert client.post(address).status_code == 401
            continue
        answer = client.get(f"{address}?a=1")
        assert answer.status_code == 303, path
        assert answer.headers["location"] == f"/login?next={address}%3Fa%3D1"


def test_a_script_is_told_that_the_login_ended_instead_of_getting_the_form(client: httpx.Client) -> None:
    assert client.get("/", headers={"Sec-Fetch-Mode": "cors"}).status_code == 401


def test_the_right_key_sets_a_strict_cookie_that_opens_the_page(client: httpx.Client) -> None:
    answer = log_in(client, target="/investigations?state=failed")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/investigations?state=failed"
    cookie = answer.headers["set-cookie"]
    assert {part.strip().lower() for part in cookie.split(";")[1:]} == {
        "httponly", "max-age=43200", "path=/", "samesite=strict",
    }  # fmt: skip
    assert KEY not in cookie
    assert client.get("/").status_code == 200


def test_behind_https_the_cookie_is_secure(client: httpx.Client) -> None:
    assert "secure" in log_in(client, **{"X-Forwarded-Proto": "https"}).headers["set-cookie"].lower()


def test_logging_out_ends_it(client: httpx.Client) -> None:
    log_in(client)
    assert client.post("/logout").headers["location"] == "/login"
    assert client.get("/").status_code == 303


def test_a_header_with_the_key_opens_the_page_too(client: httpx.Client) -> None:
    assert client.get("/", headers={"X-API-Key": KEY}).status_code == 200
    assert client.get("/", headers={"Authorization": f"Bearer {KEY}"}).status_code == 200
    assert client.get("/", headers={"X-API-Key": "wrong"}).status_code == 303


@pytest.mark.parametrize("cookie", ["", "x", "99999999999.00.00", "99999999999.", "\xff"])
def test_a_made_up_session_opens_nothing(client: httpx.Client, cookie: str) -> None:
    headers = [(b"cookie", f"holmes_session={cookie}".encode("latin-1"))]
    assert client.get("/", headers=headers).status_code == 303


def test_a_form_of_another_site_logs_nobody_in(locked_server: RunningServer) -> None:
    with httpx.Client(base_url=locked_server.url) as client:
        for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}, {}):
            answer = client.post("/login", data={"key": KEY}, headers=headers)
            assert answer.status_code == 403
            assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "wanted",
    ["https://evil.example/", "//evil.example", "/\\evil.example", "\\\\evil.example", "evil", "", "/\t/evil.example",
     "/a\nb", "javascript:alert(1)", "/" + "x" * 2_000, "/é"],
)  # fmt: skip
def test_only_paths_of_this_server_are_gone_on_to(client: httpx.Client, wanted: str) -> None:
    assert local_address(wanted) == "/"
    assert log_in(client, target=wanted).headers["location"] == "/"


def test_wrong_keys_are_refused_and_then_have_to_wait(client: httpx.Client) -> None:
    first = log_in(client, "wrong")
    assert first.status_code == 401
    assert "Wrong key." in first.text
    assert "wrong" not in first.text.replace("wrong keys", "")
    answers = [log_in(client, f"guess {number}").status_code for number in range(12)]
    assert answers[-1] == 429
    refused = log_in(client)
    assert refused.status_code == 429, "who guesses learns nothing any more"
    assert int(refused.headers["retry-after"]) > 0


def test_one_more_guess_every_six_seconds() -> None:
    now = 0.0
    guesses = Guesses(lambda: now)
    for _ in range(10):
        assert guesses.wait_seconds("a") == 0
        guesses.wrong("a")
    assert guesses.wait_seconds("a") == 6
    assert guesses.wait_seconds("b") == 0
    now = 6.0
    assert guesses.wait_seconds("a") == 0
    guesses.wrong("a")
    assert guesses.wait_seconds("a") == 6
