"""Parses resource quantities, and computes pod requests, free node capacity and violations of LimitRanges."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.templates import template_of
from holmes.kubernetes.cluster_state import once_per_state
from holmes.kubernetes.fields import at, child, children, text
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from holmes.diagnosis.facts.pods import Container
    from holmes.diagnosis.facts.templates import PodTemplate
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence
    from holmes.values.json_types import JsonObject, JsonValue


_FORM: Final = expression(
    r"(?P<number>[+-]?(?:\d{1,40}\.?\d{0,40}|\.\d{1,40}))"
    r"(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?\d{1,3}))?",
    re.ASCII,
)
_BINARY: Final = {f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", 1)}
_DECIMAL: Final = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "k": Decimal(10) ** 3, "M": Decimal(10) ** 6,
    "G": Decimal(10) ** 9, "T": Decimal(10) ** 12, "P": Decimal(10) ** 15, "E": Decimal(10) ** 18,
}  # fmt: skip
_FACTORS: Final = {**_BINARY, **_DECIMAL}
_BYTES: Final = ("memory", "storage", "hugepages-")


def quantity(written: JsonValue) -> Decimal | None:
    """Parse a Kubernetes quantity into cores, bytes or units. Returns None if the quantity is not valid."""
    if isinstance(written, bool) or not isinstance(written, str | int):
        return None
    return _parsed(str(written).strip())


@lru_cache(maxsize=4096)
def _parsed(written: str) -> Decimal | None:
    found = _FORM.fullmatch(written)
    if found is None:
        return None
    number = Decimal(found["number"])
    if found["exponent"]:
        return number.scaleb(int(found["exponent"]))
    return number * _FACTORS.get(found["suffix"] or "", Decimal(1))


def amount(written: JsonValue) -> Decimal:
    """Parse a Kubernetes quantity. Returns 0 if the quantity is missing or not valid."""
    return quantity(written) or Decimal(0)


def written_amount(number: Decimal, resource: str) -> str:
    """Format a quantity with a suffix such as `Mi` for bytes, or the suffix `m` for fractions of cores."""
    if _is_bytes(resource):
        for suffix in ("Ti", "Gi", "Mi", "Ki"):
            if abs(number) >= _BINARY[suffix]:
                return f"{_plain(number / _BINARY[suffix])}{suffix}"
        return _plain(number)
    if resource.rpartition(".")[2] == "cpu" and number != number.to_integral_value():
        return f"{_plain(number * 1000)}m"
    return _plain(number)


def _is_bytes(resource: str) -> bool:
    """Return whether the resource is counted in bytes: `memory`, `requests.storage`, `ephemeral-storage`."""
    return any(part in resource for part in _BYTES)


def _plain(number: Decimal) -> str:
    """Format a number with at most two decimals and without trailing zeros."""
    rounded = f"{number:.2f}".rstrip("0").rstrip(".")
    return rounded if rounded not in {"", "-0"} else "0"


def allocatable(node: ClusterObject, resource: str) -> Decimal:
    """Return the allocatable amount of a resource on a node, in cores, bytes or units.

    Returns 0 if the node does not have the resource.
    """
    return amount(node.at("status", "allocatable", resource))


def requested(pod: ClusterObject, resource: str, part: Literal["requests", "limits"] = "requests") -> Decimal:
    """Return the request of a pod.

    The request is the sum of its containers' requests or the largest request of an init container, whichever is
    larger, plus the pod overhead. A limit without a request is treated as the request, as in the API server. If `part`
    is `limits`, the function uses limits instead of requests.
    """
    if resource == "pods":
        return Decimal(1)
    whole = at(pod.body, "spec", "resources", part, resource)
    overhead = amount(pod.at("spec", "overhead", resource))
    if quantity(whole) is not None:
        return amount(whole) + overhead
    mains = sum((_of_container(each, resource, part) for each in pod.children("spec", "containers")), Decimal(0))
    sidecars = largest = Decimal(0)
    for each in pod.children("spec", "initContainers"):
        own = _of_container(each, resource, part)
        if text(each, "restartPolicy") == "Always":
            sidecars += own
            largest = max(largest, sidecars)
        else:
            largest = max(largest, sidecars + own)
    return max(mains + sidecars, largest) + overhead


def _of_container(container: JsonObject, resource: str, part: str) -> Decimal:
    found = at(container, "resources", part, resource)
    if found is None and part == "requests":
        found = at(container, "resources", "limits", resource)
    return amount(found)


def asking_container(pod: ClusterObject, resource: str) -> tuple[str, str] | None:
    """Return the name of the container with the largest request and the path of that request, or None.

    The path is for example `containers[0].resources.requests.cpu`. For a resource with dots in its name
    (`nvidia.com/gpu`), the path ends at `limits` or `requests`.
    """
    best: tuple[Decimal, str, str] | None = None
    for key in ("containers", "initContainers"):
        for index, each in enumerate(children(pod.body, "spec", key)):
            own = _of_container(each, resource, "requests")
            parts = ("limits", "requests") if "." in resource else ("requests", "limits")
            part = next((each_part for each_part in parts if resource in child(each, "resources", each_part)), "limits")
            if own and (best is None or own > best[0]):
                place = f"{key}[{index}].resources.{part}"
                best = (own, text(each, "name"), place if "." in resource else f"{place}.{resource}")
    return None if best is None else best[1:]


@once_per_state
def pods_by_node(state: ClusterState) -> dict[str, list[ClusterObject]]:
    """Return the scheduled pods that are not finished, by node name."""
    found: dict[str, list[ClusterObject]] = defaultdict(list)
    for pod in state.of("Pod"):
        node = pod.text("spec", "nodeName")
        if node and pod.text("status", "phase") not in {"Succeeded", "Failed"}:
            found[node].append(pod)
    return found


def free(
    nodes: Iterable[ClusterObject], placed: Mapping[str, Iterable[ClusterObject]], resource: str
) -> dict[str, Decimal]:
    """Return the unrequested amount of a resource on each node, by node name."""
    return {
        node.name: allocatable(node, resource)
        - sum((requested(pod, resource) for pod in placed.get(node.name, ())), Decimal(0))
        for node in nodes
    }


_COMPARED: Final = (("max", "limits"), ("max", "requests"), ("min", "requests"), ("min", "limits"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A value in a pod template (`found`) that violates a bound of a LimitRange (`bound`)."""

    limit_range: ClusterObject
    found: Evidence
    bound: Evidence


