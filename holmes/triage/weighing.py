"""Decides what an answer may claim: no number, list or "healthy" holds if a part of the question was not used."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.rule_ids import CRASHES
from holmes.triage.asked_instead import ASKING, asked_instead, is_of_other, unread_fact
from holmes.triage.comparisons import SAME_CAUSE
from holmes.triage.complaints import only_complains
from holmes.triage.facts import NOT_KNOWN
from holmes.triage.grammar import asks_actor, asks_person, asks_who, order_of
from holmes.triage.ledger import STRUCTURAL
from holmes.triage.log_answers import asks_logs
from holmes.triage.log_errors import against_health, told_by_lines
from holmes.triage.not_read import not_read
from holmes.triage.past import NOW_SECONDS, is_past
from holmes.triage.sentences import BESIDE
from holmes.triage.unsaid import unsaid
from holmes.triage.vocabulary import word_list

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Named
    from holmes.triage.vocabulary import Sighting
    from holmes.values.first_look import FirstLook

_UNMEASURED: Final = word_list("unmeasured")
_ASKING_LEAVE: Final = word_list("asking leave")
_OF: Final = word_list("of")
_LAST_OPENING: Final = 2
"""The last place of a noun that the question begins with: "did the import of catalog fail"."""
_FEW_WORDS: Final = 6
_IT: Final = frozenset({"it", "its"})
_KILLED: Final = "137"
"""The exit code of a container that got the signal SIGKILL."""
_UNCHECKED: Final = frozenset({"permission", "usage", "secret_value", "uses", "resources"})


def weighed(asked: Asked, look: FirstLook) -> FirstLook:
    """Return the look, or an inconclusive look if the question asks for more than the look is about."""
    if asks_actor(asked.question) and look.verdict in ("answered", "healthy"):
        kept = look.verdict == "answered" and asks_person(asked.question)
        told = "Which person did it is not recorded." if kept else "Who does it was not found."
        look = replace(look, summary=f"{look.summary} {told}", verdict="answered" if kept else "inconclusive")
    if look.verdict == "answered":
        return _weighed_fact(asked, look)
    if look.verdict == "healthy":
        return _weighed_health(asked, look)
    return _weighed_cause(asked, look) if look.verdict == "cause_found" else look


def _weighed_cause(asked: Asked, look: FirstLook) -> FirstLook:
    """Return the cause, or an inconclusive look that tells of it if the question is about something else."""
    open_look = replace(look, verdict="inconclusive", culprit="", severity=None, chain=(), fix=())
    if asks_who(asked.question) and _is_of_kill(asked, look):
        text = f"{look.summary} SIGKILL is what happened; no event or log that was read tells who sent it."
        return replace(open_look, summary=text, severity=look.severity)
    told = told_by_lines(asked) if asked.subject.named and not asked.question.complains else ""
    verbs = [word for word in asked.subject.unknown if f"`{word}`" in told]
    other = asked_instead(asked, look) or (f"Not known, but {told}." if [*unsaid(look.summary, verbs)] else "")
    if other:
        return replace(open_look, summary=f"{other}{BESIDE}{look.summary}")
    unknown, troubled = asked.subject.unknown, asked.question.asks("trouble")
    possessed = [each for each in _possessed(asked) if each in unknown or not troubled]
    if possessed and not asked.question.asks("why"):
        text = f"Nothing that was read shows the state of its {' and '.join(possessed)}."
        return replace(
            open_look, severity=look.severity, summary=f"{text}{BESIDE}{look.summary}", evidence=(), since=""
        )
    if asked.subject.named and SAME_CAUSE.search(asked.question.text):
        return _of_same_cause(asked, look, open_look)
    if is_of_other(asked, look):
        own = look.chain[0] if look.chain else asked.subject.place
        return replace(open_look, verdict="healthy", summary=f"No fault of {own} itself was found. {look.summary}")
    return look


def _of_same_cause(asked: Asked, look: FirstLook, open_look: FirstLook) -> FirstLook:
    """Return the causes with whether they are one, or an inconclusive look if only one subject was understood."""
    if len(asked.subject.named) < 2:
        text = f"Not answered: only {', '.join(look.subject)} was understood, so no causes could be compared."
        return replace(open_look, summary=f"{text}{BESIDE}{look.summary}")
    return replace(look, notes=(*look.notes, "No common cause was found.")) if look.lines else look


def _is_of_kill(asked: Asked, look: FirstLook) -> bool:
    """Return whether the cause is only that a container was killed, which does not tell who sent the signal."""
    named = [each for each in asked.report.incidents if str(each.culprit) == look.culprit and each.since == look.since]
    proofs = (proof for each in named if each.rule_id in CRASHES for proof in each.findings[0].evidence)
    return any(each.path.endswith(".exitCode") and each.value == _KILLED for each in proofs)


def _weighed_fact(asked: Asked, look: FirstLook) -> FirstLook:
    left = (*asked.ledger.left("bound", "period"), *asked.ledger.left_concepts(STRUCTURAL - {"either"}))
    gone = next((each for each in asked.subject.named if each.match == "gone"), None)
    if gone is not None and asks_logs(asked.question, asked.subject):
        return replace(look, verdict="not_found", summary=f"No pod is named `{gone.name}`.", table=None, lines=())
    rows = (look.table.header, *look.table.rows) if look.table is not None else ()
    said = " ".join((look.summary, *rows, *look.lines, *look.evidence, *look.chain, *look.fix))
    left = (*left, *unsaid(said, asked.ledger.left("word", "value")))
    left = (*left, *_pronouns(asked))
    if not left:
        return look
    parts = ", ".join(f"`{part}`" for part in left)
    text = f"Not answered: {parts} could not be applied, so the answer would be about something else."
    heading = "" if asked.question.wants_reason else NOT_KNOWN
    return replace(look, verdict="inconclusive", summary=text, heading=heading, table=None, lines=())


def _pronouns(asked: Asked) -> tuple[str, ...]:
    """Return the word for one thing, if nothing tells which: "what image does it run" is not about all images."""
    question, subject = asked.question, asked.subject
    named = subject.named or subject.namespaces or subject.kinds or subject.values or question.labels
    asks = question.asks("images", "placement", "replicas", "resources", "address", "usage")
    return () if named or question.found_word or not asks else tuple(_IT.intersection(question.words))


def _weighed_health(asked: Asked, look: FirstLook) -> FirstLook:
    guessed = next((each for each in asked.subject.named if each.match in ("similar", "gone")), None)
    if guessed is not None:
        kind = "pod" if guessed.match == "gone" else "object"
        # A verdict on the nearest object would read as one on the object that was meant.
        text = f"No {kind} is named `{guessed.name}`. The nearest is {guessed.objects[0].ref}."
        return replace(look, verdict="not_found", summary=text)
    product = next((each for each in asked.subject.named if each.match == "part" and not _has_name(each)), None)
    if product is not None and not asked.question.asks("health"):
        text = f"`{product.name}` was read as {product.objects[0].ref}, which runs it. {look.summary}"
        return replace(look, verdict="inconclusive", summary=text)
    runs = any(each.kind in ("CronJob", "Job") for each in asked.subject.objects)  # the answer tells of the last run
    reason = not_read(asked.question, asked.subject) or ("" if runs else unread_fact(asked))
    if not reason and not look.evidence:  # evidence tells of what the question asks about
        reason = _doubt(asked)
    reason = against_health(asked) or reason
    return replace(look, verdict="inconclusive", summary=f"{look.summary} {reason}") if reason else look


def _has_name(named: Named) -> bool:
    """Return whether a word is in the names of its objects. Otherwise, it is in their images."""
    return any(named.name.removesuffix("s").removesuffix("er") in each.name for each in named.objects)


def _doubt(asked: Asked) -> str:
    """Return why the absence of a fault does not answer the question, or an empty string."""
    question = asked.question
    past = question.period is not None and (not question.asks("now") or is_past(asked))
    if (
        past
        and question.period is not None
        and question.period.bounds(asked.state.now)[1] < asked.state.now - NOW_SECONDS
    ):
        return f"Only the present state is known, not that of `{question.period.text}`."
    left = asked.ledger.left("word", "aside", "value", "bound")
    left = tuple(part for part in left if part != order_of(question, asked.subject))
    if question.asks("health", "trouble"):
        left = tuple(_possessed(asked))
    if left:
        parts = ", ".join(f"`{part}`" for part in left)
        return f"But {parts} was not understood, so this may not answer the question."
    leave = question.asks("change_order") and not _ASKING_LEAVE.isdisjoint(question.words)
    if leave or any(not _is_told(question, each) for each in question.found if each.name in _UNCHECKED):
        return "The permission, amount or use in the question was not checked."
    if question.asks("why") or (only_complains(question.text) and not question.asks("health")):
        return "The reason for what was asked about is not visible in its objects, events and logs."
    return ""


def _is_told(question: Question, place: Sighting) -> bool:
    """Return whether a word only tells what happened, beside a clause that asks for the health of the subject."""
    clause = question.clause(place.first)
    judged = [each.first for each in question.found if each.name in ("health", "trouble")]
    asks = question.words[clause.start] in ASKING
    return bool(judged) and not asks and not any(at in clause for at in judged)


def _possessed(asked: Asked) -> Iterator[str]:
    """Yield what of the subject the question is about, for example the `backup` in "the backup of ledger"."""
    words = asked.question.words
    names = {each.name for each in asked.subject.named}
    yield from (word for before, word in pairwise(words) if word in _UNMEASURED and before in names)
    judged = asked.question.asks("trouble") or words[0] in ASKING
    unknown = asked.subject.unknown if judged and len(words) <= _FEW_WORDS else ()
    for index, word in enumerate(words[:-2]):
        after = [each for each in words[index + 2 : index + 4] if each not in ("the", "der", "die", "la", "el", "le")]
        possessed = word in _UNMEASURED or (word in unknown and index <= _LAST_OPENING)
        if possessed and words[index + 1] in _OF and after and after[0] in names:
            yield word
