"""Kubernetes events, as tables and as objects, one of which tells the fault."""

from __future__ import annotations

import random

from benchmarks.preview_corpora.cases import Made
from benchmarks.preview_corpora.object_texts import Object, as_json, as_yaml
from benchmarks.preview_corpora.tables import aligned
from benchmarks.preview_corpora.words import APPS, NAMESPACES, pod_name, random_address, random_hex, random_suffix

EventRow = tuple[str, str, str, str]  # type, reason, object, message


def _usual_events(chance: random.Random) -> EventRow:
    app = chance.choice(APPS)
    pod = f"pod/{pod_name(chance, app)}"
    image = f"registry.shop.example/{app}:2.1.{chance.randrange(9)}"
    rows: tuple[EventRow, ...] = (
        ("Normal", "Scheduled", pod, f"Successfully assigned shop/{pod[4:]} to node-{chance.randrange(40):02d}"),
        ("Normal", "Pulled", pod, f'Container image "{image}" already present on machine'),
        ("Normal", "Created", pod, f"Created container: {app}"),
        ("Normal", "Started", pod, f"Started container {app}"),
        ("Normal", "Killing", pod, f"Stopping container {app}"),
        ("Normal", "SuccessfulCreate", f"replicaset/{app}-{random_suffix(chance, 9)}", f"Created pod: {pod[4:]}"),
        (
            "Normal",
            "ScalingReplicaSet",
            f"deployment/{app}",
            f"Scaled up replica set {app}-{random_suffix(chance, 9)} from 1 to 2",
        ),
        ("Normal", "LeaderElection", f"lease/{app}", f"{pod[4:]} became leader"),
    )
    warnings: tuple[EventRow, ...] = (
        (
            "Warning",
            "Unhealthy",
            pod,
            f"Readiness probe failed: Get http://{random_address(chance)}:8080/healthz: context deadline exceeded",
        ),
        (
            "Warning",
            "BackOff",
            pod,
            f"Back-off restarting failed container {app} in pod {pod[4:]}_shop({random_hex(chance, 8)})",
        ),
        (
            "Warning",
            "FailedGetResourceMetric",
            f"horizontalpodautoscaler/{app}",
            "failed to get cpu utilization: no metrics returned",
        ),
        ("Warning", "DNSConfigForming", pod, "Nameserver limits were exceeded, some nameservers have been omitted"),
    )
    return chance.choice(warnings) if chance.random() < 0.25 else chance.choice(rows)


def _telling_events(chance: random.Random) -> list[tuple[EventRow, str]]:
    app = chance.choice(APPS)
    pod, node = f"pod/{pod_name(chance, app)}", f"node/node-{chance.randrange(40):02d}"
    return [
        (
            (
                "Warning",
                "FailedMount",
                pod,
                f'MountVolume.SetUp failed for volume "cfg": configmap "{app}-settings" not found',
            ),
            f"{app}-settings",
        ),
        (
            ("Warning", "FailedScheduling", pod, f"0/40 nodes are available: 40 Insufficient memory, claim {app}"),
            "Insufficient memory",
        ),
        (
            ("Warning", "Failed", pod, f'Failed to pull image "registry.shop.example/{app}:9.9.9-typo": not found'),
            "9.9.9-typo",
        ),
        (("Warning", "Evicted", pod, "The node was low on resource: ephemeral-storage"), "ephemeral-storage"),
        (("Warning", "SystemOOM", node, f"System OOM encountered, victim process: {app}"), "System OOM encountered"),
        (
            (
                "Warning",
                "FailedCreate",
                f"replicaset/{app}",
                f'Error creating: pods "{app}" is forbidden: exceeded quota: compute',
            ),
            "exceeded quota",
        ),
        (("Normal", "NodeNotReady", node, f"Node {node[5:]} status is now: NodeNotReady"), "NodeNotReady"),
        (
            ("Warning", "FailedAttachVolume", pod, f'Multi-Attach error for volume "pvc-{random_hex(chance, 8)}"'),
            "Multi-Attach error",
        ),
        (
            ("Warning", "ProvisioningFailed", f"persistentvolumeclaim/data-{app}", 'storageclass "fast-sdd" not found'),
            "fast-sdd",
        ),
        (
            ("Warning", "NetworkNotReady", pod, "network is not ready: cni plugin not initialized"),
            "cni plugin not initialized",
        ),
    ]


def make_events(chance: random.Random) -> Made:
    rows = [_usual_events(chance) for _ in range(chance.choice((400, 1_500, 4_000)))]
    fault, fact = chance.choice(_telling_events(chance))
    rows.insert(chance.randrange(len(rows) // 6, len(rows) * 5 // 6), fault)
    facts = (fault[1], fact, fault[2].split("/", 1)[1])
    form = chance.choice(("get", "get", "events", "json", "yaml"))
    if form in ("json", "yaml"):
        items = [_event_object(chance, row) for row in rows]
        value = {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}
        return f"{form}: {fault[1]}", (as_json if form == "json" else as_yaml)(chance, value), facts
    ages = [f"{chance.randrange(1, 59)}m" for _ in rows]
    if form == "events":
        cells = [[age, row[0], row[1], row[2], row[3]] for age, row in zip(ages, rows, strict=True)]
        return f"table: {fault[1]}", aligned(["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"], cells), facts
    cells = [[chance.choice(NAMESPACES), age, *row] for age, row in zip(ages, rows, strict=True)]
    return (
        f"table: {fault[1]}",
        aligned(["NAMESPACE", "LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"], cells),
        facts,
    )


def _event_object(chance: random.Random, row: EventRow) -> Object:
    kind, name = row[2].split("/", 1)
    second = f"2026-11-20T07:{chance.randrange(60):02d}:{chance.randrange(60):02d}Z"
    return {
        "apiVersion": "v1", "count": chance.choice((1, 1, 2, 7)), "firstTimestamp": second,
        "involvedObject": {"kind": kind.capitalize(), "name": name, "namespace": "shop"}, "kind": "Event",
        "lastTimestamp": second, "message": row[3],
        "metadata": {"name": f"{name}.{random_hex(chance, 16)}", "namespace": "shop"},
        "reason": row[1], "source": {"component": "kubelet"}, "type": row[0],
    }  # fmt: skip
