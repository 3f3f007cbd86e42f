"""The zones and regions of nodes, and the conditions on them: "pods in zone eu-1a", "how many nodes per zone"."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Final

from holmes.triage.filters import WORKLOAD_KINDS, Filter, negated_before
from holmes.triage.grammar import domain_words
from holmes.triage.vocabulary import word_list

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.asked import Asked

_LABELS: Final = ("topology.kubernetes.io/", "failure-domain.beta.kubernetes.io/")
_PLACED: Final = frozenset({"Node", "Pod", *WORKLOAD_KINDS})
_BETWEEN: Final = word_list("naming") | word_list("conjunctions")


def domain_of(state: ClusterState, each: ClusterObject, domain: str) -> str:
    """Return the zone or the region of a node, or of the node of a pod, or an empty string."""
    name = each.text("spec", "nodeName") if each.kind == "Pod" else each.name if each.kind == "Node" else ""
    node = state.get("Node", "", name)
    labels = node.labels if node is not None else {}
    keys = (*(f"{label}{domain}" for label in _LABELS), *(key for key in labels if key.rpartition("/")[2] == domain))
    return next((labels[key] for key in keys if key in labels), "")


def domains_named(asked: Asked) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """Yield the position of each word for zones or regions, with `zone` or `region` and the folded values it names."""
    words = asked.question.words
    for at, domain in domain_words(asked.question):
        known = {domain_of(asked.state, node, domain).lower() for node in asked.state.of("Node")} - {""}
        rest = (word for word in words[at + 1 :] if word not in _BETWEEN)
        values = (*takewhile(known.__contains__, rest),) or (*known.intersection(words[max(0, at - 1) : at]),)
        if values:
            yield at, domain, values


def domain_filters(asked: Asked, kinds: tuple[str, ...]) -> Iterator[Filter]:
    """Yield the filters for the zones and regions of nodes. A workload is where one of its pods is."""
    for at, domain, values in domains_named(asked) if _PLACED.issuperset(kinds) else ():
        for sense in ("word", "aside"):
            asked.ledger.take(sense, at=at)
        asked.ledger.take("value", *values)
        if len(values) > 1:
            asked.ledger.take("concept", "either")
        negated = negated_before(asked, min(at, asked.question.words.index(values[0])))
        told = f"{'not ' if negated else ''}in {domain} {' or '.join(values)}"
        yield Filter(told=told, holds=_is_in(asked.state, domain, values, negated=negated))


def _is_in(
    state: ClusterState, domain: str, values: tuple[str, ...], *, negated: bool
) -> Callable[[ClusterObject], bool]:
    def holds(each: ClusterObject) -> bool:
        found = state.pods_of(each) if each.kind in WORKLOAD_KINDS else (each,)
        return any(domain_of(state, one, domain).lower() in values for one in found) != negated

    return holds
