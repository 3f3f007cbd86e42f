"""Selects the objects that a question of fact asks for: kind, place, owner, labels, states, images, ages and numbers.

Every condition of the question becomes a filter with a description. A part of the question that cannot become a filter
is reported, so that no number and no list pretends to take it into account.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import children, text, text_map
from holmes.triage.connections import connections, identity
from holmes.triage.filters import (
    WITH_TEMPLATE,
    WORKLOAD_KINDS,
    Filter,
    any_of,
    either,
    filters_of,
    negated_before,
    pod_spec,
    position_of,
)
from holmes.triage.ledger import unread
from holmes.triage.names import is_of
from holmes.triage.users import users_of
from holmes.triage.vocabulary import word_list

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.asked import Asked
    from holmes.values.findings import ObjectRef


_POSSESSIVES: Final = word_list("possessives")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The objects that match. `kinds` were searched. `left_out` contains parts of the question that do not apply."""

    kinds: tuple[str, ...]
    objects: tuple[ClusterObject, ...]
    told: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def select(asked: Asked) -> Selection:
    """Select the objects that the question asks for. The ledger then holds the parts that no filter applied."""
    kinds = _kinds(asked)
    filters = [*filters_of(asked, kinds), *_object_filters(asked, kinds), *_image_filters(asked)]
    excluded = {each.ref for each in asked.subject.excluded}
    if asked.subject.excluded or asked.subject.excluded_namespaces:
        asked.ledger.take("concept", "excluding")
    for space in asked.subject.excluded_namespaces:
        negated_before(asked, position_of(asked, space), most=4)
    excluded |= {ref for each in asked.subject.excluded for ref in identity(asked.state, each)}
    if len(asked.subject.namespaces) > 1:
        asked.ledger.take("concept", "either")
    objects = [
        each
        for kind in kinds
        for each in asked.state.of(kind)
        if (not each.namespace or asked.subject.contains(each))
        and each.ref not in excluded
        and all(one.holds(each) for one in filters)
    ]
    needed = (*kinds, *(each.kind for each in asked.subject.objects if each.kind == "Node"))
    places = asked.subject.namespaces if any(each.namespace for kind in kinds for each in asked.state.of(kind)) else ()
    return Selection(
        kinds=kinds,
        objects=tuple(objects),
        told=tuple(one.told for one in filters),
        left_out=asked.ledger.left(),
        unread=unread(asked.state, needed, places),
    )


def _kinds(asked: Asked) -> tuple[str, ...]:
    """Return the kinds to search. Kinds of named objects describe these objects, not the kind that is asked for."""
    question = asked.question
    named = {kind for each in asked.subject.objects for kind in (each.kind, f"{each.kind}.{each.group}")}
    asked.ledger.take("kind", "Namespace", *named)
    for each in question.found:  # "pods with their nodes": the table has them
        if each.sense == "kind" and each.first and question.words[each.first - 1] in _POSSESSIVES:
            asked.ledger.take("kind", each.name, at=each.first)
    kinds = [kind for kind in question.kinds if kind != "Namespace"]
    wanted = [kind for kind in kinds if kind not in named] or kinds
    keyed = any(word.startswith(("annotat", "anotac", "label", "etiqueta")) for word in question.words)
    if not wanted and (keyed or any(each.sense == "word" for each in question.found)):
        return WORKLOAD_KINDS
    if not wanted and "Namespace" in question.kinds and not asked.subject.namespaces:
        return ("Namespace",)
    asked.ledger.take("kind", *wanted[:1])
    return tuple(wanted[:1]) or ("Pod",)


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
        if not of_pods:
            refs |= {one.ref for one in connections(asked.state, meant).values() if one.hops <= 1}
        one = _one_of(f"{'on' if first.kind == 'Node' and negated else 'of'} {first.ref}", refs, negated=negated)
        group = "owner" if first.kind in (*WORKLOAD_KINDS, "ReplicaSet", "Pod") else first.kind
        (found if negated else alike.setdefault(group, [])).append(one)
    return either(asked, [*found, *map(any_of, alike.values())])


def _one_of(told: str, refs: set[ObjectRef], *, negated: bool) -> Filter:
    return Filter(told=f"{'not ' if negated else ''}{told}", holds=lambda each: (each.ref in refs) != negated)


def _attached(state: ClusterState, each: ClusterObject) -> Iterator[ObjectRef]:
    """Yield the objects that belong to `each`: pods on a node, pods behind a Service, users of a ConfigMap."""
    if each.kind == "Node":
        yield from (pod.ref for pod in state.of("Pod") if pod.text("spec", "nodeName") == each.name)
    elif each.kind == "Service":
        for pod in state.selected("Pod", each.namespace, text_map(each.body, "spec", "selector")):
            yield pod.ref
            yield state.workload_of(pod).ref
    served = each.kind in (*WORKLOAD_KINDS, "Pod", "Service")
    for user in users_of(state, each):
        if not served or user.object.kind not in WITH_TEMPLATE:  # the clients of a workload do not belong to it
            yield user.object.ref
            yield from identity(state, user.object)


def images_of(each: ClusterObject) -> tuple[str, ...]:
    """Return the images of all containers, in order."""
    spec = pod_spec(each)
    containers = (*children(spec, "initContainers"), *children(spec, "containers"))
    return tuple(dict.fromkeys(text(one, "image") for one in containers if text(one, "image")))


def _image_filters(asked: Asked) -> Iterator[Filter]:
    """Yield filters for words that are a part of an image of the cluster."""
    every = [each for kind in (*WORKLOAD_KINDS, "Pod") for each in asked.state.of(kind)]
    wanted = [word for word in (*asked.subject.unknown, *asked.question.quoted) if word]
    if "latest tag" in asked.question.text or "tag latest" in asked.question.text:
        yield Filter(told="tag latest", holds=lambda each: any(map(_is_latest, images_of(each))))
    for word in dict.fromkeys(map(str.lower, wanted)):
        if any(word in image.lower() for each in every for image in images_of(each)):
            asked.ledger.take("word", word)
            yield _image_filter(word)


def _is_latest(image: str) -> bool:
    """Return whether an image has the tag `latest`, or none."""
    name = image.rpartition("/")[2]
    return name.endswith(":latest") or (":" not in name and "@" not in name)


def _image_filter(word: str) -> Filter:
    return Filter(told=f"image with {word}", holds=lambda each: any(word in image.lower() for image in images_of(each)))
