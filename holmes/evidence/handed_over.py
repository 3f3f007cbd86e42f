"""Which stored results belong to a conversation, so that nothing else is read back or listed in it.

A store is shared by many conversations. A result belongs to the one whose messages, summaries or ledger point at it,
and to one in which a person names its id. What a tool, a model or a quotation names does not count: anybody may have
written it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.evidence import result_ids
from holmes.values.messages import NOTHING_HANDED_OVER, HandedOver, ResultId, Text, UserMessage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holmes.values.messages import Message

_ID: Final = re.compile(r"\b[0-9a-f]{12,64}\b")
# Data that goes with a question stands in a fence, and what a client sent without a signature in a quotation.
_NOT_SAID: Final = re.compile(r"^```.*?^```|^>.*?$", re.MULTILINE | re.DOTALL)
_REMOVED: Final = re.compile(r"\bstored as results? ([0-9a-f]{12,64})\b")


class HandedOverSoFar:
    """What a growing conversation has handed over. Each message is read once, however often it is asked."""

    def __init__(self) -> None:
        self._known = NOTHING_HANDED_OVER
        self._history: Sequence[Message] = ()
        self._read = 0

    def by(self, history: Sequence[Message]) -> HandedOver:
        """What `history` hands over, and what was handed over before it took the place of another."""
        if history is not self._history:
            self._history, self._read = history, 0
        if self._read < len(history):
            self._known = with_handed_over(self._known, history[self._read :])
            self._read = len(history)
        return self._known


def with_handed_over(earlier: HandedOver, messages: Iterable[Message]) -> HandedOver:
    """`earlier` and what `messages` hand over; nothing is forgotten when compaction removes a message."""
    messages = tuple(messages)
    people = [message for message in messages if isinstance(message, UserMessage)]
    removed = {found for message in people for found in _removed(message)}
    said = {ResultId(found) for message in people for found in _ID.findall(_said(message))}
    found = result_ids(messages) | removed | said
    if found <= earlier.ids and removed <= earlier.removed:
        return earlier
    return HandedOver(ids=earlier.ids | found, removed=earlier.removed | removed)


def _removed(message: UserMessage) -> Iterator[ResultId]:
    """Where the messages lie that a summary stands for. Its first part has the words of a model as well."""
    if message.kind != "summary":
        return
    stored = {each.id for each in message.stored}
    for number, part in enumerate(message.parts):
        for match in _REMOVED.finditer(part.text) if isinstance(part, Text) else ():
            if number or match[1] in stored:
                yield ResultId(match[1])


def _said(message: UserMessage) -> str:
    """The own words of a person."""
    if message.kind != "request":
        return ""
    return _NOT_SAID.sub("", message.text)
