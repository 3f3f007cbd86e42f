"""Looks for the bytes of outputs the way a reader could: in the conversation, then along the ids that are named."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holmes.values.errors import ResultStoreError
from holmes.values.messages import AssistantMessage, Image, ResultId, SystemMessage, ToolMessage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.values.messages import Message
    from holmes.values.tools import ResultStore

_NAMED = re.compile(rb"(?<![0-9a-f])[0-9a-f]{12,64}(?![0-9a-f])")


class Reachable:
    """Everything that `messages` show or lead to."""

    def __init__(self) -> None:
        self.contents: set[bytes] = set()
        self._long: list[bytes] = []

    @classmethod
    async def of(cls, messages: Sequence[Message], store: ResultStore) -> Reachable:
        """Read every result that is named, and what those name in turn."""
        found, waiting = cls(), list[ResultId]()
        for message in messages:
            if isinstance(message, SystemMessage | AssistantMessage):
                continue
            found._add(encoded(message.text))
            found.contents |= {part.data for part in message.parts if isinstance(part, Image)}
            if isinstance(message, ToolMessage) and not message.spilled and not message.masked:
                found._add(encoded(_without_label(message)))
            waiting += [stored.id for stored in message.stored]
        await found._follow(waiting, store)
        return found

    async def _follow(self, waiting: list[ResultId], store: ResultStore) -> None:
        seen: set[ResultId] = set()
        while waiting:
            result_id = waiting.pop()
            if result_id in seen:
                continue
            seen.add(result_id)
            try:
                content, stored = await store.read(result_id)
            except (ResultStoreError, KeyError):
                continue
            self._add(content)
            if stored.media_type == "text/plain":
                waiting += [ResultId(match.decode()) for match in _NAMED.findall(content)]

    def _add(self, content: bytes) -> None:
        self.contents.add(content)
        self._long.append(content)

    def has(self, content: bytes) -> bool:
        """Whether `content` is there as a whole: on its own, or inside a text such as that of removed messages."""
        return content in self.contents or any(content in text for text in self._long)


def encoded(text: str) -> bytes:
    """The bytes that a tool wrote, when what is no UTF-8 was decoded to lone surrogates."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _without_label(message: ToolMessage) -> str:
    return message.text.rpartition("\n[result ")[0]
