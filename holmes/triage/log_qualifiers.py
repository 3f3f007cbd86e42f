"""Finds the words that say which errors of a log are meant: "dns errors", "an error while connecting to the database".

Such a word is a condition on the lines. A question whose word is in no line is not answered with other errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.triage.log_errors import ERROR_NOUN, happened
from holmes.triage.log_lines import LEVELS, containers_named
from holmes.triage.vocabulary import beginnings, symptoms_in, vocabulary, word_list, words_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.triage.asked import Asked
    from holmes.triage.question import Question

_FROM: Final = frozenset({
    "about", "from", "regarding", "concerning", "calling", "reaching", "contacting", "against", "uber", "sobre",
    "concernant",
})  # fmt: skip
"""Words before the other side of an error, not before the program that logs it."""
_TROUBLE: Final = expression(
    rf"(?:{ERROR_NOUN.pattern}|problems?|issues?|failures?|outages?|probleme?n?|problemas?|problemes?|fallos?|pannes?)"
)
_OF_LINES: Final = ("exceptions", "line words", "writing", "counted lines", "how often")
_TOLD: Final = frozenset({"list", "count", "when", "now", "polite", "logs", "follow_up", "negation", "trouble", "other",
    "excluding", "either", "events", "why", "health"})  # fmt: skip
_PLAIN: Final = expression(
    r"[\d.:<>=/-]*|log(?:s|ged|ging)?|eu|habido|gegeben|containers?|pods?|deployments?|services?|jobs?|instances?"
    r"|twice|once|again|ever|yet|anything|something|type|kinds?|sort|new|recent(?:ly)?|latest|last|first"
    r"|single|stack|traces?|unhandled|uncaught|any|same"
    r"|different|start(?:ed)?|stop(?:ped)?|shown?|shows|appear(?:s|ed)?|occur(?:s|red)?|happen(?:s|ed)?|exists?"
    r"|visible|reported|seen|found|come|comes|came|produced?|total|many|overall|salen|hay"
)
_ENDINGS: Final = ("ations", "ation", "ications", "ication", "ions", "ion", "ings", "ing", "ures", "ure", "ed", "s")
_LEAST_STEM: Final = 4
_LEAST_DIGITS: Final = 4


def qualifiers_of(asked: Asked) -> frozenset[int]:
    """Return the positions of the words that narrow the errors that a question asks for."""
    question = asked.question
    things = happened(question, asked.subject)
    nouns = [index for index, word in enumerate(question.words) if _TROUBLE.fullmatch(word)]
    if things or not nouns:
        return frozenset(things)
    before = range(max(0, nouns[0] - 2), nouns[0])
    after = range(nouns[0], question.clause(nouns[0]).stop)
    narrows = set(_narrowing(asked))
    return frozenset(index for index in (*before, *after) if index in narrows)


def _narrowing(asked: Asked) -> Iterator[int]:
    question, subject = asked.question, asked.subject
    own = {*(each.name for each in subject.named), *subject.namespaces, *containers_named(asked)}
    period = question.period.text if question.period is not None else ""
    used = {*period.split(), *words_of(period)}
    used |= {part for each in question.quoted for part in each.lower().split()}
    used |= {each.of for each in question.comparisons}
    told = {index for each in question.found if each.sense == "concept" and each.name in _TOLD
        for index in range(each.first, each.last + 1)}  # fmt: skip
    missing = {each.name for each in subject.missing}
    for index, word in enumerate(question.words):
        only = len(subject.named) == 1 and word in own  # "warnings from crumbs" are its own
        other_side = not only and _is_other_side(question, index) and word not in used | _WORDS
        value = (word.isdigit() and len(word) >= _LEAST_DIGITS) or word in question.addresses
        content = word not in own | used and index not in told and (value or not _is_plain(word))
        if word in missing or other_side or content:
            yield index


def _is_other_side(question: Question, index: int) -> bool:
    """Return whether a word is what errors are about: "did web log an error from db"."""
    before = next((word for word in reversed(question.words[:index]) if word not in _WORDS or word in _FROM), "")
    errors = any(_TROUBLE.fullmatch(word) for word in question.words[:index])
    return errors and before in _FROM


def _is_plain(word: str) -> bool:
    """Return whether a word says nothing about an error, or is a condition of its own: a level, a status."""
    names = (*(name for name, _, _ in LEVELS), *_OF_LINES)
    if _PLAIN.fullmatch(word) or word.startswith("level") or any(beginnings(name).match(word) for name in names):
        return True
    return not symptoms_in((word,)) and (word in vocabulary().stop or vocabulary().is_ordinary(word) or word in _WORDS)


_WORDS: Final = word_list("of") | word_list("determiners") | word_list("quantifiers") | word_list("locating")


def forms_of(word: str) -> tuple[str, ...]:
    """Return the beginning that other forms of a word have: `connect` of "connection" and "connecting"."""
    stems = (word.removesuffix(each) for each in _ENDINGS if word.endswith(each))
    return tuple(each for each in stems if len(each) >= _LEAST_STEM)
