"""Tells which answers of a model are reviewed: those to questions about the cluster."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from holmes.triage.knowledge import asks_for_knowledge
from holmes.triage.question import parse_question
from holmes.triage.vocabulary import folded
from holmes.values.expressions import expression
from holmes.values.messages import AssistantMessage, SystemMessage, is_user_message

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holmes.core.reviewer import Draft
    from holmes.triage.conversation import Conversation, SeenLook

_CLUSTER_CONCEPTS: Final = ("why", "trouble", "health", "changes", "logs", "events", "count", "usage")
"""Concepts of questions that are about the cluster even if they name no object."""
_READ_CHARACTERS: Final = 2_000
_FOR_PROGRAM: Final = expression(r"\bJSON schema\b|^A program reads", re.MULTILINE)
_WANTS_JSON: Final = expression(
    r"(?<![-\w])(?:as|in|only|valid|return|respond with|answer with|output|als|im|nur|gultiges|en|au format|en formato)"
    r" (?:(?:an?|the|one|raw|pure|plain|valid|strict|ein|una?|un) )*json\b"
    r"(?=[ -]*(?:$|[.,;:!?)]|\b(?:with|that|and|only|please|object|array|list|value|format|mit|und|con|y|avec|et)\b))"
    r"|^json\b|(?:^|[.,;:!?] )(?:output|format|ausgabe|salida|sortie)?:? ?json\b(?=[ -]*(?:$|[.,;!?)]|please|bitte))"
    r"|\bjson[ -]?(?:object|array|value|schema|output|only|document|objekt)\b|\b(?:objeto|objet) json\b",
    re.MULTILINE,
)
"""Requests for an answer in JSON. "Errors in JSON logs", `-o jsonpath=` and `--output json` are none."""


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


def asks_what_happened(conversation: Conversation, subject: Iterable[str]) -> bool:
    """Return whether the question asks for changes, events or log lines, which a cause may answer.

    The name of a `subject` such as `Deployment shop/log` asks for nothing.
    """
    names = {each.rpartition("/")[2].rpartition(" ")[2] for each in subject}
    words = (word for word in conversation.question.split() if word.strip("`'\"?.,!:;").lower() not in names)
    return parse_question(" ".join(words)).asks("changes", "logs", "events")


def has_searched(draft: Draft) -> bool:
    """Return whether the model called tools for the last question."""
    asked = max((i for i, each in enumerate(draft.messages) if is_user_message(each, "request")), default=0)
    return any(isinstance(each, AssistantMessage) and each.tool_calls for each in draft.messages[asked:])


def is_about_cluster(draft: Draft) -> bool:
    """Return whether the model treats the question as one about the cluster: it searched, or tells of a fault."""
    return has_searched(draft) or bool(parse_question(draft.text[:_READ_CHARACTERS]).symptoms)


def is_knowledge(draft: Draft, conversation: Conversation) -> bool:
    """Return whether the question is about Kubernetes itself, and the model answered without the cluster."""
    seen = conversation.look
    if conversation.alerts or has_searched(draft) or (seen is not None and seen.look.subject):
        return False
    asked = parse_question(conversation.question)
    is_trouble = bool(asked.symptoms) or asked.asks("trouble", "health")
    return asks_for_knowledge(conversation.question, is_trouble=is_trouble)


def is_data(draft: Draft) -> bool:
    """Return whether the answer is JSON for a program that asked for it."""
    if not _is_json(draft.text):
        return False
    requested = (each.text for each in draft.messages if is_user_message(each, "request"))
    prompts = (each.text for each in draft.messages if isinstance(each, SystemMessage))
    return any(_WANTS_JSON.search(folded(text)) for text in requested) or any(map(_FOR_PROGRAM.search, prompts))


def _is_json(text: str) -> bool:
    """Return whether the text, or the code block that it consists of, is a JSON object or list."""
    block = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    if not block.startswith(("{", "[")):
        return False
    try:
        json.loads(block)
    except (ValueError, RecursionError):
        return False
    return True
