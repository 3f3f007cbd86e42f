"""Two clusters with the same workload, one broken and one healthy: every answer is about the chosen one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cluster.fixtures import Cluster, apply_fault
from tests.destinations.receiver import Receiver
from tests.support.command_line import Finished, Home, read_report
from tests.support.holmes_server import HolmesServer, holmes_server
from tests.support.kubernetes_api import document, empty_cluster, kubernetes_api, write_kubeconfig
from tests.support.two_clusters import ALERT, TwoClusters, two_clusters

API_KEY = "api-key-of-the-test"
WEBHOOK_KEY = "webhook-key-of-the-test"
QUESTION = "why is pod checkout-0 in namespace shop failing?"
NO_IMAGE = "image registry.example/app:1"
HEALTHY = "No fault was found in Pod shop/checkout-0"


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[TwoClusters]:
    with two_clusters(tmp_path) as running:
        yield running


@pytest.fixture
def home(clusters: TwoClusters, tmp_path: Path) -> Home:
    return Home.make(tmp_path / "home", config=clusters.config)


def write_alerts(folder: Path, *names: str | None) -> Path:
    """The same alert, in each of these clusters."""
    file = folder / "alerts.json"
    file.write_text(json.dumps(payload(*names)))
    return file


def payload(*names: str | None) -> dict[str, object]:
    labels = [{**ALERT, **({"cluster": name} if name else {})} for name in names]
    alerts = [{"status": "firing", "fingerprint": "the-same", "labels": each} for each in labels]
    return {"version": "4", "groupKey": "the-same-group", "alerts": alerts}


def test_a_scan_reads_the_cluster_of_its_name(home: Home, clusters: TwoClusters, tmp_path: Path) -> None:
    broken = home.run("scan", "--cluster=eu", "-o", "json")
    assert (json.loads(broken.stdout)["cluster"], NO_IMAGE in broken.stdout) == ("eu", True)
    assert clusters.us.requests == []

    baseline = tmp_path / "eu.json"
    baseline.write_text(broken.stdout)
    other = home.run("scan", "--cluster=us", f"--baseline={baseline}")
    assert other.exit_code == 2
    assert "this report is about cluster 'eu', not 'us'" in other.stderr
    assert clusters.us.requests


def test_questions_are_answered_about_the_cluster_of_their_name(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "report.json"

    def ask(name: str) -> Finished:
        return home.run("ask", "-n", QUESTION, f"--cluster={name}", f"--json-output-file={file}-{name}")

    with ThreadPoolExecutor() as threads:
        us, down = threads.map(ask, ("us", "down"))
    assert HEALTHY in us.stdout
    assert "cluster us\n" in us.stderr
    assert [read_report(Path(f"{file}-{name}"))["cluster"] for name in ("us", "down")] == ["us", "down"]
    assert down.exit_code == 3
    assert down.stderr.startswith("holmes: cluster 'down': Cannot reach the cluster of context 'admin@down'")
    assert down.stderr.count("\n") == 1


def test_alerts_are_investigated_in_the_cluster_of_their_label(home: Home, tmp_path: Path) -> None:
    file = write_alerts(tmp_path, "eu", "down", "us", "mars", None)
    done = home.run("investigate", "alertmanager", f"--alertmanager-file={file}")

    _, eu, down, us = done.stdout.split("# ")
    assert eu.startswith("1 of 3: KubePodNotReady: shop/checkout (cluster eu)\n\n**Root cause**")
    assert down.strip() == "2 of 3: KubePodNotReady: shop/checkout (cluster down)"
    assert us.startswith("3 of 3: KubePodNotReady: shop/checkout (cluster us)\n\n**Healthy**")
    assert "1 alert not investigated: The label 'cluster' names the unknown cluster 'mars'" in done.stderr
    assert "1 alert not investigated: The alert has no label 'cluster'" in done.stderr
    assert "holmes: cluster 'down': Cannot reach the cluster" in done.stderr
    assert done.exit_code == 3


def test_an_investigation_of_one_cluster_leaves_the_alerts_of_others(
    home: Home, clusters: TwoClusters, tmp_path: Path
) -> None:
    file = write_alerts(tmp_path, "eu", "mars")
    done = home.run("investigate", "alertmanager", f"--alertmanager-file={file}", "--cluster=us")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "The alert is about the cluster 'eu', and this Holmes reads only 'us'." in done.stderr
    assert clusters.eu.requests == []
    assert clusters.us.requests == []


def test_a_recording_is_made_of_the_cluster_of_its_name(home: Home, clusters: TwoClusters, tmp_path: Path) -> None:
    home.run("snapshot", "create", str(tmp_path / "eu"), "--cluster=eu")
    assert clusters.eu.requests
    assert clusters.us.requests == []


@pytest.mark.parametrize("command", [("ask", "-n", "x"), ("snapshot", "create", "x"), ("serve",)])
def test_a_cluster_is_chosen_once(command: tuple[str, ...], home: Home) -> None:
    done = home.run(*command, "--cluster=eu", "--context=admin@us")
    assert done.exit_code == 2
    assert "--demo, --snapshot, --cluster and --kubeconfig/--context are mutually exclusive" in done.stderr
    assert done.stderr.count("\n") == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A server of the clusters, and a destination of its notifications."""

    server: HolmesServer
    client: httpx.Client
    receiver: Receiver

    def alert(self, *names: str | None) -> None:
        headers = {"Authorization": f"Bearer {WEBHOOK_KEY}"}
        sent = httpx.post(f"{self.server.url}/api/alerts/alertmanager", json=payload(*names), headers=headers)
        assert sent.status_code == 202, sent.text

    def chat(self, name: str | None) -> httpx.Response:
        return self.client.post("/api/chat", json={"ask": QUESTION, "cluster": name}, timeout=60)

    def get(self, path: str) -> dict[str, Any]:
        answer = self.client.get(path)
        assert answer.status_code == 200, answer.text
        content = answer.json()
        assert isinstance(content, dict)
        return content

    def finished(self, count: int) -> dict[str, dict[str, Any]]:
        """The investigations by cluster, once so many have ended."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            found = self.get("/api/investigations")["investigations"]
            if len(found) == count and not {each["state"] for each in found} & {"queued", "running"}:
                return {str(each["cluster"]): each for each in found}
            time.sleep(0.2)
        raise AssertionError(self.server.log)

    def told(self, event: str) -> dict[str, dict[str, Any]]:
        """What the destination heard, by cluster."""
        bodies = [json.loads(each.body) for each in self.receiver.received]
        return {str(each["cluster"]): each for each in bodies if each["event"] == event}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    with ExitStack() as stack:
        clusters = stack.enter_context(two_clusters(folder))
        receiver = stack.enter_context(Receiver())
        config = (
            f"{clusters.config}investigations: {{cluster_wait_seconds: 1}}\n"
            f"alerts: {{destinations: {{ops: {{type: webhook, url: '{receiver.url}'}}}}}}\n"
        )
        keys = {"HOLMES_API_KEY": API_KEY, "HOLMES_WEBHOOK_KEY": WEBHOOK_KEY}
        server = stack.enter_context(holmes_server(Home.make(folder / "server", config=config, **keys)))
        client = stack.enter_context(server.client(API_KEY))
        yield Served(server=server, client=client, receiver=receiver)


def test_a_server_keeps_its_clusters_apart(served: Served) -> None:
    served.alert("eu", "us", "mars", "down")
    with ThreadPoolExecutor() as threads:  # beside the investigations of the same clusters
        chats = dict(zip(("eu", "us", "down"), threads.map(served.chat, ("eu", "us", "down")), strict=True))
    done = served.finished(3)

    for name, healthy in (("eu", False), ("us", True)):
        answer = chats[name].json()
        assert answer["metadata"]["cluster"] == name
        assert (NO_IMAGE in answer["analysis"], HEALTHY in answer["analysis"]) == (not healthy, healthy)
        assert (NO_IMAGE in done[name]["answer"], done[name]["verdict"] == "healthy") == (not healthy, healthy)
    assert chats["down"].status_code == 503
    assert "cluster 'down': Cannot reach the cluster" in chats["down"].text
    assert done["down"]["state"] == "failed"
    assert done["down"]["error"].startswith("cluster 'down': Cannot reach the cluster")

    incidents = {each["cluster"]: each for each in served.get("/api/incidents")["incidents"]}
    assert {name: each["verdict"] for name, each in incidents.items()} == {
        "eu": "cause_found", "us": "healthy", "mars": "not_investigated", "down": None,
    }  # fmt: skip
    page = served.client.get("/").text
    assert all(f"cluster {name}</small>" in page for name in ("eu", "us", "mars", "down"))
    detail = served.client.get(f"/incidents/{incidents['mars']['id']}").text
    assert "<span>cluster mars</span>" in detail
    assert "names the unknown cluster &#39;mars&#39;; configured clusters: eu, us, down." in detail
    assert set(served.told("opened")) == {"eu", "us", "mars", "down"}
    assert NO_IMAGE in served.told("answered")["eu"]["incident"]["root_cause"]

    ready = served.get("/readyz")
    assert (ready["status"], ready["clusters"]) == ("ready", ["eu", "us", "down"])


def test_a_server_asks_which_cluster_is_meant(served: Served) -> None:
    unknown = served.chat("mars")
    assert (unknown.status_code, "unknown cluster 'mars'; configured clusters: eu, us, down" in unknown.text) == (
        400,
        True,
    )
    unnamed = served.chat(None)
    assert (unnamed.status_code, "choose a cluster with 'cluster'" in unnamed.text) == (400, True)
    queued = served.client.post("/api/investigations", json={"question": QUESTION, "cluster": "mars"})
    assert queued.status_code == 400
    assert served.client.post("/mcp?cluster=mars", json={}).status_code == 400


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_real_cluster_beside_another_one(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    apply_fault(cluster, namespace, "image-pull-error")
    with kubernetes_api() as other:
        empty_cluster(other)
        other.on("/version", document({"gitVersion": "v1.34.0"}))
        lines = (
            "model: builtin/triage",
            "clusters:",
            f"  real: {{kubeconfig: {cluster.viewer}}}",
            f"  other: {{kubeconfig: {write_kubeconfig(tmp_path, other.url)}}}",
            "default_cluster: other",
        )
        home = Home.make(tmp_path / "home", config="\n".join(lines))
        real = home.run("scan", "-n", namespace, "--cluster=real", "--grace=0", "-o", "json")
        elsewhere = home.run("scan", "-n", namespace, "-o", "json")
        recorded = home.run(
            "snapshot", "create", str(tmp_path / "real"), "-n", namespace, "--cluster=real", "--no-logs"
        )
    assert recorded.exit_code == 0, recorded.stderr
    report = json.loads(real.stdout)
    assert (report["cluster"], bool(report["incidents"])) == ("real", True)
    assert (elsewhere.exit_code, elsewhere.stdout) == (2, "")
    assert namespace in elsewhere.stderr
