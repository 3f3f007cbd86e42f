"""Keeps the events of an investigation, each once, also when a later attempt says them again. Used by the worker."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import TYPE_CHECKING, Final

from holmes.investigations.records.wire_events import NOTICE, wire_events

if TYPE_CHECKING:
    from holmes.investigations.records.journal import Journal
    from holmes.values.events import AgentEvent
    from holmes.values.json_types import JsonObject

_PASSING: Final = frozenset({"text_delta", "attempt_discarded"})
"""What is worth seeing only while it happens."""

_LONGEST_ID: Final = 100


class EventRecorder:
    """Numbers events of a name in the order in which they come.

    An attempt that takes over says all events of the finished steps once more, in the same order and with the same
    names, so they get the same keys, and what has been kept already is not kept twice. `prefix` tells another run of
    the same investigation apart.
    """

    def __init__(self, journal: Journal, prefix: str = "") -> None:
        self._journal = journal
        self._prefix = prefix
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

    async def notice(self, key: str, text: str) -> bool:
        """Keep a line for people; `key` tells it from other notices. Returns whether it is new."""
        is_new = not self._seen[key]
        self._seen[key] += 1
        await self._journal.add_events(((f"{NOTICE}:{key}", NOTICE, json.dumps({"text": text}, ensure_ascii=False)),))
        return is_new

    def _key(self, name: str, data: JsonObject) -> str:
        call = data.get("tool_call_id") or data.get("id")
        base = f"{name}:{_short(call)}" if isinstance(call, str) else name  # concurrent tools end in any order
        self._seen[base] += 1
        return f"{self._prefix}{base}:{self._seen[base]}"


def _short(call: str) -> str:
    """An id that fits into a key; providers make up ids of any length."""
    return call if len(call) <= _LONGEST_ID else hashlib.sha256(call.encode("utf-8", "replace")).hexdigest()
