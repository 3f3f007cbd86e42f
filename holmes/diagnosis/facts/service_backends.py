"""What stands behind a Service: its selector, pods and EndpointSlices. Called by rules about Services and Ingresses."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from holmes.diagnosis.facts.edges import is_ready
from holmes.diagnosis.facts.label_index import labels_of
from holmes.kubernetes.fields import at, children, text, text_map
from holmes.kubernetes.moments import moment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState

SERVICE_OF_SLICE: Final = "kubernetes.io/service-name"
_SLICES: WeakKeyDictionary[ClusterState, Mapping[tuple[str, str], tuple[ClusterObject, ...]]] = WeakKeyDictionary()
_CONTROLLERS: Final = frozenset({"kube-controller-manager", "kube-scheduler", "kubelet", "kube-apiserver"})


def selector_of(service: ClusterObject) -> dict[str, str]:
    """The labels that the pods of the Service must have; empty when its endpoints are made by somebody else."""
    return text_map(service.body, "spec", "selector") if service.text("spec", "type") != "ExternalName" else {}


def is_headless(service: ClusterObject) -> bool:
    """Whether clients connect to the pods themselves."""
    return service.text("spec", "clusterIP") == "None"


def selecting_services(state: ClusterState, *, young: bool = False) -> Iterator[ClusterObject]:
    """The Services that choose pods by labels and are not being deleted; with `young` also those within the grace."""
    for service in state.of("Service"):
        if service.deleted is None and selector_of(service) and (young or _is_old(state, service)):
            yield service


def _is_old(state: ClusterState, each: ClusterObject) -> bool:
    return state.age_seconds(each) >= state.grace_seconds


def pods_behind(state: ClusterState, service: ClusterObject) -> tuple[ClusterObject, ...]:
    """The pods that the Service's selector matches and that are neither done nor being deleted."""
    found = labels_of(state).pods.selected(service.namespace, selector_of(service))
    return tuple(pod for pod in found if pod.deleted is None)


def slices_of(state: ClusterState, service: ClusterObject) -> tuple[ClusterObject, ...]:
    """The EndpointSlices of the Service."""
    slices = _SLICES.get(state)
    if slices is None:
        grouped: dict[tuple[str, str], list[ClusterObject]] = defaultdict(list)
        for each in state.of("EndpointSlice"):
            grouped[each.namespace, each.labels.get(SERVICE_OF_SLICE, "")].append(each)
        slices = _SLICES[state] = {key: tuple(group) for key, group in grouped.items()}
    return slices.get((service.namespace, service.name), ())


def has_ready_endpoints(state: ClusterState, service: ClusterObject) -> bool:
    """Whether a request to the Service finds somebody: in doubt yes."""
    if service.text("spec", "type") == "ExternalName":
        return True
    slices = slices_of(state, service)
    if any(_serves(endpoint) for each in slices for endpoint in children(each.body, "endpoints")):
        return True
    selector = selector_of(service)
    if not selector:
        return not state.covers("EndpointSlice", service.namespace) or bool(slices)
    if not state.covers("Pod", service.namespace):
        return True
    pods = pods_behind(state, service)
    if service.boolean("spec", "publishNotReadyAddresses") and pods:
        return True
    return any(is_ready(pod) for pod in pods)


def _serves(endpoint: Mapping[str, object]) -> bool:
    """An endpoint without the condition counts as ready."""
    conditions = endpoint.get("conditions")
    ready = conditions.get("ready") if isinstance(conditions, dict) else None
    return bool(endpoint.get("addresses")) and ready is not False


def unready_seconds(state: ClusterState, pod: ClusterObject) -> float:
    """How long the pod is not ready; a pod that does not run yet counts from its creation."""
    since = moment(text(pod.condition("Ready"), "lastTransitionTime"))
    return state.now - (since if since is not None and not is_ready(pod) else pod.created)


def edited_at(each: ClusterObject) -> float:
    """When somebody other than a controller last wrote the object, seconds since the epoch: at least its creation."""
    times = [
        moment(text(entry, "time")) or 0.0
        for entry in each.children("metadata", "managedFields")
        if not at(entry, "subresource") and text(entry, "manager") not in _CONTROLLERS
    ]
    return max((each.created, *times))


def was_edited(each: ClusterObject) -> bool:
    """Whether somebody changed the object after it had been created."""
    return edited_at(each) > each.created + 1
