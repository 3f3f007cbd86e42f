"""Finds the pods that a Service selects and its intended workload, and checks whether its endpoints are ready."""

from __future__ import annotations

import difflib
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.changes import replica_sets_newest_first
from holmes.diagnosis.facts.starts import start_of
from holmes.diagnosis.facts.status import pod_ready
from holmes.diagnosis.facts.templates import labels_of
from holmes.kubernetes.cluster_state import once_per_state
from holmes.kubernetes.fields import SERVICE_NAME, at, children, matches_map, moment, text, text_map

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holmes.diagnosis.facts.templates import PodTemplate
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState


_CONTROLLERS: Final = frozenset({"kube-controller-manager", "kube-scheduler", "kubelet", "kube-apiserver"})


def selector_of(service: ClusterObject) -> dict[str, str]:
    """Return the selector of the Service, or an empty map if the Service does not select pods."""
    return text_map(service.body, "spec", "selector") if service.text("spec", "type") != "ExternalName" else {}


def is_headless(service: ClusterObject) -> bool:
    """Return whether the Service is headless. Clients of a headless Service connect directly to its pods."""
    return service.text("spec", "clusterIP") == "None"


def selecting_services(state: ClusterState, *, young: bool = False) -> Iterator[ClusterObject]:
    """Yield the Services that have a selector and are not being deleted.

    If `young` is true, Services within the grace period are included.
    """
    for service in state.of("Service"):
        if service.deleted is None and selector_of(service) and (young or _is_old(state, service)):
            yield service


def _is_old(state: ClusterState, each: ClusterObject) -> bool:
    return state.age_seconds(each) >= state.grace_seconds


def pods_behind(state: ClusterState, service: ClusterObject) -> tuple[ClusterObject, ...]:
    """Return the pods that the Service selects, except finished pods and pods that are being deleted."""
    found = labels_of(state).pods.selected(service.namespace, selector_of(service))
    return tuple(pod for pod in found if pod.deleted is None)


def slices_of(state: ClusterState, service: ClusterObject) -> tuple[ClusterObject, ...]:
    """Return the EndpointSlices of the Service."""
    return _slices(state).get((service.namespace, service.name), ())


@once_per_state
def _slices(state: ClusterState) -> Mapping[tuple[str, str], tuple[ClusterObject, ...]]:
    """Return the EndpointSlices by the namespace and the name of their Service."""
    grouped: dict[tuple[str, str], list[ClusterObject]] = defaultdict(list)
    for each in state.of("EndpointSlice"):
        grouped[each.namespace, each.labels.get(SERVICE_NAME, "")].append(each)
    return {key: tuple(group) for key, group in grouped.items()}


def has_ready_endpoints(state: ClusterState, service: ClusterObject) -> bool:
    """Return whether a request to the Service reaches an endpoint. Returns True if this is unknown."""
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
    return any(pod_ready(pod) for pod in pods)


def _serves(endpoint: Mapping[str, object]) -> bool:
    """Return whether the endpoint receives traffic. The condition `ready` is true by default."""
    conditions = endpoint.get("conditions")
    ready = conditions.get("ready") if isinstance(conditions, dict) else None
    return bool(endpoint.get("addresses")) and ready is not False


def unready_seconds(state: ClusterState, pod: ClusterObject) -> float:
    """Return the number of seconds since the pod became unready, or since its creation if the pod never ran.

    Returns 0 while the pod waits for something that ends by itself, for example the time that its probes allow.
    """
    if start_of(state, pod) is not None:
        return 0.0
    since = moment(text(pod.condition("Ready"), "lastTransitionTime"))
    return state.now - (since if since is not None and not pod_ready(pod) else pod.created)


def edited_at(each: ClusterObject) -> float:
    """Return the time of the last write by a client that is not a controller, in seconds since the epoch.

    Returns the creation time if no such write is recorded.
    """
    times = [
        moment(text(entry, "time")) or 0.0
        for entry in each.children("metadata", "managedFields")
        if not at(entry, "subresource") and text(entry, "manager") not in _CONTROLLERS
    ]
    return max((each.created, *times))


def was_edited(each: ClusterObject) -> bool:
    """Return whether the object was changed after its creation."""
    return edited_at(each) > each.created + 1


