"""The columns of lists: "CronJobs with their schedules", "which hosts do the Ingresses have".

The vocabulary has the words for each column. A column that a question asks for does not filter the objects.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.triage.cells import OPTIONAL, has_cell
from holmes.triage.vocabulary import vocabulary, word_list

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.triage.ledger import Ledger
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.triage.vocabulary import Sighting

_WITH: Final = word_list("joining columns")
_POSSESSIVES: Final = word_list("possessives")
_AND: Final = word_list("conjunctions")
_BETWEEN: Final = word_list("determiners") | word_list("quantifiers") | word_list("of")
_ARTICLES: Final = word_list("indefinite") - {"1", "one", "some"}
_VERBS: Final = word_list("having columns")
_ASKING: Final = word_list("locating") | word_list("interrogatives")
"""Words before a further column: "which Ingresses does web have, and on which hosts"."""
_LEADING: Final = word_list("interrogatives") | word_list("determiners") | _POSSESSIVES
_QUIET: Final = frozenset({"polite", "list", "follow_up", "now", "excluding", "either", "negation", "other"})
_LONGEST: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The columns that a question asks for, in its order. `places` are the positions of their words."""

    names: tuple[str, ...] = ()
    places: frozenset[int] = frozenset()

    def without(self, question: Question) -> Question:
        """Return the question without the words for columns."""
        found = tuple(each for each in question.found if each.first not in self.places)
        words = tuple("" if at in self.places else word for at, word in enumerate(question.words))
        return replace(question, found=found, words=words)

    def take_from(self, ledger: Ledger, question: Question) -> None:
        """Take the parts of the question that only name columns."""
        for at in self.places:
            for sense in ("concept", "state", "kind", "symptom"):
                ledger.take(sense, at=at)
            ledger.take("word", question.words[at])
            ledger.take("word", at=at)
            ledger.take("aside", question.words[at])


def asks_columns(question: Question, subject: Subject) -> bool:
    """Return whether a question asks for a list with columns, and for nothing else."""
    columns = columns_of(question)
    own = {each.kind for each in subject.objects} & {_base_name(question)}
    concepts = {each.name for each in columns.without(question).found if each.sense == "concept"}
    routed = {"uses"} if _base_name(question) == "Ingress" and subject.named else frozenset[str]()
    return bool(columns.names) and not own and concepts <= _QUIET | routed


def columns_of(question: Question) -> Columns:
    """Return the columns of the list that a question asks for."""
    base = _base(question)
    if base is None or question.asks("count"):
        return Columns()
    found = [*_after(question, base)] or [*_before(question, base)]
    places = frozenset(at for _, places in found for at in places)
    return Columns(names=tuple(dict.fromkeys(name for name, _ in found)), places=places)


def _base(question: Question) -> Sighting | None:
    """Return the noun of the list, in the plural or after a word such as "each"."""
    kinds = [each for each in question.found if each.sense == "kind"]
    first = min(kinds, key=lambda each: each.first, default=None)
    if first is None:
        return None
    plural = vocabulary().is_plural(question.words[first.last])
    each = not word_list("quantifiers").isdisjoint(question.words[max(0, first.first - 1) : first.first])
    listed = any(one.name == "list" and one.first < first.first for one in question.found)
    leads = first.first == 0 or not _WITH.isdisjoint(question.words[first.last + 1 : first.last + 2])
    return first if plural or each or listed or leads else None


def _base_name(question: Question) -> str:
    base = _base(question)
    return base.name if base is not None else ""


def _after(question: Question, base: Sighting) -> Iterator[tuple[str, range]]:
    """Yield the columns after words such as "with" and "and their", up to a word of another sort."""
    words, at, opened = question.words, base.last + 1, ""
    while at < len(words):
        opened = opened or ("and" if at in question.breaks else "")
        found = _column_at(question, at, base.name) if opened else None
        if found is not None and _ends(question, found[1].stop, base) and _may_follow(question, found[0], at, opened):
            yield found
            at, opened = found[1].stop, "more"
            continue
        if words[at] in _POSSESSIVES:
            opened = "their"
        elif words[at] in _WITH:
            opened = "with"
        elif words[at] in _AND:
            opened = opened or "and"
        elif words[at] not in _BETWEEN and not (opened == "and" and words[at] in _ASKING):
            opened = ""
        at += 1


def _may_follow(question: Question, name: str, at: int, opened: str) -> bool:
    """Return whether a word is a column after a joining word. "Nodes with taints" and "pods and nodes" name none."""
    if name in OPTIONAL:
        return opened in ("their", "more")
    one = not _ARTICLES.isdisjoint(question.words[max(0, at - 1) : at])  # "pods with a node" are those that have one
    return (opened != "and" and not one) or _is_no_kind(question, at)


def _before(question: Question, base: Sighting) -> Iterator[tuple[str, range]]:
    """Yield the columns before the noun: "the hosts of all Ingresses", "which ports do the Services have"."""
    glue = _BETWEEN | _AND | _VERBS
    at = 0
    while at < base.first:
        found = _column_at(question, at, base.name)
        leads = (
            not at or question.words[at - 1] in _LEADING | _AND or any(each.last == at - 1 for each in question.found)
        )
        between = question.words[found[1].stop : base.first] if found is not None else ()
        linked = bool(between) and all(word in glue or (word,) in vocabulary().columns for word in between)
        if found is not None and leads and linked and found[0] not in ("status", "age") and _is_no_kind(question, at):
            yield found
        at = found[1].stop if found is not None else at + 1


def _column_at(question: Question, at: int, kind: str) -> tuple[str, range] | None:
    for length in range(min(_LONGEST, len(question.words) - at), 0, -1):
        for name in vocabulary().columns.get(question.words[at : at + length], ()):
            if has_cell(kind, name):
                return name, range(at, at + length)
    return None


def _ends(question: Question, at: int, base: Sighting) -> bool:
    """Return whether no value follows a column. In "Services with port 80", it does."""
    words = question.words
    if at >= len(words) or at in question.breaks:
        return True
    plain = words[at] in _AND | _BETWEEN | _WITH | _POSSESSIVES | _VERBS | vocabulary().stop
    return plain or _column_at(question, at, base.name) is not None


def _is_no_kind(question: Question, at: int) -> bool:
    return not any(each.sense == "kind" and each.first <= at <= each.last for each in question.found)
