"""Finds the subject of a question: the objects, kinds and namespaces that it is about.

Every word is looked up in the cluster before it is treated as an ordinary word. A word that must be a name, because it
is quoted, is next to a kind, or cannot be a word of a language, but that no object has, is reported as missing with the
most similar names. Words that are neither names nor in the vocabulary are kept, so that the answer can mention them.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.triage.names import names_of
from holmes.triage.vocabulary import Sighting, symptoms_in, vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.names import Names
    from holmes.triage.question import Question
    from holmes.values.findings import ObjectRef

_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
_NUMBER: Final = re.compile(r"[\d.:/-]+[a-z%]{0,8}|[a-z]?\d{1,3}[a-z%]{0,3}|[<>]=?")
_NAMING_WORDS: Final = "named called the namens genannt der die das el la le llamado llamada nomme nommee appele "
_NAMING: Final = frozenset(_NAMING_WORDS.split())
_INSIDE: Final = frozenset({"in", "inside", "im", "en", "dans", "von", "of", "from", "aus", "de", "namespace"})
_SURE: Final = 0.8
_LEAST_NAMED: Final = 4
_LEAST_TYPED: Final = 5
_MOST_UNKNOWN: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A name that no object has. `kind` and `namespace` are empty if the question does not name them."""

    name: str
    kind: str = ""
    namespace: str = ""
    nearest: tuple[ObjectRef, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """The objects that one name of the question means, the most likely first. `name` is as written in the question.

    `similar` is true if no object has this name and the objects have the most similar name.
    """

    name: str
    objects: tuple[ClusterObject, ...]
    similar: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The subject of a question.

    Without names, the question is about all objects of `kinds`, or about everything in `namespaces`. Empty `namespaces`
    means the whole cluster. `elsewhere` contains objects with a named name in namespaces that were not asked about.
    `values` contains words that are values of labels or annotations. `unknown` contains words without a known meaning.
    """

    named: tuple[Named, ...] = ()
    namespaces: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()
    elsewhere: tuple[ObjectRef, ...] = ()
    values: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def objects(self) -> tuple[ClusterObject, ...]:
        """All named objects."""
        return tuple(dict.fromkeys(each for named in self.named for each in named.objects))

    @property
    def place(self) -> str:
        """The scope as a phrase: `in namespace shop`."""
        if not self.namespaces:
            return "in the whole cluster"
        return f"in namespace{'s' if len(self.namespaces) > 1 else ''} {', '.join(self.namespaces)}"

    def contains(self, each: ClusterObject) -> bool:
        """Return whether an object is in the namespaces of the subject."""
        return not self.namespaces or each.namespace in self.namespaces


_ABBREVIATIONS: Final = {
    "po": "Pod", "cm": "ConfigMap", "ds": "DaemonSet", "rs": "ReplicaSet", "sa": "ServiceAccount", "sc": "StorageClass",
    "ing": "Ingress", "cj": "CronJob", "no": "Node", "ep": "EndpointSlice", "quota": "ResourceQuota",
}  # fmt: skip
_ASKS_FOR: Final = frozenset({"get", "list", "describe", "show", "kubectl"})


def with_known_kinds(question: Question, state: ClusterState) -> Question:
    """Add the custom kinds of the cluster, and abbreviations such as `cm` after `get`, to the kinds of a question."""
    kinds = names_of(state).kinds
    more: list[Sighting] = []
    for index, word in enumerate(question.words):
        kind = kinds.get(word, "")
        if not kind and index > 0 and question.words[index - 1] in _ASKS_FOR:
            kind = _ABBREVIATIONS.get(word, "")
        if kind and not any(each.first <= index <= each.last for each in question.found):
            more.append(Sighting(sense="kind", name=kind, first=index, last=index))
    return replace(question, found=(*question.found, *more)) if more else question


def narrowing(subject: Subject, question: Question) -> str:
    """Return a clause with the kinds and labels that narrow a question, or an empty string."""
    parts = [*(kind for kind in subject.kinds if kind != "Namespace"), *map(str, question.labels)]
    return f" that involves {' or '.join(parts)}" if parts else ""


def find_subject(
    question: Question, state: ClusterState, *, namespace: str = "", earlier: Sequence[ClusterObject] = ()
) -> Subject:
    """Find the subject of `question`. A namespace in the question takes precedence over `namespace`.

    `earlier` contains the objects of the conversation's last answer, which words such as "it" refer to.
    """
    search = _Search(question, names_of(state))
    subject = search.subject(namespace)
    if subject.named or subject.missing or not earlier or not _points_back(question, subject):
        return subject
    spaces = subject.namespaces or tuple(dict.fromkeys(each.namespace for each in earlier if each.namespace))
    return replace(subject, named=(Named(name=earlier[0].name, objects=tuple(earlier)),), namespaces=spaces)


def _points_back(question: Question, subject: Subject) -> bool:
    if question.asks("follow_up"):
        return True
    content = [word for word in question.words if word not in vocabulary().stop]
    return len(content) <= 3 and not question.whole_cluster and not subject.kinds and not subject.unknown


class _Search:
    """One search for the names in one question."""

    def __init__(self, question: Question, names: Names) -> None:
        self.question = question
        self.names = names
        self.words = question.words
        self._known = {index for each in question.found for index in range(each.first, each.last + 1)}
        self._used: set[int] = set()
        self._quoted = {each.lower() for each in question.quoted}

    def subject(self, given: str) -> Subject:
        missing_spaces: list[Missing] = []
        spaces = tuple(dict.fromkeys(self._namespaces(missing_spaces)))
        if not spaces and not missing_spaces and given not in ("", "*") and not self.question.whole_cluster:
            spaces = tuple(self._existing_namespace(given, missing_spaces))
        default = spaces
        named: list[Named] = []
        missing: list[Missing] = list(missing_spaces)
        unknown: list[str] = []
        values: list[str] = []
        elsewhere: list[ObjectRef] = []
        for index, word in enumerate(self.words):
            if index in self._used or self._is_data(word):
                continue
            if self._is_value(index, word):
                values.append(word)
                continue
            found = self._named(index, word, default)
            if isinstance(found, Named):
                named.append(found)
            elif isinstance(found, Missing):
                missing.append(found)
                elsewhere += [each.ref for each in self.names.named(found.name, found.kind)]
            elif index not in self._known and not self._is_ordinary(word) and not symptoms_in((word,)):
                unknown.append(word)
        named += [
            Named(name=address, objects=objects)
            for address in (*self.question.addresses, *self.question.hosts)
            if (objects := self.names.at_address(address) or self._of_host(address))
        ]
        if not named and not missing:
            guessed, unknown = self._guess(unknown, default)
            named += guessed
        named = list({each.objects: each for each in named}.values())
        return Subject(
            named=tuple(named),
            namespaces=default,
            kinds=self.question.kinds,
            missing=tuple(missing),
            elsewhere=tuple(dict.fromkeys(elsewhere)),
            values=tuple(dict.fromkeys(values)),
            unknown=tuple(dict.fromkeys(unknown))[:_MOST_UNKNOWN],
        )

    def _is_data(self, word: str) -> bool:
        """Return whether a word is a number, a time, a label or an address."""
        in_label = any(word in (term.key, term.value, str(term)) for term in self.question.labels)
        in_address = any(word == each or word.startswith(f"{each}:") for each in self.question.addresses)
        return in_label or in_address or (_NUMBER.fullmatch(word) is not None and not self.names.named(word))

    def _is_value(self, index: int, word: str) -> bool:
        """Return whether a word that names no object is the value of a label or an annotation."""
        plain = word.strip("#@")
        if index in self._known or plain in vocabulary().stop or plain not in self.names.values:
            return False
        return not self.names.named(plain) and not self.names.labelled(plain)

    def _is_ordinary(self, word: str) -> bool:
        parts = re.split(r"[-'/]", word)
        return word in vocabulary().stop or all(part in vocabulary().stop or len(part) < 2 for part in parts)

    def _namespaces(self, missing: list[Missing]) -> Iterator[str]:
        if self.question.namespace_flag:
            yield from self._existing_namespace(self.question.namespace_flag, missing)
        for each in self.question.found:
            if each.sense != "kind" or each.name != "Namespace":
                continue
            before, after = self._neighbours(each.first, each.last)
            known = [index for index in (*after, *before) if self.words[index] in self.names.namespaces]
            if known:
                yield from self._with_more(known[0])
                continue
            index = next(iter(after), None)
            if index is not None and self._may_be_name(index) and each.last - each.first < 3:
                self._used.add(index)
                yield from self._existing_namespace(self.words[index], missing)
        for index, word in enumerate(self.words):
            plain = word.partition("/")[0]
            if index in self._used or plain not in self.names.namespaces:
                continue
            inside = index > 0 and self.words[index - 1] in _INSIDE
            if "/" not in word and (inside or not self._is_object(word)) and (inside or index not in self._known):
                self._used.add(index)
                yield word

    def _with_more(self, index: int) -> Iterator[str]:
        """Yield the namespace at `index`, and the namespaces of the list that it begins: `a, b and c`."""
        while index < len(self.words):
            if self.words[index] in self.names.namespaces:
                self._used.add(index)
                yield self.words[index]
            elif self.words[index] not in ("and", "or", "und", "oder", "y", "e", "o", "et", "ou"):
                return
            index += 1

    def _existing_namespace(self, name: str, missing: list[Missing]) -> Iterator[str]:
        if name in self.names.namespaces or not self.names.state.covers("Namespace"):
            yield name
            return
        near = difflib.get_close_matches(name, sorted(self.names.namespaces), n=2, cutoff=0.6)
        refs = tuple(each.ref for one in near for each in self.names.state.of("Namespace") if each.name == one)
        missing.append(Missing(name=name, kind="Namespace", nearest=refs))

    def _is_object(self, word: str) -> bool:
        return any(each.kind != "Namespace" for each in self.names.named(word))

    def _neighbours(self, first: int, last: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the position before and the position after a phrase, without words such as "named"."""
        after = last + 1
        while after < len(self.words) and self.words[after] in _NAMING:
            after += 1
        before = (first - 1,) if first > 0 else ()
        return before, (after,) if after < len(self.words) else ()

    def _may_be_name(self, index: int) -> bool:
        word = self.words[index].rstrip("…*")
        return (
            index not in self._known
            and index not in self._used
            and word not in vocabulary().stop
            and _NAME.fullmatch(word) is not None
            and not self._is_data(word)
        )

    def _kind_beside(self, index: int) -> str:
        """Return the kind that the question names directly before or after the word, or an empty string."""
        for each in self.question.found:
            if each.sense != "kind" or each.name == "Namespace":
                continue
            before, after = self._neighbours(each.first, each.last)
            if index in after or index in before:
                return each.name
        return ""

    def _named(self, index: int, word: str, spaces: Sequence[str]) -> Named | Missing | None:
        prefix, plain = word.endswith(("…", "*")), word.rstrip("…*")
        if "/" in plain or ".svc" in plain:
            return self._path(plain, spaces)
        kind, quoted = self._kind_beside(index), plain in self._quoted
        if not quoted and (index in self._known or plain in vocabulary().stop):
            sure = kind or len(plain) >= _LEAST_NAMED  # an object can have the name of an ordinary word
            objects = self.names.named(plain, kind, spaces) if sure and index not in self._known else ()
        else:
            objects = self._objects(plain, kind, spaces, prefix=prefix) if _NAME.fullmatch(plain) else ()
            if not objects and self._must_be_name(plain, kind, quoted=quoted):
                return self._similar(plain, kind, spaces)
        return Named(name=plain, objects=objects) if objects else None

    def _must_be_name(self, word: str, kind: str, *, quoted: bool) -> bool:
        """Return whether a word that names no object cannot be an ordinary word."""
        if _NAME.fullmatch(word) is None:
            return False
        hyphenated = "-" in word and not self._is_ordinary(word)
        made = quoted or hyphenated or any(sign.isdigit() for sign in word)
        return made or (bool(kind) and not self._is_inflected(word))

    def _is_inflected(self, word: str) -> bool:
        """Return whether a word next to a kind is probably an adjective or a verb of the question."""
        return word.endswith(("ing", "ed", "ly", "en", "es", "ado", "ados", "ido", "idos", "ees")) or len(word) < 3

    def _objects(self, name: str, kind: str, spaces: Sequence[str], *, prefix: bool) -> tuple[ClusterObject, ...]:
        hosts = self.names.at_address(name) or self._of_host(name) if "." in name else ()
        if hosts or prefix:
            return hosts or self.names.begins(name, kind, spaces)
        exact = self.names.named(name, kind, spaces)
        if exact and kind in ("", exact[0].kind):
            return exact
        if kind == "Pod":  # "the checkout pod" is a pod of the workload `checkout`
            return self.names.named(name, "", spaces) or self.names.begins(name, "Pod", spaces)
        return exact or self.names.labelled(name, spaces)

    def _similar(self, name: str, kind: str, spaces: Sequence[str]) -> Named | Missing:
        owner = self.names.namespace_of_vanished_pod(name, spaces) if kind in ("", "Pod") else ()
        if owner:
            return Named(name=name, objects=owner, similar=True)
        near = self.names.nearest(name, kind, spaces)
        if near and len(name) >= _LEAST_TYPED and _alike(name, near[0].name) >= _SURE:
            same = self.names.named(near[0].name, kind, spaces)
            if len({each.name for each in near if _alike(name, each.name) >= _SURE}) == 1:
                return Named(name=name, objects=same, similar=True)
        place = spaces[0] if len(spaces) == 1 else ""
        return Missing(name=name, kind=kind, namespace=place, nearest=tuple(each.ref for each in near))

    def _path(self, word: str, spaces: Sequence[str]) -> Named | Missing | None:
        """Find `deployment/checkout`, `shop/checkout`, `shop/deployment/checkout` or `cart.shop.svc`."""
        if ".svc" in word:
            objects = self._of_host(word)
            return (
                Named(name=word, objects=objects)
                if objects
                else Missing(name=word.partition(".svc")[0], kind="Service")
            )
        parts = word.split("/")
        kinds = {phrase[0]: name for phrase, meant in vocabulary().phrases.items() if len(phrase) == 1
                 for sense, name in meant if sense == "kind"}  # fmt: skip
        space, kind, name = "", "", parts[-1]
        if len(parts) >= 2:
            kind = kinds.get(parts[-2].partition(".")[0], "")
            space = parts[0] if parts[0] in self.names.namespaces and (len(parts) == 3 or not kind) else ""
        if not (kind or space) or not _NAME.fullmatch(name):
            return None
        places = (space,) if space else spaces
        objects = self._objects(name, kind, places, prefix=False)
        return Named(name=name, objects=objects) if objects else self._similar(name, kind, places)

    def _of_host(self, host: str) -> tuple[ClusterObject, ...]:
        """Find the Service of a host name such as `cart.shop.svc.cluster.local` or `cart.shop`."""
        labels = host.partition(":")[0].split(".")
        return self.names.named(labels[0], "Service", labels[1:2]) if len(labels) >= 2 else ()

    def _guess(self, unknown: list[str], spaces: Sequence[str]) -> tuple[list[Named], list[str]]:
        """Find workloads whose names contain an unknown word, or have a similar name."""
        guessed, rest = [], []
        for word in unknown:
            found = self.names.containing(word, spaces)
            near = self.names.nearest(word, "", spaces) if len(word) >= _LEAST_TYPED and not found else ()
            if near and _alike(word, near[0].name) >= _SURE:
                found = self.names.named(near[0].name, "", spaces)
            if found and len({each.name for each in found}) <= 3:
                guessed.append(Named(name=word, objects=found, similar=True))
            else:
                rest.append(word)
        return guessed, rest


def _alike(one: str, other: str) -> float:
    """Return how similar two names are. Names with different numbers, such as `node-1` and `node-2`, are not."""
    if re.findall(r"\d+", one) != re.findall(r"\d+", other):
        return 0.0
    return difflib.SequenceMatcher(a=one, b=other).ratio()
