"""Leaves out what a question only tells beside what it asks: headings, remarks in brackets, reasons and known faults.

The place decides, not the words: before a colon, in brackets, after "because", or in a sentence without a question.
Names, kinds, states, labels, and words such as "only" and "the … ones" can narrow the question, so they stay.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from holmes.triage.complaints import states_trouble
from holmes.triage.grammar import is_restricting
from holmes.triage.sentences import opens_question
from holmes.triage.vocabulary import beginnings, folded, sightings, symptoms_in, vocabulary, word_list, words_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_ENDS: Final = expression(
    r"[.!?;:,)]+(?=\s|$)|(?:^|\s)\(|\s[-\u2013\u2014]\s|\n"
    r"|(?<!errors)(?<!error)(?<!exceptions)(?<!timeouts)(?<!warnings)\s(?=(?:because|weil|porque|parce que)\s)"
)
_ADDRESS: Final = expression(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])")
_FACTUAL: Final = frozenset({
    "count", "sum", "list", "usage", "resources", "images", "uses", "replicas", "age", "address", "placement",
})  # fmt: skip
_LINKED: Final = frozenset({"follow_up", "trouble", "health", "why"})
"""Concepts of a clause that needs the others: "list those", "how many of them fail"."""
_NARROWING: Final = frozenset({"excluding", "other", "either", "never"})
_DENIALS: Final = frozenset({"not", "nicht", "kein", "keine", "no", "pas"})
_WELL: Final = frozenset({"health", "running", "ready"})
_STATING: Final = _WELL | {"now", "polite", "follow_up", "other"}
_ALIKE: Final = 4
"""The number of letters with which the names of one thing begin."""
_LAST_NAME: Final = 3
_STATED: Final = word_list("verbs of state") | word_list("reporting verbs")
_PURPOSES: Final = word_list("purposes")
_TICKET: Final = expression(r"\(?(?:ticket |case )?[A-Z]{2,10}-\d{2,7}\)?", re.IGNORECASE)
_LINK: Final = expression(r"^(?:and|or|und|oder|y|e|o|et|ou)\s+")
_HEADING: Final = expression(
    r"(?i)\b(?:section|heading|chapter|abschnitt|uberschrift|überschrift|kapitel|seccion|sección|apartado|capitulo"
    r"|capítulo|rubrique|chapitre)\s+(?:\"[^\"\n]{1,60}\"|[“„][^“”\n]{1,60}[“”]|«[^«»\n]{1,60}»|'[^'\n]{1,60}')"
)
"""A part of a document that the answer is for: "for the handover, section 'Capacity'"."""
_REASONS: Final = frozenset({"because", "weil", "porque", "parce"})
_KNOWING: Final = word_list("knowing")
_MOST_CHARACTERS: Final = 600
_Place = Literal["heading", "brackets", "sentence", "reason", "part"]


@dataclass(frozen=True, slots=True)
class _Clause:
    """A part of a question, and its place. `mark` ends it."""

    text: str
    place: _Place
    mark: str

    @property
    def words(self) -> tuple[str, ...]:
        return words_of(folded(self.text))


def asked_clause(text: str, is_name: Callable[[str], bool]) -> str:
    """Return the clauses that ask, if the others only tell of the person who asks or of other things.

    "I am writing a report and the printer is broken: how many pods are in shop?"
    """
    if len(text) > _MOST_CHARACTERS:
        return text
    text = _HEADING.sub(" ", text)
    clauses = [each for each in _clauses(text) if each.words]
    known = [each for each in clauses if _is_known_beside(each, is_name, clauses)]
    if known:
        names = " and ".join(name for each in known for name in _names(each, is_name))
        return f"{asked_clause(_text_of(each for each in clauses if each not in known), is_name)} except {names}"
    judged = [_judged(each, is_name, clauses) for each in clauses]
    if judged != clauses:
        clauses, text = judged, _text_of(judged)
    for is_left_out in (_is_conceded, _is_affirmed, _is_placed_aside, _is_aside):
        asking = [each for each in clauses if not is_left_out(each, is_name, clauses)]
        linked = is_left_out is _is_aside
        whole = is_left_out in (_is_conceded, _is_affirmed) or _stands_alone(asking, is_name, linked=linked)
        if 0 < len(asking) < len(clauses) and whole:
            clauses = asking
            text = _text_of(asking)
    return text


def _text_of(clauses: Iterable[_Clause]) -> str:
    return " ".join(f"{each.text}{'?' if '?' in each.mark else ','}" for each in clauses).rstrip(",")


def _clauses(text: str) -> Iterator[_Clause]:
    """Yield the clauses with their places. Clauses before the first colon are a heading."""
    start, before, inside = 0, "", False
    marks = [*_ENDS.finditer(text)]
    colon = next((each.end() for each in marks if ":" in each[0] or each[0].strip() in ("-", "\u2013", "\u2014")), 0)
    asked = "?" in text[:colon]
    for end in (*marks, None):
        part, mark = text[start : end.start() if end else None].strip(), end[0].strip() if end else ""
        place: _Place = "part"
        if inside:
            place = "brackets"
        elif end is not None and end.end() <= colon and not asked:
            place = "heading"
        elif words_of(folded(part))[:1] and words_of(folded(part))[0] in _REASONS:
            place = "reason"
        elif _ends_sentence(before) and (_ends_sentence(mark) or not end):
            place = "sentence"
        yield _Clause(part, place, mark)
        inside = mark == "(" or (inside and ")" not in mark)
        start, before = (end.end() if end else 0), mark


def _ends_sentence(mark: str) -> bool:
    return not mark or any(sign in mark for sign in ".!?;\n")


def _is_placed_aside(clause: _Clause, is_name: Callable[[str], bool], clauses: Sequence[_Clause]) -> bool:
    """Return whether a clause is in the place of a remark, and has nothing that can narrow the question."""
    words, found = clause.words, sightings(clause.words)
    concepts = {each.name for each in found if each.sense == "concept"}
    purpose = not _PURPOSES.isdisjoint(words[:1])
    if clause.place == "part" and not purpose:
        return False
    others = [each for each in clauses if each is not clause]
    text = _without_denial(clause, clauses)
    strange = _strange(clause)
    told = {each.sense for each in found} & {"state", "word"} or concepts & _NARROWING or is_restricting(words)
    asks = opens_question(clause.text) or (concepts & _FACTUAL and clause.place != "heading")
    troubled = states_trouble(folded(text)) and not any(map(_asks_identity, others))
    if not strange or told or asks or _names(clause, is_name) or troubled:
        return False
    kinds = any(each.sense == "kind" for each in found)
    named = kinds and not (clause.place == "heading" and any(_kinds(each) for each in others))
    symptoms = symptoms_in(words) and clause.place in ("part", "reason") and not purpose
    return not named and not symptoms


def _asks_identity(clause: _Clause) -> bool:
    """Return whether a clause only asks what has an address: "who is 10.0.0.7"."""
    told = {each.name for each in sightings(clause.words)} & {"trouble", "health", "why", "logs"}
    return opens_question(clause.text) and _ADDRESS.search(clause.text) is not None and not told


def _without_denial(clause: _Clause, clauses: Sequence[_Clause]) -> str:
    """Return the text of a clause, without "not" if it tells what a definition in brackets does not mean.

    "How many gauges (the custom resource, not the dials on the wall)".
    """
    at = clauses.index(clause)
    defines = clause.place == "brackets" and at > 0 and clauses[at - 1].place == "brackets"
    return " ".join(clause.words[1:]) if defines and clause.words[0] in _DENIALS else clause.text


def _kinds(clause: _Clause) -> bool:
    return any(each.sense in ("kind", "word") for each in sightings(clause.words))


def _names(clause: _Clause, is_name: Callable[[str], bool]) -> tuple[str, ...]:
    """Return what a clause names of the cluster. In a heading, words of the vocabulary are not names.

    The first word of a clause can be ordinary: "orders gets nothing".
    """
    seen = sightings(clause.words) if clause.place == "heading" else ()
    known = {at for each in seen for at in range(each.first, each.last + 1)}
    words = (word for at, word in enumerate(clause.words) if at not in known)
    first = clause.words[0]
    return tuple(word for word in words if (word == first or not vocabulary().is_ordinary(word)) and is_name(word))


def _is_known_beside(clause: _Clause, is_name: Callable[[str], bool], clauses: Sequence[_Clause]) -> bool:
    """Return whether a remark in brackets tells of a known fault beside one whose words name nothing of the cluster.

    "The screens are empty, why? (ads is down too, but we know)" is not about `ads`, whatever the screens are.
    """
    told = clause.place == "brackets" and not _KNOWING.isdisjoint(clause.words) and not opens_question(clause.text)
    if not told or not _names(clause, is_name):
        return False
    others = [each for each in clauses if each.place != "brackets"]
    return not any(_names(each, is_name) for each in others) and any(_strange(each) for each in others)


def _strange(clause: _Clause) -> tuple[int, ...]:
    """Return the places of the words that the vocabulary does not know."""
    known = {at for each in sightings(clause.words) for at in range(each.first, each.last + 1)}
    return tuple(
        at
        for at, word in enumerate(clause.words)
        if at not in known and not word.isdigit() and not vocabulary().is_ordinary(word)
    )


def _is_conceded(clause: _Clause, is_name: Callable[[str], bool], clauses: Sequence[_Clause]) -> bool:
    """Return whether a clause tells of another fault that the person knows, or of a neighbour of the subject.

    "Is cart ok? web is down too, we know", "is cart ok? web next to it crashes".
    """
    at = clauses.index(clause)
    beside = clauses[at + 1 : at + 2]
    knows = not _KNOWING.isdisjoint(clause.words) and not opens_question(clause.text)
    alone = knows and not _names(clause, is_name)
    announced = bool(beside) and not _KNOWING.isdisjoint(beside[0].words) and not _names(beside[0], is_name)
    placed = beginnings("standing beside").search(folded(clause.text)) is not None and "?" not in clause.mark
    told = not opens_question(clause.text) and _names(clause, is_name) and (announced or knows or placed)
    others = [each for each in clauses if each is not clause and _names(each, is_name)]
    asked = any(opens_question(each.text) or (placed and "?" in each.mark) for each in others)
    return bool(asked and (told or alone))


def _is_affirmed(clause: _Clause, is_name: Callable[[str], bool], clauses: Sequence[_Clause]) -> bool:
    """Return whether a clause tells that a neighbour of the subject is well: "orders gets nothing, rabbit runs".

    Without a name, it tells whom the fault spares: "some get a 502, others are fine".
    """
    others = [each for each in clauses if each is not clause]
    names = _names_well(clause, is_name)
    if names:
        own = {name[:_ALIKE] for name in names}  # "no invoices arrive, invoice-writer runs" is about one thing
        return any(name[:_ALIKE] not in own for each in others for name in _names(each, is_name))
    told = {each.name for each in sightings(clause.words)}
    spared = not word_list("the rest").isdisjoint(clause.words[:2])
    apart = spared and told & _WELL and told <= _STATING and not _names(clause, is_name)
    return bool(apart) and any(states_trouble(folded(each.text)) for each in others)


def _names_well(clause: _Clause, is_name: Callable[[str], bool]) -> tuple[str, ...]:
    """Return what a clause states to be well: "the invoice pods are fine". "State of web and db" asks."""
    found, names = sightings(clause.words), _names(clause, is_name)
    well = [each.first for each in found if each.name in _WELL]
    asks = "?" in clause.mark or opens_question(clause.text) or states_trouble(folded(clause.text))
    stated = {each.name for each in found if each.sense != "kind"} <= _STATING
    before = well and names and clause.words.index(names[0]) < min(_LAST_NAME, well[0])
    return names if before and stated and not asks else ()


def _judged(clause: _Clause, is_name: Callable[[str], bool], clauses: Sequence[_Clause]) -> _Clause:
    """Return the clause with only its names if the person looked at these: "some get a 502. auth looks ok to me".

    So the person suspects them or not, but does not ask whether they are well.
    """
    names = _names_well(clause, is_name)
    looked = beginnings("having looked").search(folded(clause.text)) is not None
    others = (folded(each.text) for each in clauses if each is not clause)
    return replace(clause, text=" ".join(names)) if names and looked and any(map(states_trouble, others)) else clause


def _is_aside(clause: _Clause, is_name: Callable[[str], bool], _clauses: Sequence[_Clause]) -> bool:
    """Return whether a clause names nothing of the cluster and states something of a person or another thing."""
    words = clause.words
    found = sightings(words)
    things = any(each.sense in ("kind", "word") for each in found)
    if _TICKET.fullmatch(clause.text):
        return True
    if words[0] in _PURPOSES and not word_list("occasions").isdisjoint(words[-2:]) and not things:
        return True
    if things or _names(clause, is_name) or opens_question(_LINK.sub("", folded(clause.text))):
        return False
    known = {at for each in found for at in range(each.first, each.last + 1)}
    strange = [word for at, word in enumerate(words) if at not in known and not vocabulary().is_ordinary(word)]
    stated = strange and not _STATED.isdisjoint(words)
    empty = not strange and {each.name for each in found} <= {"negation", "other", "polite"}
    return bool(stated) or empty or not word_list("persons").isdisjoint(words)


def _stands_alone(clauses: Sequence[_Clause], is_name: Callable[[str], bool], *, linked: bool) -> bool:
    """Return whether the clauses ask a question of their own. `linked` refuses those that may need the others."""
    found = sightings(words_of(folded(", ".join(each.text for each in clauses).replace("-", " "))))
    concepts = {each.name for each in found if each.sense == "concept"}
    things = any(each.sense in ("kind", "word") for each in found)
    if linked:
        return things and bool(concepts & _FACTUAL) and not concepts & _LINKED
    named = any(_names(each, is_name) for each in clauses)
    asked = concepts & _FACTUAL or any(opens_question(each.text) for each in clauses)
    noun = things and all(_STATED.isdisjoint(each.words) for each in clauses) and not concepts & _LINKED
    return bool(((things or named) and asked) or noun)
