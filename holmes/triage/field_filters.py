"""The conditions on the fields and users of objects: "pods with tolerations", "Deployments without affinity"."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from holmes.triage.filters import WORKLOAD_KINDS, Filter, negated_before
from holmes.triage.users import users_of
from holmes.triage.vocabulary import vocabulary, word_list, words_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.ledger import PartSense
    from holmes.values.json_types import JsonValue

KEY_PARTS: Final = expression(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_HAVING: Final = word_list("having")
_BELONGING: Final = word_list("belonging")
_ARTICLES: Final = (
    word_list("determiners") | (word_list("indefinite") - {"1", "one"}) | {"einen", "no", "keinen", "keine"}
)
_USED: Final = frozenset({"ConfigMap", "Secret", "ServiceAccount", "PersistentVolumeClaim", "PersistentVolume",
    "StorageClass"})  # fmt: skip
_NOT_FIELDS: Final = frozenset({"annotation", "label", "memory", "cpu"})
"""Words that other filters understand, as they do the words of `absences`."""
_WORDS: Final[tuple[PartSense, ...]] = ("word", "aside", "value", "symptom")
_NOBODY: Final = word_list("nobody")
_TYPES: Final = word_list("typed")
_TAINTED: Final = frozenset({"tainted", "getaintet", "tainteado", "tainteados"})
_MOST_WORDS: Final = 3
_KEYED: Final = expression(
    r"\b(?:keys?|schlussel|claves?|cles?)\s+(?:called |named |namens |llamada |nommee )?[`'\"]?([a-z0-9_.-]*[a-z0-9_])"
)


def field_filters(asked: Asked, kinds: tuple[str, ...]) -> Iterator[Filter]:
    """Yield the filters for the fields that objects must have or lack, after words such as "with" and "without"."""
    words = asked.question.words
    tainted = next((at for at, word in enumerate(words) if word in _TAINTED), None) if kinds == ("Node",) else None
    if tainted is not None:
        yield _filter(asked, "taint", "taints", tainted)
        _take(asked, tainted, tainted + 1)
    for index, word in enumerate(words[:-1]):
        if word not in _HAVING:
            continue
        start = index + 2 if words[index + 1] in _ARTICLES else index + 1
        for length in range(min(_MOST_WORDS, len(words) - start), 0, -1):
            said = words[start : start + length]
            name = "".join(each.removesuffix("s") for each in said)
            if _is_field(asked, name, range(start, start + length), kinds):
                yield _filter(asked, name, " ".join(said), start)
                _take(asked, start, start + length)
                break


def name_filters(asked: Asked, kinds: tuple[str, ...]) -> Iterator[Filter]:
    """Yield the filters for the beginning of names: "start with kube-", and for keys: "have the key app.yaml"."""
    for prefix in asked.question.prefixes:
        for sense in (*_WORDS, "concept", "state"):
            asked.ledger.take(sense, *asked.question.prefix_words)
        yield _begins_with(prefix)
    for match in _KEYED.finditer(asked.question.text) if kinds == ("ConfigMap",) else ():
        for sense in _WORDS:
            asked.ledger.take(sense, *words_of(match[0]))
        yield _has_key(match[1])


def _begins_with(prefix: str) -> Filter:
    return Filter(told=f"name begins with {prefix}", holds=lambda each: each.name.startswith(prefix))


def _has_key(key: str) -> Filter:
    return Filter(told=f"with key {key}", holds=lambda each: key in map(str.lower, _keys(each)))


def _keys(each: ClusterObject) -> tuple[str, ...]:
    return (*each.child("data"), *each.child("binaryData"))


def value_filters(asked: Asked, kinds: tuple[str, ...]) -> Iterator[Filter]:
    """Yield the filters for values of the spec or the status: "of type LoadBalancer", "volumes that are Released"."""
    words = asked.question.words
    typed = (word for before, word in pairwise(words) if before in _TYPES and word not in asked.subject.unknown)
    for word in (*asked.subject.unknown, *typed):
        if any(word in _values(each) for kind in kinds for each in asked.state.of(kind)):
            for sense in _WORDS:
                asked.ledger.take(sense, word)
            yield Filter(told=word, holds=lambda each, word=word: word in _values(each))  # type: ignore[misc]


def _values(each: ClusterObject) -> frozenset[str]:
    """Return the texts directly in the spec and the status, for example the type of a Service or a phase."""
    parts = (each.body.get(part) for part in ("spec", "status"))
    found = (value for part in parts if isinstance(part, dict) for value in part.values())
    return frozenset(value.lower() for value in found if isinstance(value, str))


def _is_field(asked: Asked, name: str, places: range, kinds: tuple[str, ...]) -> bool:
    """Return whether words name a field: of an object that was read, or one that the vocabulary has."""
    if any(asked.question.words[at] in (term.key, term.value) for at in places for term in asked.question.labels):
        return False
    if name in _NOT_FIELDS or any(
        name == word.removesuffix("s") for said in vocabulary().absences.values() for word in said
    ):
        return False
    span = (places.start, places.stop - 1)
    settings = any(each.name == "settings" and (each.first, each.last) == span for each in asked.question.found)
    return settings or any(name in _names(each) for kind in kinds for each in asked.state.of(kind))


def _filter(asked: Asked, name: str, said: str, start: int) -> Filter:
    negated = negated_before(asked, start, most=2)
    told = f"{'without' if negated else 'with'} {said}"
    return Filter(told=told, holds=lambda each: (name in _names(each)) != negated)


def _take(asked: Asked, start: int, end: int) -> None:
    for at in range(start, end):
        asked.ledger.take("word", asked.question.words[at])
        asked.ledger.take("symptom", asked.question.words[at])
        asked.ledger.take("concept", at=at)


def _names(each: ClusterObject) -> frozenset[str]:
    """Return the names of the fields of a spec that have a value, without plurals: `readinessprobe`, `toleration`."""
    return frozenset(_walk(each.body.get("spec")))


def _walk(value: JsonValue) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            if item or item == 0:
                yield "".join(part.lower().removesuffix("s") for part in KEY_PARTS.findall(key))
                yield from _walk(item)
    elif isinstance(value, list):
        for item in value:
            yield from _walk(item)


def use_filters(asked: Asked, kinds: tuple[str, ...]) -> Iterator[Filter]:
    """Yield the filter for objects that something uses: "how many Secrets are mounted", "unused claims"."""
    places = [each for each in asked.question.found if each.sense == "concept" and each.name == "uses"]
    unused = "unused" in asked.question.states
    if not places and not unused:
        return
    if (
        asked.subject.named
        or asked.subject.values  # "which deployments belong to jonas"
        or (asked.subject.namespaces and not _BELONGING.isdisjoint(asked.question.words))  # "to the namespace shop"
        or asked.question.comparisons
        or set(asked.question.kinds) - {*kinds, *(("Pod", *WORKLOAD_KINDS) if unused else ())}
        or asked.question.asks("images")
    ):
        asked.ledger.take("concept", "uses")  # the other objects are the condition
    elif set(kinds) <= _USED:
        negated = unused or negated_before(asked, places[0].first) or not _NOBODY.isdisjoint(asked.question.words)
        asked.ledger.take("concept", *(("negation",) if negated else ()))
        asked.ledger.take("word", *_NOBODY)
        asked.ledger.take("concept", "uses")
        asked.ledger.take("state", "unused")
        asked.ledger.take("kind", "Pod", *WORKLOAD_KINDS)  # "claims that are not used by any pod"
        told = "used by nothing that was read" if negated else "in use"
        yield Filter(told=told, holds=lambda each: bool(users_of(asked.state, each)) != negated)
