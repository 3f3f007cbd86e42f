"""Answers what applies if nothing is set: the default StorageClass or IngressClass, and the amounts of a LimitRange."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import text, text_map
from holmes.triage.facts import fact, table_of
from holmes.triage.ledger import unread
from holmes.triage.markdown import some_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.values.first_look import FirstLook

_CLASS_WORDS: Final = r"(?:storage|ingress) ?class(?:es)?"
_DEFAULT: Final = expression(
    r"\b(?:what|which|welche[rs]?|was|cual|que|quelle?) (?:is|are|ist|sind|es|est) (?:the |die |la )?default "
    rf"{_CLASS_WORDS}\s*\?*$"
    rf"|\bwhich {_CLASS_WORDS} (?:is|are) (?:the )?default\s*\?*$"
    rf"|\b(?:is|are) there (?:a|any) default {_CLASS_WORDS}|^(?:the )?default {_CLASS_WORDS}\s*\?*$"
    r"|\bdefault (?:memory|cpu|ram)? ?(?:requests?|limits?)\b"
)
_CLASSES: Final = ("StorageClass", "IngressClass")
_MARK: Final = "is-default-class"
"""The end of the annotation with which a class is the default."""
_MOST_TOLD: Final = 4


def asks_default(question: Question) -> bool:
    """Return whether a question asks for the default class, or for default requests and limits."""
    other = question.asks("why", "trouble", "count", "changes", "negation", "uses", "health")
    kinds = set(question.kinds) <= {*_CLASSES, "Namespace", "LimitRange"}
    return kinds and not other and _DEFAULT.search(question.text) is not None


def default(asked: Asked) -> FirstLook:
    """Return the default classes, or what the LimitRanges of the namespaces set."""
    kind = next((each for each in _CLASSES if each in asked.question.kinds), "LimitRange")
    gaps = unread(asked.state, (kind,), asked.subject.namespaces)
    if gaps:
        return fact(asked, f"{', '.join(gaps)} could not be read.", None, "inconclusive")
    if kind == "LimitRange":
        return _amounts(asked)
    every = asked.state.of(kind)
    marked = [each.name for each in every if any(map(_marks, each.annotations.items()))]
    if marked:
        return fact(asked, f"The default {kind} is {some_of(marked, _MOST_TOLD)}.")
    others = some_of([each.name for each in every], _MOST_TOLD) or "none"
    return fact(asked, f"No {kind} is marked as the default. Known: {others}.")


def _marks(annotation: tuple[str, str]) -> bool:
    return annotation[0].endswith(_MARK) and annotation[1] == "true"


def _amounts(asked: Asked) -> FirstLook:
    """List the default requests and limits that LimitRanges give to containers without their own."""
    rows = [
        (str(each.ref), name, key, amount)
        for each in asked.state.of("LimitRange")
        if asked.subject.contains(each)
        for one in each.children("spec", "limits")
        if text(one, "type") == "Container"
        for name, field in (("request", "defaultRequest"), ("limit", "default"))
        for key, amount in text_map(one, field).items()
    ]
    if not rows:
        return fact(asked, f"No LimitRange {asked.subject.place} sets a default, so containers get none.")
    told = "; ".join(f"{ref}: default {key} {name} {amount}" for ref, name, key, amount in rows[:_MOST_TOLD])
    more = table_of(("LimitRange", "default", "resource", "amount"), rows) if len(rows) > _MOST_TOLD else None
    return fact(asked, f"{told}.", more)
