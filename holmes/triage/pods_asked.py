"""The objects that a question about numbers is about: those of its names, on its nodes, and with its conditions.

A condition that cannot be applied stays in the ledger, so that the answer gives no number.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import child, children
from holmes.triage.certainty import is_traced, unsettled
from holmes.triage.connections import identity
from holmes.triage.facts import not_answered
from holmes.triage.filters import WORKLOAD_KINDS, Filter, filters_of, negated_before, pod_spec, position_of
from holmes.triage.key_filters import key_filters
from holmes.triage.log_troubles import workloads_of
from holmes.triage.markdown import counted
from holmes.triage.names import plain_value
from holmes.triage.relations import content_of
from holmes.triage.time_filters import time_filters
from holmes.triage.vocabulary import beginnings, word_list
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.ledger import PartSense
    from holmes.triage.subjects import Named
    from holmes.values.first_look import FirstLook

_OWNERS: Final = frozenset({*WORKLOAD_KINDS, "ReplicaSet", "Pod"})
_NARROWING: Final[tuple[PartSense, ...]] = ("value", "state", "bound")
_AMOUNTS: Final = ("left over", "share words", "request words", "limit words", "in total", "the most", "the least",
    "highest", "storage words", "consuming", "near a limit")  # fmt: skip
_POINTING: Final = frozenset({"these", "those", "diese", "dieser", "diesen", "estos", "estas", "esos", "ces"})
_NAME: Final = r"[`'\"]?([a-z0-9][\w.-]*)[`'\"]?"
_WITH_NAME: Final = (
    expression(rf"\b(?:containers?|contenedor|conteneur) (?:called |named |namens |llamado |nomme )?{_NAME}"),
    expression(rf"(?<![\w.-]){_NAME} (?:container|contenedor|conteneur)\b"),
)


def pods_named(asked: Asked) -> tuple[ClusterObject, ...]:
    """Return the pods of the named objects or in the scope. Nodes narrow them, and exclusions leave pods out."""
    on = {each.name for each in asked.subject.objects if each.kind == "Node"}
    owners = [each for each in asked.subject.named if each.objects[0].kind != "Node"]
    every: Iterable[ClusterObject] = asked.state.of("Pod")
    if owners:
        every = dict.fromkeys(pod for named in owners for pod in _pods_of(asked, named))
    without = {ref for each in asked.subject.excluded for ref in identity(asked.state, each)}
    off = {each.name for each in asked.subject.excluded if each.kind == "Node"}
    return tuple(
        pod
        for pod in every
        if asked.subject.contains(pod)
        and (not on or pod.text("spec", "nodeName") in on)
        and pod.ref not in without
        and pod.text("spec", "nodeName") not in off
    )


def with_label(asked: Asked) -> Asked:
    """Return the question without the objects that have a value as another label: "team green", not `colour=green`."""
    named, words = asked.subject.named, asked.question.words
    if len(named) < 2 or any(each.name in words for each in named):
        return asked
    objects = asked.subject.objects
    for before, word in pairwise(words):
        key = label_key(objects, before)
        kept = tuple(each for each in named if key and each.objects[0].labels.get(key, "").lower() == word)
        if kept:
            return replace(asked, subject=replace(asked.subject, named=kept))
    return asked


def take_exclusions(asked: Asked) -> None:
    """Take the words that leave objects out: `pods_named` and `without_excluded` apply them."""
    if asked.subject.excluded or asked.subject.excluded_namespaces:
        asked.ledger.take("concept", "excluding", "negation")


def without_excluded(asked: Asked, every: Iterable[ClusterObject]) -> tuple[ClusterObject, ...]:
    """Return the objects except those that the question leaves out: "of all pods except index"."""
    take_exclusions(asked)
    excluded = {ref for each in asked.subject.excluded for ref in identity(asked.state, each)}
    return tuple(each for each in every if each.ref not in excluded)


def _pods_of(asked: Asked, named: Named) -> Iterator[ClusterObject]:
    """Yield the pods of the workloads that a name means. Without workloads, yield those that use the other objects."""
    owners = [each for each in named.objects if each.kind in _OWNERS]
    for each in owners or named.objects:
        pods = asked.state.pods_of(each) if owners else content_of(asked.state, each, "Pod")
        behind = workloads_of(asked.state, (each,)) if pods is None else ()  # of an Ingress or a custom resource
        yield from pods or (pod for one in behind for pod in asked.state.pods_of(one))


def workloads_named(asked: Asked) -> tuple[ClusterObject, ...]:
    """Return the named workloads and pods, or those that serve the other named objects."""
    own = tuple(each for each in asked.subject.objects if each.kind in _OWNERS)
    behind = () if own else workloads_of(asked.state, asked.subject.objects)
    return own or tuple(dict.fromkeys(pod for each in behind for pod in _or_pods(asked, each)))


def _or_pods(asked: Asked, each: ClusterObject) -> tuple[ClusterObject, ...]:
    return asked.state.pods_of(each) if each.group else (each,)


def runs_nothing(asked: Asked, what: str) -> FirstLook | None:
    """Return that `what` cannot be determined, if no pod of the named objects is known, and they need not have any."""
    objects = [each for each in asked.subject.objects if each.kind != "Node"]
    if not objects or any(is_traced(each.kind, ("Pod",)) for each in objects) or pods_named(asked):
        return None
    return unsettled(asked, what, (f"of {objects[0].ref}",))


def filtered(
    asked: Asked, found: Sequence[ClusterObject], kinds: tuple[str, ...]
) -> tuple[tuple[ClusterObject, ...], str]:
    """Return the objects that meet the conditions of the question, and the conditions in brackets."""
    keyed, others = _key_conditions(asked, found, kinds), [*filters_of(asked, kinds), *time_filters(asked, kinds)]
    by_key = [each for each in found if all(one.holds(each) for one in keyed)]
    if keyed and not by_key:  # only the workloads have the label
        owners = {each.ref: asked.state.workload_of(each) for each in found}
        by_key = [each for each in found if all(one.holds(owners[each.ref]) for one in keyed)]
    told = "; ".join(one.told for one in (*keyed, *others))
    return tuple(each for each in by_key if all(one.holds(each) for one in others)), f" ({told})" if told else ""


def _key_conditions(asked: Asked, found: Sequence[ClusterObject], kinds: tuple[str, ...]) -> list[Filter]:
    """Return the conditions on labels. In "team blue", the value is that of the label `team`, and of no other."""
    words, bound, free = asked.question.words, list[Filter](), list[str]()
    for value in asked.subject.values:
        at = position_of(asked, value)
        key = label_key(found, words[at - 1]) if at > 0 else ""
        if not key:
            free.append(value)
            continue
        negated = negated_before(asked, at, most=4)
        asked.ledger.take("value", value)
        for sense in ("word", "aside", "symptom"):
            asked.ledger.take(sense, words[at - 1])
        bound.append(_has_label(key, value, negated=negated))
    rest = replace(asked, subject=replace(asked.subject, values=tuple(free)))
    return [*bound, *key_filters(rest, kinds)]


def _has_label(key: str, value: str, *, negated: bool) -> Filter:
    plain = plain_value(value)
    return Filter(
        told=f"label {key}{'!=' if negated else '='}{value}",
        holds=lambda each: (plain_value(each.labels.get(key, "")) == plain) != negated,
    )


def label_key(found: Iterable[ClusterObject], word: str) -> str:
    """Return the key of the label that a word means: the whole key, or the only one that ends with it."""
    keys = {key for each in found for key in each.labels}
    if word in keys:
        return word
    ending = [key for key in keys if key.rpartition("/")[2].lower() == word]
    return ending[0] if len(ending) == 1 else ""


_LEADING: Final = word_list("interrogatives") | {"per", "by", "each", "every", "pro", "je", "por", "par", "jedes",
    "jeder", "jede", "jedem", "cada", "chaque"}  # fmt: skip

_FOLLOWING: Final = frozenset({"with", "mit", "con", "avec", "having"})
_BEFORE: Final = word_list("determiners") | {"show", "name", "list", "give", "me", "find"}


def asked_key(asked: Asked, found: Iterable[ClusterObject], end: int | None = None) -> str:
    """Return the key of the label whose values are asked for: "which team requests the most", "for each team"."""
    words = asked.question.words
    known = {at for each in asked.question.found if each.sense != "concept" or each.name in ("resources", "usage")
             for at in range(each.first, each.last + 1)}  # fmt: skip
    objects = tuple(found)
    for at, word in enumerate(words[:end]):
        leads = at and words[at - 1] in _LEADING
        leads = leads or (at + 1 < len(words) and words[at + 1] in _FOLLOWING and not {*words[:at]} - _BEFORE)
        if leads and at not in known:
            key = label_key(objects, word)
            if key:
                asked.ledger.take("word", word)
                return key
    return ""


def container_named(asked: Asked, names: Iterable[str]) -> str:
    """Return the container that the question names: "the container proxy of web", or a name that is only a container's.

    A name that a workload has, too, means all of its containers.
    """
    known = set(names)
    for match in (each for pattern in _WITH_NAME for each in pattern.finditer(asked.question.text)):
        name = match[1]
        if name in known:
            for sense in ("word", "aside", "symptom"):
                asked.ledger.take(sense, name)
            return str(name)
    for named in asked.subject.named:
        if named.name in known and all(named.name != each.name for each in named.objects):
            return named.name
    return ""


def counted_pods(pods: Iterable[ClusterObject]) -> str:
    """Return the number of pods. It calls them running only if all of them do."""
    found = dict.fromkeys(pods)
    runs = all(pod.text("status", "phase") == "Running" for pod in found)
    return counted(len(found), "running pod" if runs else "pod")


def lacks_amount(each: ClusterObject, measure: str, resource: str) -> bool:
    """Return whether a container of an object sets no such request or limit."""
    return any(resource not in child(one, "resources", measure) for one in children(pod_spec(each), "containers"))


def not_applied(asked: Asked) -> FirstLook | None:
    """Return the answer without a number if a condition of the question is left over, or None."""
    _take_words(asked)
    _take_told_states(asked)
    pointed = () if asked.subject.named else tuple(word for word in asked.question.words if word in _POINTING)
    left = (*pointed[:1], *asked.ledger.left(*_NARROWING), *_narrowing_words(asked), *_unread_names(asked))
    return not_answered(asked, left) if left else None


def _take_told_states(asked: Asked) -> None:
    """Take the states that another clause only tells of a named object: "web was OOM killed, what is its limit"."""
    question = asked.question
    amounts = [each.first for each in question.found if each.name in ("resources", "usage")]
    for each in question.found if asked.subject.named else ():
        if each.sense == "state" and not any(at in question.clause(each.first) for at in amounts):
            asked.ledger.take("state", each.name, at=each.first)


def _narrowing_words(asked: Asked) -> tuple[str, ...]:
    """Return the unknown words that can narrow what is asked for. Beside a name, only those before a noun do."""
    words = asked.question.words
    left = asked.ledger.left("word")
    if not asked.subject.named and asked.question.kinds[:1] != ("LimitRange",):
        return left
    nouns = {each.first for each in asked.question.found if each.sense == "kind"}
    return tuple(word for word in left if word in words and words.index(word) + 1 in nouns)


def _unread_names(asked: Asked) -> Iterator[str]:
    """Yield the words that are names of namespaces, or values of labels before "pods", but were not read as such."""
    words, subject = asked.question.words, asked.subject
    known = {*subject.namespaces, *subject.excluded_namespaces, *(each.name for each in subject.named), *subject.values}
    known |= {part for each in asked.question.labels for part in (each.key, each.value)} | {"default"}
    known |= {each.name for each in subject.excluded}
    spaces = {each.name for each in asked.state.of("Namespace")} - known
    yield from (word for word in words if word in spaces)
    values = {value for pod in asked.state.of("Pod") for value in pod.labels.values()} - known
    seen = {at for each in asked.question.found for at in range(each.first, each.last + 1)}
    for each in asked.question.found:
        at = each.first - 1
        if each.sense == "kind" and each.name == "Pod" and at >= 0 and at not in seen and words[at] in values:
            yield words[at]


def _take_words(asked: Asked) -> None:
    """Take the words that name an amount, and the keys of labels by whose values objects were named."""
    named = {key.rpartition("/")[2].lower() for each in asked.subject.objects for key in each.labels}
    for word in asked.subject.unknown:
        if word in named or any(beginnings(each).match(word) for each in _AMOUNTS):
            asked.ledger.take("word", word)
