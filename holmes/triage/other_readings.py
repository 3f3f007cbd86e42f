"""Reads words of a question that the search took for names as what else they are in this cluster.

A name that no object has can be the registry of images, or a misspelled workload beside the word "pod". A namespace can
have the name of an account that no question means, such as `default`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.triage.grammar import owns
from holmes.triage.guessing import LEAST_TYPED, SURE
from holmes.triage.names import alike
from holmes.triage.subjects import Named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.triage.names import Names
    from holmes.triage.question import Question
    from holmes.triage.subjects import Missing, Subject

_OWNING_NOTHING: Final = frozenset({"ServiceAccount", "ConfigMap", "Secret"})


def read_otherwise(question: Question, subject: Subject, names: Names) -> Subject:
    """Return the subject with registries, misspelled workloads and namespaces in place of names of nothing."""
    return _with_namespaces(question, _with_workloads(_with_registries(subject, names), names), names)


def _with_registries(subject: Subject, names: Names) -> Subject:
    missing = tuple(each for each in subject.missing if not names.is_registry(each.name))
    unknown = tuple(word for word in subject.unknown if not names.is_registry(word))
    found = [each.name for each in subject.missing if each not in missing]
    found += [word for word in subject.unknown if word not in unknown]
    images = tuple(dict.fromkeys((*subject.images, *found)))
    return replace(subject, missing=missing, unknown=unknown, images=images)


def _with_workloads(subject: Subject, names: Names) -> Subject:
    """Read the name of no pod as that of the workload with the nearest name, if only one is near."""
    read = {each: found for each in subject.missing for found in _near(each, names)}
    missing = tuple(each for each in subject.missing if each not in read)
    return replace(subject, named=(*subject.named, *read.values()), missing=missing)


def _near(missing: Missing, names: Names) -> Iterator[Named]:
    if missing.kind != "Pod" or len(missing.name) < LEAST_TYPED:
        return
    spaces = (missing.namespace,) if missing.namespace else ()
    near = {each.name for each in names.nearest(missing.name, "", spaces) if alike(missing.name, each.name) >= SURE}
    if len(near) == 1:
        yield Named(name=missing.name, objects=names.named(near.pop(), "", spaces), match="similar")


def _with_namespaces(question: Question, subject: Subject, names: Names) -> Subject:
    """Read "which services does default have" as one about the namespace, not about the account of its pods."""
    spaces = tuple(
        each.name
        for each in subject.named
        if each.name in names.namespaces and each.name in question.words
        and _OWNING_NOTHING.issuperset(one.kind for one in each.objects)
        and not {one.kind for one in each.objects} & set(question.kinds)
        and owns(question, question.words.index(each.name))
    )  # fmt: skip
    named = tuple(each for each in subject.named if each.name not in spaces)
    return replace(subject, named=named, namespaces=(*subject.namespaces, *spaces))
