"""Compares a summary with its source to find missing and invented names.

`survey` runs in a thread before the request to the model, and the comparison with the summary is fast. The check is
deterministic. It reads a limited number of characters of each message, newest messages first. It compares only names
and numbers, not the meaning of sentences.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holmes.core.truncation.entities import Entity, find_entities, pieces_of
from holmes.tokens import message_texts
from holmes.values.expressions import expression
from holmes.values.messages import AssistantMessage, UserMessage, is_user_message

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holmes.core.truncation.entities import EntityKind
    from holmes.values.messages import Message
    from holmes.values.tools import Tool

MAX_MESSAGE_CHARACTERS = 100_000
_MAX_TOTAL_CHARACTERS = 2_000_000
IMPORTANT_SCORE = 4.5
NOTEWORTHY_SCORE = 2.5
NOT_IN_SOURCE = " (not in the source)"
_MAX_DISTINCT = 10_000
_MAX_RANKED = 500
_MAX_CHECKED = 400
_LEAST_CHECKED_FOR_FABRICATION = 4
_LINE_CHARACTERS = 240

_WEIGHTS: dict[EntityKind, float] = {
    "pod": 2.0,
    "resource": 2.0,
    "image": 2.0,
    "exit code": 3.0,
    "HTTP status": 2.0,
    "error": 3.0,
    "phrase": 2.5,
    "reason": 3.0,
    "address": 1.5,
    "time": 0.5,
    "path": 1.0,
    "setting": 2.0,
    "quantity": 1.5,
    "version": 1.0,
    "id": 0.0,
    "result": 1.0,
    "citation": 0.0,
}
_SAID_BY_ASSISTANT = 4.0
_SAID_BY_USER = 3.0
_ON_SEVERE_LINE = 2.5
_MOST_FOR_FREQUENCY = 1.5
_CROWD = 16
# A summary may use other words for entities of these kinds, so such entities are never reported as invented.
_NEVER_INVENTED: frozenset[EntityKind] = frozenset({"phrase", "quantity"})
# Kinds that occur on most log lines. They are used only on severe lines and in texts from the user or the model.
_ONLY_WHERE_IT_MATTERS: frozenset[EntityKind] = frozenset({"time", "id", "path", "version"})
_SEVERE_WORDS = (
    "error", "fatal", "panic", "fail", "exception", "kill", "crash", "refused", "timeout", "timed out", "denied",
    "backoff", "unhealthy", "not found", "missing", "evict", "critical", "warn", "unschedulable", "exceeded",
    "unauthorized", "forbidden", "exit code",
)  # fmt: skip
_LOOKED_AT = 16
_FAULT_KINDS: frozenset[EntityKind] = frozenset({"exit code", "HTTP status", "error", "phrase", "reason"})
_LISTS = expression(r"^Also seen:.*\n(?:- .*\n?)*|^## Checked\n(?:(?!## |\n).*\n?)*", re.MULTILINE)
_WITH_NUMBER = expression(r"\S*\d\S*")
_MOST_OF_A_SHAPE = 2
_SENTENCES = expression(r"(?<=[.!?\])])\s+(?=[A-Z])")


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedEntity:
    """An entity of the source, its importance, and a line that contains it.

    `said` is true if the entity occurs in a text from the user or the model, or in an earlier summary.
    """

    entity: Entity
    score: float
    line: str
    said: bool = False


@dataclass(slots=True)
class _Sightings:
    """Statistics about the occurrences of one entity in the source."""

    line: str
    count: int = 0
    by_assistant: bool = False
    by_user: bool = False
    severe: bool = False
    recency: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSurvey:
    """The source that a summary is compared with.

    `ranked` contains the entities of the removed messages that no kept message mentions, the most important first.
    `source` contains all texts that the model has seen, in lower case.
    """

    ranked: tuple[RankedEntity, ...]
    source: tuple[str, ...] = field(repr=False)

    def missing_from(self, summary: str) -> tuple[RankedEntity, ...]:
        """Return the entities that `summary` does not mention, the most important first."""
        text = (summary.lower(),)
        return tuple(ranked for ranked in self.ranked if not is_mentioned(ranked.entity, text))

    def invented_in(self, summary: str) -> tuple[Entity, ...]:
        """Return the entities of `summary` that do not occur in the source, in order of appearance."""
        return tuple(entity for entity in checkable_entities(summary) if not is_mentioned(entity, self.source))

    def is_fabricated(self, summary: str) -> bool:
        """Return whether `summary` has enough checkable entities, and more than half of them are invented."""
        checkable = checkable_entities(summary)
        return len(checkable) >= _LEAST_CHECKED_FOR_FABRICATION and 2 * len(self.invented_in(summary)) > len(checkable)


def survey(
    removed: Sequence[Message], kept: Sequence[Message], shown: Sequence[Message], tools: Sequence[Tool] = ()
) -> SourceSurvey:
    """Find the important entities that occur in `removed` but not in `kept`.

    `shown` and `tools` are the messages and the tools that the writer of the summary may have seen.
    """
    kept_texts = _lowered(kept)
    request = _lowered(message for message in kept if is_user_message(message, "request"))
    sightings = _sightings(removed)
    crowds = Counter((entity.kind, seen.by_assistant, seen.severe) for entity, seen in sightings.items())
    ranked = [
        RankedEntity(
            entity=entity,
            score=_score(entity, seen, request, crowds[entity.kind, seen.by_assistant, seen.severe]),
            line=seen.line,
            said=seen.by_assistant or seen.by_user,
        )
        for entity, seen in sightings.items()
    ]
    ranked.sort(key=lambda item: (-item.score, item.entity))
    top = _without_duplicates(ranked)[:_MAX_RANKED]
    return SourceSurvey(
        ranked=tuple(item for item in top if not is_mentioned(item.entity, kept_texts)),
        source=(*_lowered(shown), *(f"{tool.name} {tool.description}".lower() for tool in tools)),
    )


def checkable_entities(text: str) -> tuple[Entity, ...]:
    """Return the unique entities of a summary that must occur in its source, in order of appearance."""
    found = sorted(
        ((position, entity) for piece in pieces_of(text) for entity, position in find_entities(piece)),
        key=lambda item: (item[0], -len(item[1].value), item[1]),
    )
    kept: dict[str, Entity] = {}
    for _, entity in found:
        if entity.kind not in _NEVER_INVENTED:
            kept.setdefault(entity.value, entity)
    return tuple(kept.values())[:_MAX_CHECKED]


def is_mentioned(entity: Entity, lowered_texts: Sequence[str]) -> bool:
    """Return whether `lowered_texts` contain `entity`, in any spelling."""
    value = entity.value.lower()
    spellings = ((value,), *_other_spellings(entity.kind, value))
    return any(all(_is_in_any(part, lowered_texts) for part in parts) for parts in spellings)


def _is_in_any(value: str, texts: Sequence[str]) -> bool:
    """Return whether one of `texts` contains `value` as a separate word or number."""
    for text in texts:
        start = text.find(value)
        while start >= 0:
            end = start + len(value)
            before = text[start - 1 : start] if value[0].isalnum() else ""
            if not before.isalnum() and not text[end : end + 1].isalnum():
                return True
            start = text.find(value, end)
    return False


def mark_invented(summary: str, invented: Sequence[Entity]) -> str:
    """Insert a note after the first mention of each invented entity."""
    for entity in invented:
        position = summary.find(entity.value)
        end = position + len(entity.value)
        if position >= 0 and not summary.startswith(NOT_IN_SOURCE, end):
            summary = summary[:end] + NOT_IN_SOURCE + summary[end:]
    return summary


def _sightings(removed: Sequence[Message]) -> dict[Entity, _Sightings]:
    found: dict[Entity, _Sightings] = {}
    left = _MAX_TOTAL_CHARACTERS
    for position in reversed(range(len(removed))):
        message = removed[position]
        recency = position / len(removed)
        for text in message_texts(message):
            shown = _both_ends(text, min(left, MAX_MESSAGE_CHARACTERS))
            left -= len(shown)
            for piece in pieces_of(shown):
                _read_piece(piece, message, recency, found)
    return found


def _read_piece(piece: str, message: Message, recency: float, found: dict[Entity, _Sightings]) -> None:
    by_assistant = isinstance(message, AssistantMessage) or is_user_message(message, "summary")
    by_user = is_user_message(message, "request")
    if by_assistant and isinstance(message, UserMessage):
        piece = _without_lists(piece)
    for entity, position in find_entities(piece):
        if entity.kind == "citation":  # the ledger keeps citations, so a summary does not need them
            continue
        seen = found.get(entity)
        if seen is None or (not seen.severe and seen.count < _LOOKED_AT):
            line = _line_around(piece, position)
            if by_assistant:
                line = _sentence_around(line, entity.value)
            severe = _is_severe(line)
            if entity.kind in _ONLY_WHERE_IT_MATTERS and not (severe or by_assistant or by_user):
                continue
            if seen is None:
                if len(found) >= _MAX_DISTINCT:
                    continue
                seen = found[entity] = _Sightings(line=line, recency=recency)
            if severe:
                seen.line, seen.severe = line, True
        seen.count += 1
        seen.by_assistant |= by_assistant
        seen.by_user |= by_user


def _without_lists(text: str) -> str:
    """Remove the lists of names and checks from an earlier summary."""
    return _LISTS.sub("", text)


def _is_severe(line: str) -> bool:
    lowered = line.lower()
    return any(word in lowered for word in _SEVERE_WORDS) or any(
        entity.kind in _FAULT_KINDS for entity, _ in find_entities(line)
    )


def _sentence_around(line: str, value: str) -> str:
    """Return the sentence of `line` that contains `value`."""
    return next((each for each in _SENTENCES.split(line) if value in each), line)


def _score(entity: Entity, seen: _Sightings, request: Sequence[str], crowd: int) -> float:
    """Return the importance of an entity. Many similar entities (`crowd`) reduce the importance."""
    score = _WEIGHTS[entity.kind] + seen.recency + min(_MOST_FOR_FREQUENCY, math.log2(seen.count) / 4)
    score += _SAID_BY_ASSISTANT if seen.by_assistant else 0.0
    score += _SAID_BY_USER if seen.by_user or is_mentioned(entity, request) else 0.0
    score += _ON_SEVERE_LINE if seen.severe else 0.0
    alone = seen.by_user or crowd <= _CROWD
    return score if alone else score - math.log2(crowd / _CROWD) / 2


def _without_duplicates(ranked: Iterable[RankedEntity]) -> tuple[RankedEntity, ...]:
    """Keep each spelling once, under its most important kind."""
    kept: dict[str, RankedEntity] = {}
    for item in ranked:
        kept.setdefault(item.entity.value.lower(), item)
    return tuple(kept.values())


def _lowered(messages: Iterable[Message]) -> tuple[str, ...]:
    """Return the texts of `messages` in lower case, in parts of at most 65,536 characters."""
    return tuple(piece.lower() for message in messages for text in message_texts(message) for piece in pieces_of(text))


def _both_ends(text: str, most_characters: int) -> str:
    if len(text) <= most_characters:
        return text
    half = max(0, most_characters // 2)
    head, tail = text[:half], text[len(text) - half :] if half else ""
    # A part of a name can look like another name, so keep whole lines if possible.
    return head[: head.rfind("\n") + 1 or half] + "\n" + tail[tail.find("\n") + 1 :]


def _line_around(piece: str, position: int) -> str:
    """Return the part of the line around `position`, at most 240 characters."""
    start = piece.rfind("\n", max(0, position - _LINE_CHARACTERS // 2), position) + 1
    start = start or max(0, position - _LINE_CHARACTERS // 2)
    end = piece.find("\n", position, position + _LINE_CHARACTERS // 2)
    return piece[start : end if end >= 0 else position + _LINE_CHARACTERS // 2].strip()


def _other_spellings(kind: EntityKind, value: str) -> tuple[tuple[str, ...], ...]:
    """Return other spellings of `value`.

    Each spelling is a tuple. A text must contain all parts of the tuple, because, for example, the name and the tag of
    an image may be in two columns.
    """
    if kind == "image":
        name, separator, tag = value.partition("@") if "@" in value else value.rpartition(":")
        return ((name, tag),) if separator and name and tag else ()
    if kind == "address" and value.count(":") == 1:
        host, _, port = value.partition(":")
        return ((host, port),) if host and port else ()
    if kind == "time":
        date, clock = value[:10], value[11:19] if len(value) >= 19 else value[11:16]
        return tuple((f"{start}{clock}{end}",) for start in (f"{date} ", f"{date}t", "") for end in ("", "z"))
    if kind == "version":
        return ((value.removeprefix("v"),),)
    return ()


def with_distinct_lines(items: Sequence[RankedEntity]) -> tuple[RankedEntity, ...]:
    """Keep each line once, and at most two lines that differ only in numbers.

    A log can repeat a message hundreds of times with different addresses.
    """
    kept: list[RankedEntity] = []
    shapes: Counter[str] = Counter()
    for item in items:
        if any(item.entity.value in each.line for each in kept):
            continue
        if not item.said or item.line.lstrip("- ")[:1].isdigit():  # a summary may quote log lines too
            shape = _WITH_NUMBER.sub("#", item.line)
            shapes[shape] += 1
            if shapes[shape] > _MOST_OF_A_SHAPE:
                continue
        kept.append(item)
    return tuple(kept)
