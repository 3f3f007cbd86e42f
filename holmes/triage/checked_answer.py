"""A model's answer with what its citations prove, and what the model should mend about the cause that it names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.evidence import without_markers
from holmes.triage.agreement import agrees, names_culprit, names_without_weight, terms_without_object
from holmes.triage.conversation import SHOWN
from holmes.triage.markdown import code, sentence
from holmes.triage.proofs import Known, invented, proofs, shows_something
from holmes.triage.verdicts import causes_in
from holmes.values.expressions import expression
from holmes.values.messages import AssistantMessage, ToolMessage
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.core.reviewer import Draft
    from holmes.triage.conversation import Conversation, SeenLook
    from holmes.values.events import Citation
    from holmes.values.first_look import FirstLook
    from holmes.values.messages import Message

_CLAIM_CHARACTERS: Final = 600
_MOST_SHOWN: Final = 4
_MOST_NAMES: Final = 3
_COMMANDS: Final = expression(r"^```[^`]*^```|^.*\b(?:kubectl|helm) .*$", re.MULTILINE)
_ASKED_FOR_EVIDENCE: Final = (
    "Your answer names a cause, but no result that it cites proves it. Cite the lines that prove it, call a tool that "
    "shows them, or answer `**Cause not found:**` and state what you checked."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedAnswer:
    """An answer and the first look that it is compared with.

    `cause` contains the statements of its causes, and `proven` the citations that prove them. `has_culprit` means that
    the cause names the culprit of the look, and `agrees` that it also has the mechanism of the look.
    """

    draft: Draft
    conversation: Conversation
    seen: SeenLook | None
    cause: str
    has_culprit: bool
    agrees: bool
    proven: tuple[Citation, ...]

    @classmethod
    def of(cls, draft: Draft, conversation: Conversation, seen: SeenLook | None) -> CheckedAnswer:
        """Check an answer. The first look and failed calls prove nothing but the cause of the first look."""
        look, cause = seen.look if seen is not None else None, causes_in(draft.text)
        agreed = look is not None and agrees(cause, draft.text, look)
        without_proof = {*_failed_results(draft.messages), seen.result_id if seen is not None and not agreed else ""}
        citations = [each for each in draft.citations if each.result_id not in without_proof]
        known = Known.of(conversation.question, "" if agreed else names_without_weight(look))
        return cls(
            draft=draft,
            conversation=conversation,
            seen=seen,
            cause=cause,
            has_culprit=look is not None and names_culprit(cause, look),
            agrees=agreed,
            proven=proofs(cause, citations, known),
        )

    @property
    def look(self) -> FirstLook | None:
        """The first look, or None if the question is not about the cluster."""
        return self.seen.look if self.seen is not None else None

    @property
    def contradicts(self) -> bool:
        """Whether the cause is not the one that the facts show definitely."""
        return self.look is not None and self.look.is_definite and not self.agrees

    @property
    def adds(self) -> bool:
        """Whether the answer proves something else about the culprit of the facts."""
        return self.has_culprit and bool(self.proven) and not self.problem()

    @property
    def is_fact(self) -> bool:
        """Whether a citation shows more than what the question and the look name."""
        known = Known.of(self.conversation.question, names_without_weight(self.look))
        return any(shows_something(each, known) for each in self.draft.citations)

    def problem(self) -> str:
        """Return what is wrong with the evidence for the cause, or an empty string."""
        if not self.proven:
            return _ASKED_FOR_EVIDENCE
        names = invented(self.cause, self.draft.messages, self.proven)
        if names:
            return f"No result shows {_listed(names)}. Name only what results show, and cite them."
        if not self._is_about_subject():
            return f"Nothing connects your cause with the question: {sentence(self.look.summary if self.look else '')}"
        return ""

    def _is_about_subject(self) -> bool:
        """Return whether the evidence names the subject of the question, if no object is this subject."""
        terms = terms_without_object(self.look, self.conversation)
        claims = " ".join(each.claim for each in self.proven).lower()
        return not terms or any(term in claims for term in terms)

    def claim(self) -> str:
        """Return the cause and what cited lines show, each with the arguments of its call, which name an object."""
        sources = dict(_sources(self.draft.messages))
        lines = [f"{each.claim} {sources.get(each.result_id, '')}" for each in self.proven[:_MOST_SHOWN]]
        return "".join((shortened(self.cause, _CLAIM_CHARACTERS), *(f"{SHOWN}{line}" for line in lines)))

    def doubts(self, against: Sequence[str]) -> Iterator[str]:
        """Yield what speaks against the cause, as sentences. `against` comes from the second look."""
        if against:
            yield f"Against this cause: {sentence('; '.join(against))}"
        if self.look is not None and self.look.verdict == "cause_found" and not self.agrees:
            yield f"The built-in rules name another cause: {sentence(self.look.summary)}"
        if self.look is not None and self.look.verdict == "healthy":
            yield f"The built-in rules find no fault: {sentence(self.look.summary)}"
        if names := self.names_without_result():
            yield f"No result shows {_listed(names)}."

    def names_without_result(self) -> tuple[str, ...]:
        """Return the names in the answer, without its commands, that neither the question nor a result shows."""
        text = _COMMANDS.sub("", without_markers(self.draft.text))
        return invented(text, self.draft.messages, self.draft.citations)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(code, names[:_MOST_NAMES]))


def _failed_results(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        if isinstance(message, ToolMessage) and message.status == "error":
            yield from (stored.id for stored in message.stored)


def _sources(messages: Sequence[Message]) -> Iterator[tuple[str, str]]:
    """Yield the id of each result with the arguments of its call."""
    calls = {call.id: call for each in messages if isinstance(each, AssistantMessage) for call in each.tool_calls}
    for message in messages:
        if isinstance(message, ToolMessage) and message.call_id in calls:
            yield from ((stored.id, calls[message.call_id].arguments) for stored in message.stored)
