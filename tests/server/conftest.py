"""One server for all tests of the interface, with one provider that each test scripts."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.server.http_server import KEY, WEBHOOK_KEY, HttpServer, Provider, http_server, provider
from tests.support.openai_server import Reply


@pytest.fixture(scope="package")
def _provider() -> Iterator[Provider]:
    with provider() as made:
        yield made


@pytest.fixture(scope="package")
def server(_provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """A server with a key, small limits and little patience."""
    with http_server(
        tmp_path_factory.mktemp("server"),
        provider_url=_provider.server.base_url,
        HOLMES_API_KEY=KEY,
        HOLMES_WEBHOOK_KEY=WEBHOOK_KEY,
        HOLMES_TRUSTED_PROXIES="127.0.0.1",
        HOLMES_MAX_BODY_MEGABYTES="1",
        HOLMES_CHATS_PER_CLIENT="3",
        HOLMES_INVESTIGATIONS_PER_CLIENT="1000",
        HOLMES_RESUME_SECONDS="0.6",
        HOLMES_HEARTBEAT_SECONDS="0.2",
    ) as running:
        yield running


@pytest.fixture
def scripted(_provider: Provider) -> Provider:
    """The provider of the server, without what an earlier test told it."""
    _provider.play(Reply(text="All is well."))
    return _provider


@pytest.fixture
def client(server: HttpServer) -> Iterator[httpx.Client]:
    """A client with the key."""
    with server.client() as made:
        yield made
