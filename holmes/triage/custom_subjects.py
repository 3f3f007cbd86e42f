"""Finds custom kinds, products and custom objects in a question.

A question can name a custom kind in words (`helm release`), by its last words beside a name (`connector orders-sink`),
or by the product that brought it (`velero`). It can name a custom object by what the object belongs to: "the longhorn
volume of gitea".
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.producers import controllers_of
from holmes.kubernetes.fields import text
from holmes.triage.asked import refs_of
from holmes.triage.connections import connections, identity
from holmes.triage.grammar import must_be_name
from holmes.triage.names import is_of, is_product, names_of
from holmes.triage.subjects import Missing, Named
from holmes.triage.vocabulary import Sighting, symptoms_in, vocabulary, word_list
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.scan import ScanResult
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.names import Names
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.findings import ObjectRef

_ABBREVIATIONS: Final = {
    "po": "Pod", "cm": "ConfigMap", "ds": "DaemonSet", "rs": "ReplicaSet", "sa": "ServiceAccount", "sc": "StorageClass",
    "ing": "Ingress", "cj": "CronJob", "no": "Node", "ep": "EndpointSlice", "quota": "ResourceQuota",
}  # fmt: skip
_ASKS_FOR: Final = frozenset({"get", "list", "describe", "show", "kubectl"})
_CLUSTER: Final = "cluster"
_DATABASE_WORDS: Final = frozenset({"database", "db", "datenbank", "pg", "sql"})
_DATABASES: Final = expression(r"sql|postgres|mongo|maria|redis|cassandra|cockroach|db")
_NAMING: Final = word_list("naming")
_PLACES: Final = word_list("places")
_EVERYDAY: Final = word_list("everyday kinds")
_BEFORE_NOUNS: Final = word_list("quantifiers") | word_list("determiners")
_COMPOUND: Final = 2
_LONGEST: Final = 4
_LEAST_ENDING: Final = 4
_PARTS: Final = expression(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*|[a-z0-9]+")
_COMPANY: Final = expression(r"(?:proj|cd|hq|labs)$")
_SHARED_DOMAINS: Final = frozenset({"k8s", "x-k8s", "kubernetes", "github", "coreos", "openshift"})
"""Domains that many products share."""
_MOST_HOPS: Final = 5
_NEAR: Final = 2
_OF_WORKLOADS: Final = frozenset({
    "PersistentVolumeClaim", "HorizontalPodAutoscaler", "PodDisruptionBudget", "NetworkPolicy", "Ingress",
})  # fmt: skip
_PART_WORDS: Final = {
    "volume": "PersistentVolumeClaim", "volumen": "PersistentVolumeClaim", "policy": "NetworkPolicy",
    "budget": "PodDisruptionBudget", "autoscaler": "HorizontalPodAutoscaler",
}  # fmt: skip
"""Kinds of the parts of a workload that have a state of their own, unlike its settings."""


def with_known_kinds(question: Question, state: ClusterState) -> Question:
    """Add the custom kinds and products of the cluster, and abbreviations such as `cm`, to what a question names.

    A custom kind of several words replaces the kinds that some of its words mean: `external secret` is not a Secret.
    """
    names, words = names_of(state), question.words
    more: list[Sighting] = []
    index = 0
    while index < len(words):
        found = _kind_at(question, names, index)
        if found is not None:
            more.append(found)
        index = found.last + 1 if found is not None else index + 1
    spans = [(each.first, each.last) for each in more if each.last > each.first]
    kept = tuple(
        each
        for each in question.found
        if each.sense != "kind" or not any(first <= each.first <= each.last <= last for first, last in spans)
    )
    more += _products(question, names, {each.name.partition(".")[2] for each in more})
    return replace(question, found=(*kept, *more)) if more else question


def _kind_at(question: Question, names: Names, index: int) -> Sighting | None:
    """Return the custom kind that begins at a word, the longest phrase first."""
    words = question.words
    for length in range(min(_LONGEST, len(words) - index), 0, -1):
        phrase = words[index : index + length]
        kind, last = names.kinds.get("".join(phrase), ""), index + length - 1
        if not kind and length > 1:
            continue
        known = any(each.first <= last and index <= each.last for each in question.found)
        if not kind and not known:
            kind = _abbreviated(words, index) or _by_ending(question, names, index) or _of_compound(words[index], names)
        if any(word in (term.key, term.value) for term in question.labels for word in phrase):
            continue
        if length == 1 and words[index] == _CLUSTER and kind:
            return _one_cluster(question, names, index, kind)
        if length == 1 and kind and _is_everyday(question, names, index, kind):
            return None
        if kind and (length > 1 or not (known or _is_plain_name(names, words, index, kind))):
            return Sighting(sense="kind", name=kind, first=index, last=last)
    return None


def _one_cluster(question: Question, names: Names, index: int, kind: str) -> Sighting | None:
    """Return the custom kind that `cluster` means beside a name or a product, or None for the whole cluster."""
    words, clause = question.words, question.clause(index)
    before = words[index - 1] if index - 1 in clause else ""
    after = next((word for word in words[index + 1 : clause.stop] if word not in _NAMING), "")
    own = Sighting(sense="kind", name=kind, first=index, last=index)
    if before and _is_of_group(before, kind):
        return replace(own, first=index - 1)
    said = {at for each in question.found for at in range(each.first, each.last + 1)}
    told = bool(before) and index - 1 not in said and not vocabulary().is_ordinary(before)
    named = must_be_name(after, quoted=after in question.quoted_names, sure=False) and not symptoms_in((after,))
    listed = before in _ASKS_FOR - {"show", "kubectl"}
    beside = any(names.named(each, kind) for each in (before, after))
    return own if (told and before not in _PLACES) or named or listed or beside else None


def _is_everyday(question: Question, names: Names, index: int, kind: str) -> bool:
    """Return whether a word for a custom kind has its ordinary meaning: "the site is down", "users cannot log in".

    It means the kind beside a name, in a list, and if such an object is not ready.
    """
    words = question.words
    if words[index].removesuffix("s") not in _EVERYDAY:
        return False
    beside = (*words[index + 1 : index + 2], *words[max(0, index - 1) : index])
    asked = [each.last for each in question.found if each.name in ("list", "count", "describe") and each.last < index]
    listed = any(_BEFORE_NOUNS.issuperset(words[last + 1 : index]) for last in asked)
    judged = vocabulary().is_plural(words[index]) and not question.complains
    troubled = any(text(each.condition("Ready"), "status") == "False" for each in names.state.of(kind))
    return not (listed or judged or troubled or any(names.named(each, kind) for each in beside))


def _is_of_group(word: str, kind: str) -> bool:
    """Return whether a word before `cluster` is the product of a custom kind: `postgres` for `postgresql.cnpg.io`."""
    group = kind.partition(".")[2]
    labels = [label for label in group.split(".")[:-1] if label not in _SHARED_DOMAINS]
    begins = len(word) >= _LEAST_ENDING and any(label.startswith(word) for label in labels)
    return word != _CLUSTER and (begins or (word in _DATABASE_WORDS and _DATABASES.search(group) is not None))


def _is_plain_name(names: Names, words: tuple[str, ...], index: int, kind: str) -> bool:
    """Return whether a word for a kind rather names an object: `orders`, in a cluster with Orders of cert-manager."""
    beside = (*words[index + 1 : index + 2], *words[max(0, index - 1) : index])
    return bool(names.named(words[index])) and not any(names.named(word, kind) for word in beside)


def _abbreviated(words: tuple[str, ...], index: int) -> str:
    beside = {*words[max(0, index - 1) : index], *words[index + 1 : index + 2]}
    return _ABBREVIATIONS.get(words[index], "") if beside & _ASKS_FOR else ""


def _of_compound(word: str, names: Names) -> str:
    """Return the kind in a compound such as `ingress-objekte`, or an empty string."""
    parts = word.split("-")
    meant = (vocabulary().phrases.get((part,), ()) for part in parts)
    kinds = [each[0][1] for each in meant if each and each[0][0] == "kind"]
    others = [part for part in parts if (part,) not in vocabulary().phrases]
    plain = all(each.isalpha() and vocabulary().is_ordinary(each) for each in others)  # `node-7` is a name
    compound = len(parts) == _COMPOUND and len(kinds) == 1 and plain
    return kinds[0] if compound and not names.knows(word) else ""


def _by_ending(question: Question, names: Names, index: int) -> str:
    """Return the custom kind whose last words are this word, if a word beside it is the name of such an object."""
    word = question.words[index]
    if len(word) < _LEAST_ENDING:
        return ""
    for near in (*question.words[index + 1 : index + 2], *question.words[max(0, index - 1) : index]):
        for each in names.named(near):
            parts = [part.lower() for part in _PARTS.findall(each.kind)]
            if each.group and word in {"".join(parts[start:]) for start in range(1, len(parts))}:
                return f"{each.kind}.{each.group}"
    return ""


def _products(question: Question, names: Names, groups: set[str]) -> Iterator[Sighting]:
    """Yield the products that a question names. Beside one of its kinds, a product is only an adjective.

    A word that is also the name of an object means that object.
    """
    products = _product_groups(names)
    for index, word in enumerate(question.words):
        of = products.get(word, ())
        known = any(each.first <= index <= each.last for each in question.found) or word in vocabulary().stop
        if not of or known or (names.named(word) and not groups.intersection(of)):
            continue
        yield Sighting(sense="concept", name="product", first=index, last=index)
        if not groups.intersection(of):
            yield from (Sighting(sense="kind", name=f"*.{group}", first=index, last=index) for group in of)


def _product_groups(names: Names) -> dict[str, tuple[str, ...]]:
    """Return the API groups of the products of the cluster by the words that mean the product."""
    found: dict[str, dict[str, None]] = {}
    for kind in names.state.kinds:
        if "." in kind:
            name, _, group = kind.partition(".")
            for word in _words_for(name.lower(), group):
                found.setdefault(word, {})[group] = None
    return {word: tuple(groups) for word, groups in found.items()}


def _words_for(kind: str, group: str) -> Iterator[str]:
    """Yield the words for the product of a group: `rook` and `ceph` for CephCluster in `ceph.rook.io`."""
    labels = group.split(".")
    if len(labels) < 2:
        return
    named = [label for label in labels[:-1] if label not in _SHARED_DOMAINS]
    for label in named[-1:]:
        yield label
        yield _COMPANY.sub("", label)
        yield "".join(labels[-2:])
    yield from (label for label in named if len(label) >= _LEAST_ENDING and kind.startswith(label) and kind != label)


def about_custom_objects(question: Question, subject: Subject, scan: ScanResult) -> Subject:
    """Return the subject with the custom objects that the question means by what they belong to.

    This is an object of the asked kind that serves the named one, or the objects of a product of which only the
    operator is named and works.
    """
    kinds = [kind for kind in question.kinds if "." in kind]
    named = subject.objects
    product = next((each for each in question.found if each.name in kinds and each.first < each.last), None)
    if product is not None and not named and question.words[product.last] == _CLUSTER:  # "the postgres cluster"
        meant = tuple(each for each in scan.state.of(product.name) if subject.contains(each))
        return replace(subject, named=(Named(name=question.words[product.first], objects=meant),)) if meant else subject
    if kinds and named and not any(is_of(each, kind) for each in named for kind in kinds):
        near = [one for one in connections(scan.state, named).values() if one.hops <= _MOST_HOPS]
        served = [each for one in near if (each := scan.state.find(one.ref)) is not None]
        meant = tuple(each for each in served if any(is_of(each, kind) for kind in kinds))
        meant = meant or tuple(each for kind in kinds for each in _shown_by(scan.state, kind, named))
        if meant:
            return replace(subject, named=(Named(name=named[0].name, objects=meant[:1]),), namespaces=())
    products = [kind for kind in kinds if is_product(kind) and _is_troubled(kind.partition(".")[2], scan)]
    if products and named and all(each.match in ("part", "similar") for each in subject.named):
        return replace(subject, named=(), unknown=(*subject.unknown, *(each.name for each in subject.named)))
    groups = _operated(named, scan) if named and not set(question.kinds) - set(kinds) else {}
    asked = kinds or [f"*.{group}" for group in groups if _is_troubled(group, scan)]
    own = {"image"} | ({"memory", "disk"} if question.asks("resources") else set())  # "the memory limit of X" is a fact
    judged = question.complains or question.asks("why", "trouble") or question.symptoms - own
    if groups and asked and judged and not question.asks("when") and not _is_sick(named, scan):
        # "The image of the operator" and "when was it restarted" are about itself.
        return replace(subject, named=(), kinds=tuple(dict.fromkeys((*subject.kinds, *asked))))
    return subject


def _shown_by(state: ClusterState, kind: str, named: tuple[ClusterObject, ...]) -> Iterator[ClusterObject]:
    """Yield the custom objects of the Ingresses that lead to the named objects: "the certificate of web"."""
    for ingress in state.of("Ingress"):
        near = [state.find(one.ref) for one in connections(state, (ingress,)).values() if one.hops <= _NEAR]
        if not set(named).isdisjoint(near):
            yield from (each for each in near if each is not None and is_of(each, kind))


def about_parts(question: Question, subject: Subject, state: ClusterState) -> Subject:
    """Return the subject with the parts of a workload that a kind after its name means: "is the search volume ok"."""
    judged = question.asks("health", "trouble") and not question.complains and not question.asks("why", "logs")
    if not judged or len(subject.named) != 1 or question.asks("list", "count"):
        return subject
    name, objects = subject.named[0].name, subject.objects
    own = {ref for each in objects for ref in identity(state, each)}
    words = question.words
    after = words.index(name) + 1 if name in words else len(words)
    said = next((each.name for each in question.found if each.sense == "kind" and each.first == after), "")
    kind = said or next((_PART_WORDS[word] for word in words[after : after + 1] if word in _PART_WORDS), "")
    absent = Missing(name=name, kind=kind, namespace=objects[0].namespace)
    if kind.startswith("Certificate.") and not any(is_of(each, kind) for each in objects):
        return replace(subject, named=(), missing=(*subject.missing, absent))
    if kind not in _OF_WORKLOADS or any(each.kind == kind for each in objects):
        return subject
    served = (state.find(one.ref) for one in connections(state, objects).values() if one.hops <= 1)
    near = [each for each in served if each is not None and each.kind == kind]
    near += [each for each in state.of(kind) if _leads_to(state, each, own)]
    found = tuple(dict.fromkeys(near))
    if not found and kind == "PersistentVolumeClaim":  # it can have a volume without a claim
        return subject
    named = (Named(name=name, objects=found),) if found else ()
    return replace(subject, named=named, missing=subject.missing if found else (*subject.missing, absent))


def _leads_to(state: ClusterState, each: ClusterObject, own: set[ObjectRef]) -> bool:
    return any(one.ref in own and one.hops <= _NEAR for one in connections(state, (each,)).values())


def _operated(named: tuple[ClusterObject, ...], scan: ScanResult) -> dict[str, None]:
    """Return the groups of the custom kinds whose operators are the named objects."""
    refs = {ref for each in named for ref in identity(scan.state, each)}
    kinds = (kind.partition(".") for kind in scan.state.kinds if "." in kind)
    return {group: None for name, _, group in kinds if refs.intersection(controllers_of(scan.state, name, group))}


def _is_troubled(group: str, scan: ScanResult) -> bool:
    return any(each.culprit.group == group and each.severity != "info" for each in scan.report.incidents)


def _is_sick(named: tuple[ClusterObject, ...], scan: ScanResult) -> bool:
    own = {ref for each in named for ref in identity(scan.state, each)}
    return any(own & refs_of(each) and each.severity != "info" for each in scan.report.incidents)
