"""Recognizes requests that Holmes declines, because it only reads: changes of the cluster, and values of Secrets.

A question with a word such as "restart" or "password" is answered: "why does the restart take so long".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.triage.vocabulary import word_list, words_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.triage.question import Question

READS_ONLY: Final = "Holmes only reads: it changes nothing and shows no secret values."
_CLAUSES: Final = re.compile(r"[,;:!?.](?=\s|$)|\s[-\u2013\u2014]\s")
_TOOL: Final = re.compile(
    r"\b(?:kubectl|oc|helm) (?:-\S+ (?:\S+ )?)?(?:delete|apply|create|scale|patch|edit|replace|drain|cordon|uncordon"
    r"|taint|label|annotate|set|expose|autoscale|evict|rollout (?:restart|undo|pause|resume)|upgrade|install|uninstall"
    r"|rollback)\b"
)
_LEADING: Final = re.compile(
    r"^(?:.*\b(?:i need you to|i want you to|you (?:should|must|have to)|let's|lets|let us|go and|please|pls|bitte"
    r"|por favor|s'il te plait|s'il vous plait|(?:can|could|would|will) you|(?:kannst|konntest|koenntest) du)\s+)"
)
_WISHES: Final = re.compile(
    r"\b(?:quiero|quisiera|necesito|hay que|tienes que|puedes|podrias|il faut|veuillez|je veux|je voudrais|peux-tu"
    r"|pouvez-vous|merci de)\b"
)
_ASKING: Final = word_list("asking")
_NOUNS: Final = word_list("after nouns")
_ORDERS: Final = word_list("orders")
_INFINITIVES: Final = word_list("order infinitives")


def declined(question: Question) -> str:
    """Return why a request is declined, or an empty string for a question."""
    asks = bool(question.words) and question.words[0] in _ASKING
    if _TOOL.search(question.text) or (not asks and any(_orders(question))):
        return f"{READS_ONLY} The change was not made."
    values = question.asks("secret_value") or (question.asks("value_of") and "Secret" in question.kinds)
    if values and not question.asks("why", "trouble") and question.words[0] not in ("is", "are", "does", "did", "was"):
        return f"{READS_ONLY} Names and keys of Secrets can be listed."
    return ""


def _orders(question: Question) -> Iterator[bool]:
    """Yield for each clause whether it is an order."""
    if question.asks("why", "count"):
        return
    for clause in _CLAUSES.split(question.text):
        words = words_of(clause.strip())
        rest = words_of(_LEADING.sub("", clause.strip()))
        yield "would you mind" in clause or _begins_with_order(words) or _begins_with_order(rest)
        last = words[-1:] if words[-2:] != ("neu", "starten") else ("neustarten",)
        german = bool(last) and last[0] in _INFINITIVES
        yield german or (_WISHES.search(clause) is not None and not _INFINITIVES.isdisjoint(words))


def _begins_with_order(words: tuple[str, ...]) -> bool:
    """Return whether words begin with the verb of an order. "Scale of checkout" is a question."""
    while words and words[0] in word_list("fillers"):
        words = words[1:]
    if not words or words[0] not in _ORDERS:
        return False
    following = [word for word in words[1:3] if word not in ("a", "an", "the", "out", "back")]
    return not following or following[0] not in _NOUNS
