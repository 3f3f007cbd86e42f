"""Judges by its place in a sentence whether a word without a known meaning changes what a number or a list means.

"Idle pods", "pods with sidecars" and "pods are idle" name a condition. "Gimme all pods, I am on call" does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.triage.vocabulary import word_list

if TYPE_CHECKING:
    from holmes.triage.question import Question

_LINKING: Final = word_list("linking")
_DETERMINERS: Final = word_list("determiners")
_QUANTIFIERS: Final = word_list("quantifiers")
_MANNERS: Final = frozenset({"polite", "now", "follow_up"})
_FILLERS: Final = word_list("fillers")


def qualifies(question: Question, index: int) -> bool:
    """Return whether an unknown word can be a condition on what a question asks for. A clause of its own asks nothing."""
    words = question.words
    clause = question.clause(index)
    before = [word for word in words[clause.start : index] if word not in _DETERMINERS]
    if before and before[-1] in _LINKING:
        return True
    leads = all(word in _FILLERS for word in words[clause.start : index])
    if leads and index + 1 in clause and words[index + 1] in _QUANTIFIERS | _DETERMINERS:
        return False  # "gimme every pod"
    return any(each.first in clause and each.name not in _MANNERS for each in question.found)
