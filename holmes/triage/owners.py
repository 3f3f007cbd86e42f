"""Finds the words in the place of a name: `inventory` in "how many pods does inventory have".

Such a word names what the question is about. If no object has it as its name, an answer about all objects would be
about something else.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.kinds import WORKLOADS
from holmes.triage.grammar import NAME
from holmes.triage.subjects import Missing, Named
from holmes.triage.vocabulary import symptoms_in, vocabulary, word_list
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.triage.names import Names
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.triage.vocabulary import Sighting

_NOUNS: Final = word_list("programs by nouns")
_ARTICLES, _OF = (word_list("determiners") | {"l", "d"}) - {"a"}, word_list("of")
_FOR, _OCCASIONS = frozenset({"for", "fur", "para", "pour"}), word_list("occasions")
_CONJUNCTIONS, _TEMPORAL = word_list("conjunctions"), word_list("temporal")
_ENDING: Final = _CONJUNCTIONS | _TEMPORAL | word_list("locating") | word_list("before subjects")
_INCLUDING: Final = word_list("including")
_DOING: Final = frozenset({"does", "did"})
_OWNING: Final = word_list("verbs of one owner")
_FRENCH: Final = frozenset({"combien", "quel", "quelle", "quels", "quelles"})
_ONE: Final = frozenset({"is", "was", "has", "ist", "war", "wurde", "hat", "est", "a", "esta", "fue", "ha"})
_FRENCH_QUESTION: Final = ("est-ce", "que")
_LINKS, _LEADING = word_list("links of subjects"), word_list("verbs before subjects")
_FIELDS: Final = frozenset(
    {"images", "resources", "replicas", "settings", "events", "logs", "usage", "history", "restarting"}
)
"""The things that only a certain object has. A name is expected beside them."""
_SUMMED: Final = ("images", "resources", "replicas", "settings")
_JUDGING: Final = frozenset({"health", "trouble", "why"})
_MOST_PARTS: Final = 3
_PAIR: Final = 2


def with_names_of_nouns(question: Question, names: Names) -> Question:
    """Read nouns such as `inventory` as names in the place of a name, and not as the order to list something."""
    here = {each.first for each in question.found if each.first == each.last and _is_name(question, each, names)}
    if not here:
        return question
    kept = tuple(each for each in question.found if each.first not in here)
    rest = symptoms_in(word for index, word in enumerate(question.words) if index not in here)
    return replace(question, found=kept, symptoms=question.symptoms & rest)


def with_missing_owners(question: Question, subject: Subject, names: Names) -> Subject:
    """Return the subject with the words in the place of a name as missing, or as a part of the names of a few."""
    subject = _without_included(question, subject)
    if subject.named or subject.missing or subject.excluded:
        return subject
    if subject.values:
        return _with_valued(question, subject, names)
    known = {index for each in question.found for index in range(each.first, each.last + 1)}
    for index, word in enumerate(question.words):
        candidate = word in subject.unknown or (word in _NOUNS and index not in known)
        if not candidate or word in subject.namespaces or NAME.fullmatch(word) is None or not is_owner(question, index):
            continue
        unknown = tuple(each for each in subject.unknown if each != word)
        objects = names.containing(word, subject.namespaces)
        if objects and len({each.name for each in objects}) <= _MOST_PARTS:
            return replace(subject, named=(Named(name=word, objects=objects, match="part"),), unknown=unknown)
        place = subject.namespaces[0] if len(subject.namespaces) == 1 else ""
        near = tuple(each.ref for each in names.nearest(word, "", subject.namespaces))
        return replace(subject, missing=(Missing(name=word, namespace=place, nearest=near),), unknown=unknown)
    return subject


def _with_valued(question: Question, subject: Subject, names: Names) -> Subject:
    """Return the subject with the workloads of a label's value whose fields are asked for: "images of team green"."""
    fields = question.asks(*_SUMMED) or "restarting" in question.states
    if not fields or subject.kinds or len(subject.values) > 1 or question.asks("why", "health", "trouble", "logs"):
        return subject
    value = subject.values[0]
    at = question.words.index(value) if value in question.words else 0
    before = question.words[at - 1] if at else ""
    workloads = names.valued(value, subject.namespaces) if before in _OF or (before, value) in names.pairs else ()
    named = tuple(Named(name=each.name, objects=(each,)) for each in workloads)
    return replace(subject, named=named, values=()) if named else subject


def _without_included(question: Question, subject: Subject) -> Subject:
    """Return the subject of a sum that only includes the named objects: "total restarts including kettle"."""
    words = question.words
    including = {words[at] for at in range(1, len(words)) if words[at - 1] in _INCLUDING and at > 1}
    if not subject.named or not including.issuperset(each.name for each in subject.named):
        return subject
    return replace(subject, named=(), unknown=tuple(each for each in subject.unknown if each not in _INCLUDING))


