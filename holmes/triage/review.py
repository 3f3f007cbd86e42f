"""Reviews the answers of models against the first look of the built-in rules.

A model never makes an answer worse. A cause needs a cited result behind it, and must not contradict what the facts
definitely show. Otherwise the verdict of the facts leads, and the model's words follow, marked as unproved.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.core.reviewer import FactsCall, Review
from holmes.evidence import without_markers
from holmes.triage import TRIAGE_MODEL
from holmes.triage.answers import answer_text
from holmes.triage.conversation import FIRST_LOOK_NOTE, SECOND_LOOK_NOTE, read_conversation, second_look
from holmes.triage.markdown import sentence
from holmes.triage.question import parse_question
from holmes.triage.verdicts import judge_answer, verdict_of_look
from holmes.values.first_look import FIRST_LOOK_TOOL
from holmes.values.texts import shortened
from holmes.values.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.core.reviewer import Draft
    from holmes.triage.conversation import Conversation, SeenLook
    from holmes.values.events import Citation
    from holmes.values.first_look import FirstLook
    from holmes.values.messages import Message, UserMessage

FIRST_LOOK_TOKENS: Final = 800
_CLAIM_CHARACTERS: Final = 600
_MOST_QUOTED_LINES: Final = 5
_QUOTED_CHARACTERS: Final = 300
_FROM_RULES: Final = "This answer comes from the built-in rules of Holmes (builtin/triage)."
_ASKED_FOR_EVIDENCE: Final = (
    "Your answer names a cause, but no result that it cites proves it. Cite the lines that prove it, call a tool that "
    "shows them, or answer `**Cause not found:**` and state what you checked."
)
_CLUSTER_CONCEPTS: Final = ("why", "trouble", "health", "changes", "logs", "events", "count", "usage")
"""Concepts of questions that are about the cluster even if they name no object."""
_MARKED: Final = re.compile(r"`[^`]+`|\w*\d\w*|\b[\w.]+[-/_]\w+|\b[A-Z][a-z]+[A-Z]\w*")
"""A name, a number or a quote that a cited line can show."""
_DISTINCTIVE: Final = re.compile(r"[A-Z][a-z]+[A-Z]\w+|[A-Z]{2,}[A-Z_]*|[\w.]+[-_/.:]\w[\w.:/-]*|\d{3,}|[A-Za-z]{6,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesReviewer:
    """Reviews answers with the tool `kubernetes_first_look`.

    `has_tool` is false if the tool is not available: then answers stay as they are. `first_look` shows the model the
    first look before its first reply. `reviews` compares answers with the facts.
    """

    has_tool: bool = True
    first_look: bool = True
    reviews: bool = True

    @property
    def takes_first_look(self) -> bool:
        """Whether conversations get a first look before the first reply."""
        return self.has_tool and self.first_look

    def opening(self, messages: Sequence[Message]) -> FactsCall | None:
        """Return the call of the first look, unless the conversation has one for its last question."""
        conversation = read_conversation(messages)
        if not self.takes_first_look or not conversation.question.strip():
            return None
        return None if conversation.look or conversation.failure or conversation.details else _call(conversation)

    def is_useful(self, note: UserMessage, messages: Sequence[Message]) -> bool:
        """Return whether the look has a subject that no earlier look in the conversation has."""
        seen = _relevant(read_conversation((*messages, note)))
        if seen is None:
            return False
        return not seen.look.subject or seen.look.subject != read_conversation(messages).subject

    def alternative(self, messages: Sequence[Message]) -> str:
        """Return the objects that the first look names."""
        seen = read_conversation(messages).look
        names = (*seen.look.subject, *seen.look.neighbours)[:8] if seen is not None else ()
        return f"Objects that exist: {'; '.join(name.split(': ')[0] for name in names)}." if names else ""

    def review(self, draft: Draft) -> Review:
        """Return the answer that leads, or what the review needs first."""
        own = judge_answer(draft.text, draft.messages, built_in=draft.model == TRIAGE_MODEL)
        as_written = Review(text=draft.text, verdict=own)
        if draft.model == TRIAGE_MODEL or not (self.has_tool and self.reviews) or _is_data(draft.text):
            return as_written
        conversation = read_conversation(draft.messages)
        if conversation.look is None and not conversation.failure and draft.may_call:
            return Review(call=_call(conversation))
        seen = _relevant(conversation)
        if draft.stopped:
            return _stopped(draft, seen)
        if own.kind != "cause_found":
            return _led(draft, seen) if _is_worse(own, seen) else as_written
        return _of_cause(draft, own, conversation)


def _of_cause(draft: Draft, own: Verdict, conversation: Conversation) -> Review:
    seen = _relevant(conversation)
    look = seen.look if seen is not None else None
    request, checked = _request(draft, look), None
    if not request and not (look is not None and _agrees(draft.text, look)):
        checked = second_look(draft.messages)
        if checked is None and draft.may_call:
            claim = shortened(without_markers(own.summary), _CLAIM_CHARACTERS)
            return Review(call=_call(conversation, claim=claim))
        if checked is not None and checked.against:
            request = _contested(checked.against)
    if request and not draft.is_final:
        return Review(request=request)
    if request and (checked is None or checked.verdict == "inconclusive"):
        return _led(draft, seen)
    return Review(text=_with_doubts(draft.text, look, checked), verdict=own)


def _call(conversation: Conversation, *, claim: str = "") -> FactsCall:
    arguments = {**conversation.arguments(), "max_tokens": FIRST_LOOK_TOKENS}
    if claim:
        return FactsCall(name=SECOND_LOOK_NOTE, tool=FIRST_LOOK_TOOL, arguments={**arguments, "claim": claim})
    return FactsCall(name=FIRST_LOOK_NOTE, tool=FIRST_LOOK_TOOL, arguments=arguments)


def _relevant(conversation: Conversation) -> SeenLook | None:
    """Return the look, or None if the question is not about the cluster, for example "thank you"."""
    seen = conversation.look
    if seen is None or seen.look.verdict == "not_understood":
        return None
    question = parse_question(conversation.question)
    asks = question.kinds or question.symptoms or question.asks(*_CLUSTER_CONCEPTS)
    return seen if seen.look.subject or conversation.alerts or asks else None


def _is_data(text: str) -> bool:
    """Return whether the answer is JSON, which a program reads."""
    return text.strip().removeprefix("```json").lstrip().startswith(("{", "["))


def _request(draft: Draft, look: FirstLook | None) -> str:
    """Return what the model should mend about the cause that it names, or an empty string."""
    if not any(map(_proves, draft.citations)):
        return _ASKED_FOR_EVIDENCE
    if look is None or not look.is_definite or _agrees(draft.text, look):
        return ""
    return (
        f"Your cause contradicts the facts: {sentence(look.summary)} Explain with cited results why your cause is the "
        "right one, or correct your answer."
    )


def _contested(against: Sequence[str]) -> str:
    return (
        f"Your cause was compared with the cluster: {'; '.join(against)}. Cite the lines that explain this, or correct "
        "your answer."
    )


def _proves(citation: Citation) -> bool:
    """Return whether the cited lines show the claim. A claim without names, numbers and quotes proves nothing."""
    return citation.outcome == "checked" or (citation.outcome == "cited" and bool(_MARKED.search(citation.claim)))


def _agrees(text: str, look: FirstLook) -> bool:
    """Return whether the answer names the culprit of the look, and a part of the cause that the question did not."""
    if look.verdict != "cause_found":
        return False
    plain = without_markers(text).lower()
    name = look.culprit.rpartition("/")[2].rpartition(" ")[2].lower()
    if name and not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", plain):
        return False
    known = " ".join((*look.subject, look.culprit, look.scope)).lower()
    facts = {word.lower() for word in _DISTINCTIVE.findall(f"{look.summary} {' '.join(look.evidence)}")}
    distinctive = {word for word in facts if word not in known}
    return not distinctive or any(word in plain for word in distinctive)


def _is_worse(own: Verdict, seen: SeenLook | None) -> bool:
    """Return whether an answer without a cause says less, or something else, than the facts."""
    if seen is None or seen.look.verdict in {"answered", "not_understood", "declined", own.kind}:
        return False
    return seen.look.verdict in {"cause_found", "healthy"} or bool(seen.look.subject)


def _with_doubts(text: str, look: FirstLook | None, checked: FirstLook | None) -> str:
    """Return the answer, followed by what speaks against its cause."""
    doubts = [f"Against this cause: {sentence('; '.join(checked.against))}"] if checked and checked.against else []
    if look is not None and look.verdict == "cause_found" and not _agrees(text, look):
        doubts.append(f"The built-in rules name another cause: {sentence(look.summary)}")
    return "\n\n".join((text, *doubts))


def _led(draft: Draft, seen: SeenLook | None) -> Review:
    """Return the answer of the facts, followed by the model's words."""
    words = _quoted(draft.text)
    if seen is None:
        head = "**Cause not found**: no result proves the cause that the model names."
        verdict = Verdict(kind="inconclusive", by="rules", summary="No result proves the cause that the model names.")
        return Review(text=f"{head}\n\n{words}", verdict=verdict)
    text = answer_text(seen, origin=f"{_FROM_RULES} The model's answer is not proved:")
    return Review(text=f"{text}\n\n{words}", verdict=verdict_of_look(seen.look))


def _quoted(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    shown = [f"> {shortened(line, _QUOTED_CHARACTERS)}" for line in lines[:_MOST_QUOTED_LINES]]
    return "\n".join((*shown, "> …") if len(lines) > _MOST_QUOTED_LINES else shown)


def _stopped(draft: Draft, seen: SeenLook | None) -> Review:
    """Return the answer of the facts after a search without an answer. A definite cause leads at once."""
    if seen is None or seen.look.verdict == "not_understood" or not (draft.is_final or seen.look.is_definite):
        return Review()
    origin = f"{_FROM_RULES} The model gave no answer: {sentence(draft.stopped)}"
    return Review(text=answer_text(seen, origin=origin), verdict=verdict_of_look(seen.look))
