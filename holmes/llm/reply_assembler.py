"""Assembles a streamed reply from its chunks, independently of HTTP and litellm.

Providers stream tool calls differently. Some send the call's id once, some send it in every chunk, and some never send
it. Some use the same index or id for all calls. `tool_call_repair` corrects arguments that cannot be parsed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


# Maximum length of arguments that are parsed again for each chunk, to separate calls without ids and indexes.
_PARSED_CHARACTERS = 16_384


@dataclass(slots=True, kw_only=True)
class RawToolCall:
    """A tool call as sent by the provider. `id` may be empty."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    characters: int = 0

    @property
    def arguments_text(self) -> str:
        return "".join(self.arguments)

    def is_complete(self) -> bool:
        """Return whether the arguments are valid JSON, or False for very long arguments, to keep the check fast."""
        if self.characters > _PARSED_CHARACTERS:
            return False
        try:
            json.loads(self.arguments_text)
        except (ValueError, RecursionError):
            return False
        return True


class ReplyAssembler:
    """Collects the text, the tool calls, the reasoning and the finish reason of one reply."""

    def __init__(self) -> None:
        self.finish_reason: str | None = None
        self.calls: list[RawToolCall] = []
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._thinking_blocks: list[dict[str, Any]] = []
        self._open_calls: dict[int, RawToolCall] = {}
        self._last_by_id: dict[str, RawToolCall] = {}
        self._characters = 0

    @property
    def text(self) -> str:
        return "".join(self._text)

    @property
    def characters(self) -> int:
        """The number of characters received so far in text, reasoning and tool calls."""
        return self._characters

    @property
    def is_empty(self) -> bool:
        return not self._characters and not self.calls

    @property
    def has_text(self) -> bool:
        return bool(self._text)

    def add_text(self, piece: str) -> None:
        self._text.append(piece)
        self._characters += len(piece)

    def add_reasoning(self, piece: str) -> None:
        self._reasoning.append(piece)
        self._characters += len(piece)

    def add_thinking_blocks(self, blocks: Sequence[dict[str, Any]]) -> None:
        """Add parts of opaque thinking blocks. The text of a block arrives in parts, and a signature ends the block."""
        for block in blocks:
            self._characters += sum(len(value) for value in block.values() if isinstance(value, str))
            last = self._thinking_blocks[-1] if self._thinking_blocks else None
            if block.get("type") != "thinking":
                self._thinking_blocks.append({key: value for key, value in block.items() if value is not None})
            elif last is None or last.get("type") != "thinking" or last.get("signature"):
                self._thinking_blocks.append(
                    {"type": "thinking", "thinking": block.get("thinking") or "", **_signature(block)}
                )
            else:
                last["thinking"] += block.get("thinking") or ""
                last.update(_signature(block))

    def add_tool_call(self, *, index: int | None, call_id: str | None, name: str | None, arguments: str | None) -> None:
        call = self._call_for(index, call_id or "", name or "")
        call.id = call.id or call_id or ""
        self._last_by_id[call.id] = call
        call.name = call.name or name or ""
        if arguments:
            call.arguments.append(arguments)
            call.characters += len(arguments)
            self._characters += len(arguments)

    def reasoning_payload(self) -> str | None:
        """Encode the reasoning as JSON that can be sent back to the provider.

        Returns None if the reply has no reasoning.
        """
        payload: dict[str, Any] = {}
        if self._reasoning:
            payload["reasoning_content"] = "".join(self._reasoning)
        if self._thinking_blocks:
            payload["thinking_blocks"] = self._thinking_blocks
        return json.dumps(payload, ensure_ascii=False) if payload else None

    def _call_for(self, index: int | None, call_id: str, name: str) -> RawToolCall:
        position = index if index is not None else max(self._open_calls, default=0)
        current = self._open_calls.get(position)
        if call_id and current is not None and current.id == call_id:
            return current
        known = self._last_by_id.get(call_id) if call_id else None
        if known is not None and (index is None or not name):
            return known
        if current is None or _starts_another(current, call_id, name):
            current = RawToolCall()
            self.calls.append(current)
            self._open_calls[position] = current
        return current


def _starts_another(current: RawToolCall, call_id: str, name: str) -> bool:
    """Return whether a chunk with the same index as `current` starts a new call."""
    if call_id and current.id:
        return call_id != current.id
    return bool(name and current.name) and (name != current.name or current.is_complete())


def _signature(block: dict[str, Any]) -> dict[str, Any]:
    return {"signature": block["signature"]} if block.get("signature") else {}
