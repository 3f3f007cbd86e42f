"""Reads stored results for all tools, splits them into lines, and keeps tool results within the limit."""

from __future__ import annotations

import codecs
import contextlib
import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.previews import prefix_that_fits, readable_json
from holmes.tokens import MESSAGE_OVERHEAD_TOKENS, utf8_bytes
from holmes.values.errors import ResultStoreError, ToolError
from holmes.values.messages import ResultId
from holmes.values.tools import IMAGE_TOOL, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.tokens import TokenCounter
    from holmes.values.json_types import JsonObject
    from holmes.values.messages import HandedOver, StoredResult
    from holmes.values.tools import ResultStore

_OVERHEAD_TOKENS = 120
_PIECE_BYTES = 262_144
_LISTED_IDS = 10
_MOST_ID_CHARACTERS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Reads the stored results of one conversation.

    `cap_tokens` is the limit for a single result. `query_seconds` limits the CPU time of a jq expression.
    """

    store: ResultStore
    handed_over: HandedOver
    counter: TokenCounter
    cap_tokens: int
    vision: bool
    query_seconds: int

    @property
    def room_tokens(self) -> int:
        """Maximum size of the text below the heading, in tokens."""
        return max(1, self.cap_tokens - _OVERHEAD_TOKENS)

    async def read(self, reference: str) -> tuple[bytes, StoredResult]:
        """Return a result of this conversation and its description, by id or path. Raises `ResultStoreError`.

        The error for a result of another conversation is the same as for an unknown id.
        """
        wanted = ResultId(reference.strip())
        if "/" in wanted or "." in wanted:
            content, stored = await self.store.read(wanted)
            if await self._is_handed_over(stored.id):
                return content, stored
        elif await self._is_handed_over(wanted):
            return await self.store.read(wanted)
        raise ResultStoreError(self._unknown(wanted))

    async def _is_handed_over(self, result_id: ResultId) -> bool:
        if result_id in self.handed_over.ids:
            return True
        pointer = f"[stored as result {result_id}, ".encode("utf-8", "replace")
        for removed in sorted(self.handed_over.removed):
            with contextlib.suppress(ResultStoreError):
                if pointer in (await self.store.read(removed))[0]:
                    return True
        return False

    def _unknown(self, wanted: str) -> str:
        known = sorted(self.handed_over.ids)
        near = difflib.get_close_matches(wanted[:_MOST_ID_CHARACTERS], known, n=_LISTED_IDS, cutoff=0.4)
        listed = ", ".join(near or known[:_LISTED_IDS])
        shown = repr(wanted) if len(wanted) <= _MOST_ID_CHARACTERS else f"{wanted[:_MOST_ID_CHARACTERS]!r}…"
        hint = f"results of this conversation: {listed}" if listed else "this conversation has no stored results yet"
        return f"stored result {shown} not found in this conversation; {hint}"

    async def text(self, result_id: str) -> tuple[bytes, StoredResult]:
        """Return a stored text. Raises `ResultStoreError`, and `ToolError` for an image."""
        content, stored = await self.read(result_id)
        if stored.media_type.startswith("image/"):
            raise ToolError(f"result {stored.id} is an image ({stored.media_type}); use {IMAGE_TOOL}")
        return content, stored

    def bounded(self, text: str) -> ToolResult:
        """Return `text` as the result.

        Truncate it if it exceeds the limit, which happens if a single match is too long.
        """
        room = max(1, self.cap_tokens - MESSAGE_OVERHEAD_TOKENS)
        if utf8_bytes(text) > room and self.counter.count_text(text) > room:
            text = text[: prefix_that_fits(text, room, self.counter)]
        return ToolResult(status="success", data=text, spillable=False)

    def fitting(self, blocks: Sequence[str]) -> int:
        """Return how many blocks from the start of `blocks` fit into one result, but at least 1."""
        room = self.room_tokens
        total = 0
        for count, block in enumerate(blocks):
            total += utf8_bytes(block) + 4
            if total > 8 * room:
                blocks = blocks[: max(1, count)]
                break
        count = len(blocks)
        while count > 1:
            text = "\n--\n".join(blocks[:count])
            if utf8_bytes(text) <= room or (tokens := self.counter.count_text(text)) <= room:
                return count
            count = max(1, min(count - 1, int(count * room / tokens * 0.95)))
        return count


def decoded(content: bytes) -> str:
    """Decode `content` in pieces, so that other threads can run. Invalid UTF-8 becomes U+FFFD."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    pieces = [decoder.decode(content[at : at + _PIECE_BYTES]) for at in range(0, len(content), _PIECE_BYTES)]
    return "".join((*pieces, decoder.decode(b"", final=True)))


def lines_of(content: bytes) -> list[str]:
    """Return the lines of a stored result. Pointers to the result use the same line numbers.

    One-line JSON is first split into one value per line.
    """
    text = readable_json(decoded(content))
    lines = [line.rstrip("\r") for piece in _whole_lines(text) for line in piece.split("\n")]
    if lines[-1] == "" and len(lines) > 1:
        lines.pop()
    return lines


def _whole_lines(text: str) -> Iterator[str]:
    """Yield `text` in pieces, split at line ends. These line ends are removed."""
    start = 0
    while len(text) - start > _PIECE_BYTES:
        end = text.rfind("\n", start, start + _PIECE_BYTES)
        if end < 0:
            end = text.find("\n", start + _PIECE_BYTES)
        if end < 0:
            break
        yield text[start:end]
        start = end + 1
    yield text[start:]


def number(arguments: JsonObject, name: str, default: int) -> int:
    """Return the argument `name` as an integer, or `default` if it is not a number."""
    value = arguments.get(name)
    return int(value) if isinstance(value, int | float) else default
