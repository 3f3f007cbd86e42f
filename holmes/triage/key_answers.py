"""Answers which keys a ConfigMap or a Secret has, and the values of those of a ConfigMap that are not secret."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.evidence import has_secret_name, shown
from holmes.triage.facts import fact, table_of
from holmes.triage.markdown import counted
from holmes.triage.users import keys_used
from holmes.triage.vocabulary import beginnings
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.first_look import FirstLook

_MOST_TOLD: Final = 4
_CONTENT: Final = expression(
    r"\b(?:what(?:'s| is| does)?|was|que|qu'y a-t-il|qu'est-ce qu'il y a)\b.{0,30}"
    r"\b(?:in|inside|contain|drin|hay en|contiene|dans)\b"
    r"|\b(?:contents?|values?|inhalte?|werte?|contenidos?|valores|contenus?|valeurs) (?:of|von|de|du)\b"
)
"""A question for all values of a ConfigMap."""


def asks_keys(question: Question, subject: Subject) -> bool:
    """Return whether a question asks for the keys of a ConfigMap or a Secret, or for the value of a named key."""
    holders = [each for each in subject.objects if each.kind in ("ConfigMap", "Secret")]
    plain = subject.without_names(question.text)
    named = beginnings("key names").search(plain) is not None
    content = bool(holders) and _CONTENT.search(plain) is not None
    valued = content or any(key.lower() in question.words for each in holders for key in each.child("data"))
    return bool(holders) and (named or valued) and not question.asks("why", "trouble", "uses", "changes", "when")


def keys(asked: Asked) -> FirstLook:
    """Return the keys of the named ConfigMaps and Secrets, with the values of the keys that the question names."""
    holders = [each for each in asked.subject.objects if each.kind in ("ConfigMap", "Secret")]
    whole = all(each.kind == "ConfigMap" for each in holders) and _CONTENT.search(asked.question.text) is not None
    rows = [
        (str(each.ref), key, _value_of(each, key) if whole or key.lower() in asked.question.words else "")
        for each in holders
        for key in keys_used(asked.state, each)
    ]
    valued = [row for row in rows if row[2]]
    if len(valued) > _MOST_TOLD:
        told = f"{counted(len(valued), 'key')} of {', '.join(str(each.ref) for each in holders)}."
        return fact(asked, told, table_of(("object", "key", "value"), valued))
    if valued:
        return fact(asked, "; ".join(f"{key} of {ref} is {value}" for ref, key, value in valued[:4]) + ".")
    names = ", ".join(dict.fromkeys(row[1] for row in rows))
    secret = " as far as workloads use them" if any(each.kind == "Secret" for each in holders) else ""
    text_of = f"The keys of {', '.join(str(each.ref) for each in holders)}{secret}: {names or 'none known'}."
    return fact(asked, text_of, None, "answered" if rows else "inconclusive")


def _value_of(each: ClusterObject, key: str) -> str:
    hidden = each.kind == "Secret" or has_secret_name(key)
    return "(not shown)" if hidden else shown(each.child("data").get(key))
