"""The subject of a question: the objects, kinds and namespaces that it is about. `search.py` finds it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from holmes.triage.names import names_of
from holmes.triage.vocabulary import Sighting, vocabulary

if TYPE_CHECKING:
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.names import Names
    from holmes.triage.question import Question
    from holmes.values.findings import ObjectRef

_ABBREVIATIONS: Final = {
    "po": "Pod", "cm": "ConfigMap", "ds": "DaemonSet", "rs": "ReplicaSet", "sa": "ServiceAccount", "sc": "StorageClass",
    "ing": "Ingress", "cj": "CronJob", "no": "Node", "ep": "EndpointSlice", "quota": "ResourceQuota",
}  # fmt: skip
_COMPOUND: Final = 2
_ASKS_FOR: Final = frozenset({"get", "list", "describe", "show", "kubectl"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A name that no object has. `kind` and `namespace` are empty if the question does not name them.

    The kind `place` means an environment or another cluster, of which this cluster knows nothing.
    """

    name: str
    kind: str = ""
    namespace: str = ""
    nearest: tuple[ObjectRef, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """The objects that one name of the question means, the most likely first. `name` is as written in the question.

    If no object has this name, `match` states what the objects are: those whose names contain it (`part`), those with
    the most similar name (`similar`), or the workload of a pod that no longer exists (`gone`).
    """

    name: str
    objects: tuple[ClusterObject, ...]
    match: Literal["exact", "part", "similar", "gone"] = "exact"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The subject of a question.

    Without names, the question is about all objects of `kinds`, or about everything in `namespaces`. Empty `namespaces`
    means the whole cluster. `elsewhere` contains objects with a named name in namespaces that were not asked about.
    `values` contains words that are values of labels or annotations. `unknown` contains words without a known meaning.
    `excluded` and `excluded_namespaces` are what the question leaves out: "everything except …".
    """

    named: tuple[Named, ...] = ()
    namespaces: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()
    elsewhere: tuple[ObjectRef, ...] = ()
    values: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    excluded: tuple[ClusterObject, ...] = ()
    excluded_namespaces: tuple[str, ...] = ()

    @property
    def objects(self) -> tuple[ClusterObject, ...]:
        """All named objects."""
        return tuple(dict.fromkeys(each for named in self.named for each in named.objects))

    @property
    def place(self) -> str:
        """The scope as a phrase: `in namespace shop`."""
        left_out = f" except {', '.join(self.excluded_namespaces)}" if self.excluded_namespaces else ""
        if not self.namespaces:
            return f"in the whole cluster{left_out}"
        return f"in namespace{'s' if len(self.namespaces) > 1 else ''} {', '.join(self.namespaces)}{left_out}"

    def contains(self, each: ClusterObject) -> bool:
        """Return whether an object is in the namespaces of the subject."""
        return self.holds(each.namespace)

    def holds(self, namespace: str) -> bool:
        """Return whether a namespace belongs to the subject."""
        return (not self.namespaces or namespace in self.namespaces) and namespace not in self.excluded_namespaces


def with_known_kinds(question: Question, state: ClusterState) -> Question:
    """Add the custom kinds of the cluster, and abbreviations such as `cm` after `get`, to the kinds of a question."""
    kinds = names_of(state).kinds
    more: list[Sighting] = []
    for index, word in enumerate(question.words):
        pair = "".join(question.words[index : index + 2])
        kind = kinds.get(word) or ("" if word == pair else kinds.get(pair, ""))
        beside = {*question.words[index - 1 : index], *question.words[index + 1 : index + 2]}
        if not kind and (beside if index else {*question.words[1:2]}) & _ASKS_FOR:
            kind = _ABBREVIATIONS.get(word, "")
        kind = kind or _of_compound(word, names_of(state))
        labelled = any(word in (term.key, term.value) for term in question.labels)
        if kind and not labelled and not any(each.first <= index <= each.last for each in question.found):
            last = index if word in kinds or word == pair or word in _ABBREVIATIONS or "-" in word else index + 1
            more.append(Sighting(sense="kind", name=kind, first=index, last=last))
    return replace(question, found=(*question.found, *more)) if more else question


def _of_compound(word: str, names: Names) -> str:
    """Return the kind in a compound such as `ingress-objekte`, or an empty string."""
    parts = word.split("-")
    kinds = [meant[0][1] for part in parts for meant in (vocabulary().phrases.get((part,), ()),)
             if meant and meant[0][0] == "kind"]  # fmt: skip
    others = [part for part in parts if (part,) not in vocabulary().phrases]
    compound = len(parts) == _COMPOUND and len(kinds) == 1 and all(map(vocabulary().is_ordinary, others))
    return kinds[0] if compound and not names.knows(word) else ""


def narrowing(subject: Subject, question: Question) -> str:
    """Return a clause with the kinds and labels that narrow a question, or an empty string."""
    parts = [*(kind for kind in subject.kinds if kind != "Namespace"), *map(str, question.labels)]
    involved = f" that involves {' or '.join(parts)}" if parts else ""
    without = ", ".join(str(each.ref) for each in subject.excluded[:3])
    return f"{involved}, without {without}" if without else involved
