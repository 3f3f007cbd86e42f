"""A large cluster that exists only as answers of an API server: realistic objects, most of them healthy.

Used by `benchmarks/scan.py` and the test of the scanner's bounds. `python -m tests.support.synthetic_cluster FOLDER
PODS EVENTS` serves one until standard input ends, and writes its kubeconfig into FOLDER.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from holmes.kubernetes.kinds import EVENT, KINDS, api_path
from tests.support.kubernetes_api import (
    Answer,
    Json,
    KubernetesApi,
    Request,
    Responder,
    document,
    kubernetes_api,
    listing,
    write_kubeconfig,
)

PODS_PER_WORKLOAD: Final = 5
CRASHING_SHARE: Final = 50
"""Every so many workloads one crashes."""
NODES: Final = 100
NAMESPACES: Final = 40
LOG: Final = "starting\nFATAL: dial tcp 10.0.0.7:5432: connect: connection refused\n"


def _time(seconds_ago: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - seconds_ago))


def _metadata(kind: str, name: str, namespace: str = "", owner: Json | None = None) -> Json:
    labels = {"app.kubernetes.io/name": name[:40], "app.kubernetes.io/part-of": "shop", "team": namespace or "platform"}
    return {
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        "uid": f"{kind}-{namespace}-{name}",
        "resourceVersion": "123456",
        "creationTimestamp": _time(86_400),
        "labels": labels,
        "annotations": {"example.com/checksum": "0" * 64, "example.com/owner": "team-" + namespace},
        "ownerReferences": [owner] if owner else [],
        "managedFields": [
            {"manager": "kubectl", "operation": "Update", "time": _time(86_400), "fieldsV1": {"f:spec": {}}}
        ],
    }


def _pod_spec(name: str) -> Json:
    variables = [{"name": f"SETTING_{number}", "value": f"value of setting {number}"} for number in range(12)]
    return {
        "nodeName": f"node-{sum(map(ord, name)) % NODES}",
        "serviceAccountName": "default",
        "schedulerName": "default-scheduler",
        "containers": [
            {
                "name": "app",
                "image": f"registry.shop.example/{name}:1.0.0",
                "env": [*variables, {"name": "MODE", "valueFrom": {"configMapKeyRef": {"name": name, "key": "mode"}}}],
                "ports": [{"name": "http", "containerPort": 8080}],
                "readinessProbe": {"httpGet": {"path": "/healthz", "port": "http"}},
                "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}},
                "volumeMounts": [{"name": "config", "mountPath": "/etc/app"}],
            }
        ],
        "volumes": [{"name": "config", "configMap": {"name": name}}],
        "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
    }


def _pod(name: str, namespace: str, workload: str, *, crashes: bool) -> Json:
    owner = {"kind": "ReplicaSet", "name": f"{workload}-1", "uid": f"rs-{namespace}-{workload}-1", "controller": True}
    metadata = _metadata("pod", name, namespace, owner)
    metadata["labels"]["app"] = workload
    ended = {"exitCode": 1, "reason": "Error", "startedAt": _time(70), "finishedAt": _time(60)}
    state = {"waiting": {"reason": "CrashLoopBackOff"}} if crashes else {"running": {"startedAt": _time(86_000)}}
    status: Json = {"name": "app", "ready": not crashes, "started": not crashes, "restartCount": 9 if crashes else 0}
    status |= {
        "state": state,
        "lastState": {"terminated": ended} if crashes else {},
        "image": "x",
        "imageID": "sha256:0",
    }
    ready = "False" if crashes else "True"
    conditions = [
        {"type": kind, "status": ready if "eady" in kind else "True", "lastTransitionTime": _time(86_000)}
        for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    conditions[0]["status"] = "True"
    return {
        "metadata": metadata,
        "spec": _pod_spec(workload),
        "status": {"phase": "Running", "conditions": conditions, "containerStatuses": [status], "podIP": "10.1.2.3"},
    }


def _deployment(name: str, namespace: str, *, crashes: bool) -> Json:
    ready = 0 if crashes else PODS_PER_WORKLOAD
    metadata = _metadata("deploy", name, namespace)
    template = {"metadata": {"labels": {"app": name}}, "spec": _pod_spec(name)}
    spec = {"replicas": PODS_PER_WORKLOAD, "selector": {"matchLabels": {"app": name}}, "template": template}
    counts = {"replicas": PODS_PER_WORKLOAD, "updatedReplicas": PODS_PER_WORKLOAD}
    available = {"type": "Available", "status": "False" if crashes else "True", "reason": "MinimumReplicasUnavailable"}
    status = {**counts, "readyReplicas": ready, "availableReplicas": ready, "conditions": [available]}
    return {"metadata": metadata, "spec": spec, "status": status}


def _replica_set(name: str, namespace: str, revision: int) -> Json:
    owner = {"kind": "Deployment", "name": name, "uid": f"deploy-{namespace}-{name}", "controller": True}
    metadata = _metadata("rs", f"{name}-{revision}", namespace, owner)
    metadata["annotations"]["deployment.kubernetes.io/revision"] = str(4 - revision)
    template = {"metadata": {"labels": {"app": name}}, "spec": _pod_spec(name)}
    replicas = PODS_PER_WORKLOAD if revision == 1 else 0
    return {
        "metadata": metadata,
        "spec": {"replicas": replicas, "template": template},
        "status": {"replicas": replicas},
    }


def _event(number: int, pods: int) -> Json:
    workload = number % max(1, pods // PODS_PER_WORKLOAD)
    namespace = f"team-{workload % NAMESPACES}"
    name = f"app-{workload}-{number % PODS_PER_WORKLOAD}"
    about = {"kind": "Pod", "namespace": namespace, "name": name, "uid": f"pod-{namespace}-{name}"}
    return {
        "metadata": {"name": f"event-{number}", "namespace": namespace, "uid": f"event-{number}"},
        "involvedObject": about,
        "type": "Normal" if number % 5 else "Warning",
        "reason": "Pulled" if number % 5 else "BackOff",
        "message": f"Container image registry.shop.example/app-{workload}:1.0.0 already present, try {number}",
        "source": {"component": "kubelet", "host": f"node-{number % NODES}"},
        "firstTimestamp": _time(3_000),
        "lastTimestamp": _time(number % 3_000),
        "count": 1 + number % 7,
    }


def _objects(pods: int) -> dict[str, list[Json]]:
    found: dict[str, list[Json]] = {kind.name: [] for kind in KINDS}
    found["Namespace"] = [{"metadata": _metadata("ns", f"team-{number}")} for number in range(NAMESPACES)]
    ready = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
    room = {"cpu": "64", "memory": "256Gi", "pods": "250"}
    found["Node"] = [
        {"metadata": _metadata("node", f"node-{number}"), "status": {"conditions": ready, "allocatable": room}}
        for number in range(NODES)
    ]
    for workload in range(pods // PODS_PER_WORKLOAD):
        namespace, name, crashes = f"team-{workload % NAMESPACES}", f"app-{workload}", workload % CRASHING_SHARE == 0
        found["Deployment"].append(_deployment(name, namespace, crashes=crashes))
        found["ReplicaSet"] += [_replica_set(name, namespace, revision) for revision in (1, 2, 3)]
        found["Pod"] += [
            _pod(f"{name}-{number}", namespace, name, crashes=crashes) for number in range(PODS_PER_WORKLOAD)
        ]
        found["ConfigMap"].append({"metadata": _metadata("cm", name, namespace), "data": {"mode": "fast"}})
        port = {"name": "http", "port": 80, "targetPort": "http"}
        service = {"selector": {"app": name}, "ports": [port], "clusterIP": "10.96.0.9", "type": "ClusterIP"}
        found["Service"].append({"metadata": _metadata("svc", name, namespace), "spec": service})
        slices = _metadata("eps", f"{name}-x", namespace)
        slices["labels"]["kubernetes.io/service-name"] = name
        endpoints = [{"conditions": {"ready": not crashes}, "addresses": ["10.1.2.3"]}] * PODS_PER_WORKLOAD
        found["EndpointSlice"].append(
            {"metadata": slices, "endpoints": endpoints, "ports": [{"name": "http", "port": 8080}]}
        )
    accounts = [_metadata("sa", "default", f"team-{number}") for number in range(NAMESPACES)]
    found["ServiceAccount"] = [{"metadata": metadata} for metadata in accounts]
    return found


def _ready_pages(items: list[Json]) -> Responder:
    """Pages that are encoded once: the server shall not be what is measured."""
    pages: dict[tuple[int, int], bytes] = {}

    def respond(request: Request) -> Answer:
        begin, limit = int(request.query.get("continue", "0")), int(request.query.get("limit", "500"))
        if (begin, limit) not in pages:
            answer = listing(items)(request)
            assert isinstance(answer.body, bytes)
            pages[begin, limit] = answer.body
        return Answer(body=pages[begin, limit], headers={"Content-Type": "application/json"})

    for begin in range(0, max(1, len(items)), 500):
        respond(Request(method="GET", path="", query={"continue": str(begin), "limit": "500"}, headers={}))
    return respond


def fill(api: KubernetesApi, pods: int, events: int) -> None:
    """Teach the server the cluster."""
    objects = _objects(pods)
    api.on("/version", document({"gitVersion": "v1.34.0"}))
    for kind in KINDS:
        path = api_path(kind.group_version, kind.resource)
        api.on(path, _ready_pages(objects[kind.name]))
    api.on(
        api_path(EVENT.group_version, EVENT.resource), _ready_pages([_event(number, pods) for number in range(events)])
    )
    for pod in objects["Pod"]:
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/log"
        api.on(path, Answer(body=LOG.encode()))


def main() -> None:
    """Serve until standard input ends."""
    folder, pods, events = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    with kubernetes_api() as api:
        fill(api, pods, events)
        write_kubeconfig(folder, api.url)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        _wait(sys.stdin)


def _wait(lines: Iterator[str]) -> None:
    for _ in lines:
        pass


if __name__ == "__main__":
    main()
