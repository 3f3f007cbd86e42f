"""The conditions on relations between kinds: "pods of a DaemonSet", "Deployments without an autoscaler"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.triage.connections import connections
from holmes.triage.filters import WORKLOAD_KINDS, Filter, negated_before
from holmes.triage.users import users_of
from holmes.triage.vocabulary import word_list

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.asked import Asked

_OWNED: Final = frozenset({"Pod", "ReplicaSet", "Job"})
_OWNERS: Final = frozenset({*WORKLOAD_KINDS, "ReplicaSet"})
_INTERROGATIVES: Final = word_list("interrogatives")


def relation_filters(asked: Asked) -> Iterator[Filter]:
    """Yield the filters for the kinds of a question other than the ones that are asked for."""
    words = asked.question.words
    for place in asked.question.found:
        if place.sense != "kind" or not asked.ledger.is_left("kind", place.first):
            continue
        asked.ledger.take("kind", place.name, at=place.first)
        if place.name == "Node" and place.first and words[place.first - 1] in _INTERROGATIVES:
            continue  # the table has the nodes
        negated = negated_before(asked, place.first)
        told = f"{'without' if negated else 'with'} {place.name}"
        yield Filter(told=told, holds=_has(asked.state, place.name, negated=negated))


def _has(state: ClusterState, kind: str, *, negated: bool) -> Callable[[ClusterObject], bool]:
    def holds(each: ClusterObject) -> bool:
        return (kind in _related(state, each)) != negated

    return holds


def _related(state: ClusterState, each: ClusterObject) -> set[str]:
    """Return the kinds of the owners of an object, of its users and of what it needs. A namespace has its content."""
    if each.kind == "Namespace":
        return {kind for kind in state.kinds if any(True for _ in state.of(kind, each.name))}
    owners = {state.workload_of(each).kind, each.owner.kind if each.owner is not None else ""} & _OWNERS
    users = {user.object.kind for user in users_of(state, each)}
    needs = {one.ref.kind for one in connections(state, (each,)).values() if one.hops == 1}
    return (owners if each.kind in _OWNED else set()) | users | needs
