"""Reviews the answers of models against the first look of the built-in rules.

A model never makes an answer worse. A cause needs a cited result behind it, and must not contradict what the facts
definitely show. Otherwise the verdict of the facts leads, and the model's words follow, marked as unproved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.core.reviewer import FactsCall, Review
from holmes.triage import TRIAGE_MODEL
from holmes.triage.agreement import repeats_numbers
from holmes.triage.answers import answer_text
from holmes.triage.checked_answer import CheckedAnswer
from holmes.triage.conversation import FIRST_LOOK_NOTE, SECOND_LOOK_NOTE, read_conversation, second_look
from holmes.triage.markdown import sentence
from holmes.triage.metric_readings import alert_arguments, measured_lines
from holmes.triage.relevance import (
    asks_for_cause,
    asks_what_happened,
    has_searched,
    is_about_cluster,
    is_data,
    is_knowledge,
    relevant_look,
    tells_of_trouble,
)
from holmes.triage.verdicts import judge_answer, verdict_of_look
from holmes.values.first_look import ALERT_TOOL, FIRST_LOOK_TOOL
from holmes.values.texts import shortened
from holmes.values.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.core.reviewer import Draft
    from holmes.triage.conversation import Conversation
    from holmes.values.first_look import FirstLook
    from holmes.values.messages import Message, UserMessage

_FIRST_LOOK_TOKENS: Final = 800
_MOST_QUOTED_LINES: Final = 5
_MOST_ADDED_LINES: Final = 12
_QUOTED_CHARACTERS: Final = 300
_FROM_RULES: Final = "This answer comes from the built-in rules of Holmes (builtin/triage)."
_NOT_PROVED: Final = f"{_FROM_RULES} The model's answer is not proved:"
_ADDED: Final = f"{_FROM_RULES} The model names another mechanism, with cited lines:"
_ASKED_FOR_LINES: Final = (
    "Your answer cites no line that shows it. Cite the lines, call a tool that shows them, or answer `**Cause not "
    "found:**` and state what you checked."
)
_ASKED_FOR_FACT: Final = "The question asks for a fact, and not for a cause. Cite the lines that show the fact."


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesReviewer:
    """Reviews answers with the tool `kubernetes_first_look`.

    `has_tool` is false if the tool is not available: then answers stay as they are. `first_look` shows the model the
    first look before its first reply. `reviews` compares answers with the facts. `details` adds to the answers of the
    facts everything that short answers omit.
    """

    has_tool: bool = True
    first_look: bool = True
    reviews: bool = True
    details: bool = False

    @property
    def takes_first_look(self) -> bool:
        """Whether conversations get a first look before the first reply."""
        return self.has_tool and self.first_look

    def opening(self, messages: Sequence[Message]) -> tuple[FactsCall, ...]:
        """Return the calls of the first look and of the alerts, unless the conversation has a look for its question."""
        conversation = read_conversation(messages)
        if not self.takes_first_look or not conversation.question.strip():
            return ()
        if conversation.look or conversation.failure or conversation.details:
            return ()
        given = alert_arguments(conversation.alerts, conversation.firing)
        alerts = (FactsCall(name=f"alert_{n}", tool=ALERT_TOOL, arguments={**each}) for n, each in enumerate(given, 1))
        return (_call(conversation), *alerts)

    def is_useful(self, note: UserMessage, messages: Sequence[Message]) -> bool:
        """Return whether the look has a subject that no earlier look in the conversation has.

        The condition of an alert is useful if it could be read.
        """
        known, now = (read_conversation(each).metrics.alerts for each in (messages, (*messages, note)))
        if len(now) > len(known):
            return not now[-1].failed
        seen = relevant_look(read_conversation((*messages, note)))
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
        if draft.model == TRIAGE_MODEL or not (self.has_tool and self.reviews) or is_data(draft):
            return Review(text=draft.text, verdict=own)
        conversation = read_conversation(draft.messages)
        conversation = replace(conversation, details=conversation.details or self.details)
        if conversation.look is None and not conversation.failure and draft.may_call:
            return Review(call=_call(conversation))
        if draft.stopped:
            return _stopped(draft, conversation)
        if own.kind == "answered" and is_knowledge(draft, conversation):
            return Review(text=draft.text, verdict=own)
        about_cluster = own.kind != "answered" or is_about_cluster(draft)
        return _reviewed(
            own, CheckedAnswer.of(draft, conversation, relevant_look(conversation, about_cluster=about_cluster))
        )


def _reviewed(own: Verdict, answer: CheckedAnswer) -> Review:
    look = answer.look
    if own.kind == "cause_found":
        return _of_cause(own, answer)
    if look is None or look.verdict in {"not_understood", "not_investigated"}:
        return _without_look(own, answer)
    if own.kind == "answered":
        return _of_fact(own, answer, look)
    return Review(text=answer.draft.text, verdict=own) if own.kind == look.verdict else _led(answer)


def _without_look(own: Verdict, answer: CheckedAnswer) -> Review:
    """Review an answer that the rules have no facts for. Trouble needs proof, whatever the form of the answer.

    An answer that cites nothing shows no fact of the cluster: it may name no object, and the verdict stays that of the
    rules.
    """
    draft = answer.draft
    if own.kind in {"healthy", "not_found"} and not draft.citations:
        return _led(answer)
    seen = answer.conversation.look
    if seen is None or own.kind != "answered":
        return Review(text=draft.text, verdict=own)
    uncited = seen.look.verdict == "not_understood" and not draft.citations
    troubled = tells_of_trouble(answer.conversation) and not answer.proven
    doubted = troubled or (uncited and bool(answer.names_without_result()))
    if not draft.is_final and (doubted or (uncited and has_searched(draft))):
        return Review(request=_ASKED_FOR_LINES)
    if doubted:
        return _led(answer)
    return Review(text=draft.text, verdict=verdict_of_look(seen.look) if uncited else own)


def _of_cause(own: Verdict, answer: CheckedAnswer) -> Review:
    draft, request, checked = answer.draft, answer.problem(), None
    if not request and _answers_fact(answer):
        request = _ASKED_FOR_FACT
    if not request and answer.contradicts:
        if answer.adds:
            return _led(answer)
        request = _contradicted(answer)
    if not request and not answer.agrees:
        checked = second_look(draft.messages)
        if checked is None and draft.may_call:
            return Review(call=_call(answer.conversation, claim=answer.claim()))
        if checked is not None and checked.against:
            request = _contested(checked.against)
    if request and not draft.is_final:
        return Review(request=request)
    if request and (checked is None or checked.verdict == "inconclusive"):
        return _led(answer)
    return Review(text="\n\n".join((draft.text, *answer.doubts(checked.against if checked else ()))), verdict=own)


def _answers_fact(answer: CheckedAnswer) -> bool:
    """Return whether the look is about a question of fact that tells of no trouble. No cause replaces this fact."""
    look = answer.look
    if look is None or not (look.verdict == "answered" or look.heading) or tells_of_trouble(answer.conversation):
        return False
    return not asks_what_happened(answer.conversation, look.subject)


def _of_fact(own: Verdict, answer: CheckedAnswer, look: FirstLook) -> Review:
    """Review an answer without the words of a verdict. It may be the answer to a question of fact, or name a cause."""
    draft = answer.draft
    if look.verdict in {"cause_found", "healthy", "not_found"} or asks_for_cause(answer.conversation):
        if not answer.proven:
            return _led(answer)
        return _of_cause(replace(own, kind="cause_found") if answer.agrees else own, answer)
    if answer.is_fact or repeats_numbers(draft.text, look, answer.conversation.question):
        return Review(text=draft.text, verdict=own)
    if look.verdict == "answered" or draft.is_final:
        return _led(answer)
    return Review(request=_ASKED_FOR_LINES)


def _call(conversation: Conversation, *, claim: str = "") -> FactsCall:
    arguments = {**conversation.arguments(), "max_tokens": _FIRST_LOOK_TOKENS}
    if claim:
        return FactsCall(name=SECOND_LOOK_NOTE, tool=FIRST_LOOK_TOOL, arguments={**arguments, "claim": claim})
    return FactsCall(name=FIRST_LOOK_NOTE, tool=FIRST_LOOK_TOOL, arguments=arguments)


def _contradicted(answer: CheckedAnswer) -> str:
    return (
        f"Your cause contradicts the facts: {sentence(answer.look.summary if answer.look else '')} Explain with cited "
        "results why your cause is the right one, or correct your answer."
    )


def _contested(against: Sequence[str]) -> str:
    return (
        f"Your cause was compared with the cluster: {'; '.join(against)}. Cite the lines that explain this, or correct "
        "your answer."
    )


def _led(answer: CheckedAnswer) -> Review:
    """Return the answer of the facts, followed by the model's words."""
    adds, seen = answer.adds, answer.seen
    words = _quoted(answer.draft.text, _MOST_ADDED_LINES if adds else _MOST_QUOTED_LINES)
    if seen is None:
        head = "**Cause not found**: no result proves what the model says."
        verdict = Verdict(kind="inconclusive", by="rules", summary="No result proves what the model says.")
        return Review(text=f"{head}\n\n{words}", verdict=verdict)
    measured = measured_lines(answer.conversation.metrics)
    origin = _ADDED if adds else _NOT_PROVED
    text = answer_text(seen, details=answer.conversation.details, origin=origin, measured=measured)
    return Review(text=f"{text}\n\n{words}", verdict=verdict_of_look(seen.look))


def _quoted(text: str, most: int) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    shown = [f"> {shortened(line, _QUOTED_CHARACTERS)}" for line in lines[:most]]
    return "\n".join((*shown, "> …") if len(lines) > most else shown)


def _stopped(draft: Draft, conversation: Conversation) -> Review:
    """Return the answer of the facts after a search without an answer. A cause leads at once."""
    seen = relevant_look(conversation, about_cluster=True)
    if seen is None or not (draft.is_final or seen.look.verdict == "cause_found"):
        return Review()
    origin = f"{_FROM_RULES} The model gave no answer: {sentence(draft.stopped)}"
    return Review(
        text=answer_text(
            seen,
            details=conversation.details,
            origin=origin,
            measured=measured_lines(conversation.metrics),
        ),
        verdict=verdict_of_look(seen.look),
    )
