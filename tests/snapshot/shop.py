"""The shop of these tests on the real cluster: applied, waited for until it stands still, and removed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cluster.fixtures import create_namespace, wait_until
from tests.cluster.handle import Cluster

HERE = Path(__file__).parent
PLANTED_TOKEN = "planted-token-value-4711"
ENOUGH_RESTARTS = 2


@contextmanager
def running_shop(cluster: Cluster, folder: Path) -> Iterator[str]:
    """The namespace of a shop in which everything has happened that is going to happen, but for more crashes."""
    namespace = create_namespace(cluster, "snapshot")
    cluster_wide = _rendered(folder, "cluster_wide.yaml", namespace)
    try:
        cluster.run("apply", f"-n={namespace}", f"-f={HERE / 'shop.yaml'}", f"-f={cluster_wide}")
        cluster.run("wait", "--for=condition=Established", f"crd/promotions.{namespace}.shop.example", "--timeout=30s")
        cluster.run("apply", f"-n={namespace}", f"-f={_rendered(folder, 'promotions.yaml', namespace)}")
        wait_until("the shop settles", lambda: _pods(cluster, namespace), _settled, timeout_seconds=90)
        yield namespace
    finally:
        cluster.run("delete", "--wait=false", f"-f={cluster_wide}")
        cluster.run("delete", "namespace", namespace, "--wait=false")


def _rendered(folder: Path, name: str, namespace: str) -> Path:
    path = folder / name
    path.write_text((HERE / name).read_text().replace("NAMESPACE", namespace))
    return path


def _pods(cluster: Cluster, namespace: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = json.loads(cluster.run("get", "pods", f"-n={namespace}", "-o=json"))["items"]
    return items


def _settled(pods: list[dict[str, Any]]) -> bool:
    by_app = {pod["metadata"]["labels"].get("app", pod["metadata"]["name"]): pod for pod in pods}
    if len(pods) < 11 or any(by_app[app]["status"]["phase"] != "Running" for app in ("web", "cart", "search")):
        return False
    statuses = by_app["checkout"]["status"].get("containerStatuses")
    crashed = bool(statuses) and statuses[0]["restartCount"] >= ENOUGH_RESTARTS and "waiting" in statuses[0]["state"]
    return crashed and by_app["import"]["status"]["phase"] == "Succeeded"
