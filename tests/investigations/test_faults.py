"""What goes wrong around an investigation, and how its record tells: the fault table of the server."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from holmes.investigations.records.database import Database
from holmes.investigations.records.values import InvestigationRecord, NewInvestigation
from tests.investigations.test_durability import Watched, until
from tests.services.fixtures import PostgresqlServer
from tests.support.command_line import Home
from tests.support.holmes_server import holmes_server
from tests.support.openai_server import Body, ErrorReply, Hang, OpenAIServer, Reply, Scripted, call
from tests.support.replicas import replica

pytestmark = pytest.mark.slow
ANSWER = "The ConfigMap shop/payments-config is missing a key."
OVERFLOW = "This model's maximum context length is 100000 tokens. However, your messages resulted in 190000 tokens."


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What the provider does for questions that name it, and what the record says then."""

    name: str
    answered_by: str
    says: str = ""
    answer: str = ""
    max_cost: float | None = None


FAULTS = (
    Fault(name="too-many-requests", answered_by="builtin/triage", says="429", answer="payments-config"),
    Fault(name="server-error", answered_by="builtin/triage", says="500", answer="payments-config"),
    Fault(name="silence", answered_by="builtin/triage", says="No response", answer="payments-config"),
    Fault(name="cut-off-once", answered_by="scripted", answer=ANSWER),
    Fault(name="cut-off-always", answered_by="builtin/triage", says="scripted", answer="payments-config"),
    Fault(name="overflow", answered_by="builtin/triage", says="scripted", answer="payments-config"),
    Fault(name="nonsense", answered_by="scripted", answer=ANSWER),
    Fault(name="too-dear", answered_by="builtin/triage", says="budget", answer="payments-config", max_cost=0.01),
)


class FaultyProvider:
    """Misbehaves as the question says."""

    def __init__(self) -> None:
        self.cut_off = 0

    def __call__(self, body: Body) -> Scripted:  # noqa: PLR0911  one for each fault
        question = " ".join(str(message["content"]) for message in body["messages"] if message["role"] == "user")
        replied = any(message["role"] == "assistant" for message in body["messages"])
        if "too-many-requests" in question:
            return ErrorReply(status=429, message="Rate limit reached", headers={"retry-after": "0"})
        if "server-error" in question:
            return ErrorReply(status=500, message="The server had an error")
        if "silence" in question:
            return Hang()
        if "overflow" in question:
            return ErrorReply(status=400, message=OVERFLOW, code="context_length_exceeded")
        if "too-dear" in question:
            return Reply(tool_calls=(call("kubectl_get", kind="pod", namespace="shop"),))
        if "nonsense" in question and not replied:
            return Reply(tool_calls=(call("no_such_tool", pod=1), call("kubectl_get", kind=["?"]), call("", x="")))
        if "cut-off-always" in question or ("cut-off-once" in question and not self.cut_off):
            self.cut_off += "once" in question
            return Reply(text=ANSWER, stop_after_chunks=2)
        return Reply(text=ANSWER)


def home_of(folder: Path, base_url: str) -> Path:
    """A home with a model that has a price: ten cents for each call."""
    home = Home.make(folder / "home", config="model: scripted\n").path
    (home / ".holmes" / "model_list.yaml").write_text(
        f"scripted: {{model: openai/scripted, api_base: '{base_url}', api_key: not-a-secret, "
        "input_cost_per_token: 0.0005, output_cost_per_token: 0.0025}\n"
    )
    return home


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, InvestigationRecord]:
    """One server meets all faults at once."""
    folder = tmp_path_factory.mktemp("faults")
    address = f"sqlite:///{folder / 'investigations.db'}"

    async def meet() -> dict[str, InvestigationRecord]:
        watched = Watched(await Database.open(address))
        questions = {fault.name: f"why is checkout failing in namespace shop? ({fault.name})" for fault in FAULTS}
        queued = {
            fault.name: await watched.records.add(
                NewInvestigation(
                    question=questions[fault.name], title=fault.name, source="api", max_cost=fault.max_cost
                )
            )
            for fault in FAULTS
        }
        for identity in queued.values():
            await until(lambda identity=identity: watched.finished(identity), 150)  # type: ignore[misc]
        assert await watched.records.spent_today() >= 0.1
        found = {name: await watched.record(identity) for name, identity in queued.items()}
        await watched.database.close()
        return found

    with OpenAIServer(FaultyProvider()) as provider:
        home = home_of(folder, provider.base_url)
        with replica(home, HOLMES_DATABASE_URL=address, LLM_REQUEST_TIMEOUT="2", HOLMES_INVESTIGATION_CONCURRENCY="8"):
            return asyncio.run(meet())


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_provider_that_fails_never_costs_the_answer(fault: Fault, outcomes: dict[str, InvestigationRecord]) -> None:
    record = outcomes[fault.name]
    assert record.state == "answered", record.error
    assert record.answered_by == fault.answered_by, record.without_llm
    assert fault.answer in str(record.answer)
    assert fault.says.lower() in str(record.without_llm).lower()
    assert (record.without_llm is None) == (fault.answered_by != "builtin/triage")