_ALIKE: Final = 0.7
_ROLE_WORDS: Final = ("role", "leader", "active", "master", "primary", "replica", "writer", "standby", "slot")
_MADE_BY_CONTROLLERS: Final = frozenset({"pod-template-hash", "controller-revision-hash", "pod-template-generation"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """The workload whose labels best match a selector. `keys` are the keys of the selector that do not match."""

    template: PodTemplate
    keys: tuple[str, ...]
    score: float

    @property
    def workload(self) -> ClusterObject:
        return self.template.workload

    def differences(self, selector: Mapping[str, str]) -> str:
        """Describe the labels that do not match the selector, as a phrase for messages."""
        labels = self.template.labels
        return ", ".join(
            f"{key}: the selector requires {selector[key]!r}, the pods have "
            + (repr(labels[key]) if key in labels else f"no label {key!r}{_other_key(selector[key], labels)}")
            for key in self.keys
        )


def _other_key(value: str, labels: Mapping[str, str]) -> str:
    key = next((key for key, found in labels.items() if found == value), None)
    return f" (but {key}={value})" if key else ""


def nearest_workload(state: ClusterState, name: str, namespace: str, selector: Mapping[str, str]) -> Mismatch | None:
    """Return the workload that best matches the selector of the Service `name`, or None if no workload is similar."""
    alike = _Likeness()
    candidates = [
        Mismatch(
            template=template,
            keys=tuple(sorted(key for key, value in selector.items() if template.labels.get(key) != value)),
            score=_score(name, selector, template, alike),
        )
        for template in labels_of(state).templates.of(namespace)
        if template.workload.kind not in {"Job", "CronJob"} and template.labels
    ]
    likely = [each for each in candidates if each.score >= 1]
    return max(likely, key=lambda each: (each.score, -len(each.keys), each.workload.name), default=None)


def _score(name: str, selector: Mapping[str, str], template: PodTemplate, alike: _Likeness) -> float:
    """Rate the similarity of a workload to a Service.

    An equal label or an equal name adds 1 to the rating. A similar label or name adds less than 1.
    """
    score = 0.0
    for key, value in selector.items():
        found = template.labels.get(key)
        if found == value:
            score += 1.0
        elif found is not None:
            score += alike(value, found)
        elif value in template.labels.values():
            score += 0.9
    workload = template.workload.name
    return score + (1.0 if workload == name else alike(name, workload))


class _Likeness:
    """Computes the similarity of names, from 0 to 0.9. Optimised for comparing one name with many others."""

    def __init__(self) -> None:
        self._matchers: dict[str, difflib.SequenceMatcher[str]] = {}

    def __call__(self, name: str, other: str) -> float:
        matcher = self._matchers.get(name)
        if matcher is None:
            matcher = self._matchers[name] = difflib.SequenceMatcher(None, b=name.lower())
        matcher.set_seq1(other.lower())
        if matcher.real_quick_ratio() < _ALIKE or matcher.quick_ratio() < _ALIKE:
            return 0.0
        ratio = matcher.ratio()
        return ratio * 0.9 if ratio >= _ALIKE else 0.0


def lost_by_rollout(state: ClusterState, workload: ClusterObject, selector: Mapping[str, str]) -> ClusterObject | None:
    """Return the newest replaced ReplicaSet whose pods the selector matched, or None."""
    if workload.kind != "Deployment":
        return None
    older = replica_sets_newest_first(state, workload)[1:]
    return next(
        (
            each
            for each in older
            if matches_map(selector, text_map(each.body, "spec", "template", "metadata", "labels"))
        ),
        None,
    )


def is_dynamic(state: ClusterState, mismatch: Mismatch, selector: Mapping[str, str]) -> bool:
    """Return whether software sets the differing labels on running pods.

    For example, these labels identify leaders, roles or revisions.
    """
    if any(key in _MADE_BY_CONTROLLERS or "hash" in key for key in mismatch.keys):
        return True
    pods = state.pods_of(mismatch.workload)
    for key in mismatch.keys:
        words = key.rpartition("/")[2].lower()
        by_name = any(word in words for word in _ROLE_WORDS) and key not in mismatch.template.labels
        on_pods = key not in mismatch.template.labels and any(key in pod.labels for pod in pods)
        if not (by_name or on_pods):
            return False
    return bool(mismatch.keys) and bool(selector)
