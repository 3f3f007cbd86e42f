"""Compares the answer of a model with the first look: whether it names the same culprit and the same mechanism."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.evidence import without_markers
from holmes.triage.proofs import shows_trouble
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from holmes.triage.conversation import Conversation
    from holmes.values.first_look import FirstLook

_STRONG: Final = expression(r"[A-Z]+[a-z]+[A-Z]\w+|[A-Z]{2,}[A-Z_]*|[\w.]+[-_/.:]\w[\w.:/-]*|\d{3,}")
_WEAK: Final = expression(r"[^\W\d_]{5,}")
_LEAST_WEAK: Final = 2
_OF_EVERY_ALERT: Final = frozenset({"alertname", "severity", "summary", "description", "message", "prometheus"})
_SHORTEST_TERM: Final = 3
_NUMBER: Final = expression(r"(?<![\w.:\[/-])\d+(?:\.\d+)?(?:%|[A-Za-z]{1,3})?(?![\w:\]/-])")
_TERM: Final = expression(r"`([^`\s]+)`")


def names_culprit(cause: str, look: FirstLook) -> bool:
    """Return whether the cause names the culprit of the look, or its workload if it is a pod of the subject."""
    if look.verdict != "cause_found":
        return False
    name = look.culprit.rpartition("/")[2].rpartition(" ")[2].lower()
    subjects = [each.rpartition("/")[2].lower() for each in look.subject]
    names = (name, *(each for each in subjects if name.startswith(f"{each}-")))
    return any(re.search(rf"(?<![\w-]){re.escape(each)}(?![\w-])", cause.lower()) for each in names)


def agrees(cause: str, text: str, look: FirstLook) -> bool:
    """Return whether the cause is that of the look: its culprit, and a part of its mechanism.

    One name, reason or number of the mechanism is sufficient, or two other words. They may be anywhere in `text`.
    """
    if not names_culprit(cause, look):
        return False
    plain = without_markers(text).lower()
    known = " ".join((*look.subject, look.culprit, look.scope)).lower()
    strong = {word for word in map(str.lower, _STRONG.findall(look.summary)) if word not in known}
    weak = {word for word in map(str.lower, _WEAK.findall(look.summary)) if word not in known and shows_trouble(word)}
    if any(word in plain for word in strong):
        return True
    return sum(word in plain for word in weak) >= min(_LEAST_WEAK, len(weak))


def repeats_numbers(text: str, look: FirstLook, question: str) -> bool:
    """Return whether the answer to a question of fact contains the numbers of the look's answer.

    Numbers in names and paths do not count: `web-0`, `rules[0]`. Those of `question` prove no answer.
    """
    numbers = set(_NUMBER.findall(look.summary)) - set(_NUMBER.findall(question))
    return look.verdict == "answered" and bool(numbers) and numbers <= set(_NUMBER.findall(text))


def names_without_weight(look: FirstLook | None) -> str:
    """Return the names of the subject and its neighbours, which prove nothing."""
    if look is None:
        return ""
    return " ".join((*look.subject, look.scope, *(each.partition(": ")[0] for each in look.neighbours)))


def terms_without_object(look: FirstLook | None, conversation: Conversation) -> tuple[str, ...]:
    """Return the words for what the question is about, if it is not an object of the cluster."""
    if look is None or look.subject:
        return ()
    if conversation.alerts:
        labels = [item for each in conversation.alerts for item in each.items()]
        values = [value.lower() for key, value in labels if key not in _OF_EVERY_ALERT]
        return tuple(value for value in values if len(value) > _SHORTEST_TERM)
    return tuple(term.lower() for term in _TERM.findall(look.summary)) if look.verdict == "not_found" else ()
