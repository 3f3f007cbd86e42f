"""The conditions on relations between kinds: "pods of a DaemonSet", "Deployments without an autoscaler"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import text_map
from holmes.triage.certainty import is_traced
from holmes.triage.connections import connections
from holmes.triage.filters import WORKLOAD_KINDS, Filter, negated_before
from holmes.triage.users import ingresses_to, users_of
from holmes.triage.vocabulary import word_list
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.vocabulary import Sighting

_OWNED: Final = frozenset({"Pod", "ReplicaSet", "Job"})
_OWNERS: Final = frozenset({*WORKLOAD_KINDS, "ReplicaSet"})
_WITH_PODS: Final = _OWNERS | {"Node", "Service", "PersistentVolumeClaim", "ConfigMap", "Secret", "ServiceAccount"}
MORE: Final = word_list("largest numbers")
FEWER: Final = word_list("smallest numbers")
_EXTREMES: Final = word_list("most") - MORE
_ORDINAL: Final = expression(
    r"\b(?:(?:second|third|fourth|fifth|2nd|3rd|4th|5th|next|zweit|dritt|viert|segund[oa]s?|tercer[oa]?s?|deuxieme"
    r"|troisieme)[ -](?:\w+ )?(?:most|least|few\w+|larg\w+|big\w+|high\w+|small\w+|low\w+|old\w+|newe\w+|young\w+|mas"
    r"|menos|plus|moins|mayor|menor)"
    r"|(?:zweit|dritt|viert)(?:meist|wenigst|gross|hochst|kleinst|niedrigst|altest|jungst|neuest)\w*"
    r"|(?:mas|menos|mayor|menor) \w+ (?:en )?(?:segundo|tercer))\b"
)
_SHARED: Final = word_list("shared")
_INTERROGATIVES: Final = word_list("interrogatives")


def relation_filters(asked: Asked, kinds: Sequence[str]) -> Iterator[Filter]:
    """Yield the filters for the kinds of a question other than `kinds`, which it asks for.

    How objects belong to a custom object is not known. Only its namespace is.
    """
    words = asked.question.words
    for place in asked.question.found:
        if place.sense != "kind" or not asked.ledger.is_left("kind", place.first):
            continue
        if "." in place.name and set(kinds) != {"Namespace"}:
            continue
        before = words[place.first - 1] if place.first else ""
        shared = (place.name == "Node" and before in _SHARED) or before in _EXTREMES
        traced = all(is_traced(kind, (place.name,)) for kind in kinds)
        if shared or not traced or not asked.state.covers(place.name):
            continue  # the answer says that it was not applied
        asked.ledger.take("kind", place.name, at=place.first)
        if place.name == "Node" and place.first and words[place.first - 1] in _INTERROGATIVES:
            continue  # the table has the nodes
        if is_ranked(words, place.first):
            asked.ledger.take("word", *words[max(0, place.first - 2) : place.first])
            continue  # the order has it: "which Deployment has the most pods"
        negated = negated_before(asked, place.first)
        told = f"{'without' if negated else 'with'} {place.name}"
        yield Filter(told=told, holds=_has(asked.state, place.name, negated=negated))


def _has(state: ClusterState, kind: str, *, negated: bool) -> Callable[[ClusterObject], bool]:
    def holds(each: ClusterObject) -> bool:
        if kind == "Node" and each.kind == "Pod":  # its tolerations and selectors lead to nodes, too
            return bool(each.text("spec", "nodeName")) != negated
        content = content_of(state, each, kind)
        has = kind in _related(state, each) if content is None else bool(content)
        return has != negated

    return holds


def is_ranked(words: Sequence[str], at: int) -> bool:
    """Return whether a noun is what an object has the most or the fewest of: "the most pods", "le plus de pods"."""
    before = [word for word in words[max(0, at - 2) : at] if word != "de"]
    return bool(before) and before[-1] in MORE | FEWER


def ranks_by_content(question: Question) -> bool:
    """Return whether objects are asked for by how much belongs to them: "which node has the most pods"."""
    kinds = [each for each in question.found if each.sense == "kind"]
    order = order_of(question)
    later = order is not None and (len(kinds) > 1 or order.name == "restarting") and bool(kinds)
    return later and question.asks("list", "placement") and order is not None and kinds[0].first < order.first


def ordinal_of(question: Question) -> str:
    """Return the words that ask for another place of an order than the first: "the second most pods"."""
    match = _ORDINAL.search(question.text)
    return match[0] if match is not None else ""


def order_of(question: Question) -> Sighting | None:
    """Return what an order counts, or the state before it: "the most pods", "most restarts", "most broken pods"."""
    nouns = {each.first for each in question.found if each.sense == "kind"}
    for each in question.found:
        state = each.sense == "state" or (each.sense == "concept" and each.name == "trouble")
        counts = each.sense == "kind" or (state and (each.last + 1 in nouns or each.name == "restarting"))
        if counts and is_ranked(question.words, each.first):
            return each
    return None


def content_of(state: ClusterState, each: ClusterObject, kind: str) -> tuple[ClusterObject, ...] | None:
    """Return what belongs to an object: the pods of a workload or on a node. None if the kind never belongs to it."""
    if each.kind == "Namespace":
        return state.of(kind, each.name)
    if kind not in _OWNED or kind == each.kind:
        return None
    if each.kind in _OWNERS and kind != "Pod":
        return state.owned_by(each, kind)
    return tuple(_pods(state, each)) if kind == "Pod" and each.kind in _WITH_PODS else None


def _pods(state: ClusterState, each: ClusterObject) -> Iterable[ClusterObject]:
    """Return the pods of a workload, on a node, behind a Service, or that use a claim or another object."""
    if each.kind == "Node":
        return (pod for pod in state.of("Pod") if pod.text("spec", "nodeName") == each.name)
    if each.kind == "Service":
        return state.selected("Pod", each.namespace, text_map(each.body, "spec", "selector"))
    if each.kind in _OWNERS:
        return state.pods_of(each)
    return dict.fromkeys(pod for user in users_of(state, each) for pod in state.pods_of(user.object))


def _related(state: ClusterState, each: ClusterObject) -> set[str]:
    """Return the kinds of the owners of an object, of its users and of what it needs. A namespace has its content."""
    if each.kind == "Namespace":
        return {kind for kind in state.kinds if any(True for _ in state.of(kind, each.name))}
    owners = {state.workload_of(each).kind, each.owner.kind if each.owner is not None else ""} & _OWNERS
    users = {user.object.kind for user in users_of(state, each)}
    users |= {ingress.kind for ingress in ingresses_to(state, each)}
    users |= {state.workload_of(pod).kind for pod in _pods(state, each)} if each.kind == "Node" else set()
    needs = {one.ref.kind for one in connections(state, (each,)).values() if one.hops == 1}
    return (owners if each.kind in _OWNED else set()) | users | needs
