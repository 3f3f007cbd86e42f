"""Selects the objects that a question of fact asks for: kind, place, owner, labels, states, images, ages and numbers.

Every condition of the question becomes a filter with a description. A part of the question that cannot become a filter
is reported, so that no number and no list pretends to take it into account.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.custom_links import made_by
from holmes.diagnosis.facts.templates import serving_workloads
from holmes.kubernetes.fields import text_map
from holmes.triage.certainty import guesses, is_traced
from holmes.triage.connections import connections, identity
from holmes.triage.field_filters import field_filters, name_filters, use_filters, value_filters
from holmes.triage.filters import (
    WITH_TEMPLATE,
    WORKLOAD_KINDS,
    Filter,
    any_of,
    either,
    filters_of,
    negated_before,
    position_of,
)
from holmes.triage.image_filters import image_filters
from holmes.triage.key_filters import is_keyed, key_filters
from holmes.triage.ledger import unread
from holmes.triage.names import is_of, plain_value
from holmes.triage.relations import relation_filters
from holmes.triage.time_filters import time_filters
from holmes.triage.topology import domain_filters
from holmes.triage.users import claims_of, ingresses_to, users_of
from holmes.triage.version_filters import version_filters
from holmes.triage.vocabulary import word_list

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.values.findings import ObjectRef


_POSSESSIVES: Final = word_list("possessives")
_REACHABLE: Final = word_list("reachable")
_HAVING: Final = word_list("having")
_CONJUNCTIONS: Final = word_list("conjunctions")
_WITH_CLIENTS: Final = frozenset({*WORKLOAD_KINDS, "ReplicaSet", "Pod", "Service", "Node"})
"""Kinds that need workloads which do not belong to them."""
_OF_PODS: Final = frozenset({"Node", "PersistentVolumeClaim"})
_MOST_STEPS: Final = 3
"""The steps from an Ingress over its Secret and its Certificate to the issuer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The objects that match. `kinds` were searched. `left_out` contains parts of the question that do not apply.

    `guessed` contains the conditions without which something would match, if nothing does and they are guesses.
    """

    kinds: tuple[str, ...]
    objects: tuple[ClusterObject, ...]
    told: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    guessed: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def select(asked: Asked) -> Selection:
    """Select the objects that the question asks for. The ledger then holds the parts that no filter applied."""
    kinds = _kinds(asked)
    filters = [
        *domain_filters(asked, kinds),
        *key_filters(asked, kinds),
        *filters_of(asked, kinds),
        *time_filters(asked, kinds),
        *version_filters(asked, kinds),
        *_object_filters(asked, kinds),
        *image_filters(asked),
    ]
    filters += [
        *name_filters(asked, kinds),
        *value_filters(asked, kinds),
        *field_filters(asked, kinds),
        *use_filters(asked, kinds),
        *relation_filters(asked, kinds),
    ]
    if kinds == ("Ingress",):  # that is what they are for
        asked.ledger.take("symptom", *_REACHABLE)
    excluded = {each.ref for each in asked.subject.excluded}
    if asked.subject.excluded or asked.subject.excluded_namespaces:
        asked.ledger.take("concept", "excluding")
    for space in asked.subject.excluded_namespaces:
        negated_before(asked, position_of(asked, space), most=4)
    excluded |= {ref for each in asked.subject.excluded for ref in identity(asked.state, each)}
    nodes = {each.name for each in asked.subject.excluded if each.kind == "Node"}  # "but not on node-1"
    excluded |= {pod.ref for pod in asked.state.of("Pod") if nodes and pod.text("spec", "nodeName") in nodes}
    if len(asked.subject.namespaces) > 1:
        asked.ledger.take("concept", "either")
    inside = [
        each for kind in kinds for each in asked.state.of(kind) if _is_inside(asked, each) and each.ref not in excluded
    ]
    objects = [each for each in inside if all(one.holds(each) for one in filters)]
    needed = (*kinds, *(each.kind for each in asked.subject.objects if each.kind == "Node"))
    places = asked.subject.namespaces if any(each.namespace for kind in kinds for each in asked.state.of(kind)) else ()
    return Selection(
        kinds=kinds,
        objects=tuple(objects),
        told=tuple(one.told for one in filters),
        left_out=asked.ledger.left(),
        guessed=guesses(inside, filters) if not objects else (),
        unread=unread(asked.state, needed, places),
    )


def _is_inside(asked: Asked, each: ClusterObject) -> bool:
    """Return whether an object is in the namespaces of the question. Most objects without a namespace are."""
    if each.kind == "Namespace":
        return each.name not in asked.subject.excluded_namespaces
    return not each.namespace or asked.subject.contains(each)


def _kinds(asked: Asked) -> tuple[str, ...]:
    """Return the kinds to search. Kinds of named objects describe these objects, not the kind that is asked for."""
    question = asked.question
    named = {kind for each in asked.subject.objects for kind in (each.kind, f"{each.kind}.{each.group}")}
    asked.ledger.take("kind", "Namespace", *named)
    for each in question.found:  # "pods with their nodes": the table has them
        if each.sense == "kind" and each.first and question.words[each.first - 1] in _POSSESSIVES:
            asked.ledger.take("kind", each.name, at=each.first)
    if not asked.subject.namespaces and _asks_for_namespaces(question):
        return ("Namespace",)
    kinds = [kind for kind in question.kinds if kind != "Namespace"]
    wanted = [kind for kind in kinds if kind not in named] or kinds
    keyed = is_keyed(question)
    if not wanted and any(each.sense == "word" and each.name == "containers" for each in question.found):
        return ("Pod",)
    if (not wanted and (keyed or any(each.sense == "word" for each in question.found))) or _asks_for_workloads(
        question, wanted
    ):
        return WORKLOAD_KINDS
    pods = asked.state.of("Pod")
    if not wanted and asked.subject.values and not any(_has_values(asked, each) for each in pods):
        return WORKLOAD_KINDS
    if not wanted and "Namespace" in question.kinds and not asked.subject.namespaces:
        return ("Namespace",)
    counted = _joined(question, wanted)
    asked.ledger.take("kind", *counted)
    return counted or ("Pod",)


def _has_values(asked: Asked, each: ClusterObject) -> bool:
    known = {plain_value(value) for value in (*each.labels.values(), *each.annotations.values())}
    return known.issuperset(map(plain_value, asked.subject.values))


def _asks_for_namespaces(question: Question) -> bool:
    """Return whether namespaces are what is asked for: "which namespaces have no quota"."""
    first = next((each for each in question.found if each.sense == "kind"), None)
    asking = {each.last for each in question.found if each.sense == "concept" and each.name in ("list", "count")}
    return first is not None and first.name == "Namespace" and (first.first == 0 or first.first - 1 in asking)


def _asks_for_workloads(question: Question, wanted: list[str]) -> bool:
    """Return whether workloads are asked for by what they have or lack: "which workloads have no PDB"."""
    word = next((each for each in question.found if each.sense == "word" and each.name == "workloads"), None)
    first = next((each for each in question.found if each.sense == "kind" and each.name in wanted), None)
    if word is None or first is None or first.name in (*WORKLOAD_KINDS, "Pod") or word.last > first.first:
        return False
    return not _HAVING.isdisjoint(question.words[word.last + 1 : first.first])


def _joined(question: Question, wanted: list[str]) -> tuple[str, ...]:
    """Return the first kind, and the kinds that are listed with it: "deployments and statefulsets"."""
    places = [each for each in question.found if each.sense == "kind" and each.name in wanted]
    joined = places[:1]
    if len(places) > 1 and places[0].last + 1 == places[1].first and places[1].first not in question.breaks:
        return (places[1].name,)  # "daemonset pods": the first kind narrows the second one
    for each in places[1:]:
        between = question.words[joined[-1].last + 1 : each.first]
        if each.name == joined[0].name or not all(word in _CONJUNCTIONS for word in between):
            break
        joined.append(each)
    return tuple(dict.fromkeys(each.name for each in joined))


def _object_filters(asked: Asked, kinds: tuple[str, ...]) -> list[Filter]:
    """Return the filters for named objects, for example the pods of a workload, on a node or behind a Service."""
    found: list[Filter] = []
    alike: dict[str, list[Filter]] = {}  # an object has one name, one owner and one node, so several are alternatives
    for named in asked.subject.named:
        first = named.objects[0]
        negated = negated_before(asked, position_of(asked, named.name))
        if any(is_of(first, kind) for kind in kinds) and not asked.question.asks("uses"):
            one = _one_of(f"named {named.name}", {each.ref for each in named.objects}, negated=negated)
            (found if negated else alike.setdefault("name", [])).append(one)
            continue
        of_pods = any(kind in WITH_TEMPLATE for kind in kinds)
        meant = [each for each in named.objects if each.kind == first.kind or not of_pods]
        refs = {ref for each in meant for ref in (*identity(asked.state, each), *_attached(asked.state, each))}
        if not of_pods or not (first.group or first.kind in _WITH_CLIENTS):
            refs |= {one.ref for one in connections(asked.state, meant).values() if one.hops <= 1}
        if first.group:
            refs |= set(_coming_from(asked.state, meant, kinds))
        names = " and ".join(str(each.ref) for each in meant if each.kind == first.kind)
        told = f"{'on' if first.kind == 'Node' and negated else 'of'} {names}"
        one = replace(_one_of(told, refs, negated=negated), sure=is_traced(first.kind, kinds))
        group = "owner" if first.kind in (*WORKLOAD_KINDS, "ReplicaSet", "Pod") else first.kind
        (found if negated else alike.setdefault(group, [])).append(one)
    if any(len(each) > 1 for each in alike.values()):
        asked.ledger.take("concept", "either")
    return either(asked, [*found, *map(any_of, alike.values())])


def _coming_from(state: ClusterState, sources: Sequence[ClusterObject], kinds: Sequence[str]) -> Iterator[ObjectRef]:
    """Yield the pods that custom resources own, and the objects that need them: Secret, ExternalSecret, its store.

    Pods and workloads that need their Secret only use them.
    """
    own = {each.ref for each in sources}
    for each in sources:
        made = (state.find(ref) for ref in (*made_by(state, each), *(one.ref for one in state.owned_by(each))))
        parts = [ref for one in made if one is not None for ref in identity(state, one)]
        yield from parts
        pods = (pod for ref in parts if ref.kind == "Pod" and (pod := state.find(ref)) is not None)
        for pod in pods:
            yield from (service.ref for service in state.services_of(pod))
            yield from (one.ref for one in connections(state, (pod,), most_hops=1).values() if one.ref.kind in _OF_PODS)
    for each in (each for kind in kinds if kind not in WITH_TEMPLATE for each in state.of(kind)):
        for one in connections(state, (each,), most_hops=_MOST_STEPS).values():
            if one.ref in own and not any(ref.kind in _WITH_CLIENTS for ref in one.path):
                yield each.ref


def _one_of(told: str, refs: set[ObjectRef], *, negated: bool) -> Filter:
    return Filter(told=f"{'not ' if negated else ''}{told}", holds=lambda each: (each.ref in refs) != negated)


def _attached(state: ClusterState, each: ClusterObject) -> Iterator[ObjectRef]:
    """Yield the objects that belong to `each`: pods on a node, pods behind a Service, users of a ConfigMap."""
    if each.kind == "Node":
        for pod in state.of("Pod"):
            yield from identity(state, pod) if pod.text("spec", "nodeName") == each.name else ()
    elif each.kind == "Service":
        for pod in state.selected("Pod", each.namespace, text_map(each.body, "spec", "selector")):
            yield pod.ref
        yield from (workload.ref for workload in serving_workloads(state, each))
    if each.kind == "PersistentVolumeClaim":  # other pods of its workload have other claims
        users = [user for user in users_of(state, each) if user.object.kind in WITH_TEMPLATE]
        pods = [pod for user in users for pod in state.pods_of(user.object) if each.name in claims_of(pod)]
        yield from (ref for pod in pods for ref in identity(state, pod))
        if pods:
            return
    served = each.kind in (*WORKLOAD_KINDS, "Pod", "Service")
    yield from (ingress.ref for ingress in ingresses_to(state, each))
    for user in users_of(state, each):
        if not served or user.object.kind not in WITH_TEMPLATE:  # the clients of a workload do not belong to it
            yield user.object.ref
            yield from identity(state, user.object)