def is_owner(question: Question, index: int) -> bool:
    """Return whether the word at a position has what is asked for, or is what a question of health is about."""
    return _owns(question, index) or _is_judged(question, index)


def _is_name(question: Question, place: Sighting, names: Names) -> bool:
    """Return whether a word of the vocabulary is a name here: a noun, or a workload of the cluster: "label ok?"."""
    word = question.words[place.first]
    runs = any(each.kind in WORKLOADS for each in names.named(word))
    if "." in place.name:  # a product, which is a workload where only a workload has what is asked for
        return runs and not question.complains and not question.asks("why", "trouble")
    if not (runs or word in _NOUNS):
        return False
    runs = runs and place.name not in _FIELDS  # "usage problems?", "logs and events of web"
    return _is_free(question, place, names) or (
        runs and (_leads(question, place) or _is_listed(question, place, names))
    )


def _leads(question: Question, place: Sighting) -> bool:
    """Return whether a short question consists of a word and how it is: "label ok?", "geht label?"."""
    rest = [each for each in question.found if each.first != place.first]
    judged = any(each.name in _JUDGING for each in rest) or bool(question.symptoms)
    return judged and len(question.words) == _PAIR


def _is_listed(question: Question, place: Sighting, names: Names) -> bool:
    """Return whether a word is in a list of names: "are label and bell ok"."""
    words, clause = question.words, question.clause(place.first)
    beside = [(place.first - 2, place.first - 1), (place.first + 2, place.first + 1)]
    joined = any(
        at in clause and link in clause and words[link] in _CONJUNCTIONS and names.named(words[at])
        for at, link in beside
    )
    comma = place.first in question.breaks and place.first > 0 and names.named(words[place.first - 1])
    return bool(joined or comma)


def _is_free(question: Question, place: Sighting, names: Names) -> bool:
    """Return whether a noun is in the place of a name. Plurals do not: "count of events"."""
    word = question.words[place.first]
    plural = vocabulary().is_plural(word) or (word.endswith("s") and not names.knows(word))
    return not plural and is_owner(question, place.first)


def _start(question: Question, index: int) -> int:
    """Return the position of a word, or of its article: "the memory limit of the basket"."""
    return index - 1 if index - 1 in question.clause(index) and question.words[index - 1] in _ARTICLES else index


def _owns(question: Question, index: int) -> bool:
    words, clause = question.words, question.clause(index)
    start = _start(question, index)
    before = words[start - 1] if start - 1 in clause else ""
    after = words[index + 1] if index + 1 in clause else ""
    ends = not after or after in _ENDING
    things = [each for each in question.found if each.first in clause and not each.first <= index <= each.last]
    leading = [each for each in things if each.last < index and _is_had(question, each)]
    if after and before in _DOING and (things if start == index else leading):
        return True  # "which image does salt use"
    if expression(rf"(?<![\w-]){re.escape(words[index])}'s ").search(question.text) and index + 1 < len(words):
        return any(each.first > index and _is_had(question, each) for each in things)
    if not ends:
        return False
    if before in _OF:
        aside = words[index].endswith("ing") or (before in _FOR and words[index] in _OCCASIONS)
        return not aside and any(each.last == start - 2 for each in leading)  # "the memory limit of salt"
    french = before == "a" and not _FRENCH.isdisjoint(words)
    return (before in _OWNING or french) and bool(leading)  # "wie viele Pods hat salz"


def _is_had(question: Question, place: Sighting) -> bool:
    """Return whether a phrase is what an object can have: a field, or several objects of a kind."""
    several = place.sense == "kind" and vocabulary().is_plural(question.words[place.last])
    return place.name in _FIELDS or (several and place.name != "Namespace")


def _is_judged(question: Question, index: int) -> bool:
    """Return whether a word is the subject of a judgement: "is inventory running", "inventory is down"."""
    words, clause = question.words, question.clause(index)
    start = _start(question, index)
    before = words[start - 1] if start - 1 in clause else ""
    after = words[index + 1] if index + 1 in clause else ""
    if words[index] not in _NOUNS:  # "wie oft ist salz neu gestartet"
        return before in _ONE and question.asks("count") and "restarting" in question.states
    judged = set(_judgements(question, index))
    ends = not after or index + 1 in judged or after in _ENDING
    inverted = start - 1 in judged and start - 2 in clause and words[start - 2] in _LEADING  # "esta corriendo X"
    led = before in _LEADING or inverted or words[clause.start : start] == _FRENCH_QUESTION
    return bool(judged) and ((led and ends) or (start == clause.start and after in _LINKS))


def _judgements(question: Question, index: int) -> Iterator[int]:
    for each in question.found:
        if not each.first <= index <= each.last and (each.sense == "state" or each.name in _JUDGING):
            yield each.first
