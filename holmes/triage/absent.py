"""Answers questions whose subject is not known: names that no object has, and texts that ask nothing of a cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.kinds import KINDS
from holmes.triage.asked import incidents_of_subject
from holmes.triage.connections import naming
from holmes.triage.grammar import unknown_parts
from holmes.triage.judged_noun import judged_noun
from holmes.triage.ledger import unread
from holmes.triage.markdown import some_of
from holmes.triage.plans import plans_of
from holmes.triage.vocabulary import word_list
from holmes.values.first_look import FirstLook

if TYPE_CHECKING:
    from holmes.triage.asked import Asked
    from holmes.triage.subjects import Missing, Subject

_BEFORE_SUBJECT: Final = word_list("verbs before subjects")
_QUESTION_WORDS: Final = word_list("before subjects")
_EVERYDAY: Final = word_list("everyday things")
_KINDS: Final = frozenset(kind.name for kind in KINDS)
_NEEDED: Final = frozenset(
    {"Secret", "ConfigMap", "StorageClass", "ServiceAccount", "PersistentVolumeClaim", "Service"}
)
_MOST_USERS: Final = 4
_NOT_UNDERSTOOD: Final = (
    "Not understood: this is not a question about a cluster that the built-in rules can answer. Name an object, a "
    "namespace or a symptom, for example `why is checkout failing in namespace shop`, or configure a model."
)
_SEARCHED: Final = ("Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job", "Service", "Pod")


def _empty(asked: Asked) -> FirstLook:
    return FirstLook(
        verdict="inconclusive",
        summary="",
        subject=tuple(str(each.ref) for each in asked.subject.objects[:4]),
        scope=asked.subject.place,
        taken_at=asked.report.taken_at,
    )


def unclear(asked: Asked) -> FirstLook:
    """Answer a question without a known subject: a missing name, a vague complaint, or no question about a cluster."""
    judged, question = judged_noun(asked), asked.question
    unknown = (judged,) if judged else unknown_parts(question, asked.subject)
    about = bool(question.symptoms) or question.asks("trouble", "changes", "logs")
    names = grammatical_subject(asked) or ((about or question.asks("why")) and 0 < len(unknown) <= 2)
    gaps = unread(asked.state, _SEARCHED, asked.subject.namespaces)
    words = " or ".join(f"`{word}`" for word in unknown[:3])
    if names and gaps:
        text = f"Cannot determine whether {words} exists: {', '.join(gaps)} could not be read."
        return replace(_empty(asked), summary=text)
    is_form = all(word.endswith(("ing", "ed", "ly")) for word in unknown)
    if judged and is_form:  # "invoicing" can mean the Deployment `invoice-worker`
        return replace(_empty(asked), summary=f"It is not known which object of this cluster {words} means.")
    if names and not is_form:
        text = (
            f"No object with a name or label like {words} was found {asked.subject.place}, so nothing about it can be "
            "known from this cluster."
        )
        return replace(_empty(asked), verdict="not_found", summary=text)
    if about and names:
        return replace(_empty(asked), summary=f"The cause cannot be determined: {words} names nothing in this cluster.")
    return replace(_empty(asked), verdict="not_understood", summary=_NOT_UNDERSTOOD)


def is_only_cited(asked: Asked) -> bool:
    """Return whether a question only cites words, and asks nothing of a cluster: "translate "shell" to Norwegian"."""
    cited = [each.name for each in asked.subject.missing]
    plain = all(name.isalpha() and name in asked.question.quoted_names for name in cited)
    marked = any(f"`{name}`" in asked.question.written.lower() for name in cited)
    return bool(cited) and plain and not marked and not plans_of(asked.question, asked.subject)


def grammatical_subject(asked: Asked) -> str:
    """Return the unknown word that the question is about, for example `kafka` in "is kafka ok", or an empty string."""
    if judged := judged_noun(asked):
        return judged
    if asked.subject.kinds:
        return ""
    words, unknown = asked.question.words, set(asked.subject.unknown)
    if asked.subject.namespaces and asked.question.asks("why"):
        unknown -= _EVERYDAY  # "why are responses slow in shop" is about the namespace
    for index, word in enumerate(words[1:], 1):
        leads = index == 1 or words[index - 2] in _QUESTION_WORDS
        if word in unknown and words[index - 1] in _BEFORE_SUBJECT and leads:
            return word
    return ""


def not_found(asked: Asked, missing: Missing) -> FirstLook:
    """Answer a question about a name that no object has, unless it is outside of what was read."""
    text = missing_text(missing, asked.subject)
    if missing.kind == "place" or (missing.kind == "address" and not missing.name[-1:].isdigit()):
        text = f"`{missing.name}` is nothing that the objects of this cluster name, so nothing can be said about it."
        return replace(_empty(asked), summary=text, others=incidents_of_subject(asked))
    gaps = unread(asked.state, (missing.kind,) if missing.kind in _KINDS else _SEARCHED, asked.subject.namespaces)
    if gaps:
        text = f"Cannot determine whether `{missing.name}` exists: {', '.join(gaps)} could not be read."
        return replace(_empty(asked), summary=text)
    needed = missing.kind in _NEEDED and asked.question.asks("uses", "list")
    every = naming(asked.state, missing.kind, missing.name) if needed else ()
    users = [each for each in every if asked.subject.contains(each)]
    if users:
        told = some_of([str(each.ref) for each in users], _MOST_USERS)
        text = f"{text} {told} {'needs' if len(users) == 1 else 'need'} it."
        return replace(_empty(asked), verdict="answered", summary=text)
    return replace(_empty(asked), verdict="not_found", summary=text, neighbours=tuple(map(str, missing.nearest)))


def missing_text(missing: Missing, subject: Subject) -> str:
    kind = f"{missing.kind} " if missing.kind else ""
    kind = "The address " if missing.kind == "address" else kind
    place = "" if missing.kind == "Namespace" else f" {subject.place}"
    elsewhere = [ref for ref in subject.elsewhere if ref.name == missing.name]
    hint = f" It exists in another namespace: {elsewhere[0]}." if elsewhere else ""
    if not hint and missing.nearest:
        hint = f" Did you mean {', '.join(map(str, missing.nearest[:3]))}?"
    return f"{kind}`{missing.name}` not found{place}.{hint}"
