"""Expands the short forms of a case: servers that are ready, and logs with repeated lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from holmes.kubernetes.fields import written
from tests.diagnosis.row_cases import NOW

_AGE: Final = 518_400


def server_objects(name: str, raw: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a Deployment with one ready pod and a Service.

    Keys are `env`, `port` (of container and Service, 8080), `age` in seconds, `image`, and `spec` with more fields of
    the pod.
    """
    port, age = raw.get("port", 8080), raw.get("age", _AGE)
    container = {
        "name": name,
        "image": raw.get("image", f"registry.shop.example/{name}:1.4.0"),
        "ports": [{"containerPort": port}],
        "env": [{"name": key, "value": str(value)} for key, value in raw.get("env", {}).items()],
    }
    more = dict(raw.get("spec", {}))
    spec = {"containers": [{**container, **more.pop("container", {})}], **more}
    labels, counts = {"app": name}, {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1}
    template = {"metadata": {"labels": labels}, "spec": spec}
    wanted = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}

    def body(kind: str, named: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401  fields of any object
        metadata = {"name": named, "age": age, "labels": labels, **fields.pop("metadata", {})}
        return {"kind": kind, "metadata": metadata, **fields}

    status = {**counts, "updatedReplicas": 1}
    yield body("Deployment", name, spec=wanted, status=status)
    yield body("ReplicaSet", f"{name}-5d9", metadata={"owner": f"Deployment/{name}"}, spec=wanted, status=counts)
    yield body(
        "Pod", f"{name}-5d9-x", metadata={"owner": f"ReplicaSet/{name}-5d9"}, spec=spec, status=_running(name, age)
    )
    ports = [{"port": port, "targetPort": port, "protocol": "TCP"}]
    yield body(
        "Service", name, spec={"selector": labels, "ports": ports, "clusterIP": f"10.96.{len(name)}.{port % 200}"}
    )
    endpoints = [
        {
            "addresses": [_address(name)],
            "conditions": {"ready": True},
            "targetRef": {"kind": "Pod", "name": f"{name}-5d9-x"},
        }
    ]
    slice_of = {"labels": {"kubernetes.io/service-name": name}, "owner": f"Service/{name}"}
    yield body("EndpointSlice", f"{name}-a1", metadata=slice_of, endpoints=endpoints, ports=[{"port": port}])


def _address(name: str) -> str:
    return f"10.244.{len(name)}.{sum(map(ord, name)) % 250}"


def _running(name: str, age: int) -> dict[str, Any]:
    state = {"running": {"startedAt": {"ago": age - 4}}}
    status = {"name": name, "ready": True, "started": True, "restartCount": 0, "state": state}
    conditions = [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady", "PodScheduled")]
    return {"phase": "Running", "podIP": _address(name), "containerStatuses": [status], "conditions": conditions}


def log_name(name: str, servers: Mapping[str, Any]) -> str:
    """Return the key of a log: that of a server's pod, or the key as it is."""
    return f"shop/{name}-5d9-x/{name}" if name in servers else name


def log_text(log: str | Sequence[Mapping[str, Any]]) -> str:
    """Return a log as text.

    A list contains lines with `at`, or repeated lines with `from`, `to` and `every`, in seconds before now. `{n}` is
    the number of a repeated line, `{n10}` ten times this number.
    """
    if isinstance(log, str):
        return log
    lines = sorted((ago, order, line) for order, raw in enumerate(log) for ago, line in _lines(raw))
    lines.sort(key=lambda each: (-each[0], each[1]))
    return "".join(f"{written(NOW - ago)} {each}\n" for ago, _, line in lines for each in line.split("\n"))


def _lines(raw: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    if "at" in raw:
        yield raw["at"], raw["line"]
        return
    for number, ago in enumerate(range(raw["from"], raw.get("to", 0), -raw["every"])):
        yield ago, raw["line"].replace("{n10}", str(number * 10)).replace("{n}", str(number))
