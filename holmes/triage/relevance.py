"""Tells which answers of a model are reviewed: those to questions about the cluster."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.triage.question import parse_question
from holmes.triage.vocabulary import folded
from holmes.values.expressions import expression
from holmes.values.messages import AssistantMessage, SystemMessage, is_user_message

if TYPE_CHECKING:
    from holmes.core.reviewer import Draft
    from holmes.triage.conversation import Conversation, SeenLook

_CLUSTER_CONCEPTS: Final = ("why", "trouble", "health", "changes", "logs", "events", "count", "usage")
"""Concepts of questions that are about the cluster even if they name no object."""
_KNOWLEDGE: Final = expression(
    r"\b(?:mean|means|explain|difference between|example of|how (?:do|can|should) (?:i|you|we)|how to"
    r"|how do(?:es)? .{1,40} work|what (?:is|are) an?|why (?:would|should) (?:i|you|we|one)"
    r"|why does kubernetes|bedeutet|erklare|unterschied zwischen|was ist ein"
    r"|wie (?:kann|mache) (?:ich|man)|significa|explica|diferencia entre|que es una?|como (?:puedo|se)|qu'est-ce que?"
    r"|signifie|explique|difference entre|comment (?:puis-je|faire))\b"
)
"""Words of questions about Kubernetes itself, in four languages. A model answers them without the cluster."""
_FOR_PROGRAM: Final = expression(r"\bJSON schema\b|^A program reads", re.MULTILINE)


def relevant_look(conversation: Conversation, *, about_cluster: bool = False) -> SeenLook | None:
    """Return the first look, or None if the question is not about the cluster, for example "thank you".

    `about_cluster` means that the model treats the question as one about the cluster.
    """
    seen = conversation.look
    if seen is None or seen.look.verdict == "not_understood":
        return None
    question = parse_question(conversation.question)
    asks = question.kinds or question.symptoms or question.asks(*_CLUSTER_CONCEPTS)
    answered = seen.look.verdict in {"answered", "inconclusive", "declined", "not_found"}
    placed = seen.look.verdict == "cause_found" and "namespace" in seen.look.scope and not conversation.namespace
    understood = answered or placed or seen.look.subject or conversation.alerts
    return seen if understood or asks or about_cluster else None


def asks_for_cause(conversation: Conversation) -> bool:
    """Return whether the question is about trouble, and not one of fact."""
    return tells_of_trouble(conversation) or bool(parse_question(conversation.question).symptoms)


def tells_of_trouble(conversation: Conversation) -> bool:
    """Return whether the question tells of trouble. "Containers without a memory limit" only has a word for one."""
    return bool(conversation.alerts) or parse_question(conversation.question).asks("why", "trouble", "health")


def asks_what_happened(conversation: Conversation) -> bool:
    """Return whether the question asks for changes, events or log lines, which a cause may answer."""
    return parse_question(conversation.question).asks("changes", "logs", "events")


def has_searched(draft: Draft) -> bool:
    """Return whether the model called tools for the last question."""
    asked = max((i for i, each in enumerate(draft.messages) if is_user_message(each, "request")), default=0)
    return any(isinstance(each, AssistantMessage) and each.tool_calls for each in draft.messages[asked:])


def is_knowledge(draft: Draft, conversation: Conversation) -> bool:
    """Return whether the question is about Kubernetes itself, and the model answered without the cluster."""
    seen = conversation.look
    if conversation.alerts or has_searched(draft) or (seen is not None and seen.look.subject):
        return False
    return _KNOWLEDGE.search(folded(conversation.question)) is not None


def is_data(draft: Draft) -> bool:
    """Return whether the answer is JSON for a program that asked for it."""
    if not draft.text.strip().removeprefix("```json").lstrip().startswith(("{", "[")):
        return False
    requested = (each.text for each in draft.messages if is_user_message(each, "request"))
    prompts = (each.text for each in draft.messages if isinstance(each, SystemMessage))
    return any("json" in text.lower() for text in requested) or any(map(_FOR_PROGRAM.search, prompts))
