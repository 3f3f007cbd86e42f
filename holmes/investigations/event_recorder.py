"""Keeps the events of an investigation, each once, also when a later attempt says them again. Used by the worker."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Final

from holmes.investigations.wire_events import wire_events

if TYPE_CHECKING:
    from holmes.core.events import AgentEvent
    from holmes.core.json_types import JsonObject
    from holmes.investigations.journal import Journal

_PASSING: Final = frozenset({"text_delta", "attempt_discarded"})
"""What is worth seeing only while it happens."""

NOTICE: Final = "notice"


class EventRecorder:
    """Numbers events of a name in the order in which they come.

    An attempt that takes over says all events of the finished steps once more, in the same order and with the same
    names, so they get the same keys, and what has been kept already is not kept twice.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._seen: Counter[str] = Counter()

    async def keep(self, event: AgentEvent) -> None:
        """Keep what `event` says on the wire, if it is worth it."""
        kept: list[tuple[str, str, str]] = []
        for each in wire_events(event):
            if each.name in _PASSING:
                continue
            key = self._key(each.name, each.data)
            kept.append((key, each.name, json.dumps(each.data, ensure_ascii=False, separators=(",", ":"))))
        if kept:
            await self._journal.add_events(tuple(kept))

    async def notice(self, key: str, text: str) -> None:
        """Keep a line for people; `key` tells it from other notices."""
        await self._journal.add_events(((f"{NOTICE}:{key}", NOTICE, json.dumps({"text": text}, ensure_ascii=False)),))

    def _key(self, name: str, data: JsonObject) -> str:
        call = data.get("tool_call_id") or data.get("id")
        base = f"{name}:{call}" if isinstance(call, str) else name  # concurrent tools end in any order
        self._seen[base] += 1
        return f"{base[:150]}:{self._seen[base]}"
