"""Records the broken shop of the test cluster in every format: `python -m tests.snapshot.elsewhere.record`.

`--bundle PROGRAM` also runs troubleshoot's `support-bundle`, which is built with
`go build -o support-bundle github.com/replicatedhq/troubleshoot/cmd/troubleshoot` (v0.133.0, about half an hour on two
cores). Without it, the recorded bundle stays. The programs and versions are in `recorded/README.md`.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tarfile
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Final

from tests.cluster.handle import Cluster, wait_until
from tests.cluster.layout import Layout
from tests.cluster.lifecycle import up
from tests.snapshot.elsewhere.must_gather import write_must_gather

HERE: Final = Path(__file__).parent
RECORDED: Final = HERE / "recorded"
NAMESPACES: Final = ("shop", "books")
_KINDS: Final = "pods,deployments.apps,replicasets.apps,services"
_SETTLED_SECONDS: Final = 95.0
_BUNDLE: Final = """apiVersion: troubleshoot.sh/v1beta2
kind: SupportBundle
metadata: {name: shop}
spec:
  collectors:
  - clusterInfo: {}
  - clusterResources: {namespaces: [shop, books]}
  - nodeMetrics: {}
  - logs: {name: logs/web, namespace: shop, selector: [app=web], limits: {maxLines: 1000}}
"""


def make_shop(cluster: Cluster) -> None:
    """Create the shop, and wait until its faults are old enough to count."""
    for namespace in NAMESPACES:
        cluster.run("create", "namespace", namespace)
        cluster.run("wait", "--for=create", "serviceaccount/default", f"--namespace={namespace}", "--timeout=30s")
    cluster.run("apply", f"--filename={HERE / 'shop.yaml'}")
    started = time.monotonic()
    path = "--output=jsonpath={.items[*].status.containerStatuses[*].state.waiting.reason}"
    for reason in ("CrashLoopBackOff", "CreateContainerConfigError"):
        look = partial(cluster.run, "get", "pods", "--namespace=shop", path)
        wait_until(f"a pod with {reason}", look, partial(_contains, reason), timeout_seconds=120)
    time.sleep(max(0.0, _SETTLED_SECONDS - (time.monotonic() - started)))  # what is younger may still be starting


def _contains(reason: str, seen: str) -> bool:
    return reason in seen


def record(cluster: Cluster, folder: Path, bundle: Path | None = None) -> None:
    """Write the shop in every format below `folder`."""
    spaces = ",".join(NAMESPACES)
    dump = folder / "cluster-info-dump"
    cluster.run("cluster-info", "dump", f"--output-directory={dump}", f"--namespaces={spaces}", "--output=yaml")
    printed = folder / "kubectl-get"
    (printed / "logs" / "shop").mkdir(parents=True)
    for name, arguments in {
        "workloads.yaml": (_KINDS, "-A", "-o", "yaml"),
        "events.json": ("events", "-A", "-o", "json"),
        "nodes.yaml": ("nodes", "-o", "yaml"),
    }.items():
        (printed / name).write_text(cluster.run("get", *arguments))
    names = "--output=jsonpath={.items[*].metadata.name}"
    (checkout,) = cluster.run("get", "pods", "--namespace=shop", "--selector=app=checkout", names).split()
    log = cluster.run("logs", checkout, "--namespace=shop", "--previous", "--timestamps")
    (printed / "logs" / "shop" / f"{checkout}_checkout-previous.log").write_text(log)
    write_must_gather(cluster, folder / "must-gather.local.7079684121838056125", NAMESPACES)
    if bundle is not None:
        record_bundle(cluster, bundle, folder / "support-bundle")


def record_bundle(cluster: Cluster, program: Path, target: Path) -> None:
    """Run `support-bundle`, and unpack its archive, so that the recording is text."""
    with tempfile.TemporaryDirectory() as scratch:
        specification = Path(scratch, "spec.yaml")
        specification.write_text(_BUNDLE)
        options = ("--interactive=false", "--auto-update=false", f"--output={scratch}/shop")
        command = [str(program), str(specification), *options, f"--kubeconfig={cluster.admin}"]
        subprocess.run(command, check=True, timeout=300, env={"HOME": scratch, "PATH": "/usr/bin:/bin"})
        with tarfile.open(Path(scratch, "shop.tar.gz")) as archive:
            archive.extractall(Path(scratch, "unpacked"), filter="data")
        (top,) = Path(scratch, "unpacked").iterdir()
        shutil.copytree(top, target, symlinks=True)


def main() -> None:
    """Make, record, delete."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle", type=Path, help="the program `support-bundle`")
    bundle: Path | None = parser.parse_args().bundle
    cluster = up(Layout.from_environment())
    try:
        make_shop(cluster)
        with tempfile.TemporaryDirectory() as scratch:
            record(cluster, Path(scratch), bundle)
            for made in Path(scratch).iterdir():
                shutil.rmtree(RECORDED / made.name, ignore_errors=True)
                shutil.copytree(made, RECORDED / made.name, symlinks=True)
    finally:
        for namespace in NAMESPACES:
            cluster.run("delete", "namespace", namespace, "--wait=false", "--ignore-not-found")


if __name__ == "__main__":
    main()
