"""Previews of 300 tokens for output of a real cluster: `kubectl get`, events and logs around real faults.

The namespaces also contain dozens of healthy objects, so the fault is one of many.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from benchmarks.preview_corpora import APPS
from holmes.previews import structured_preview
from holmes.previews.budget import PreviewKind
from holmes.tokens import TokenCounter
from tests.cluster.fixtures import Cluster, apply_fault, create_namespace, wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.row("N1")]

COUNTER = TokenCounter()
CAP_TOKENS = 300
IDLE_DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  replicas: 0
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      containers:
      - name: app
        image: registry.shop.example/{name}:2.4.1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A kubectl command and the required content of its preview."""

    command: tuple[str, ...]
    kind: PreviewKind
    facts: tuple[str, ...]


EVENTS_FOLLOW = "\nevents:\n"

VIEWS = (
    View(command=("get", "pods"), kind="table", facts=("catalog-", "ImagePull")),
    View(command=("get", "pods", "--output=wide"), kind="table", facts=("catalog-", "ImagePull")),
    View(command=("get", "pods", "--output=json"), kind="json", facts=("catalog-", "ImagePull")),
    View(command=("get", "pods", "--output=yaml"), kind="yaml", facts=("catalog-", "ImagePull")),
    View(command=("get", "deployments"), kind="table", facts=("catalog", "0/1")),
    View(command=("get", "deployments", "--output=json"), kind="json", facts=("catalog", "MinimumReplicasUnavailable")),
    View(command=("get", "deployments", "--output=yaml"), kind="yaml", facts=("catalog", "MinimumReplicasUnavailable")),
    View(command=("get", "events"), kind="events", facts=("Failed to pull image", "catalog:3.1.0-typo")),
    View(command=("get", "events", "--output=json"), kind="events", facts=("Failed to pull image", "catalog")),
    View(command=("events",), kind="events", facts=("Failed to pull image", "catalog")),
)


@pytest.fixture(scope="module")
def shop(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A namespace with one broken workload among many idle ones."""
    namespace = create_namespace(cluster, "previews")
    names = [f"{app}-idle" for app in APPS if app != "catalog"]
    manifest = tmp_path_factory.mktemp("previews") / "idle.yaml"
    manifest.write_text("---".join(IDLE_DEPLOYMENT.format(name=name) for name in names), encoding="utf-8")
    cluster.run("apply", f"--namespace={namespace}", f"--filename={manifest}")
    apply_fault(cluster, namespace, "image-pull-error")
    wait_until(
        "the image that cannot be pulled",
        lambda: (
            cluster.run("get", "pods", f"--namespace={namespace}")
            + EVENTS_FOLLOW
            + cluster.run("events", f"--namespace={namespace}")
        ),
        lambda seen: "ImagePull" in seen.split(EVENTS_FOLLOW)[0] and "Failed to pull image" in seen,
    )
    yield namespace
    cluster.run("delete", "namespace", namespace, "--wait=false")


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: " ".join(view.command))
def test_the_fault_is_in_the_preview_of_real_output(cluster: Cluster, shop: str, view: View) -> None:
    text = cluster.run(*view.command, f"--namespace={shop}")
    preview = structured_preview(text, CAP_TOKENS, COUNTER)
    assert COUNTER.count_text(preview.text) <= CAP_TOKENS
    assert preview.kind == view.kind
    for fact in view.facts:
        assert fact in preview.text, preview.text


def test_the_reason_is_in_the_preview_of_a_real_log(cluster: Cluster) -> None:
    namespace = create_namespace(cluster, "previews-log")
    try:
        apply_fault(cluster, namespace, "crash-loop")
        log = wait_until(
            "the log of the container that ends",
            lambda: cluster.attempt("logs", "deployment/checkout", "--timestamps", f"--namespace={namespace}").stdout,
            lambda text: "FATAL" in text,
        )
    finally:
        cluster.run("delete", "namespace", namespace, "--wait=false")
    usual = [line for line in log.splitlines() if "FATAL" not in line]
    fatal = next(line for line in log.splitlines() if "FATAL" in line)
    preview = structured_preview("\n".join([*usual * 2_000, fatal, *usual * 2_000]), CAP_TOKENS, COUNTER)
    assert preview.kind == "logs"
    assert "could not connect to db.shop.svc:5432" in preview.text
