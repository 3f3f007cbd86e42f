"""Lists of Kubernetes objects, one of which has a fault; the families `json` and `yaml`."""

from __future__ import annotations

import random
from collections.abc import Callable

from benchmarks.preview_corpora.cases import Made
from benchmarks.preview_corpora.object_faults import DEPLOYMENT_FAULTS, JOB_FAULTS, NODE_FAULTS, POD_FAULTS
from benchmarks.preview_corpora.object_texts import Object, conditions
from benchmarks.preview_corpora.words import APPS, NAMESPACES, pod_name, random_address, random_hex, random_suffix


def make_objects(chance: random.Random, write: Callable[[random.Random, Object], str]) -> Made:
    maker, faults = chance.choice(
        (
            (_pod, POD_FAULTS),
            (_pod, POD_FAULTS),
            (_deployment, DEPLOYMENT_FAULTS),
            (_node, NODE_FAULTS),
            (_job, JOB_FAULTS),
        )
    )
    release = f"3.{chance.randrange(30)}.{chance.randrange(9)}"
    items = [maker(chance, release, number) for number in range(chance.choice((60, 150, 400)))]
    item = items[chance.randrange(len(items) // 6, len(items) * 5 // 6)]
    name, fact = chance.choice(faults)(chance, item)
    text = write(chance, {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}})
    return name, text, (item["metadata"]["name"], fact)


def _metadata(chance: random.Random, name: str, app: str) -> Object:
    return {
        "annotations": {"checksum/config": random_hex(chance, 40), "prometheus.io/scrape": "true"},
        "creationTimestamp": (
            f"2026-{chance.randrange(1, 12):02d}-{chance.randrange(1, 28):02d}T08:{chance.randrange(60):02d}:11Z"
        ),
        "labels": {
            "app": app,
            "pod-template-hash": random_suffix(chance, 9),
            "tier": chance.choice(("web", "backend", "data")),
        },
        "name": name,
        "namespace": chance.choice(NAMESPACES),
        "resourceVersion": str(chance.randrange(10**7, 10**8)),
        "uid": f"{random_hex(chance, 8)}-{random_hex(chance, 4)}-{random_hex(chance, 4)}-{random_hex(chance, 12)}",
    }


def _container(chance: random.Random, app: str, release: str) -> Object:
    names = ("DB_HOST", "DB_PORT", "LOG_LEVEL", "REGION", "OTEL_ENDPOINT")
    values = (
        f"{app}-db.data.svc",
        "5432",
        chance.choice(("info", "info", "warn", "debug")),
        "eu-west-1",
        "otel.monitoring:4317",
    )
    return {
        "env": [{"name": name, "value": value} for name, value in zip(names, values, strict=True)],
        "image": f"registry.shop.example/{app}:{release}",
        "imagePullPolicy": "IfNotPresent",
        "name": app,
        "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10, "timeoutSeconds": 3},
        "resources": {"limits": {"memory": chance.choice(("256Mi", "512Mi", "1Gi"))}, "requests": {"cpu": "100m"}},
    }


def _pod(chance: random.Random, release: str, _: int) -> Object:
    app = chance.choice(APPS)
    state = {"running": {"startedAt": f"2026-11-19T07:{chance.randrange(60):02d}:09Z"}}
    status = {
        "conditions": conditions(
            ("Initialized", "True"), ("Ready", "True"), ("ContainersReady", "True"), ("PodScheduled", "True")
        ),
        "containerStatuses": [{
            "containerID": f"containerd://{random_hex(chance, 64)}", "image": f"registry.shop.example/{app}:{release}",
            "name": app, "ready": True, "restartCount": chance.choice((0, 0, 0, 0, 1, 2)), "started": True,
            "state": state,
        }],
        "hostIP": random_address(chance), "phase": "Running", "podIP": random_address(chance), "qosClass": "Burstable",
    }  # fmt: skip
    spec = {"containers": [_container(chance, app, release)], "nodeName": f"node-{chance.randrange(40):02d}",
            "restartPolicy": "Always", "serviceAccountName": app}  # fmt: skip
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(chance, pod_name(chance, app), app),
        "spec": spec,
        "status": status,
    }


def _deployment(chance: random.Random, release: str, number: int) -> Object:
    app = f"{APPS[number % len(APPS)]}-{number}"
    replicas = chance.choice((1, 2, 3))
    status = {
        "availableReplicas": replicas, "conditions": conditions(("Available", "True"), ("Progressing", "True")),
        "observedGeneration": chance.randrange(30), "readyReplicas": replicas, "replicas": replicas,
        "updatedReplicas": replicas,
    }  # fmt: skip
    template = {"metadata": {"labels": {"app": app}}, "spec": {"containers": [_container(chance, app, release)]}}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": app}},
        "strategy": {"type": "RollingUpdate"},
        "template": template,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(chance, app, app),
        "spec": spec,
        "status": status,
    }


def _node(chance: random.Random, _: str, number: int) -> Object:
    kinds = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
    status = {
        "allocatable": {"cpu": "15890m", "memory": "63230Mi", "pods": "110"},
        "conditions": conditions(*((kind, "False") for kind in kinds), ("Ready", "True")),
        "nodeInfo": {"kernelVersion": "6.1.0-28-amd64", "kubeletVersion": "v1.34.1", "osImage": "Debian GNU/Linux 12"},
        "addresses": [{"address": random_address(chance), "type": "InternalIP"}],
    }
    spec = {"podCIDR": f"10.{number}.0.0/24", "providerID": f"cloud:///{random_hex(chance, 16)}"}
    name = f"node-{number:03d}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": _metadata(chance, name, "node"),
        "spec": spec,
        "status": status,
    }


def _job(chance: random.Random, release: str, number: int) -> Object:
    app = chance.choice(APPS)
    status = {
        "completionTime": f"2026-11-19T07:{chance.randrange(60):02d}:09Z",
        "conditions": conditions(("Complete", "True")),
        "succeeded": 1,
    }
    spec = {
        "backoffLimit": 3,
        "completions": 1,
        "template": {"spec": {"containers": [_container(chance, app, release)], "restartPolicy": "Never"}},
    }
    name = f"{app}-{29_000_000 + number}"
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(chance, name, app),
        "spec": spec,
        "status": status,
    }