def violations(state: ClusterState, template: PodTemplate) -> tuple[Violation, ...]:
    """Return every value in the template that is above a maximum or below a minimum of a LimitRange."""
    return tuple(
        violation
        for limit_range in state.of("LimitRange", template.workload.namespace)
        for index, bounds in enumerate(limit_range.children("spec", "limits"))
        if text(bounds, "type") == "Container"
        for violation in _of_bounds(limit_range, index, bounds, template)
    )


def _of_bounds(
    limit_range: ClusterObject, index: int, bounds: JsonObject, template: PodTemplate
) -> Iterator[Violation]:
    for key in ("containers", "initContainers"):
        for position, container in enumerate(children(template.spec, key)):
            for side, part in _COMPARED:
                for resource, allowed in child(bounds, side).items():
                    asked = at(container, "resources", part, resource)
                    if _is_outside(side, asked, allowed):
                        where = f"{template.path}.{key}[{position}].resources.{part}.{resource}"
                        yield Violation(
                            limit_range=limit_range,
                            found=evidence.value(template.workload, where, asked),
                            bound=evidence.value(limit_range, f"spec.limits[{index}].{side}.{resource}", allowed),
                        )


def _is_outside(side: str, asked: object, allowed: object) -> bool:
    if asked is None or allowed is None:
        return False
    found, bound = quantity(str(asked)), quantity(str(allowed))
    if found is None or bound is None:
        return False
    return found > bound if side == "max" else found < bound


