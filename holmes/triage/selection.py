"""Selects the objects that a question of fact asks for: kind, place, owner, labels, states, images, ages and numbers.

Every condition of the question becomes a filter with a description. A part of the question that cannot become a filter
is reported, so that no number and no list pretends to take it into account.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.templates import template_of
from holmes.kubernetes.fields import child, children, text, text_map
from holmes.triage.connections import identity
from holmes.triage.names import is_of, plain_value
from holmes.triage.states import lives, restarts, state_test
from holmes.triage.users import users_of
from holmes.triage.vocabulary import vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.causes import Asked
    from holmes.triage.question import Comparison
    from holmes.values.findings import ObjectRef
    from holmes.values.json_types import JsonObject

WORKLOAD_KINDS: Final = ("Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job")
_WITH_TEMPLATE: Final = frozenset({*WORKLOAD_KINDS, "Pod", "ReplicaSet"})
_HALF_MINUTE: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A condition of the question. `told` describes it, for example `older than 3d`."""

    told: str
    holds: Callable[[ClusterObject], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The objects that match. `kinds` were searched. `left_out` contains parts of the question that do not apply."""

    kinds: tuple[str, ...]
    objects: tuple[ClusterObject, ...]
    told: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def select(asked: Asked) -> Selection:
    """Select the objects that the question asks for."""
    kinds = _kinds(asked)
    filters, left_out = _filters(asked, kinds)
    objects = [
        each
        for kind in kinds
        for each in asked.state.of(kind)
        if (not each.namespace or asked.subject.contains(each)) and all(one.holds(each) for one in filters)
    ]
    spaces = asked.subject.namespaces or ("",)
    unread = tuple(kind for kind in kinds if not all(asked.state.covers(kind, space) for space in spaces))
    return Selection(
        kinds=kinds,
        objects=tuple(objects),
        told=tuple(one.told for one in filters),
        left_out=tuple(left_out),
        unread=unread,
    )


def _kinds(asked: Asked) -> tuple[str, ...]:
    """Return the kinds to search. Kinds of named objects describe these objects, not the kind that is asked for."""
    question = asked.question
    named = {kind for each in asked.subject.objects for kind in (each.kind, f"{each.kind}.{each.group}")}
    kinds = [kind for kind in question.kinds if kind != "Namespace"]
    wanted = [kind for kind in kinds if kind not in named] or kinds
    if not wanted and any(each.sense == "word" for each in question.found):
        return WORKLOAD_KINDS
    if not wanted and "Namespace" in question.kinds and not asked.subject.namespaces:
        return ("Namespace",)
    return tuple(wanted[:1]) or ("Pod",)


def _filters(asked: Asked, kinds: tuple[str, ...]) -> tuple[list[Filter], list[str]]:
    filters: list[Filter] = []
    left_out: list[str] = []
    question = asked.question
    noted = _is_annotation(asked)
    filters += [_label_filter(each.key, each.value, negated=each.negated, annotation=noted) for each in question.labels]
    for name in question.states:
        if name == "running" and _is_located(asked):
            continue
        made = _state_filter(name, kinds, negated=_is_negated(asked, name), comparisons=question.comparisons)
        if made is not None:
            filters.append(made)
        else:
            left_out.append(name.replace("_", " "))
    filters += _key_filters(asked)
    filters += [_replica_filter(bound) for bound in question.comparisons if bound.of.startswith("repl")]
    for what in ("limits", "requests", "probes"):
        if question.lacks(what):
            filters.append(Filter(told=f"without {what}", holds=_lacking(what)))
    if question.older_seconds:
        filters.append(_age_filter(asked.state, question.older_seconds, older=True))
    if question.newer_seconds:
        filters.append(_age_filter(asked.state, question.newer_seconds, older=False))
    elif question.since_seconds and question.asks("age"):
        filters.append(_age_filter(asked.state, question.since_seconds, older=False))
    filters += [_value_filter(value) for value in asked.subject.values]
    filters += _object_filters(asked, kinds)
    words, unapplied = _image_filters(asked)
    return filters + words, [*left_out, *_unapplied(asked, kinds, filters), *unapplied]


def _unapplied(asked: Asked, kinds: tuple[str, ...], filters: Sequence[Filter]) -> Iterator[str]:
    """Yield the parts of the question that no filter takes into account: negations, bounds, times and further kinds."""
    question = asked.question
    states = [each for each in question.found if each.sense == "state"]
    lacks = any(question.lacks(what) for what in ("limits", "requests", "probes", "labels"))
    for each in question.found:
        if each.sense != "concept" or each.name != "negation" or lacks:
            continue
        near = any(-2 <= each.first - state.last <= 2 or 0 <= state.first - each.last <= 2 for state in states)
        if not near and not any(one.told.startswith("without") for one in filters):
            yield " ".join(question.words[each.first : each.first + 3])
    bounds = [each for each in question.comparisons if not any(f"{each.number:g}" in one.told for one in filters)]
    yield from (f"{each.how} {each.number:g} {each.of}".strip() for each in bounds)
    if question.clock:
        yield "the time of day"
    named = {kind for each in asked.subject.objects for kind in (each.kind, f"{each.kind}.{each.group}")}
    further = [kind for kind in question.kinds if kind not in kinds and kind not in named and kind != "Namespace"]
    yield from further


def _is_located(asked: Asked) -> bool:
    """Return whether "running" only means where the objects are, for example "pods running on node-1"."""
    past = any(word in ("ran", "ont", "gelaufen", "han", "corrieron") for word in asked.question.words)
    return past or any(each.kind in ("Node", "ServiceAccount") for each in asked.subject.objects)


def _is_annotation(asked: Asked) -> bool:
    return any(word.startswith(("annotat", "annotation", "anotac")) for word in asked.question.words)


def _label_filter(key: str, value: str, *, negated: bool, annotation: bool) -> Filter:
    noun = "annotation" if annotation else "label"

    def holds(each: ClusterObject) -> bool:
        own = each.annotations if annotation else each.labels
        template = text_map(each.body, "spec", "template", "metadata", "annotations" if annotation else "labels")
        found = key in own or key in template
        matches = found and (not value or value in (own.get(key), template.get(key)))
        return matches != negated

    return Filter(told=f"{noun} {key}{'!=' if negated else '='}{value}" if value else f"{noun} {key}", holds=holds)


def _is_negated(asked: Asked, state: str) -> bool:
    """Return whether a negation is at most two words before or after the state: `do not run`, `laufen nicht`."""
    if state in ("not_ready", "never_restarted", "unbound", "zero"):
        return False
    places = [each for each in asked.question.found if each.sense == "state" and each.name == state]
    negations = [each for each in asked.question.found if each.sense == "concept" and each.name == "negation"]
    return any(
        0 < place.first - each.last <= 2 or 0 < each.first - place.last <= 1 for place in places for each in negations
    )


def _key_filters(asked: Asked) -> Iterator[Filter]:
    """Yield the filters for keys of labels and annotations: "without a backup annotation"."""
    words = asked.question.words
    for index, word in enumerate(words):
        if not word.startswith(("annotation", "anotac", "annotat", "label", "etiqueta")):
            continue
        for near in (*words[max(0, index - 1) : index], *words[index + 1 : index + 2]):
            keys = {key for one in asked.state.of(_kinds(asked)[0]) for key in (*one.labels, *one.annotations)}
            if (
                near in vocabulary().stop
                or not any(near in key for key in keys)
                or any(near in str(t) for t in asked.question.labels)
            ):
                continue
            lacking = any(
                each in words[max(0, index - 4) : index]
                for each in ("without", "no", "ohne", "sin", "sans", "missing", "lack")
            )
            yield _key_filter(near, lacking=lacking)


def _key_filter(part: str, *, lacking: bool) -> Filter:
    def holds(each: ClusterObject) -> bool:
        return any(part in key for key in (*each.labels, *each.annotations)) != lacking

    return Filter(told=f"{'without' if lacking else 'with'} a label or annotation {part}", holds=holds)


def _replica_filter(bound: Comparison) -> Filter:
    return Filter(
        told=f"replicas {bound.how} {bound.number:g}",
        holds=lambda each: bound.holds(each.integer("spec", "replicas")),
    )


def _value_filter(value: str) -> Filter:
    plain = value.strip("#@")
    return Filter(
        told=f"label or annotation {plain}",
        holds=lambda each: any(
            plain_value(one) == plain for one in (*each.labels.values(), *each.annotations.values())
        ),
    )


def _state_filter(
    name: str, kinds: tuple[str, ...], *, negated: bool, comparisons: tuple[Comparison, ...]
) -> Filter | None:
    """Return the filter for a state, or None if the state does not exist for one of the kinds."""
    told = f"{'not ' if negated else ''}{name.replace('_', ' ')}"
    if name == "restarting":
        bound = next(
            (
                each
                for each in comparisons
                if not each.of or each.of.startswith(("rest", "neu", "rein", "red", "times", "mal", "veces", "fois"))
            ),
            None,
        )
        if bound is not None and kinds == ("Pod",):
            return Filter(told=f"restarts {bound.how} {bound.number:g}", holds=lambda each: bound.holds(restarts(each)))
    tests = [state_test(kind, name) for kind in kinds]
    if any(test is None for test in tests):
        return None
    by_kind = dict(zip(kinds, tests, strict=True))

    def holds(each: ClusterObject) -> bool:
        test = by_kind.get(each.kind) or by_kind.get(f"{each.kind}.{each.group}")
        return test is not None and test(each) != negated

    return Filter(told=told, holds=holds)


def pod_spec(each: ClusterObject) -> JsonObject:
    """Return the spec of a pod, or of the pods of a workload."""
    return child(each.body, "spec") if each.kind == "Pod" else template_of(each).spec


def _lacking(what: str) -> Callable[[ClusterObject], bool]:
    def holds(each: ClusterObject) -> bool:
        if each.kind not in _WITH_TEMPLATE or not (each.kind != "Pod" or lives(each)):
            return False
        containers = children(pod_spec(each), "containers")
        if what == "probes":
            return any("readinessProbe" not in one and "livenessProbe" not in one for one in containers)
        return any(not child(one, "resources", what) for one in containers)

    return holds


def _age_filter(state: ClusterState, seconds: float, *, older: bool) -> Filter:
    from holmes.kubernetes.fields import duration

    def holds(each: ClusterObject) -> bool:
        age = state.age_seconds(each)
        return age > seconds if older else age <= seconds + _HALF_MINUTE

    return Filter(told=f"{'older' if older else 'younger'} than {duration(seconds)}", holds=holds)


def _object_filters(asked: Asked, kinds: tuple[str, ...]) -> Iterator[Filter]:
    """Yield the filters for named objects, for example the pods of a workload, on a node or behind a Service."""
    for named in asked.subject.named:
        first = named.objects[0]
        if any(is_of(first, kind) for kind in kinds) and not asked.question.asks("uses"):
            yield _one_of(f"named {named.name}", {each.ref for each in named.objects})
            continue
        refs = {
            ref
            for each in named.objects
            if each.kind == first.kind
            for ref in (*identity(asked.state, each), *_attached(asked.state, each))
        }
        yield _one_of(f"of {first.ref}", refs)


def _one_of(told: str, refs: set[ObjectRef]) -> Filter:
    return Filter(told=told, holds=lambda each: each.ref in refs)


def _attached(state: ClusterState, each: ClusterObject) -> Iterator[ObjectRef]:
    """Yield the objects that belong to `each`: pods on a node, pods behind a Service, users of a ConfigMap."""
    if each.kind == "Node":
        yield from (pod.ref for pod in state.of("Pod") if pod.text("spec", "nodeName") == each.name)
    elif each.kind == "Service":
        for pod in state.selected("Pod", each.namespace, text_map(each.body, "spec", "selector")):
            yield pod.ref
            yield state.workload_of(pod).ref
    for user in users_of(state, each) if each.kind not in (*WORKLOAD_KINDS, "Pod") else ():
        yield user.object.ref
        yield from identity(state, user.object)


def images_of(each: ClusterObject) -> tuple[str, ...]:
    """Return the images of all containers, in order."""
    spec = pod_spec(each)
    containers = (*children(spec, "initContainers"), *children(spec, "containers"))
    return tuple(dict.fromkeys(text(one, "image") for one in containers if text(one, "image")))


def _image_filters(asked: Asked) -> tuple[list[Filter], list[str]]:
    """Return filters for words that are a part of an image of the cluster, and the words that are not."""
    filters: list[Filter] = []
    rest: list[str] = []
    every = [each for kind in (*WORKLOAD_KINDS, "Pod") for each in asked.state.of(kind)]
    wanted = [word for word in (*asked.subject.unknown, *asked.question.quoted) if word]
    for word in dict.fromkeys(map(str.lower, wanted)):
        if any(word in image.lower() for each in every for image in images_of(each)):
            filters.append(_image_filter(word))
        elif word in asked.subject.unknown and word not in vocabulary().stop and not _is_key(asked, word):
            rest.append(word)
    return filters, rest


def _image_filter(word: str) -> Filter:
    return Filter(told=f"image with {word}", holds=lambda each: any(word in image.lower() for image in images_of(each)))


def _is_key(asked: Asked, word: str) -> bool:
    """Return whether a word is a part of the key of a label or an annotation, and the question asks for such keys."""
    asks = any(each.startswith(("annotation", "anotac", "label", "etiqueta")) for each in asked.question.words)
    return asks and any(
        word in key
        for kind in _kinds(asked)
        for each in asked.state.of(kind)
        for key in (*each.labels, *each.annotations)
    )
