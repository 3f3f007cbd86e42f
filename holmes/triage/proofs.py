"""Judges what an answer proves about the cause that it names.

The citation check shows that cited lines contain the names, numbers and quotes of a claim. This does not prove a cause:
a line about a healthy object contains its name, too. A line proves a cause only if it shows more than names and healthy
states, and if it is about the mechanism that the cause names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from holmes.core.hooks import NOTE_OF_HOOK
from holmes.core.truncation.entity_check import checkable_entities, is_mentioned
from holmes.diagnosis.facts.line_kinds import reports_success
from holmes.diagnosis.facts.log_groups import story_of
from holmes.evidence.sources import canonical_kind
from holmes.evidence.words import lexicon
from holmes.triage.verdicts import causes_in
from holmes.triage.vocabulary import folded, symptoms_in, symptoms_of_text, word_list, words_of
from holmes.values.expressions import expression
from holmes.values.messages import AssistantMessage, ToolMessage, UserMessage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holmes.values.events import Citation
    from holmes.values.messages import Message

_QUOTE: Final = expression(r"`([^`]+)`|\"([^\"\n]+)\"|“([^”\n]+)”")
_MARK: Final = expression(r"[\w.-]*\d[\w.-]*|[\w.]+[-_][\w.-]+|\b[A-Z]+[a-z]+[A-Z]\w*")
"""A number or a name outside of quotes. A cited line contains it, unless it is a word with a meaning."""
_WORD: Final = expression(r"[^\W_][\w-]*")
_AMOUNT: Final = expression(r"[\d-]+(?:[smhdwy]|ms|[kmgt]i?b?)?(?:\d+[smhd])*")
_LONG_NUMBER: Final = expression(r"\d{3,}")
_OBJECT: Final = expression(r"(?:[a-z0-9.-]+/)?[a-z0-9]+(?:[.-][a-z0-9]+)*")
_ROW: Final = expression(r"(?<![\w/])([a-z]+)(?:\.[a-z0-9.]+)?/([a-z0-9.-]+)")
"""An object as a list of several kinds shows it: `service/web`."""
_NAME: Final = expression(r"`(?:[a-z0-9.-]+/)?([a-z0-9](?:[a-z0-9.]*-[a-z0-9.-]*)[a-z0-9])`")
_UNCHECKED: Final = frozenset({"time", "id", "version"})
"""Kinds of entities that a model may write in another form than its source."""
_WITH_CONTENT: Final = frozenset({"state", "field", "failure", "unreal", "noun"})
_GOOD_STATES: Final = frozenset({
    "running", "ready", "succeeded", "bound", "active", "deployed", "scheduled", "available", "initialized", "started",
    "pulled", "exists", "synced", "schedulable", "approved", "placed",
})  # fmt: skip
_NEUTRAL_STATES: Final = frozenset({
    "restarted", "finished", "terminated", "creating", "progressing", "pulling", "optional", "namespaced", "readonly",
    "clusterscoped", "immutable", "privileged", "empty", "unknown", "waiting",
})  # fmt: skip
_MECHANISMS: Final = frozenset({"memory", "image", "dns", "disk", "certificate", "permission"})
"""Symptoms that name a mechanism. Any trouble can prove the other symptoms, for example a crash."""
_ROUTINE: Final = expression(r"\b(?:INFO|DEBUG|TRACE|info|debug|trace|200|201|204|304)\b")
_STREAMS: Final = frozenset({"stdout", "stderr"})
"""Words of a result about itself."""
_STEM: Final = 5
_SHORT: Final = 2


@dataclass(frozen=True, slots=True)
class Known:
    """The words that prove nothing: those of the question, and the names of the objects that it is about."""

    words: frozenset[str]
    names: tuple[str, ...]
    symptoms: frozenset[str]

    @classmethod
    def of(cls, question: str, objects: str = "") -> Known:
        """Collect the words of a question and the names in `objects`."""
        names = tuple(dict.fromkeys(_words(objects)))
        return cls(
            words=frozenset((*_words(question), *names)),
            names=tuple(each for each in names if len(each) > _SHORT),
            symptoms=_symptoms(question),
        )

    def has(self, word: str) -> bool:
        """Return whether a word is known, or is the name of a pod of a known object."""
        return word in self.words or any(word.startswith(f"{name}-") for name in self.names)


def proofs(cause: str, citations: Iterable[Citation], known: Known) -> tuple[Citation, ...]:
    """Return the citations that prove `cause`."""
    return tuple(each for each in citations if (shown := _shown(each, known)) and _supports(cause, each, shown, known))


def shows_something(citation: Citation, known: Known) -> bool:
    """Return whether the cited lines show more than what is known and healthy states."""
    return bool(_shown(citation, known))


def shows_trouble(word: str) -> bool:
    """Return whether a word can be a part of the description of a fault."""
    return not _is_empty(word.lower())


def invented(text: str, messages: Sequence[Message], citations: Iterable[Citation] = ()) -> tuple[str, ...]:
    """Return the names in `text` that neither the question nor a result shows, in their order."""
    shown = [each.claim.lower() for each in citations if each.outcome != "not_found"]
    shown += [each.text.lower() for each in messages if _is_source(each)]
    entities = [each for each in checkable_entities(text) if each.kind not in _UNCHECKED]
    names = [each.value for each in entities if not is_mentioned(each, shown)]
    names += [name for name in _NAME.findall(text) if not any(name in one for one in shown)]
    return tuple(dict.fromkeys(names))


def _is_source(message: Message) -> bool:
    """Return whether a message can show a name: no reply, request or error repeats a name that a model invented."""
    if isinstance(message, ToolMessage):
        return message.status == "success"
    if isinstance(message, UserMessage) and message.kind == "note":
        return message.text.startswith(NOTE_OF_HOOK)
    return not isinstance(message, AssistantMessage)


def _supports(cause: str, citation: Citation, shown: frozenset[str], known: Known) -> bool:
    """Return whether the cited lines are about the cause, and not about another mechanism or a routine."""
    lines, plain, claim = _lines(citation), _without_marks(cause), causes_in(citation.claim)
    own, seen, is_part = _symptoms(plain) - known.symptoms, _symptoms(lines), _letters(claim) in _letters(cause)
    # The marks of a claim that is the cause itself do not tie the lines to the cause.
    rest = plain if is_part and len(_without_marks(claim).split()) > 1 else cause.replace(claim, " ")
    said = _content(rest, known) | {*_LONG_NUMBER.findall(rest)}
    if own & seen or _stems(said) & _stems(shown | {*_LONG_NUMBER.findall(lines)}):
        return True
    if own & _MECHANISMS or reports_success(lines):
        return False
    if story_of(lines).groups or any(map(_is_bad, shown)):
        return True
    names_only = not shown - {
        word for mark in _marks(citation.claim) if _OBJECT.fullmatch(mark) for word in _words(mark)
    }
    return is_part and not own and not names_only and not _ROUTINE.search(lines)


def _without_marks(text: str) -> str:
    return _MARK.sub(" ", _QUOTE.sub(" ", text))


def _symptoms(text: str) -> frozenset[str]:
    return symptoms_of_text(text) | symptoms_in(words_of(folded(text)))


def _stems(words: Iterable[str]) -> frozenset[str]:
    return frozenset(part[:_STEM] for word in words for part in word.split("_") if len(part) > _SHORT)


def _letters(text: str) -> str:
    return re.sub(r"\W", "", text)


def _shown(citation: Citation, known: Known) -> frozenset[str]:
    """Return the words that the cited lines show, without known names, healthy states and the name of their object."""
    if citation.outcome == "not_found":
        return frozenset()
    lines, marks = _lines(citation), tuple(_marks(citation.claim))
    is_about_known = any(known.has(word) for word in _words(lines))
    own = "" if is_about_known else next(filter(_OBJECT.fullmatch, marks), "")
    rows = (match[2] for match in _ROW.finditer(lines) if canonical_kind(match[1]))
    return _content(lines, known) - frozenset(_words(" ".join((own, *rows))))


def _lines(citation: Citation) -> str:
    """Return what the cited lines show of the claim: all of it if it is checked, else its names, numbers and quotes."""
    return citation.claim if citation.outcome == "checked" else " ".join(_marks(citation.claim))


def _marks(claim: str) -> Iterator[str]:
    """Yield the parts of a claim that its cited lines contain."""
    for match in _QUOTE.finditer(claim):
        yield next(filter(None, match.groups()))
    yield from (mark for mark in _MARK.findall(_QUOTE.sub(" ", claim)) if not lexicon().tags((mark,)))


def _content(text: str, known: Known) -> frozenset[str]:
    return frozenset(word for word in _words(text) if not _is_empty(word) and not known.has(word))


def _words(text: str) -> Iterator[str]:
    return (match[0].rstrip("-").lower() for match in _WORD.finditer(text))


@cache
def _is_empty(word: str) -> bool:
    """Return whether a word shows no trouble: an amount, a kind, a healthy state, or a word without a meaning."""
    if _AMOUNT.fullmatch(word) or word in word_list("ordinary words") or word in _STREAMS:
        return True
    tags = lexicon().tags((word,))
    if any(category == "state" and state in _GOOD_STATES for category, state in tags):
        return True
    return bool(tags) and not any(category in _WITH_CONTENT for category, _ in tags)


@cache
def _is_bad(word: str) -> bool:
    """Return whether a word is a state of trouble, for example `CrashLoopBackOff`."""
    fine = _GOOD_STATES | _NEUTRAL_STATES
    tags = lexicon().tags((word,))
    return any((category == "state" and state not in fine) or category == "failure" for category, state in tags)
