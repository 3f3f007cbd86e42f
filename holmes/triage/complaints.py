"""Tells complaints from questions of fact: "orders answers 503 since four, nothing was deployed" asks for a cause.

A complaint states trouble in a clause of its own. Beside it, a vague question such as "what is it" asks for nothing
else, but "how many pods does it have" does.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.triage.vocabulary import sightings, symptoms_in, word_list, words_of

if TYPE_CHECKING:
    from collections.abc import Sequence


_CLAUSE: Final = re.compile(r"[.,;!?()\n]+(?:\s|$)|:\s|\s(?:[-\u2013\u2014]|&)\s")
_STATUS: Final = re.compile(r"(?<![\w.:/-])[45](?:\d\d|xx)s?(?![\w.:/%-])")
_LEAST_WORDS: Final = 2
_LEADING: Final = 3
_TROUBLED: Final = frozenset({"trouble", "negation"})
TROUBLED_STATES: Final = frozenset({"failing", "failed", "crashing", "not_ready", "evicted", "oom", "image_pull"})
TROUBLED_SYMPTOMS: Final = frozenset({"crash", "unreachable", "slow", "evicted"})
"""Symptoms whose words tell of trouble. The words of others, for example `memory`, also name things."""
_FACTS: Final = frozenset({
    "count", "permission", "port_forward", "exec", "placement", "average", "sum", "percentile", "maximum", "minimum",
    "uses", "resources", "usage", "secret_value", "images", "when",
})  # fmt: skip


def complains(text: str) -> bool:
    """Return whether a folded question states trouble, and asks for no fact beside it."""
    clauses = [(words_of(each), each) for each in _CLAUSE.split(text)]
    clauses = [each for each in clauses if each[0]]
    stated = any(states_trouble(words, clause) for words, clause in clauses)
    return stated and not _is_list(clauses[0][0]) and not any(_asks_fact(words) for words, _ in clauses)


def states_trouble(words: Sequence[str], clause: str) -> bool:
    """Return whether a clause states trouble: "label printing is dead"."""
    if len(words) < _LEAST_WORDS or _is_question(words) or _is_phrase(words):
        return False
    found = sightings(words)
    told = {each.name for each in found if each.sense == "concept"} & _TROUBLED
    told |= {each.name for each in found if each.sense == "state"} & TROUBLED_STATES
    told |= (symptoms_in(words) & TROUBLED_SYMPTOMS) | word_list("signs of trouble").intersection(words)
    return bool(told) or _STATUS.search(clause) is not None


def _is_question(words: Sequence[str]) -> bool:
    """Return whether a clause begins like a question or a request."""
    plain = [word for word in words if word not in word_list("fillers")] or words
    asks = word_list("interrogatives") | {"wann", "quand", "cuando", "when"}
    first = word_list("asking") | word_list("requests") | word_list("yes or no")
    return plain[0] in first or not asks.isdisjoint(plain[:_LEADING])


def _is_phrase(words: Sequence[str]) -> bool:
    """Return whether a clause only names objects or a measure: "pods without limits", "p95 latency of web"."""
    if not (word_list("verbs of state") | word_list("never")).isdisjoint(words):
        return False
    first = [each for each in sightings(words) if each.first == 0]
    return any(each.sense in ("kind", "word", "state") or each.name in _FACTS for each in first)


def _is_list(words: Sequence[str]) -> bool:
    """Return whether a clause asks for a list or a measure without a verb of a question."""
    concepts = {each.name for each in sightings(words) if each.sense == "concept"}
    return words[0] in word_list("requests") or (_is_phrase(words) and bool(concepts & _FACTS))


def _asks_fact(words: Sequence[str]) -> bool:
    """Return whether a clause asks for a fact: a number, a time or a command."""
    concepts = {each.name for each in sightings(words) if each.sense == "concept"}
    return _is_question(words) and bool(concepts & _FACTS) and not concepts & {"why", "trouble"}
