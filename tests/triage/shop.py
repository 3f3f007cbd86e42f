"""A compact cluster with one fault of each sort, for the tests of the answers."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import yaml

from holmes.triage.looks import LookRequest, take_first_look
from tests.triage.corpus.loading import scan_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.diagnosis.scan import ScanResult
    from holmes.values.first_look import FirstLook

_WORKLOADS = """
checkout:
  ready: true
  restarts: 0
  node: node-1
  image: "registry.shop.example/checkout:2.4.1"
  env: {PAYMENTS_URL: "http://payments", DB_PASSWORD: hunter2horse}
payments:
  {ready: false, restarts: 5, node: node-2, image: "registry.shop.example/payments:1.12.0", waiting: CrashLoopBackOff}
catalog: {ready: true, restarts: 0, node: node-1, image: "registry.shop.example/catalog:3.0.4"}
"""
_LOGS = """
shop/checkout-5d9-x/checkout: |
  2026-11-22T04:40:00Z INFO checkout listening on :8080
  2026-11-22T04:41:00Z INFO order stored took=20ms
  2026-11-22T04:42:00Z INFO order stored took=40ms
shop/payments-5d9-x/payments/previous: |
  2026-11-22T04:58:00Z FATAL variable GATEWAY_URL must be set
shop/catalog-5d9-x/catalog: |
  2026-11-22T04:30:00Z INFO catalog listening on :8080
  2026-11-22T04:50:00Z INFO page 12 rendered
"""


def _workload(name: str, raw: Mapping[str, object]) -> list[dict[str, object]]:
    state = (
        {"running": {"startedAt": {"ago": 1200}}}
        if "waiting" not in raw
        else {"waiting": {"reason": raw["waiting"], "message": "back-off"}}
    )
    ended = {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": {"ago": 120}}} if raw["restarts"] else {}
    environment = [{"name": key, "value": value} for key, value in dict(raw.get("env", {})).items()]  # type: ignore[call-overload]
    spec = {
        "containers": [{"name": name, "image": raw["image"], "env": environment, "ports": [{"containerPort": 8080}]}]
    }
    labels = {"app": name, "tier": "web" if name == "checkout" else "back"}
    ready = "True" if raw["ready"] else "False"
    status = {
        "name": name, "image": raw["image"], "ready": raw["ready"], "restartCount": raw["restarts"], "state": state,
        "lastState": ended, "started": raw["ready"],
    }  # fmt: skip
    number = 1 if raw["ready"] else 0
    return [
        {
            "kind": "Deployment",
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
            "status": {"replicas": 1, "readyReplicas": number, "availableReplicas": number, "updatedReplicas": 1},
        },
        {"kind": "ReplicaSet", "metadata": {"name": f"{name}-5d9", "owner": f"Deployment/{name}", "labels": labels}},
        {
            "kind": "Pod",
            "metadata": {"name": f"{name}-5d9-x", "owner": f"ReplicaSet/{name}-5d9", "labels": labels},
            "spec": {**spec, "nodeName": raw["node"]},
            "status": {
                "phase": "Running",
                "podIP": f"10.0.0.{len(name)}",
                "conditions": [{"type": "Ready", "status": ready}, {"type": "PodScheduled", "status": "True"}],
                "containerStatuses": [status],
            },
        },
        {
            "kind": "Service",
            "metadata": {"name": name},
            "spec": {
                "clusterIP": f"10.96.0.{len(name)}",
                "selector": {"app": name},
                "ports": [{"port": 80, "targetPort": 8080}],
            },
        },
        {
            "kind": "EndpointSlice",
            "metadata": {"name": f"{name}-abc", "labels": {"kubernetes.io/service-name": name}},
            "ports": [{"port": 8080}],
            "endpoints": [{"addresses": [f"10.0.0.{len(name)}"], "conditions": {"ready": raw["ready"]}}],
        },
    ]  # fmt: skip


@cache
def shop() -> ScanResult:
    """Payments crashes because of its configuration, checkout needs it, and catalog is healthy."""
    objects: list[dict[str, object]] = [
        {"kind": "Namespace", "metadata": {"name": name}, "status": {"phase": "Active"}} for name in ("shop", "quiet")
    ]
    objects += [
        {"kind": "Node", "metadata": {"name": name}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        for name in ("node-1", "node-2")
    ]
    objects.append({"kind": "ServiceAccount", "metadata": {"name": "default"}})
    for name, raw in yaml.safe_load(_WORKLOADS).items():
        objects += _workload(name, raw)
    return scan_of({"objects": objects, "events": [], "logs": yaml.safe_load(_LOGS)})


def look(question: str, namespace: str = "", about: tuple[str, ...] = ()) -> FirstLook:
    """Ask the shop a question."""
    return take_first_look(LookRequest(question=question, namespace=namespace, about=about), shop())
