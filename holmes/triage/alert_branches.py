"""Narrows the search of an alert to the pod, the Job or the branch of an Ingress that its labels name.

The fault of a sibling does not explain how a pod that is ready behaves, nor one behind another path of an Ingress.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import child, children, text
from holmes.triage.asked import line_of, refs_of
from holmes.triage.connections import connections, identity
from holmes.triage.states import is_ready, last_ends
from holmes.triage.vocabulary import word_list
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.asked import Asked
    from holmes.values.findings import Incident

_OF_MEMBERS: Final = word_list("alerts of members") | word_list("alerts of sets")
_DAY_SECONDS: Final = 86_400.0
_PATTERN_SIGNS: Final = frozenset("()[]*$|^")


def narrowed(asked: Asked, labels: Mapping[str, str], words: tuple[str, ...]) -> tuple[Asked, tuple[str, ...]]:
    """Return the question without the incidents of siblings and other branches, and one line for each of these."""
    first = asked.subject.objects[0]
    beside = _siblings(asked.state, first, words) | _other_branches(first, labels)
    if not beside:
        return asked, ()
    every = connections(asked.state, (first,))
    near = connections(asked.state, (first,), without=beside)
    own = identity(asked.state, first) - beside if first.kind == "Job" else {first.ref}

    def is_beside(incident: Incident) -> bool:
        apart = incident.culprit in every and incident.culprit not in near
        theirs = any(each.subject in beside for each in incident.findings)
        return (apart or theirs) and (first.kind == "Ingress" or refs_of(incident).isdisjoint(_own_only(first, own)))

    left = tuple(each for each in asked.report.incidents if is_beside(each))
    kept = tuple(each for each in asked.report.incidents if each not in left)
    lines = tuple(line_of(each) for each in left if each.severity != "info")
    return replace(asked, report=replace(asked.report, incidents=kept)), lines


def _own_only(first: ClusterObject, own: frozenset[ObjectRef] | set[ObjectRef]) -> frozenset[ObjectRef]:
    """Return the objects that only the subject has, not its owner, which siblings have too."""
    return frozenset(ref for ref in own if ref == first.ref or ref.kind == "Pod")


def _siblings(state: ClusterState, first: ClusterObject, words: tuple[str, ...]) -> frozenset[ObjectRef]:
    """Return the other pods, ReplicaSets and Jobs of the owner of a pod or Job that is well itself.

    Alerts about the members of a set are also about its siblings.
    """
    parts = [word.lower() for word in words]
    if first.kind not in ("Pod", "Job") or not _OF_MEMBERS.isdisjoint((*parts, *map("-".join, pairwise(parts)))):
        return frozenset()
    late = any(end > state.now - _DAY_SECONDS for end in last_ends(first))
    failed = text(first.condition("Failed"), "status") == "True"
    if failed or (first.kind == "Pod" and (late or not is_ready(first))):
        return frozenset()
    workload = state.workload_of(first)
    own = set(identity(state, first)) if first.kind == "Pod" else {first.ref, workload.ref}
    own |= {pod.ref for pod in state.owned_by(first, "Pod")}
    return frozenset(identity(state, workload) - own)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Branch:
    host: str
    path: str
    exact: bool
    service: str


def _other_branches(first: ClusterObject, labels: Mapping[str, str]) -> frozenset[ObjectRef]:
    """Return the Services of an Ingress that the host, path and Service of the labels do not lead to."""
    if first.kind != "Ingress":
        return frozenset()
    branches = tuple(_branches(first))
    chosen = _chosen(branches, labels)
    others = {each.service for each in branches} - chosen if chosen else set[str]()
    return frozenset(ObjectRef(kind="Service", namespace=first.namespace, name=name) for name in others)


def _branches(ingress: ClusterObject) -> Iterator[_Branch]:
    default = text(child(ingress.body, "spec", "defaultBackend"), "service", "name")
    if default:
        yield _Branch(host="", path="/", exact=False, service=default)
    for rule in ingress.children("spec", "rules"):
        for each in children(rule, "http", "paths"):
            yield _Branch(
                host=text(rule, "host").lower(),
                path=text(each, "path") or "/",
                exact=text(each, "pathType") == "Exact",
                service=text(each, "backend", "service", "name"),
            )


def _chosen(branches: tuple[_Branch, ...], labels: Mapping[str, str]) -> set[str]:
    """Return the Services that labels lead to, or an empty set if they do not choose among the branches."""
    named = {labels.get("exported_service", ""), labels.get("service", "")} & {each.service for each in branches}
    if named:
        return named
    scheme, _, url = (labels.get("instance") or labels.get("target", "")).partition("://")
    host, _, path = url.partition("/") if url else (labels.get("host", ""), "", "")
    path = f"/{path}" if scheme and url else labels.get("path", "")
    host = host.partition(":")[0].lower()
    of_host = [each for each in branches if host and each.host == host]
    of_host = of_host or [each for each in branches if not host or _covers(each.host, host)]
    if not path or any(not _PATTERN_SIGNS.isdisjoint(each.path) for each in of_host):
        return {each.service for each in of_host}
    fitting = [each for each in of_host if _leads(each, path.partition("?")[0])]
    best = max(fitting, key=lambda each: (each.exact, len(each.path)), default=None)
    return {best.service} if best is not None else set()


def _covers(pattern: str, host: str) -> bool:
    return not pattern or (pattern.startswith("*.") and host.partition(".")[2] == pattern[2:])


def _leads(branch: _Branch, path: str) -> bool:
    prefix = branch.path.rstrip("/")
    return path == branch.path or (not branch.exact and (path == prefix or path.startswith(f"{prefix}/")))
