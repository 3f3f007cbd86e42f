"""Accounts for every part of a question.

The subject, the filters, the period and the plan take the parts that they use. `weighing.py` decides what an answer may
claim if parts are left over, or if a kind that it needs was not read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.triage.grammar import counts_told, domain_words, qualifies
from holmes.triage.point_search import MONTHS, any_weekday
from holmes.triage.vocabulary import beginnings, symptoms_in, vocabulary, word_list
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject

PartSense: TypeAlias = Literal["word", "aside", "symptom", "value", "concept", "state", "kind", "bound", "period"]
_WEIGHTY: Final = frozenset({
    "negation", "trouble", "health", "excluding", "other", "either", "usage", "changes", "logs", "events", "login",
    "uses",
})  # fmt: skip
"""Concepts that change what a number or a list means."""
_OF_FIELDS: Final = frozenset({"settings", "resources", "replicas"})
_ARTICLES: Final = word_list("determiners") | (word_list("indefinite") - {"1", "one"}) | {"einen"}
_HAVING: Final = word_list("having")
_NUMBER: Final = expression(r"(?<![\w.:/=-])\d+(?:\.\d+)*(?: ?(?i:[kmgtp]ib?|[kmgt]b)\b)?(?![\w:/=-])")
_NEWEST_IMAGE: Final = expression(r"\b(?:latest|newest) images?\b(?! tag)")
"""The newest image of a registry, which nothing in the cluster tells, or the tag `latest`."""
_CODE: Final = expression(
    r"\b(?:exit|return|status|error|http|fehler|estado|salida|sortie|retour|codes?|codigo)(?:[ -](?:code|status))?"
    r"[ :=]*$"
)
"""The words before an exit code or an HTTP status."""
_PERSONS: Final = word_list("persons")
_ASKING: Final = word_list("asking") | word_list("interrogatives") | word_list("requests") | word_list("yes or no")
STRUCTURAL: Final = frozenset({"negation", "excluding", "other", "either"})
_SELDOM_USED: Final = frozenset({"default", "kube-public", "kube-node-lease"})
"""Namespaces of every cluster, in which few have workloads. A reading without them still counts as complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a question. `at` is the position of its first word, or -1."""

    sense: PartSense
    name: str
    text: str
    at: int = -1


class Ledger:
    """The parts of one question that no filter, period or plan has used yet."""

    def __init__(self, parts: Iterable[Part] = ()) -> None:
        self._left = dict.fromkeys(parts)

    @classmethod
    def of(cls, question: Question, subject: Subject) -> Ledger:
        """Open the ledger of a question."""
        parts = [_unknown_part(question, word) for word in subject.unknown]
        parts += [Part(sense="value", name=value, text=value) for value in subject.values]
        parts += [Part(sense="word", name=image, text=image) for image in subject.images]
        named = {*(each.name for each in subject.named), *subject.namespaces}
        known = {index for each in question.found for index in range(each.first, each.last + 1)}
        for index, word in enumerate(question.words):
            written = {part for term in question.labels for part in (term.key, term.value, str(term))}
            plain = index not in known and word not in named | written and word not in vocabulary().stop
            if plain and symptoms_in((word,)):
                parts.append(Part(sense="symptom", name=word, text=word, at=index))
        for each in question.found:
            had = each.first > 0 and question.words[each.first - 1] in _HAVING
            noun = each.name == "change_order" and _is_had(question, each.first)
            weighty = (
                noun
                or each.name in _WEIGHTY
                or (each.name in _OF_FIELDS and had and not _is_label(question, each.first))
            )
            if each.sense in ("state", "kind") or (each.sense == "concept" and weighty):
                beyond = 2 if each.name in STRUCTURAL else 0
                text = " ".join(question.words[each.first : each.last + 1 + beyond])
                parts.append(Part(sense=each.sense, name=each.name, text=text, at=each.first))
        parts += [Part(sense="bound", name=str(each), text=str(each)) for each in question.comparisons]
        parts += [Part(sense="bound", name=number, text=number) for number in _numbers(question, named)]
        newest = _NEWEST_IMAGE.search(question.text) if not subject.named else None
        if newest is not None:
            parts.append(Part(sense="word", name=newest[0], text=newest[0]))
        parts += [Part(sense="word", name=each, text=each, at=at) for at, each in domain_words(question)]
        weekday, _ = any_weekday(question.text)
        parts += [Part(sense="value", name=weekday, text=weekday)] if weekday else []
        if question.period is not None:
            parts.append(Part(sense="period", name="period", text=question.period.text))
        return cls(parts)

    def copy(self) -> Ledger:
        """Return a ledger with the same parts left over."""
        return Ledger(self._left)

    def take(self, sense: PartSense, *names: str, at: int | None = None) -> None:
        """Mark parts as used: those with one of `names`, or all of the sense."""
        for part in [*self._left]:
            if part.sense == sense and (not names or part.name in names) and at in (None, part.at):
                del self._left[part]

    def take_words(self, *said: str) -> None:
        """Mark the unknown words as used that begin like one of the lists of the vocabulary."""
        words = [part for part in self._left if part.sense in ("word", "value")]
        for part in words:
            if any(beginnings(each).match(part.name) for each in said):
                del self._left[part]

    def is_left(self, sense: PartSense, at: int) -> bool:
        """Return whether the part at a position is left over."""
        return any(part.sense == sense and part.at == at for part in self._left)

    def left(self, *senses: PartSense) -> tuple[str, ...]:
        """Return the texts of the parts that are left over. Words aside count only if they are asked for."""
        wanted = [part for part in self._left if (part.sense in senses if senses else part.sense != "aside")]
        return tuple(dict.fromkeys(part.text for part in wanted))

    def left_concepts(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the texts of the concepts that are left over."""
        wanted = set(names)
        return tuple(part.text for part in self._left if part.sense == "concept" and part.name in wanted)


