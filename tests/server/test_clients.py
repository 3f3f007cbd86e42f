"""Clients behind proxies are told apart, and nobody chooses who they are."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from holmes.server.limits import TrustedProxies
from holmes.settings.load import load_settings
from holmes.values.errors import ConfigError
from tests.server.http_server import KEY, http_server

PROXIES = TrustedProxies(["10.0.0.0/8", "192.168.1.5", "fd00::/8"])


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("203.0.113.9", ["198.51.100.1"], "203.0.113.9"),  # nobody that is trusted said so
        ("10.1.2.3", ["198.51.100.1"], "198.51.100.1"),
        ("10.1.2.3", ["6.6.6.6, 198.51.100.1"], "198.51.100.1"),  # the client wrote the first one
        ("10.1.2.3", ["6.6.6.6", "198.51.100.1, 10.9.9.9"], "198.51.100.1"),
        ("10.1.2.3", [], "10.1.2.3"),
        ("10.1.2.3", ["10.4.4.4, 192.168.1.5"], "10.4.4.4"),
        ("10.1.2.3", ["198.51.100.1, nonsense"], "10.1.2.3"),
        ("::ffff:10.1.2.3", ["198.51.100.1:4711"], "198.51.100.1"),
        ("fd00::1", ["[2001:db8::7]:80"], "2001:db8::7"),
        ("fd00::1", ["2001:db8::7"], "2001:db8::7"),
    ],
)
def test_the_client_is_the_last_one_that_no_trusted_proxy_is(peer: str, forwarded: list[str], client: str) -> None:
    assert PROXIES.address(peer, forwarded) == client


def test_without_trusted_proxies_headers_count_for_nothing() -> None:
    assert TrustedProxies(()).address("127.0.0.1", ["198.51.100.1"]) == "127.0.0.1"


def test_what_is_no_address_is_refused_before_the_server_starts(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a valid IP address"):
        load_settings({"HOME": str(tmp_path), "HOLMES_TRUSTED_PROXIES": "10.0.0.0/8, ingress"})


@pytest.mark.parametrize(("proxies", "status"), [("", 429), ("127.0.0.1", 401)])
def test_wrong_keys_of_one_client_lock_out_the_others_only_when_they_cannot_be_told_apart(
    tmp_path: Path, proxies: str, status: int
) -> None:
    with http_server(tmp_path, HOLMES_API_KEY=KEY, HOLMES_TRUSTED_PROXIES=proxies) as running:

        def guess(client: str) -> int:
            headers = {"Sec-Fetch-Site": "same-origin", "X-Forwarded-For": client}
            return httpx.post(f"{running.url}/login", data={"key": "wrong"}, headers=headers).status_code

        while guess("198.51.100.1") != 429:
            pass
        assert guess("198.51.100.2") == status
