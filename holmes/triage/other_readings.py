"""Reads words of a question that the search took for names as what else they are in this cluster.

A name that no object has can be the registry of images, or a misspelled workload beside the word "pod". A namespace can
have the name of an account that no question means, such as `default`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.triage.filters import WITH_TEMPLATE
from holmes.triage.grammar import owns
from holmes.triage.guessing import LEAST_TYPED, SURE
from holmes.triage.names import alike
from holmes.triage.subjects import Named

if TYPE_CHECKING:
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.names import Names
    from holmes.triage.question import Question
    from holmes.triage.subjects import Missing, Subject

_OF: Final = frozenset({"of", "de", "d"})
_OWNING_NOTHING: Final = frozenset({"ServiceAccount", "ConfigMap", "Secret"})


def read_otherwise(question: Question, subject: Subject, names: Names) -> Subject:
    """Return the subject with registries, misspelled workloads and namespaces in place of names of nothing."""
    if question.asks("images") or not WITH_TEMPLATE.isdisjoint(question.kinds):  # "is registry.example ok" asks for it
        subject = _with_registries(subject, names)
    subject = _with_accounts(question, subject, names)
    subject = _with_workloads(subject, names)
    return _without_counted(question, _with_namespaces(question, subject, names))


def _with_registries(subject: Subject, names: Names) -> Subject:
    missing = tuple(each for each in subject.missing if not names.is_registry(each.name))
    unknown = tuple(word for word in subject.unknown if not names.is_registry(word))
    found = [each.name for each in subject.missing if each not in missing]
    found += [word for word in subject.unknown if word not in unknown]
    images = tuple(dict.fromkeys((*subject.images, *found)))
    return replace(subject, missing=missing, unknown=unknown, images=images)


def _with_accounts(question: Question, subject: Subject, names: Names) -> Subject:
    """Read the missing Deployment of "can ci deploy to shop" as the account that deploys."""
    if not {"deploy", "deployen"} & {*question.words} or subject.named:
        return subject
    found = [
        Named(name=each.name, objects=accounts)
        for each in subject.missing
        if each.kind == "Deployment" and (accounts := names.named(each.name, "ServiceAccount", ()))
    ]
    return replace(subject, named=tuple(found), missing=()) if found else subject


def _with_workloads(subject: Subject, names: Names) -> Subject:
    """Read the name of no pod as that of the workload with the nearest name, or mention the nearest ones."""
    named, missing = list(subject.named), []
    for each in subject.missing:
        near = _nearest(each, names) if each.kind == "Pod" and not each.nearest else ()
        sure = {one.name for one in near if alike(each.name, one.name) >= SURE and _is_slip(each.name, one.name)}
        if len(sure) == 1 and len(each.name) >= LEAST_TYPED:
            objects = names.named(sure.pop(), "", _spaces(each))
            named.append(Named(name=each.name, objects=objects, match="similar"))
        else:
            missing.append(replace(each, nearest=each.nearest or tuple(one.ref for one in near)))
    return replace(subject, named=tuple(named), missing=tuple(missing))


def _is_slip(typed: str, name: str) -> bool:
    """Return whether a name has two letters exchanged, one left out or one doubled. Another letter is another name."""
    if len(typed) == len(name):
        differing = [at for at in range(len(name)) if typed[at] != name[at]]
        first = differing[0] if differing else 0
        return len(differing) == 2 and typed[first : first + 2] == name[first : first + 2][::-1]
    shorter, longer = sorted((typed, name), key=len)
    places = [at for at in range(len(longer)) if longer[:at] + longer[at + 1 :] == shorter]
    return bool(places) and (longer == name or len(places) > 1)


def _nearest(missing: Missing, names: Names) -> tuple[ClusterObject, ...]:
    near = names.nearest(missing.name, "", _spaces(missing))
    return tuple(names.named(each.name, "", _spaces(missing))[0] for each in near)  # a workload before its autoscaler


def _spaces(missing: Missing) -> tuple[str, ...]:
    return (missing.namespace,) if missing.namespace else ()


def _without_counted(question: Question, subject: Subject) -> Subject:
    """Read what is counted as things, although a namespace has its name: "how many orders did intake receive"."""
    counts = {each.last for each in question.found if each.sense == "concept" and each.name == "count"}
    kinds = {each.first for each in question.found if each.sense in ("kind", "word")}
    counted = tuple(
        word
        for at, word in enumerate(question.words)
        if word in subject.namespaces and question.words.count(word) == 1 and at + 1 not in kinds
        and (at - 1 in counts or (at - 2 in counts and question.words[at - 1] in _OF))
    )  # fmt: skip
    if not counted or not subject.named:
        return subject
    spaces = tuple(space for space in subject.namespaces if space not in counted)
    return replace(subject, namespaces=spaces, unknown=(*subject.unknown, *counted))


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
