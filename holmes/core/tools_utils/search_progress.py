"""Notices a search that makes no progress: failed calls that are repeated, and turns that bring nothing new.

A failed call does not run a second time. A result is new if no earlier result of the run has the same content. An error
is new if no earlier error has the same text after the arguments of its call are removed, so a series of invented names
is not new.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Final

from holmes.core.tools_utils.repeated_calls import ANSWERED
from holmes.core.tools_utils.tool_executor import IDENTICAL_CALL, call_key
from holmes.values.expressions import expression
from holmes.values.messages import Image, Text, ToolMessage
from holmes.values.on_demand import FIND_TOOLS
from holmes.values.texts import excerpt
from holmes.values.tools import output_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from holmes.values.json_types import JsonValue
    from holmes.values.messages import ToolCall

_MOST_STALE_TURNS: Final = 3
_NOT_RUN_AGAIN: Final = "Not run again:"
_REASON_CHARACTERS: Final = 300
_VARIABLE: Final = expression(r"[0-9a-f]{6,}|\d+", re.IGNORECASE)


class SearchProgress:
    """The failed calls and the contents of one run."""

    def __init__(self) -> None:
        self._failed: dict[tuple[str, str], str] = {}
        self._seen: set[bytes] = set()
        self._stale_turns = 0

    @property
    def is_stuck(self) -> bool:
        """Whether the last three turns brought nothing new."""
        return self._stale_turns >= _MOST_STALE_TURNS

    def note_turn(self, calls: Sequence[ToolCall], messages: Sequence[ToolMessage]) -> None:
        """Record the results of one turn."""
        new = [self._note(call, message) for call, message in zip(calls, messages, strict=True)]
        self._stale_turns = 0 if any(new) else self._stale_turns + 1

    def refused(self, call: ToolCall, alternative: Callable[[], str]) -> ToolMessage | None:
        """Return the result of a call that failed before, with the reason and an alternative.

        Returns None for a call that may run.
        """
        reason = self._failed.get(call_key(call))
        if reason is None:
            return None
        text = f"{_NOT_RUN_AGAIN} the same call failed before: {reason}\nChange the arguments or use another tool."
        parts = (Text(text=f"{text} {alternative()}".rstrip()),)
        return ToolMessage(call_id=call.id, tool_name=call.name, status="error", parts=parts)

    def _note(self, call: ToolCall, message: ToolMessage) -> bool:
        """Record a result and return whether it is new."""
        text = output_text(message)
        if message.status == "approval_required":
            return True
        if message.status == "error":
            if text.startswith(_NOT_RUN_AGAIN):
                return False
            self._failed[call_key(call)] = excerpt(text.removeprefix("Error: "), _REASON_CHARACTERS)
            return self._is_unseen(_without_arguments(text, call))
        self._failed.pop(call_key(call), None)
        if call.name == FIND_TOOLS.name:  # tools that were unknown may be found now
            self._failed.clear()
        if ANSWERED.match(text) or text.startswith(IDENTICAL_CALL):
            return False
        pictures = b"".join(part.data for part in message.parts if isinstance(part, Image))
        return self._is_unseen(text, pictures)

    def _is_unseen(self, text: str, pictures: bytes = b"") -> bool:
        digest = hashlib.sha256(text.encode("utf-8", "replace") + pictures).digest()
        if digest in self._seen:
            return False
        self._seen.add(digest)
        return True


def _without_arguments(text: str, call: ToolCall) -> str:
    """Return an error message without the values of the call, its numbers and its ids."""
    try:
        values = set(_texts(json.loads(call.arguments or "{}")))
    except (ValueError, RecursionError):
        values = set()
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, "…")
    return f"{call.name} {_VARIABLE.sub('…', text)}"


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield from (part for part in (value, *value.split("/")) if len(part) > 1)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
