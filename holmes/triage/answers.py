"""Turns a request into the next step: tool calls or the answer.

Selects the plan for a question and determines the object that "it" refers to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.triage.conversation import Lookups, Waiting
from holmes.triage.intents import intent_of
from holmes.triage.inventory import answer_inventory
from holmes.triage.question import Named, parse_question
from holmes.triage.report import NO_LLM
from holmes.triage.summary import summarise, summary_request_of
from holmes.triage.why import answer_why
from holmes.triage.words import KIND_BY_NAME
from holmes.values.messages import AssistantMessage, UserMessage

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from holmes.triage.question import Question
    from holmes.values.messages import Message, ToolCall
    from holmes.values.model import ModelRequest

_SPOKEN_OBJECT = re.compile(
    rf"`({'|'.join(KIND_BY_NAME)}) (?:([a-z0-9][a-z0-9-]{{0,62}})/)?([a-z0-9][a-z0-9.-]{{0,252}})`"
)
CAPABILITIES: Final = (
    "The built-in rules explain why an object fails and what is broken in a namespace or the cluster. "
    "They list and count objects, for example pods that are not ready, pending, crashing or restarting. "
    "They show images, replicas, limits, nodes, events, usage, revisions, recent changes and logs (all lines, or the "
    "lines that contain a word). Name the object, namespace or symptom in the question. For other questions, configure "
    "a model."
)
READS_ONLY: Final = "Holmes is read-only. No changes were made."
_POLITE: Final = frozenset({"please", "can", "could", "would", "you", "now", "just", "and", "then"})
_CHANGES: Final = frozenset({
    "apply", "cordon", "create", "delete", "downscale", "drain", "edit", "fix", "kill", "patch", "reboot", "remove",
    "repair", "restart", "revert", "roll", "rollback", "scale", "uncordon", "undo", "upgrade",
})  # fmt: skip
_MOST_ATTACHMENT_CHARACTERS = 20_000
_KINDS_WITH_PODS: Final = ("Pod", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicaSet")
_ABOUT_PODS: Final = frozenset({"logs", "image", "replicas", "placement", "resources", "usage", "history"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The next step of the model: either tool calls, or the answer in `text`."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()


def next_step(request: ModelRequest) -> Step:
    """Return a summary if the loop requests one, otherwise the next tool calls or the answer."""
    wanted = summary_request_of(request)
    if wanted is not None:
        return Step(text=summarise(wanted))
    lookups = Lookups(request)
    question = understood(lookups)
    try:
        text = _answer(lookups, question)
    except Waiting:
        return Step(calls=lookups.pending)
    return Step(text=f"{READS_ONLY}\n\n{text}" if _orders_a_change(question) else text)


def _orders_a_change(question: Question) -> bool:
    """Return whether the question is an order to change the cluster."""
    words = [word for word in question.words[:4] if word not in _POLITE]
    return bool(words) and words[0] in _CHANGES


def _answer(lookups: Lookups, question: Question) -> str:
    intent = intent_of(question)
    if intent == "why":
        return answer_why(lookups, question)
    if intent == "other":
        return answer_why(lookups, question).replace(NO_LLM, f"{CAPABILITIES}\n\n{NO_LLM}")
    return answer_inventory(lookups, question, intent)


def understood(lookups: Lookups) -> Question:
    """Parse the question, replace "it" with the object, and add names from the attachments."""
    question = parse_question(lookups.conversation.question)
    if question.points_back or (not question.names and question.text.startswith("and ")):
        said = last_object(lookups.conversation.earlier, _KINDS_WITH_PODS if intent_of(question) in _ABOUT_PODS else ())
        if said is not None:
            namespace = question.namespace or said.namespace
            return replace(question, names=(said, *question.names), namespace=namespace, perhaps_namespace="")
    # Names in fenced data, for example in an alert, are ignored if the question names a namespace.
    fenced = () if question.namespace else lookups.conversation.fenced
    attached = "\n".join((*lookups.conversation.attachments, *fenced))[:_MOST_ATTACHMENT_CHARACTERS]
    if attached and not any(each.certain for each in question.names):
        found = parse_question(attached)
        names = tuple(each for each in found.names if each.certain)
        return replace(
            question,
            names=(*question.names, *names),
            symptoms=question.symptoms or found.symptoms,
            namespace=question.namespace or found.namespace,
        )
    return question


def last_object(messages: Sequence[Message], kinds: Collection[str] = ()) -> Named | None:
    """Return the object that was discussed last, or None if no message contains an object.

    Only the last message that contains objects is read. An object of one of `kinds` is preferred over the first object.
    """
    for message in reversed(messages):
        if isinstance(message, UserMessage) and message.kind != "summary":
            continue
        if not isinstance(message, (AssistantMessage, UserMessage)):
            continue
        found = [
            Named(kind=match[1], namespace=match[2] or "", name=match[3])
            for match in _SPOKEN_OBJECT.finditer(message.text)
        ]
        if found:
            return next((each for each in found if each.kind in kinds), found[0])
    return None
