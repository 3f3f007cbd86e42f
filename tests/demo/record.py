"""Makes the demo cluster on the real test cluster and records it: `python -m tests.demo.record [FOLDER]`.

Applies the healthy shop, waits until all of it works, breaks it, waits until every fault shows, and records what is
there. Without a folder the recording in the package is replaced. Deletes its namespaces afterwards.
"""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Final

from holmes.assets import demo_recording
from tests.cluster.handle import Cluster, wait_until
from tests.cluster.layout import Layout
from tests.cluster.lifecycle import up

NAMESPACES: Final = ("shop", "legacy")
"""What is made, and deleted afterwards. The namespace of the system is recorded as well."""
MANIFESTS: Final = Path(__file__).parent
_WORKING: Final = ("payments", "checkout", "catalog", "recommendations", "search", "web")
_SHOWS: Final = {
    "payments": "CreateContainerConfigError",
    "checkout": "CrashLoopBackOff",
    "catalog": "ImagePullBackOff",
    "recommendations": "CrashLoopBackOff",
}
"""What each broken workload's newest pod waits with, in the end."""
_SETTLED_SECONDS: Final = 100.0


def make_demo(cluster: Cluster) -> None:
    """Bring the shop into the state that the demo shows."""
    for namespace in NAMESPACES:
        cluster.run("create", "namespace", namespace)
        cluster.run("wait", "--for=create", "serviceaccount/default", f"--namespace={namespace}", "--timeout=30s")
    cluster.run("apply", f"--filename={MANIFESTS / '1-healthy.yaml'}")
    for name in _WORKING:
        cluster.run("rollout", "status", f"deployment/{name}", "--namespace=shop", "--timeout=55s")
    cluster.run("rollout", "status", "statefulset/cart", "--namespace=shop", "--timeout=55s")
    cluster.run("apply", f"--filename={MANIFESTS / '2-broken.yaml'}")
    broken_at = time.monotonic()
    cluster.run("delete", "pods", "--namespace=shop", "--selector=app=payments", "--wait=false")
    for app, reason in _SHOWS.items():
        wait_until(
            f"{app} with {reason}", partial(_reasons, cluster, app), partial(_contains, reason), timeout_seconds=150
        )

    # What is younger than a minute may still be starting, and half a minute after a change everything looks alike.
    time.sleep(max(0.0, _SETTLED_SECONDS - (time.monotonic() - broken_at)))


def _contains(reason: str, seen: str) -> bool:
    return reason in seen


def _reasons(cluster: Cluster, app: str) -> str:
    path = "{.items[*].status.containerStatuses[*].state.waiting.reason}"
    return cluster.run("get", "pods", "--namespace=shop", f"--selector=app={app}", f"--output=jsonpath={path}")


def record(cluster: Cluster, folder: Path) -> None:
    """Record the namespaces of the demo with the command that everybody has."""
    holmes = Path(sys.executable).with_name("holmes")
    namespaces = [f"--namespace={namespace}" for namespace in (*NAMESPACES, "kube-system")]
    command = [str(holmes), "snapshot", "create", str(folder), f"--kubeconfig={cluster.admin}", *namespaces]
    subprocess.run(command, check=True, timeout=120)


def main() -> None:
    """Make, record, delete."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else demo_recording()
    cluster = up(Layout.from_environment())
    try:
        make_demo(cluster)
        record(cluster, folder)
    finally:
        for namespace in NAMESPACES:
            cluster.run("delete", "namespace", namespace, "--wait=false", "--ignore-not-found")


if __name__ == "__main__":
    main()
