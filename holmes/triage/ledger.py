"""Accounts for every part of a question, and decides what an answer may claim if a part of it was not used.

The subject, the filters, the period and the plan take the parts that they use. Parts that nobody took are left over: no
number, list or "healthy" is true then. The same holds if a kind that the answer needs was not read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.triage.vocabulary import word_list

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.first_look import FirstLook

PartSense: TypeAlias = Literal["word", "value", "concept", "state", "kind", "bound", "period"]
_WEIGHTY: Final = frozenset(
    {"negation", "trouble", "health", "excluding", "other", "either", "usage", "changes", "logs", "events"}
)
"""Concepts that change what a number or a list means."""
_STRUCTURAL: Final = frozenset({"negation", "excluding", "other", "either"})
_SELDOM_USED: Final = frozenset({"default", "kube-public", "kube-node-lease"})
"""Namespaces of every cluster, in which few have workloads. A reading without them still counts as complete."""
_UNMEASURED: Final = word_list("unmeasured")
_ASKING_LEAVE: Final = word_list("asking leave")
_OF: Final = word_list("of")
_NOW_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a question. `at` is the position of its first word, or -1."""

    sense: PartSense
    name: str
    text: str
    at: int = -1


class Ledger:
    """The parts of one question that nobody has used yet."""

    def __init__(self, parts: Iterable[Part] = ()) -> None:
        self._left = dict.fromkeys(parts)

    @classmethod
    def of(cls, question: Question, subject: Subject) -> Ledger:
        """Open the ledger of a question."""
        parts = [Part(sense="word", name=word, text=word) for word in subject.unknown]
        parts += [Part(sense="value", name=value, text=value) for value in subject.values]
        for each in question.found:
            if each.sense in ("state", "kind") or (each.sense == "concept" and each.name in _WEIGHTY):
                beyond = 2 if each.name in _STRUCTURAL else 0
                text = " ".join(question.words[each.first : each.last + 1 + beyond])
                parts.append(Part(sense=each.sense, name=each.name, text=text, at=each.first))
        parts += [Part(sense="bound", name=str(each), text=str(each)) for each in question.comparisons]
        if question.period is not None:
            parts.append(Part(sense="period", name="period", text=question.period.text))
        return cls(parts)

    def take(self, sense: PartSense, *names: str, at: int | None = None) -> None:
        """Mark parts as used: those with one of `names`, or all of the sense."""
        for part in [*self._left]:
            if part.sense == sense and (not names or part.name in names) and at in (None, part.at):
                del self._left[part]

    def left(self, *senses: PartSense) -> tuple[str, ...]:
        """Return the texts of the parts that are left over."""
        return tuple(dict.fromkeys(part.text for part in self._left if not senses or part.sense in senses))

    def left_concepts(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the texts of the concepts that are left over."""
        wanted = set(names)
        return tuple(part.text for part in self._left if part.sense == "concept" and part.name in wanted)


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


def weighed(asked: Asked, look: FirstLook) -> FirstLook:
    """Return the look, or an inconclusive look if the question asks for more than the look is about."""
    if look.verdict == "answered":
        return _weighed_fact(asked, look)
    if look.verdict == "healthy":
        return _weighed_health(asked, look)
    return look


def _weighed_fact(asked: Asked, look: FirstLook) -> FirstLook:
    left = (*asked.ledger.left("bound", "period"), *asked.ledger.left_concepts(_STRUCTURAL - {"either"}))
    if not left:
        return look
    parts = ", ".join(f"`{part}`" for part in left)
    text = f"Not answered: {parts} could not be applied, so the answer would be about something else."
    return replace(look, verdict="inconclusive", summary=text, table=None, lines=())


def _weighed_health(asked: Asked, look: FirstLook) -> FirstLook:
    guessed = next((each for each in asked.subject.named if each.match in ("similar", "gone")), None)
    if guessed is not None:
        kind = "pod" if guessed.match == "gone" else "object"
        nearest = f"The nearest is {guessed.objects[0].ref}, in which no fault was found."
        text = f"No {kind} is named `{guessed.name}`. {nearest}"
        return replace(look, verdict="not_found", summary=text)
    reason = _doubt(asked)
    return replace(look, verdict="inconclusive", summary=f"{look.summary} {reason}") if reason else look


def _doubt(asked: Asked) -> str:
    """Return why the absence of a fault does not answer the question, or an empty string."""
    question = asked.question
    if question.period is not None and question.period.bounds(asked.state.now)[1] < asked.state.now - _NOW_SECONDS:
        return f"Only the present state is known, not that of `{question.period.text}`."
    left = asked.ledger.left("word", "value", "bound")
    if question.asks("health", "trouble"):
        left = tuple(_possessed(asked))
    if left:
        parts = ", ".join(f"`{part}`" for part in left)
        return f"But {parts} was not understood, so this may not answer the question."
    leave = question.asks("change_order") and not _ASKING_LEAVE.isdisjoint(question.words)
    if leave or question.asks("permission", "usage", "secret_value", "uses", "resources"):
        return "What the question asks for was not checked."
    if question.asks("why"):
        return "The reason for what was asked about is not visible in its objects, events and logs."
    return ""


def _possessed(asked: Asked) -> Iterator[str]:
    """Yield what of the subject the question is about, for example the `backup` in "the backup of ledger"."""
    words = asked.question.words
    for index, word in enumerate(words[:-2]):
        after = [each for each in words[index + 2 : index + 4] if each not in ("the", "der", "die", "la", "el", "le")]
        if (
            word in _UNMEASURED
            and words[index + 1] in _OF
            and after
            and any(after[0] == each.name for each in asked.subject.named)
        ):
            yield word
