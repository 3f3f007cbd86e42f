"""Tells nouns from names: "the orders deployment" is the name of a program. `Hauptbuch-Export` is not a name.

Otherwise, a question about a workload that does not exist would be one about all workloads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.triage.subjects import Named
from holmes.triage.vocabulary import vocabulary, word_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.names import Names
    from holmes.triage.question import Question

_SENT: Final = word_list("everyday things")
_NOUNS: Final = _SENT | word_list("programs by nouns")
_DETERMINERS: Final = word_list("determiners")
_ORDERS: Final = word_list("orders of runs")
_RIGHTS: Final = frozenset({"Role", "RoleBinding", "ServiceAccount", "IngressClass"})
_MOST_PARTS: Final = 3
_RUNS: Final = frozenset({"CronJob", "Job"})
_PROGRAMS: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet", "Service", "CronJob", "Job", "Pod"})


def program_named(question: Question, index: int, kind: str, *, sure: bool) -> str:
    """Return the noun that can only be a name: `orders` in "the orders deployment" and in "the orders-deployment".

    `kind` is the kind beside the word. `sure` means that the word is in the place of its name. For other words,
    the result is empty.
    """
    words = question.words
    noun, _, tail = words[index].rpartition("-")
    if noun in _NOUNS and kind_of_word(tail) in _PROGRAMS:
        return noun
    before, word = words[index - 1] if index else "", words[index]
    leads = any(each.first == index + 1 and each.name == kind for each in question.found)
    placed = sure or (leads and before in _DETERMINERS)  # "are the order pods ok"
    follows = kind_of_word(before) == kind  # "the deployment events" are its events
    named = word in _SENT or (word in _NOUNS and not follows)
    return word if placed and kind in _PROGRAMS and named else ""


def kind_of_word(word: str) -> str:
    """Return the kind that a single word means, or an empty string."""
    return next((name for sense, name in vocabulary().phrases.get((word,), ()) if sense == "kind"), "")


def named_by_part(names: Names, word: str, kind: str, spaces: Sequence[str]) -> tuple[ClusterObject, ...]:
    """Return the objects of a kind with a word in their name. For a Service or a pod, workloads count, too."""
    found = names.containing(word, spaces)
    return tuple(each for each in found if kind in (each.kind, "Service", "Pod"))


def run_named(names: Names, word: str, kind: str, spaces: Sequence[str]) -> tuple[ClusterObject, ...]:
    """Return the only job with a word in its name: CronJob `catalog-import` for "the import job"."""
    exact = [each for each in names.named(word, "", spaces) if each.kind in _RUNS]
    if "." in kind:
        return custom_named(names, word, kind, spaces)
    found = (exact or [each for each in names.containing(word, spaces) if each.kind in _RUNS]) if kind in _RUNS else []
    return tuple(found) if len({names.state.workload_of(each).ref for each in found}) == 1 else ()


def bound_to(names: Names, objects: Sequence[ClusterObject], spaces: Sequence[str]) -> tuple[ClusterObject, ...]:
    """Return the few workloads that a Role or an account is for: CronJob `nightly-settlement` of Role `settlement`."""
    if not objects or objects[0].kind not in _RIGHTS:
        return ()
    name = objects[0].name
    parts = names.containing(name, spaces) or names.containing(name.removesuffix("er"), spaces)
    return parts if len({names.state.workload_of(each).name for each in parts}) <= _MOST_PARTS else ()


def custom_named(names: Names, word: str, kind: str, spaces: Sequence[str]) -> tuple[ClusterObject, ...]:
    """Return the only object of a custom kind with a word in its name: `permits-tls` for "the permits certificate"."""
    every = names.state.of(kind) if "." in kind else ()
    found = tuple(each for each in every if word in each.name.split("-") and (not spaces or each.namespace in spaces))
    return found if len(found) == 1 else ()


def runs_named(names: Names, question: Question, spaces: Sequence[str]) -> list[Named]:
    """Return the only job with a noun of the question in its name: "when is the next backup", "did the report run"."""
    words = question.words
    nouns = (
        words[each + 1] if words[each] in _DETERMINERS and words[each + 1] not in _ORDERS else words[each + 2]
        for each in range(len(words) - 2)
        if words[each] in _DETERMINERS
    )
    found = {word: run_named(names, word, "CronJob", spaces) for word in (*nouns, *words[-1:]) if word not in spaces}
    return [Named(name=word, objects=objects, match="part") for word, objects in found.items() if objects][:1]


def is_noun(word: str, written: str) -> bool:
    """Return whether a word is written as no name of an object can be: `Hauptbuch-Export`."""
    parts = word.split("-")
    return len(parts) > 1 and all(map(str.isalpha, parts)) and "-".join(map(str.capitalize, parts)) in written
