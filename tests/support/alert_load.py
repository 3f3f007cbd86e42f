"""A storm of alerts on replicas that are killed: what `benchmarks/alerts.py` measures and a small test proves.

Real `holmes serve` processes share one real PostgreSQL; senders post payloads as Alertmanager does and try again, with
the other replica, until one has answered 202. The cluster is the recorded demo, the provider a scripted one.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time
from collections import Counter
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
from sqlalchemy import select

from holmes.investigations.records.database import Database
from holmes.investigations.records.schema import ALERTS, INVESTIGATIONS
from tests.services.service import free_port
from tests.support.command_line import Home
from tests.support.openai_server import Body, OpenAIServer, Reply, Scripted, call

if TYPE_CHECKING:
    from collections.abc import Iterator

WEBHOOK_KEY = "webhook-key-of-the-load"
CALLS_PER_INVESTIGATION = 2
_PAYLOAD_ALERTS = 2
_POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """`alerts` messages about `distinct` alerts within `seconds`; a replica dies every `kill_every_seconds`.

    No more than `most_kills` times: how far a replica gets between two kills depends on the machine.
    """

    alerts: int = 1_000
    distinct: int = 200
    seconds: float = 10.0
    senders: int = 4
    kill_every_seconds: float = 4.0
    most_kills: int = 1_000
    deadline_seconds: float = 480.0
    concurrency: int = 8


@dataclass(slots=True, kw_only=True)
class LoadResult:
    """What came of it. Times are in seconds.

    All messages were posted within `sent_seconds`, and answered 202 within `stored_seconds`, however often they had to
    be tried.
    """

    accepted: int = 0
    retries: int = 0
    kills: int = 0
    answer_seconds: list[float] = field(default_factory=list)
    states: Counter[str] = field(default_factory=Counter)
    known: int = 0
    received: int = 0
    not_linked: int = 0
    investigations: int = 0
    takeovers: int = 0
    model_calls: int = 0
    sent_seconds: float = 0.0
    stored_seconds: float = 0.0
    finished_seconds: float = 0.0

    def broken(self, load: Load) -> list[str]:
        """The promises that were not kept."""
        checks = (
            (self.known == load.distinct, f"{load.distinct - self.known} distinct alerts were lost"),
            (self.received >= load.alerts, f"only {self.received} of {load.alerts} messages were counted"),
            (self.not_linked == 0, f"{self.not_linked} alerts have no answered investigation of their incident"),
            (
                self.investigations == load.distinct // _PAYLOAD_ALERTS,
                f"{self.investigations} investigations for {load.distinct // _PAYLOAD_ALERTS} groups of alerts",
            ),
            (
                self.model_calls <= self.investigations * CALLS_PER_INVESTIGATION + self.takeovers,
                f"{self.model_calls} model calls: more than one was paid again for each of {self.takeovers} takeovers",
            ),
            (set(self.states) == {"answered"}, f"not every investigation was answered: {dict(self.states)}"),
        )
        return [text for holds, text in checks if not holds]


def replies(body: Body) -> Scripted:
    """One look, then the answer."""
    if any(message["role"] == "assistant" for message in body["messages"]):
        return Reply(text="The pod cannot start: its ConfigMap has no such key.")
    return Reply(tool_calls=(call("kubectl_get", kind="pod", namespace="shop"),))


async def run_load(load: Load, database_url: str, kubeconfig: Path, folder: Path) -> LoadResult:
    """Send, kill, and wait until every investigation has ended or the deadline is over."""
    result = LoadResult()
    with OpenAIServer(replies) as provider:
        servers = Servers(folder, provider.base_url, kubeconfig, database_url, load.concurrency)
        with servers.running():
            started = time.monotonic()
            killing = asyncio.create_task(_kill(servers, load, result))
            await _send_all(servers, load, result)
            async with AsyncExitStack() as stack:
                database = await Database.open(database_url)
                stack.push_async_callback(database.close)
                await _until_finished(database, started + load.deadline_seconds)
                result.finished_seconds = time.monotonic() - started
                killing.cancel()
                await asyncio.gather(killing, return_exceptions=True)
                await _count(database, result)
        result.model_calls = len(provider.requests)
    return result


class Servers:
    """Two replicas, each with its own home and port."""

    def __init__(self, folder: Path, provider_url: str, kubeconfig: Path, database_url: str, concurrency: int) -> None:
        config = "\n".join(
            (
                "model: openai/scripted",
                f"api_base: {provider_url}",
                "api_key: not-a-secret",
                "builtin_fallback: false",
                "first_look: false",
                "answer_review: false",
                "",
            )
        )
        self._folder = folder
        self._homes = [
            Home.make(
                folder / f"home-{number}",
                config=config,
                KUBECONFIG=str(kubeconfig),
                HOLMES_DATABASE_URL=database_url,
                HOLMES_WEBHOOK_KEY=WEBHOOK_KEY,
                HOLMES_API_KEY="api-key-of-the-load",
                HOLMES_HOST="127.0.0.1",
                HOLMES_LEASE_SECONDS="3",
                HOLMES_MAX_INVESTIGATIONS_PER_HOUR="unlimited",
                HOLMES_INVESTIGATION_CONCURRENCY=str(concurrency),
            )
            for number in range(2)
        ]
        self._ports = [free_port() for _ in self._homes]
        self._processes: list[subprocess.Popen[bytes] | None] = [None] * len(self._homes)

    def url(self, number: int) -> str:
        """Where a replica listens, if it lives."""
        return f"http://127.0.0.1:{self._ports[number % len(self._ports)]}"

    @contextmanager
    def running(self) -> Iterator[None]:
        """All of them, until the block ends."""
        try:
            for number in range(len(self._homes)):
                self.start(number)
            for number in range(len(self._homes)):
                self.wait_until_ready(number)
            yield
        finally:
            for number in range(len(self._homes)):
                self.kill(number)

    def start(self, number: int) -> None:
        """Start a replica; it needs some seconds until it answers."""
        home = self._homes[number]
        with (self._folder / f"replica-{number}.log").open("ab") as log:
            self._processes[number] = subprocess.Popen(
                [sys.executable, "-m", "holmes", "serve", "--port", str(self._ports[number])],
                env=home.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def kill(self, number: int) -> None:
        """`kill -9`."""
        process = self._processes[number]
        if process is not None:
            process.kill()
            process.wait()

    def wait_until_ready(self, number: int) -> None:
        """Until it says that it is ready. Raises `AssertionError` with its log when it does not start."""
        deadline = time.monotonic() + 60
        process = self._processes[number]
        while time.monotonic() < deadline and process is not None and process.poll() is None:
            try:
                if httpx.get(f"{self.url(number)}/readyz", timeout=2).status_code == 200:
                    return
            except httpx.HTTPError:
                pass
            time.sleep(0.1)
        log = (self._folder / f"replica-{number}.log").read_text()
        raise AssertionError(f"replica {number} did not start: {log[-2000:]}")


async def _kill(servers: Servers, load: Load, result: LoadResult) -> None:
    """One after the other, each as soon as the last one is back: one of them is always there."""
    for number in range(load.most_kills):
        await asyncio.sleep(load.kill_every_seconds)
        await asyncio.to_thread(servers.kill, number % 2)
        result.kills += 1
        servers.start(number % 2)
        await asyncio.to_thread(servers.wait_until_ready, number % 2)


def payload(numbers: list[int]) -> dict[str, object]:
    """What Alertmanager posts for these alerts; all of one group, as its configuration makes them."""
    group = numbers[0]
    alerts = [
        {
            "status": "firing",
            "labels": {
                "alertname": "PodNotReady",
                "namespace": "shop",
                "pod": f"load-{group}-{each}",
                "severity": "warning",
            },
            "annotations": {"summary": f"pod load-{group}-{each} is not ready"},
            "startsAt": "2026-01-01T00:00:00Z",
            "endsAt": "0001-01-01T00:00:00Z",
        }
        for each in numbers
    ]
    key = f'{{}}:{{group="{group}"}}'
    return {"version": "4", "groupKey": key, "status": "firing", "receiver": "holmes", "alerts": alerts}


async def _send_all(servers: Servers, load: Load, result: LoadResult) -> None:
    """Each sender posts its share evenly over the time; together every distinct alert comes equally often.

    As Alertmanager does, a sender lets no group wait for the answer to another one.
    """
    chooser = random.Random(5)  # noqa: S311  the same order each time
    groups = load.distinct // _PAYLOAD_ALERTS
    batches = [
        [_PAYLOAD_ALERTS * (number % groups) + each for each in range(_PAYLOAD_ALERTS)]
        for number in range(load.alerts // _PAYLOAD_ALERTS)
    ]
    chooser.shuffle(batches)
    pause = load.seconds / (len(batches) / load.senders)

    async def send(sender: int) -> None:
        headers = {"Authorization": f"Bearer {WEBHOOK_KEY}"}
        async with httpx.AsyncClient(timeout=10, headers=headers) as client, asyncio.TaskGroup() as posts:
            for index, batch in enumerate(batches[sender :: load.senders]):
                await asyncio.sleep(max(0.0, began + index * pause - time.monotonic()))
                posts.create_task(_post(client, servers, payload(batch), result))
            result.sent_seconds = max(result.sent_seconds, time.monotonic() - began)

    began = time.monotonic()
    await asyncio.gather(*(send(sender) for sender in range(load.senders)))
    result.stored_seconds = time.monotonic() - began


async def _post(client: httpx.AsyncClient, servers: Servers, body: dict[str, object], result: LoadResult) -> None:
    """Until one replica has said 202, as Alertmanager does."""
    content = json.dumps(body)
    attempt = random.randrange(2)  # noqa: S311  which replica first
    while True:
        began = time.monotonic()
        try:
            reply = await client.post(f"{servers.url(attempt)}/api/alerts/alertmanager", content=content)
            if reply.status_code == 202:
                result.accepted += 1
                result.answer_seconds.append(time.monotonic() - began)
                return
        except httpx.HTTPError:
            pass
        result.retries += 1
        attempt += 1
        await asyncio.sleep(0.1)


async def _until_finished(database: Database, deadline: float) -> None:
    query = select(INVESTIGATIONS.c.id).where(INVESTIGATIONS.c.state.in_(("queued", "running"))).limit(1)
    while time.monotonic() < deadline:
        if await database.transaction(lambda connection: connection.execute(query).first()) is None:
            return
        await asyncio.sleep(_POLL_SECONDS)


async def _count(database: Database, result: LoadResult) -> None:
    alerts = await database.transaction(
        lambda connection: connection.execute(
            select(ALERTS.c.received, ALERTS.c.investigation_id, ALERTS.c.incident_id)
        ).all()
    )
    rows = await database.transaction(
        lambda connection: connection.execute(
            select(*(INVESTIGATIONS.c[name] for name in ("id", "state", "attempts", "incident_id")))
        ).all()
    )
    result.known = len(alerts)
    result.received = sum(row.received for row in alerts)
    answered = {row.id: row.incident_id for row in rows if row.state == "answered"}
    result.not_linked = sum(answered.get(row.investigation_id) != row.incident_id for row in alerts)
    result.investigations = len(rows)
    result.states = Counter(row.state for row in rows)
    result.takeovers = sum(max(0, row.attempts - 1) for row in rows)
