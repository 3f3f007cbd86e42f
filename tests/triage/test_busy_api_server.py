"""Answers from a cluster that was read in part say what was not read, and neither blame it nor call it healthy.

Each fault of the API server meets a cluster with a definite cause in what can be read, and a healthy look-alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import pytest

from holmes.diagnosis.scan import ScanRequest, scan
from holmes.kubernetes.client import ClusterClient
from holmes.kubernetes.sender import ClientLimits
from holmes.kubernetes.state_reader import ReadLimits
from holmes.triage.answers import answer_text
from holmes.triage.conversation import SeenLook
from holmes.triage.looks import LookRequest, take_first_look
from holmes.values.environment import Environment
from holmes.values.first_look import FirstLook
from tests.support.command_line import Home
from tests.support.faulty_api import FAULTS, serve_badly, serve_objects
from tests.support.kubernetes_api import KubernetesApi, write_kubeconfig
from tests.triage.corpus.servers import server_objects

USES: Final = {
    "envFrom": [{"configMapRef": {"name": "mill-settings"}}, {"secretRef": {"name": "mill-login"}}],
}
READY: Final = {"type": "Ready", "status": "True"}
HEALTHY: Final[Mapping[str, Any]] = {
    "objects": [
        {"kind": "Namespace", "metadata": {"name": "shop", "age": 900_000}, "status": {"phase": "Active"}},
        *server_objects("mill", {"spec": {"container": USES}}),
        *server_objects("oven", {"env": {"MILL": "http://mill:8080"}}),
        *({"kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}} for name in ("aaa", "mill-settings")),
        *({"kind": "Secret", "metadata": {"name": name}, "type": "Opaque"} for name in ("aaa", "mill-login")),
        {
            "kind": "Node",
            "metadata": {"name": "node-1"},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        },
    ],
    "events": [
        {"object": "Pod/oven-5d9-x", "reason": "Started", "type": "Normal", "age": 600},
        {"object": "Pod/mill-5d9-x", "reason": "Started", "type": "Normal", "age": 500},
    ],
}


def _without_its_image() -> list[dict[str, Any]]:
    """A Deployment whose pod cannot pull its image. Its pod is the first of its list."""
    message = "manifest for registry.shop.example/bakery:9.9 not found: manifest unknown"
    waiting = {"reason": "ErrImagePull", "message": message}
    objects = [*server_objects("bakery", {"image": "registry.shop.example/bakery:9.9"})]
    for each in objects:
        if each["kind"] == "Pod":
            container = {"name": "bakery", "ready": False, "restartCount": 0, "state": {"waiting": waiting}}
            conditions = [{"type": "Ready", "status": "False"}, {"type": "PodScheduled", "status": "True"}]
            each["status"] = {"phase": "Pending", "conditions": conditions, "containerStatuses": [container]}
            each["spec"] = {**each["spec"], "nodeName": "node-1"}
    return objects


BROKEN: Final = {**HEALTHY, "objects": [*_without_its_image(), *HEALTHY["objects"]]}
BAD: Final = (
    ("throttled", "ConfigMap"),
    ("stalled", "Event"),
    ("forbidden", "Secret"),
    ("cut off", "Pod"),
    ("failing", "Service"),
    ("unavailable", "Node"),
    ("expired", "Secret"),
)
"""Each fault with the kind that it hides. Of the pods, only the first is read."""


async def ask(
    api: KubernetesApi, folder: Path, question: str, *, broken: bool, fault: str, kind: str
) -> tuple[FirstLook, str]:
    raw = BROKEN if broken else HEALTHY
    serve_objects(api, raw)
    serve_badly(api, kind, fault, raw)
    environment = Environment.of({"KUBECONFIG": str(write_kubeconfig(folder, api.url))})
    limits = ClientLimits(request_timeout_seconds=1)
    async with await ClusterClient.connect(environment, limits=limits) as client:
        result = await scan(client, ScanRequest(read_limits=ReadLimits(seconds=3)))
    look = take_first_look(LookRequest(question=question), result)
    return look, answer_text(SeenLook(look=look, text=""))


def test_every_fault_is_tried() -> None:
    assert {fault for fault, _ in BAD} == FAULTS.keys()


@pytest.mark.parametrize(("fault", "kind"), BAD)
async def test_a_definite_cause_in_what_was_read_is_named(
    quiet_cluster: KubernetesApi, tmp_path: Path, fault: str, kind: str
) -> None:
    look, text = await ask(quiet_cluster, tmp_path, "why is bakery down?", broken=True, fault=fault, kind=kind)
    assert (look.verdict, look.culprit) == ("cause_found", "Deployment shop/bakery"), text
    assert "bakery:9.9" in text
    assert f"Not checked: {kind}" in text


@pytest.mark.parametrize(("fault", "kind"), BAD)
async def test_what_was_not_read_is_not_blamed(
    quiet_cluster: KubernetesApi, tmp_path: Path, fault: str, kind: str
) -> None:
    look, text = await ask(quiet_cluster, tmp_path, "why does mill fail?", broken=False, fault=fault, kind=kind)
    assert (look.verdict, look.culprit) == ("inconclusive", ""), text
    assert f"Not checked: {kind}" in text


@pytest.mark.parametrize(
    ("fault", "kind", "question", "verdict"),
    [
        ("stalled", "Pod", "is mill healthy?", "inconclusive"),
        ("cut off", "Pod", "is mill healthy?", "inconclusive"),
        ("throttled", "Pod", "is everything ok in namespace shop?", "inconclusive"),
        ("unavailable", "Deployment", "is mill healthy?", "inconclusive"),
        ("expired", "Deployment", "are all deployments ok?", "inconclusive"),
        ("failing", "Service", "is the service mill ok?", "inconclusive"),
        ("unavailable", "Node", "are all nodes ready?", "inconclusive"),
        ("expired", "Secret", "does the secret mill-login exist?", "inconclusive"),
        ("throttled", "ConfigMap", "how many configmaps are there?", "inconclusive"),
        ("throttled", "ConfigMap", "is mill healthy?", "healthy"),
        ("failing", "Service", "is the deployment mill ok?", "healthy"),
        ("unavailable", "Node", "are all deployments ok?", "healthy"),
    ],
)
async def test_healthy_is_said_only_of_what_was_read(
    quiet_cluster: KubernetesApi, tmp_path: Path, fault: str, kind: str, question: str, verdict: Literal["healthy"]
) -> None:
    look, text = await ask(quiet_cluster, tmp_path, question, broken=False, fault=fault, kind=kind)
    assert look.verdict == verdict, text
    assert kind in text


@pytest.mark.parametrize(("fault", "kind"), BAD)
def test_a_scan_of_a_part_is_a_scan(quiet_cluster: KubernetesApi, tmp_path: Path, fault: str, kind: str) -> None:
    serve_objects(quiet_cluster, BROKEN)
    serve_badly(quiet_cluster, kind, fault, BROKEN)
    done = Home.make(tmp_path / "home").run(
        "scan", "-A", "--timeout=4", f"--kubeconfig={write_kubeconfig(tmp_path, quiet_cluster.url)}"
    )
    assert done.exit_code == 0, done.stderr
    assert "bakery" in done.stdout
    assert kind in done.stdout + done.stderr