def vertical_scaler_of(container: Container, state: ClusterState, resource: str) -> ClusterObject | None:
    """Return the VerticalPodAutoscaler that sets the limit of a container, by the pod's annotation and the template."""
    pod = container.pod
    workload = state.workload_of(pod)
    own = (each for each in children(template_of(workload).spec, "containers") if text(each, "name") == container.name)
    wanted = text(next(own, {}), "resources", "limits", resource)
    names = [text(each, "name") for each in pod.children("spec", "containers")]
    index = names.index(container.name) if container.name in names else -1
    parts = pod.annotations.get("vpaUpdates", "").split("container ")
    told = any(each.startswith(f"{index}:") and f"{resource} limit" in each for each in parts)
    if not told or wanted == text(container.spec, "resources", "limits", resource):
        return None
    for scaler in state.of("VerticalPodAutoscaler.autoscaling.k8s.io", pod.namespace):
        target = scaler.child("spec", "targetRef")
        if (text(target, "kind"), text(target, "name")) == (workload.kind, workload.name):
            return scaler
    return None


def defaulted_by(container: Container, state: ClusterState, resource: str) -> ClusterObject | None:
    """Return the LimitRange that sets the limit of a container, by the pod's annotation or a template without limit."""
    pod = container.pod
    told = pod.annotations.get("kubernetes.io/limit-ranger", "").split(";")
    by_annotation = any(each.endswith(f"limit for container {container.name}") and resource in each for each in told)
    template = template_of(state.workload_of(pod)).spec
    spec = next((each for each in children(template, "containers") if text(each, "name") == container.name), {})
    if not by_annotation and (not spec or text(spec, "resources", "limits", resource)):
        return None
    for limit_range in state.of("LimitRange", pod.namespace):
        for bounds in limit_range.children("spec", "limits"):
            if text(bounds, "type") == "Container" and resource in child(bounds, "default"):
                return limit_range
    return None


def what_is_left(state: ClusterState, nodes: Sequence[ClusterObject], resource: str, asked: Decimal) -> str:
    """Return the largest free amount, or an empty string if it would be enough, which contradicts the scheduler."""
    left = free(nodes, pods_by_node(state), resource)
    best = max(left, key=lambda name: left[name])
    if left[best] >= asked:
        return ""
    amount = written_amount(max(left[best], asked * 0), resource)
    held = _largest_share(state, nodes, resource)
    return f"no node has that much left: the largest free amount is {amount} on {best}{held}"


def _largest_share(state: ClusterState, nodes: Sequence[ClusterObject], resource: str) -> str:
    """Return a clause with the pod that requests most of the only node for a pod, for example that of a DaemonSet."""
    pods = pods_by_node(state).get(nodes[0].name, ()) if len(nodes) == 1 else ()
    largest = max(pods, key=lambda pod: requested(pod, resource), default=None)
    if largest is None or requested(largest, resource) * 2 < allocatable(nodes[0], resource):
        return ""
    amount = written_amount(requested(largest, resource), resource)
    return f", where {largest.ref} of {evidence.owner_words(largest, state)} requests {amount}"


def default_request(state: ClusterState, pod: ClusterObject, container: str, resource: str) -> Evidence | None:
    """Return the default of a LimitRange that the pod's container has as its request, or None.

    The template must not set the resource. Without a template, the pod's annotation must name the container.
    """
    workload = state.workload_of(pod)
    asked = quantity(at(_named(child(pod.body, "spec"), container), "resources", "requests", resource))
    if workload is pod:
        told = pod.annotations.get("kubernetes.io/limit-ranger", "")
        set_by_itself = f"{resource} request for container {container}" not in told
    else:
        resources = child(_named(template_of(workload).spec, container), "resources")
        set_by_itself = any(resource in child(resources, part) for part in ("requests", "limits"))
    if set_by_itself or asked is None:
        return None
    for limit_range in state.of("LimitRange", pod.namespace):
        for index, bounds in enumerate(limit_range.children("spec", "limits")):
            part = "defaultRequest" if resource in child(bounds, "defaultRequest") else "default"
            default = at(bounds, part, resource)
            if text(bounds, "type") == "Container" and quantity(default) == asked:
                return evidence.value(limit_range, f"spec.limits[{index}].{part}.{resource}", default)
    return None


def _named(spec: JsonObject, container: str) -> JsonObject:
    """Return the container with this name in a pod's spec, or an empty object."""
    return next((each for each in children(spec, "containers") if text(each, "name") == container), {})
