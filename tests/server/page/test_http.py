"""The page without a browser: what it answers, how fast, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.server.page.sample import add_one, fill_many
from tests.server.page.serving import RunningServer, running_server


@pytest.fixture(scope="module")
def client(page_server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=page_server.url) as client:
        yield client


def every_address(server: RunningServer) -> list[str]:
    """One address of each kind, for everything in the sample."""
    sample = server.sample
    return [
        "/",
        "/?state=all&severity=critical&q=checkout",
        "/investigations",
        *(f"/incidents/{identity}" for identity in sample.incidents.values()),
        *(f"/investigations/{identity}" for identity in sample.investigations.values()),
        *(f"/investigations/{identity}/updates?after=2" for identity in sample.investigations.values()),
        *(f"/results/{identity}?lines=2-4" for identity in sample.results.values()),
        *(f"/results/{identity}/lines?lines=2-4" for identity in sample.results.values()),
    ]


def test_every_page_answers_and_shows_foreign_text_escaped(page_server: RunningServer, client: httpx.Client) -> None:
    for address in every_address(page_server):
        answer = client.get(address)
        assert answer.status_code == 200, address
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        for text in ("<script>window", "<img src=x", "<iframe", "<style", 'href="javascript', ' onmouseover="'):
            assert text not in answer.text, (address, text)


def test_pages_carry_the_strict_policy_and_send_their_origin_with_forms(client: httpx.Client) -> None:
    headers = client.get("/").headers
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
    assert headers.get_list("content-security-policy") == [policy]
    assert headers.get_list("referrer-policy") == ["same-origin"]
    assert headers["cache-control"] == "no-store"


def test_files_of_the_page_may_be_kept_for_ever_because_their_address_changes(client: httpx.Client) -> None:
    page = client.get("/").text
    style = page.split('rel="stylesheet" href="')[1].split('"')[0]
    assert "?v=" in style
    assert "immutable" in client.get(style).headers["cache-control"]
    assert client.get("/static/pages.py").status_code == 404
    assert client.get("/static/..%2fpages.py").status_code == 404


def test_lists_filter_and_search(client: httpx.Client) -> None:
    closed = client.get("/?state=closed").text
    assert "loki-0" in closed
    assert "node-7" not in closed
    assert "payments/checkout" in client.get("/?q=DATABASE_HOST").text, "the root cause is searched too"
    assert "node-7" not in client.get("/?severity=critical").text
    assert "No incidents match" in client.get("/?q=100%25").text, "a wildcard of SQL is a character like any other"
    failed = client.get("/investigations?state=failed").text
    assert "nightly backup" in failed
    assert "ingress-nginx" not in failed
    assert "nightly backup" in client.get("/investigations?source=api").text


@pytest.mark.parametrize(
    "address",
    [
        "/?state=x&severity=%00&q=%00%ff&after=zz",
        "/?after=99999999999999999999_x",
        "/investigations?state=x&q=%ed%a0%80&source=%00&after=%27",
        "/investigations/%00",
        "/investigations/x/updates?after=99999999999999999999",
        "/investigations/x/outputs/-1",
        "/incidents/%F0%9F%94%A5",
        "/results/x?lines=9-1&start=999999999999",
        "/results/..%2f..%2fetc%2fpasswd",
        "/results/redaction.key",
        "/results/deadbeefdead/raw",
    ],
)
def test_nonsense_in_an_address_is_no_error_of_the_server(client: httpx.Client, address: str) -> None:
    assert client.get(address).status_code in {200, 404}


def test_an_incident_shows_its_root_cause_its_alerts_and_what_it_cost(
    page_server: RunningServer, client: httpx.Client
) -> None:
    page = client.get(f"/incidents/{page_server.sample.incidents['crash']}").text
    assert "cannot start because its ConfigMap lost" in page
    assert "$0.18" in page
    assert "received 7\N{MULTIPLICATION SIGN}" in page
    assert "slack: answered" in page
    assert "HTTP 503 from the destination" in page
    assert 'href="https://runbooks.example/kubepodcrashlooping"' in page


def test_who_answered_without_a_model_is_said_with_the_reason(page_server: RunningServer, client: httpx.Client) -> None:
    page = client.get(f"/investigations/{page_server.sample.investigations['triage']}").text
    assert "Answered without an LLM: the limit of $20 for today is spent" in page
    assert "builtin/triage" in page


def test_a_stored_output_is_shown_in_windows_and_downloaded_as_a_file(
    page_server: RunningServer, client: httpx.Client
) -> None:
    identity = page_server.sample.results["long"]
    page = client.get(f"/results/{identity}?lines=700-701").text
    assert page.count('class="cited"') == 2
    assert 'id="L670"' in page
    assert 'id="L669"' not in page
    assert 'id="L1500"' not in page
    later = page.split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&")
    assert 'id="L1070"' in client.get(f"/results/{identity}{later}").text
    raw = client.get(f"/results/{identity}/raw")
    assert raw.headers["content-disposition"].startswith("attachment")
    assert raw.headers["content-type"] == "application/octet-stream"


def test_a_huge_line_is_cut_and_says_so(page_server: RunningServer, client: httpx.Client) -> None:
    page = client.get(f"/results/{page_server.sample.results['hostile']}")
    assert "98k more characters" in page.text
    assert len(page.content) < 20_000


def test_cancelling_ends_an_investigation_and_needs_a_form_of_this_page(
    page_server: RunningServer, client: httpx.Client
) -> None:
    identity = page_server.write(lambda connection: add_one(connection, "to be cancelled", "running"))
    foreign = client.post(f"/investigations/{identity}/cancel", headers={"Origin": "https://evil.example"})
    assert foreign.status_code == 403
    bare = client.post(f"/investigations/{identity}/cancel")
    assert bare.status_code == 403
    own = client.post(f"/investigations/{identity}/cancel", headers={"Origin": page_server.url})
    assert own.status_code == 303
    assert "Cancelled." in client.get(own.headers["location"]).text


def test_an_open_incident_is_closed_by_a_form_of_this_page(page_server: RunningServer, client: httpx.Client) -> None:
    address = f"/incidents/{page_server.sample.incidents['node']}"
    assert f'action="{address}/close"' in client.get(address).text
    assert client.post(f"{address}/close", headers={"Origin": "https://evil.example"}).status_code == 403
    own = client.post(f"{address}/close", headers={"Origin": page_server.url})
    assert (own.status_code, own.headers["location"]) == (303, address)
    closed = client.get(address).text
    assert "manually" in closed
    assert f"{address}/close" not in closed


def test_a_list_of_500_incidents_pages_through_all_of_them(tmp_path: Path) -> None:
    with running_server(tmp_path) as server, httpx.Client(base_url=server.url) as client:
        server.run(lambda service: fill_many(service, 500))
        seen: set[str] = set()
        address: str | None = "/?q=KubeJobFailed"
        while address:
            page = client.get(address).text
            found = {part.split('"')[0] for part in page.split('href="/incidents/')[1:]}
            assert not found & seen, "no row twice"
            seen |= found
            address = (
                page.split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&") if 'rel="next"' in page else None
            )
        assert len(seen) == 500
