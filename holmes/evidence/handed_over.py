"""Determines which stored results belong to a conversation, so that other results cannot be read or listed.

Conversations share a store. A result belongs to a conversation if the conversation's messages, summaries or ledger
point to it, or if the user writes its id. Ids in tool results, model replies and quotations are ignored, because
untrusted parties may have written them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.evidence import result_ids
from holmes.values.expressions import expression
from holmes.values.messages import NOTHING_HANDED_OVER, HandedOver, ResultId, Text, UserMessage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holmes.values.messages import Message

_ID: Final = expression(r"\b[0-9a-f]{12,64}\b")
# Text that is not from the user: fenced data in a question, and unsigned client messages, which are quoted.
_NOT_SAID: Final = expression(r"^```.*?^```|^>.*?$", re.MULTILINE | re.DOTALL)
_REMOVED: Final = expression(r"\bstored as results? ([0-9a-f]{12,64})\b")


class HandedOverSoFar:
    """Finds the results that belong to a growing conversation. Each message is read only once."""

    def __init__(self) -> None:
        self._known = NOTHING_HANDED_OVER
        self._history: Sequence[Message] = ()
        self._read = 0

    def by(self, history: Sequence[Message]) -> HandedOver:
        """Return the results that belong to `history` or to an earlier history."""
        if history is not self._history:
            self._history, self._read = history, 0
        if self._read < len(history):
            self._known = with_handed_over(self._known, history[self._read :])
            self._read = len(history)
        return self._known


def with_handed_over(earlier: HandedOver, messages: Iterable[Message]) -> HandedOver:
    """Return `earlier` with the results of `messages` added. Compaction does not remove results."""
    messages = tuple(messages)
    people = [message for message in messages if isinstance(message, UserMessage)]
    removed = {found for message in people for found in _removed(message)}
    said = {ResultId(found) for message in people for found in _ID.findall(_said(message))}
    found = result_ids(messages) | removed | said
    if found <= earlier.ids and removed <= earlier.removed:
        return earlier
    return HandedOver(ids=earlier.ids | found, removed=earlier.removed | removed)


def _removed(message: UserMessage) -> Iterator[ResultId]:
    """Yield the ids of the results that contain removed messages.

    The first part of a summary also contains text from the model, so only ids in `message.stored` are accepted there.
    """
    if message.kind != "summary":
        return
    stored = {each.id for each in message.stored}
    for number, part in enumerate(message.parts):
        for match in _REMOVED.finditer(part.text) if isinstance(part, Text) else ():
            if number or match[1] in stored:
                yield ResultId(match[1])


def _said(message: UserMessage) -> str:
    """Return the text that the user wrote, without fenced data and quotations."""
    if message.kind != "request":
        return ""
    return _NOT_SAID.sub("", message.text)
