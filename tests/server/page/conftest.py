"""One server and one browser for all tests of the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.server.page.serving import KEY, RunningServer, running_server


@pytest.fixture(scope="session")
def page_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server without a key, on loopback."""
    with running_server(tmp_path_factory.mktemp("page")) as server:
        yield server


@pytest.fixture(scope="session")
def locked_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with a key."""
    with running_server(tmp_path_factory.mktemp("locked"), KEY) as server:
        yield server


@pytest.fixture(scope="module")
def browser(chromium_path: Path) -> Iterator[Browser]:
    """The system's Chromium, headless."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()
