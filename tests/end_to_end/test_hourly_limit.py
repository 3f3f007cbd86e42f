"""The limit of paid investigations in an hour is one, however many routes and replicas there are."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.alert_load import payload
from tests.support.command_line import Home, provider_config
from tests.support.long_form import LONG, count
from tests.support.openai_server import OpenAIServer, Reply

LIMIT = count(long=30, short=6)  # 30 is the default
GROUPS = count(long=44, short=10)
VARIABLES = {} if LONG else {"HOLMES_MAX_INVESTIGATIONS_PER_HOUR": str(LIMIT)}
SECONDS = 240
ROUTES = ("shop", "bank")
ALERTS = "alerts: {routes: [{name: shop, match: {namespace: shop}}, {name: bank, match: {namespace: bank}}]}"


@contextmanager
def replica(home: Home) -> Iterator[str]:
    """The address of a `holmes serve` that runs until the block ends."""
    with home.start("serve", "--demo", "--port", "0") as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[-1]
        finally:
            process.kill()


def group(number: int) -> dict[str, Any]:
    """A group of its own, of one of the two routes."""
    content: dict[str, Any] = payload([number])
    content["alerts"][0]["labels"]["namespace"] = ROUTES[number // 2 % 2]
    return content


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_flood_over_two_routes_and_two_replicas_begins_only_as_many_investigations_with_a_model_as_the_limit_allows(
    tmp_path: Path, postgresql_url: str
) -> None:
    with OpenAIServer(lambda _: Reply(text="Root cause: the pod cannot start.")) as model:
        config = provider_config(model.base_url, ALERTS)
        homes = [
            Home.make(tmp_path / name, config=config, HOLMES_DATABASE_URL=postgresql_url, **VARIABLES) for name in "ab"
        ]
        with replica(homes[0]) as first, replica(homes[1]) as second:
            addresses = (first, second)

            def send(number: int) -> int:
                address = f"{addresses[number % 2]}/api/alerts/alertmanager"
                return httpx.post(address, json=group(number), timeout=60).status_code

            with ThreadPoolExecutor(8) as senders:
                assert set(senders.map(send, range(GROUPS))) == {202}
            records = all_answered(first)
        asked = len(model.requests)
    by_rules = [each for each in records if each["answered_by"] == "builtin/triage"]
    assert (len(records), asked, len(by_rules)) == (GROUPS, LIMIT, GROUPS - LIMIT)
    assert set(Counter(each["route"] for each in records)) == set(ROUTES)


def all_answered(address: str) -> list[dict[str, Any]]:
    """What both replicas know, when every group has its answer."""
    deadline = time.monotonic() + SECONDS
    while True:
        query: dict[str, str | int] = {"state": "answered", "limit": 200}
        answered: list[dict[str, Any]] = httpx.get(f"{address}/api/investigations", params=query, timeout=30).json()[
            "investigations"
        ]
        if len(answered) == GROUPS:
            return answered
        assert time.monotonic() < deadline, f"{len(answered)} of {GROUPS} answered in time"
        time.sleep(1)