def test_more_than_ten_investigations_run_at_once(tmp_path: Path) -> None:
    together = threading.Barrier(12)

    def respond(_: Body) -> Scripted:
        together.wait(60)
        return Reply(text=ANSWER)

    address = f"sqlite:///{tmp_path / 'investigations.db'}"

    async def ask() -> set[str]:
        watched = Watched(await Database.open(address))
        asked = [
            await watched.records.add(NewInvestigation(question=f"why? ({number})", title="load", source="api"))
            for number in range(together.parties)
        ]
        for identity in asked:
            await until(lambda identity=identity: watched.finished(identity), 150)  # type: ignore[misc]
        records = [await watched.record(identity) for identity in asked]
        await watched.database.close()
        return {str(record.answered_by) for record in records}

    with OpenAIServer(respond) as provider:
        home = home_of(tmp_path, provider.base_url)
        with replica(home, HOLMES_DATABASE_URL=address, HOLMES_INVESTIGATION_CONCURRENCY="12"):
            assert asyncio.run(ask()) == {"scripted"}


@pytest.fixture
async def watched(postgresql: PostgresqlServer) -> AsyncIterator[Watched]:
    watched = Watched(await Database.open(postgresql.create_database()))
    yield watched
    await watched.database.close()


async def test_a_cluster_that_is_away_is_waited_for_and_named(watched: Watched, tmp_path: Path) -> None:
    home = Home.make(tmp_path / "home", config="model: builtin/triage\n").path
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        "{apiVersion: v1, kind: Config, current-context: c, users: [{name: u, user: {}}], "
        f"clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{port}'}}}}], "
        "contexts: [{name: c, context: {cluster: c, user: u}}]}"
    )
    url = watched.database.url.render_as_string(hide_password=False)
    with replica(
        home,
        HOLMES_DATABASE_URL=url.replace("+psycopg", ""),
        KUBECONFIG=str(kubeconfig),
        HOLMES_TEST_LIVE="1",
        HOLMES_CLUSTER_WAIT_SECONDS="1",
    ):
        identity = await watched.records.add(NewInvestigation(question="why?", title="t", source="api"))
        await until(lambda: watched.finished(identity))
    record = await watched.record(identity)
    assert record.state == "failed"
    assert f"127.0.0.1:{port}" in str(record.error)
    assert any("Waiting for the cluster" in event.data for event in await watched.records.events(identity))


async def test_a_database_that_goes_away_and_comes_back_costs_nothing_twice(
    postgresql: PostgresqlServer, watched: Watched, tmp_path: Path
) -> None:
    came = asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(body: Body) -> Scripted:
        loop.call_soon_threadsafe(came.set)
        if any(message["role"] == "assistant" for message in body["messages"]):
            return Reply(text=ANSWER)
        return Reply(tool_calls=(call("kubectl_get", kind="pod"),), delay_seconds=2)

    with OpenAIServer(slow) as provider:
        home = home_of(tmp_path, provider.base_url)
        url = watched.database.url.render_as_string(hide_password=False).replace("+psycopg", "")
        with replica(home, HOLMES_DATABASE_URL=url, HOLMES_LEASE_SECONDS="2"):
            identity = await watched.records.add(NewInvestigation(question="why?", title="t", source="api"))
            await came.wait()
            await asyncio.to_thread(postgresql.stop, "crash")
            await asyncio.sleep(4)  # longer than the reply takes, and than the lease
            await asyncio.to_thread(postgresql.start)
            await until(lambda: watched.finished(identity))
        record = await watched.record(identity)
        assert (record.state, record.answer) == ("answered", ANSWER), record.error
        assert len(provider.requests) == 2


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder with room for little."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("this machine does not let root mount a tmpfs")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(file: Path) -> None:
    """Write until nothing more fits."""
    with contextlib.suppress(OSError), file.open("wb", buffering=0) as ballast:
        while ballast.write(b"x" * 1024):
            pass


async def test_a_full_disk_is_said_and_nothing_is_accepted_that_could_not_be_kept(
    small_disk: Path, tmp_path: Path
) -> None:
    home = Home.make(
        tmp_path / "home", HOLMES_DATABASE_URL=f"sqlite:///{small_disk / 'i.db'}", HOLMES_WEBHOOK_KEY="a-webhook-key"
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = home.start("serve", "--demo", "--port", str(port))
    try:
        assert process.stdout is not None
        assert "listening" in await asyncio.to_thread(process.stdout.readline)
        fill(small_disk / "ballast")
        alert = {"labels": {"alertname": "A", "x": "y" * 5000}, "status": "firing"}
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", headers={"X-API-Key": "a-webhook-key"}, timeout=60
        ) as client:
            refused = await client.post("/api/alerts/alertmanager", json={"alerts": [alert] * 20})
            assert refused.status_code == 503, refused.text
            assert "full" in refused.text
            assert int(refused.headers["retry-after"]) > 0
            (small_disk / "ballast").unlink()
            accepted = await client.post("/api/alerts/alertmanager", json={"alerts": [alert]})
            assert accepted.status_code == 202, accepted.text
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()


async def test_a_second_server_on_the_same_file_is_refused_in_one_line(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'i.db'}"
    home = Home.make(tmp_path / "home", config="model: builtin/triage\n", HOLMES_DATABASE_URL=address)
    with holmes_server(home, "--demo"):
        done = await asyncio.to_thread(home.run, "serve", "--demo", "--port", "0")
    assert done.exit_code == 2
    assert "another holmes serve uses the database" in done.stderr.splitlines()[-1]
