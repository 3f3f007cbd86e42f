"""The conditions of a question on objects: labels, states, readiness, bounds on numbers.

Each filter takes its parts of the question from the ledger, so that a part without a filter is left over.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.status import pod_ready
from holmes.diagnosis.facts.templates import template_of
from holmes.kubernetes.fields import child, children, text_map
from holmes.kubernetes.kinds import SCALED
from holmes.triage.asked import refs_of
from holmes.triage.states import crashed, restarts, state_test
from holmes.triage.vocabulary import beginnings, vocabulary, word_list
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.values.json_types import JsonObject

WORKLOAD_KINDS: Final = ("Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job")
WITH_TEMPLATE: Final = frozenset({*WORKLOAD_KINDS, "Pod", "ReplicaSet"})
_PORT: Final = expression(r"\b(?:(?:node|host)?[ -]?(?:port|puerto)|puerto del host|port d'hote) (\d{2,5})\b")
_MEMORY: Final = ("speicherl", "speichera", "memory-", "arbeitsspeicher")
_PROBES: Final = ("readiness", "liveness", "startup")
_UNSERVED: Final = expression(
    r"\b(?:0|no|zero|without(?: any)?|null|keine[nr]?|ohne|cero|ningun\w*|sin|aucune?|zero|sans|n't have any) "
    r"(?:(?:ready|running|healthy|working|available|bereite[nrs]?|laufende[nrs]?)\s(?:replicas?|pods?|endpoints?|backends?"
    r"|replikas?|replikate)|(?:pods?|replicas?|endpoints?|repliques?)\s(?:ready|running|list[oa]s?|prete?s?|bereit)\b)"
)
_NEGATIVE: Final = frozenset({"not_ready", "never_restarted", "unbound"})
_RUN: Final = word_list("present runs")
_PLACES: Final = word_list("running places")
_INCLUDING: Final = word_list("including")
_NUMBERS: Final[Mapping[str, Callable[[ClusterObject], float]]] = {
    "repl": lambda each: each.integer("spec", "replicas"),
    "cont": lambda each: len(children(pod_spec(each), "containers")),
}
"""The numbers that bounds limit, by the beginning of the word after the number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A condition of the question. `told` describes it, for example `older than 3d`.

    If it is not `sure`, it is a guess what the question means, or what belongs together, and no proof that none exists.
    """

    told: str
    holds: Callable[[ClusterObject], bool]
    sure: bool = True


def filters_of(asked: Asked, kinds: tuple[str, ...]) -> list[Filter]:
    """Return the conditions on objects of `kinds`, except those on names, keys and images."""
    unserved = tuple(_unserved_filters(asked, kinds))
    return [
        *(unserved or _state_filters(asked, kinds)),
        *_verb_filters(asked, kinds),
        *_health_filters(asked, kinds),
        *_bound_filters(asked, kinds),
        *_lacking_filters(asked),
        *_port_filters(asked),
    ]


def _unserved_filters(asked: Asked, kinds: tuple[str, ...]) -> Iterator[Filter]:
    """Yield the filter for objects none of whose pods is ready: "Deployments with 0 ready replicas"."""
    match = _UNSERVED.search(asked.question.text)
    if match is None or not set(kinds) <= {*SCALED, "DaemonSet", "Service"}:
        return
    words = (*match[0].split(), *(str(each) for each in asked.question.comparisons if not each.number))
    for sense in ("bound", "word", "symptom", "aside"):
        asked.ledger.take(sense, *words)
    asked.ledger.take("concept", "negation", "health", "trouble")
    asked.ledger.take("state", "ready", "not_ready", "running", "zero")
    asked.ledger.take("kind", "Pod", "EndpointSlice")
    without = _without_endpoints(asked)
    yield Filter(
        told="no pod is ready",
        holds=lambda each: (
            without(each)
            if each.kind == "Service"
            else not each.integer("status", "readyReplicas") and not each.integer("status", "numberReady")
        ),
    )


def negated_before(asked: Asked, index: int, most: int = 3) -> bool:
    """Return whether a negation is at most `most` words before a word, and use it."""
    for each in asked.question.found:
        if each.sense == "concept" and each.name == "negation" and 0 < index - each.last <= most:
            asked.ledger.take("concept", "negation", at=each.first)
            return True
    return False


def position_of(asked: Asked, word: str) -> int:
    """Return the position of a word in the question, or -1."""
    return asked.question.words.index(word) if word in asked.question.words else -1


def either(asked: Asked, filters: list[Filter]) -> list[Filter]:
    """Return one filter for "a or b", or the filters."""
    if len(filters) < 2 or not asked.question.asks("either"):
        return filters
    asked.ledger.take("concept", "either")
    return [any_of(filters)]


def any_of(filters: Sequence[Filter]) -> Filter:
    """Return the filter that holds if one of `filters` does."""
    told = " or ".join(each.told for each in filters)
    sure = all(one.sure for one in filters)
    return Filter(told=told, holds=lambda each: any(one.holds(each) for one in filters), sure=sure)


def _state_filters(asked: Asked, kinds: tuple[str, ...]) -> list[Filter]:
    found = []
    for name in asked.question.states:
        if name == "running" and _is_located(asked, kinds):
            asked.ledger.take("state", name)
            continue
        if _is_included(asked, name):
            asked.ledger.take("state", name)
            continue
        made = _state_filter(asked, "failed" if name == "failing" and _means_phase(asked, kinds) else name, kinds)
        if made is not None:
            asked.ledger.take("state", name)
            asked.ledger.take("concept", "trouble", "health")
            found.append(made)
    return either(asked, found)


def _means_phase(asked: Asked, kinds: tuple[str, ...]) -> bool:
    """Return whether "failed pods" are counted or listed: those of the phase Failed, not all that are not ready."""
    words, nouns = asked.question.words, {each.first for each in asked.question.found if each.sense == "kind"}
    places = (each for each in asked.question.found if each.name == "failing" and words[each.first] == "failed")
    return kinds == ("Pod",) and any(each.last + 1 in nouns for each in places)


def _verb_filters(asked: Asked, kinds: tuple[str, ...]) -> Iterator[Filter]:
    """Yield the filter for "pods that run on node-1": a pod that has finished does not run there."""
    words = asked.question.words
    runs = any(word in _RUN and (following in _PLACES or not following) for word, following in pairwise((*words, "")))
    if runs and kinds == ("Pod",) and "running" not in asked.question.states and not asked.question.includes:
        yield _state_test_filter("running", kinds, negated=False)


_HEALTH: Final = (("trouble", ("failing", "not_ready")), ("health", ("ready", "running")))


def _health_filters(asked: Asked, kinds: tuple[str, ...]) -> Iterator[Filter]:
    """Yield the filters for words such as "broken" and "healthy", by the readiness of the objects."""
    for concept, states in _HEALTH:
        places = [each for each in asked.question.found if each.sense == "concept" and each.name == concept]
        if not places or not asked.ledger.left_concepts((concept,)):
            continue
        name = next((state for state in states if all(state_test(kind, state) for kind in kinds)), "")
        if name:
            negated = negated_before(asked, places[0].first, most=2)
            asked.ledger.take("concept", concept)
            yield _state_test_filter(name, kinds, negated=negated)
        elif asked.question.asks("list", "count") and not asked.question.states:
            asked.ledger.take("concept", concept)
            yield _incident_filter(asked, healthy=concept == "health")


def _incident_filter(asked: Asked, *, healthy: bool) -> Filter:
    """Return the filter for objects without a state of their own, for example Services: they are in an incident."""
    found = {ref for each in asked.report.incidents if each.severity != "info" for ref in refs_of(each)}
    told = "in no incident" if healthy else "in an incident"
    return Filter(told=told, holds=lambda each: (each.ref in found) != healthy)


def _lacking_filters(asked: Asked) -> Iterator[Filter]:
    for told, holds in lacking_containers(asked):
        yield Filter(told=told, holds=_with_container(holds))
    if asked.question.lacks("endpoints"):
        _take_lacking(asked, "endpoints")
        asked.ledger.take("kind", "EndpointSlice")
        asked.ledger.take("state", "ready", "running")
        yield Filter(told="without endpoints", holds=_without_endpoints(asked))


def lacking_containers(asked: Asked) -> tuple[tuple[str, Callable[[JsonObject], bool]], ...]:
    """Return what containers must lack, each with its test of the spec of a container: "without cpu limits"."""
    found = []
    words = asked.question.words
    for what in ("limits", "requests", "probes"):
        if asked.question.lacks(what):
            _take_lacking(asked, what)
            memory = any(word in word_list("memory") or word.startswith(_MEMORY) for word in words)
            part = "cpu" if any(word.startswith("cpu") for word in words) else "memory" if memory else ""
            if what == "probes":
                part = next((each for each in _PROBES if any(word.startswith(each) for word in words)), "")
            found.append((f"without {part} {what}" if part else f"without {what}", _lacking(what, part)))
    return tuple(found)


def _take_lacking(asked: Asked, what: str) -> None:
    asked.ledger.take("concept", "negation", "resources", "settings")
    asked.ledger.take("symptom", *vocabulary().absences[what])
    asked.ledger.take("word", *vocabulary().absences[what])


def _port_filters(asked: Asked) -> Iterator[Filter]:
    """Yield the filter for "port 8080": of a Service, or of a container."""
    for match in _PORT.finditer(asked.question.text):
        asked.ledger.take("bound", match[1])
        yield Filter(told=match[0], holds=lambda each, port=match[1]: port in _ports(each))  # type: ignore[misc]


def _ports(each: ClusterObject) -> set[str]:
    if each.kind == "Service":
        return {
            str(one.get(key)) for one in each.children("spec", "ports") for key in ("port", "targetPort", "nodePort")
        }
    containers = children(pod_spec(each), "containers") if each.kind in WITH_TEMPLATE else ()
    ports = (one for container in containers for one in children(container, "ports"))
    return {str(one.get(key)) for one in ports for key in ("containerPort", "hostPort")}


def _without_endpoints(asked: Asked) -> Callable[[ClusterObject], bool]:
    def holds(each: ClusterObject) -> bool:
        selector = text_map(each.body, "spec", "selector")
        if each.kind != "Service" or not selector:  # its endpoints have another source, or it is only a name
            return False
        return not any(pod_ready(pod) for pod in asked.state.selected("Pod", each.namespace, selector))

    return holds


def _bound_filters(asked: Asked, kinds: tuple[str, ...]) -> Iterator[Filter]:
    """Yield the filters for bounds on numbers of replicas and containers. Bounds on restarts belong to a state."""
    for bound in asked.question.comparisons:
        if beginnings("restarted").match(bound.of) and kinds == ("Pod",) and "restarting" not in asked.question.states:
            asked.ledger.take("bound", str(bound))
            asked.ledger.take("symptom")
            yield Filter(
                told=f"restarts {bound.how} {bound.number:g}",
                holds=lambda each, bound=bound: bound.holds(restarts(each)),  # type: ignore[misc]
            )
        value = _NUMBERS.get(next((name for name in _NUMBERS if bound.of.startswith(name)), ""))
        if value is not None and (bound.of.startswith("cont") or not {"Pod", "Service"} & set(kinds)):
            asked.ledger.take("bound", str(bound))
            yield Filter(
                told=f"{bound.of} {bound.how} {bound.number:g}",
                holds=lambda each, bound=bound, value=value: bound.holds(value(each)),  # type: ignore[misc]
            )


def _is_located(asked: Asked, kinds: tuple[str, ...]) -> bool:
    """Return whether "running" only means where the objects are: "pods running on node-1", but not "running pods"."""
    question = asked.question
    nouns = {each.first for each in question.found if each.sense == "kind" and each.name in kinds}
    if any(each.name == "running" and each.last + 1 in nouns for each in question.found):
        return False
    if any(each.name == "running" and _leads_to_node(asked, each.last) for each in question.found):
        return True
    past = any(word in ("ran", "ont", "gelaufen", "han", "corrieron") for word in asked.question.words)
    return past or any(each.kind == "ServiceAccount" for each in asked.subject.objects)


def _leads_to_node(asked: Asked, at: int) -> bool:
    """Return whether a negation or a preposition and then a node follow: "pods that do not run on node-1"."""
    after = asked.question.words[at + 1 : at + 4]
    nodes = {each.name for each in (*asked.subject.objects, *asked.subject.excluded) if each.kind == "Node"}
    negated = any(each.name == "negation" and abs(at - each.last) <= 2 for each in asked.question.found)
    return negated and not nodes.isdisjoint(after)


def _state_filter(asked: Asked, name: str, kinds: tuple[str, ...]) -> Filter | None:
    """Return the filter for a state, or None if the state does not exist for one of the kinds."""
    bounds = (
        each for each in asked.question.comparisons if not each.of or beginnings("counted restarts").match(each.of)
    )
    bound = next(bounds, None) if name == "restarting" and kinds == ("Pod",) else None
    if bound is not None:
        asked.ledger.take("bound", str(bound))
        return Filter(told=f"restarts {bound.how} {bound.number:g}", holds=lambda each: bound.holds(restarts(each)))
    if name == "crashing" and kinds == ("Pod",) and (asked.question.period or _says_crashed(asked)):
        return Filter(told="ended with an error", holds=crashed)
    if any(state_test(kind, name) is None for kind in kinds):
        return None
    return _state_test_filter(name, kinds, negated=name not in _NEGATIVE and _is_negated(asked, name))


def _says_crashed(asked: Asked) -> bool:
    """Return whether the question is about crashes that happened, also of containers that run again."""
    return any(beginnings("crashed").match(word) for word in asked.question.words)


def _is_included(asked: Asked, name: str) -> bool:
    """Return whether a state only says what else counts: "all pods, finished ones included"."""
    words = asked.question.words
    including = _INCLUDING - {"plus"} if asked.question.comparisons else _INCLUDING  # "plus de 8 fois"
    return any(
        place.sense == "state" and place.name == name
        and not including.isdisjoint(words[max(0, place.first - 2) : place.last + 3])
        for place in asked.question.found
    )  # fmt: skip


def _is_negated(asked: Asked, name: str) -> bool:
    """Return whether a negation is directly before or after a state, and use it: `do not run`, `laufen nicht`."""
    for place in asked.question.found:
        if place.sense == "state" and place.name == name:
            if negated_before(asked, place.first, most=2):
                return True
            for each in asked.question.found:
                if each.name == "negation" and each.first - place.last == 1:
                    asked.ledger.take("concept", "negation", at=each.first)
                    return True
    return False


def _state_test_filter(name: str, kinds: tuple[str, ...], *, negated: bool) -> Filter:
    by_kind = {kind: state_test(kind, name) for kind in kinds}

    def holds(each: ClusterObject) -> bool:
        test = by_kind.get(each.kind) or by_kind.get(f"{each.kind}.{each.group}")
        return test is not None and test(each) != negated

    return Filter(told=f"{'not ' if negated else ''}{name.replace('_', ' ')}", holds=holds)


def pod_spec(each: ClusterObject) -> JsonObject:
    """Return the spec of a pod, or of the pods of a workload."""
    return child(each.body, "spec") if each.kind == "Pod" else template_of(each).spec


def _lacking(what: str, part: str) -> Callable[[JsonObject], bool]:
    def holds(container: JsonObject) -> bool:
        if what == "probes":
            return ({f"{part}Probe"} if part else {"readinessProbe", "livenessProbe"}).isdisjoint(container)
        amounts = child(container, "resources", what)
        return part not in amounts if part else not amounts

    return holds


def _with_container(holds: Callable[[JsonObject], bool]) -> Callable[[ClusterObject], bool]:
    """Return the test whether an object has a container with a test."""
    return lambda each: each.kind in WITH_TEMPLATE and any(map(holds, children(pod_spec(each), "containers")))
