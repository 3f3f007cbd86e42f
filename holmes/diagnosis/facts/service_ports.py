"""Which ports of a pod the ports of a Service lead to. Called by rules about Services, Ingresses and policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.kubernetes.fields import at, children, integer, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.values.json_types import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePort:
    """A port of a Service. `target` is a number or the name of a container's port; `index` is its place in the list."""

    index: int
    name: str
    port: int
    protocol: str
    target: int | str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerPort:
    """A port that a container declares."""

    container: str
    name: str
    number: int
    protocol: str


def service_ports(service: ClusterObject) -> tuple[ServicePort, ...]:
    """The ports of a Service. Without a target port they lead to the same number."""
    return tuple(_port(index, port) for index, port in enumerate(service.children("spec", "ports")))


def _port(index: int, port: JsonObject) -> ServicePort:
    target = at(port, "targetPort")
    number = integer(port, "port")
    named = isinstance(target, str) and not target.isdigit()
    return ServicePort(
        index=index,
        name=text(port, "name"),
        port=number,
        protocol=text(port, "protocol") or "TCP",
        target=str(target) if named else int(str(target)) if _is_number(target) else number,
    )


def _is_number(target: object) -> bool:
    return (isinstance(target, int) and not isinstance(target, bool)) or (isinstance(target, str) and target.isdigit())


def container_ports(spec: JsonObject) -> Iterator[ContainerPort]:
    """The ports that the containers of a pod's spec declare; init containers only where they go on running."""
    containers = [each for each in children(spec, "initContainers") if text(each, "restartPolicy") == "Always"]
    for container in (*children(spec, "containers"), *containers):
        for port in children(container, "ports"):
            yield ContainerPort(
                container=text(container, "name"),
                name=text(port, "name"),
                number=integer(port, "containerPort"),
                protocol=text(port, "protocol") or "TCP",
            )


def target_ports(service: ClusterObject, pod: ClusterObject) -> frozenset[int]:
    """The numbers of the pod's ports that the Service leads to."""
    declared = {port.name: port.number for port in container_ports(pod.child("spec")) if port.name}
    targets = (port.target for port in service_ports(service))
    return frozenset(declared.get(each, 0) if isinstance(each, str) else each for each in targets) - {0}