def _is_had(question: Question, at: int) -> bool:
    """Return whether a word and an article are before a noun that objects have: "with a taint", "tiene un taint"."""
    words = question.words
    had = at > 1 and words[at - 1] in _ARTICLES and words[at - 2] in _HAVING
    return had and not _is_label(question, at)


def _is_label(question: Question, at: int) -> bool:
    keyed = question.words[at].startswith(("annotation", "label"))
    return keyed or any(question.words[at] in (term.key, term.value) for term in question.labels)


def _unknown_part(question: Question, word: str) -> Part:
    """Return the part of a word without a known meaning. It is aside if it cannot narrow what is asked for."""
    at = question.words.index(word) if word in question.words else -1
    narrows = at < 0 or qualifies(question, at) or word in MONTHS  # "created after november"
    return Part(sense="word" if narrows else "aside", name=word, text=word, at=at)


def _numbers(question: Question, named: set[str]) -> Iterator[str]:
    """Yield the numbers of a question that are neither bounds, times, ages, names nor the length of a list."""
    used = " ".join((*map(str, question.comparisons), *map(str, question.labels), *named, *question.quoted))
    period = question.period.text if question.period is not None else ""
    said = {word for each in question.found for word in question.words[each.first : each.last + 1]}  # "auf 0 skaliert"
    listed = question.asks("count", "list")
    for match in _NUMBER.finditer(question.text):
        before, after = question.text[: match.start()].split()[-1:], question.text[match.end() :].split()[:1]
        if match[0] == "4" and not named.isdisjoint(after):
            continue  # "limits 4 web"
        length = not before or before[0] in ("last", "first", "top", "latest", "newest", "oldest", "letzten", "ersten")
        aged = question.older_seconds or question.newer_seconds
        stated = not match[0][-1].isdigit() and named  # "the limit of web is 512Mi, right?"
        told = _is_told(question, match[0]) or (not listed and _CODE.search(question.text[: match.start()]) is not None)
        free = all(match[0] not in each for each in (used, said, period))
        if free and not (length or aged or told or stated):
            yield match[0]


def _is_told(question: Question, number: str) -> bool:
    """Return whether a number is in a clause that only tells something: "healthy? I saw 3 restarts"."""
    at = question.words.index(number) if number in question.words else -1
    clause = question.clause(at)
    words = question.words[clause.start : clause.stop]
    asks = any(each.first in clause and each.name in ("list", "count", "why", "when") for each in question.found)
    tells = question.complains and words[:1] != () and words[0] not in _ASKING
    part = at >= 0 and len(clause) < len(question.words)
    return part and (counts_told(question, at - 1) or ((words[0] in _PERSONS or tells) and not asks))


def unread(state: ClusterState, kinds: Iterable[str], namespaces: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the kinds that were not read completely in the namespaces. Empty namespaces mean the whole cluster."""
    found = [
        kind
        for kind in dict.fromkeys(kinds)
        if not all(state.covers(kind, namespace) for namespace in namespaces or ("",))
    ]
    limited = state.reading.namespaces
    known = {each.name for each in state.of("Namespace")} if state.covers("Namespace") else None
    if not found and limited and not namespaces and (known is None or not known <= limited | _SELDOM_USED):
        found.append(f"namespaces other than {', '.join(sorted(limited))}")
    return tuple(found)
