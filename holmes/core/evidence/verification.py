"""Checks a citation against the stored bytes that it cites (N6). One `CitationVerifier` for each run of the loop.

Called by the filter between model and reader. Refuses results of other conversations, lines that do not exist, and
lines that do not hold what the claim quotes or names; lines that are merely wrong are corrected when the quote stands
elsewhere in the result. Never raises because of storage: what cannot be read in time does not hold.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from holmes.core.errors import HolmesError
from holmes.core.events import Citation
from holmes.core.evidence.claims import names_pattern
from holmes.core.evidence.lines import NumberedText
from holmes.core.evidence.markers import Marker, markers_in
from holmes.core.messages import ResultId, Text, ToolMessage, UserMessage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holmes.core.evidence.claims import Claim, Quote, QuotePart
    from holmes.core.messages import Message
    from holmes.core.results import ResultStore

CHECK_TIMEOUT_SECONDS = 5.0
_MAX_TIMEOUTS = 3
_MAX_CHECKS = 1_000
_CACHED_CHARACTERS = 32_000_000
_MAX_MATCHES = 1_000
_SHORTEST_MOVED_CHARACTERS = 4
_MAX_WIDENED_LINES = 20
_ID_IN_NOTE = re.compile(r"\bresults? ([0-9a-f]{12,64})\b")


class CitationVerifier:
    """Reads cited results once, and remembers what came of each check, so that the same marker is judged alike.

    `store` is None when storage is off: then nothing holds. `timeout_seconds` is for one check; after three timeouts
    nothing is read any more.
    """

    def __init__(self, store: ResultStore | None, *, timeout_seconds: float = CHECK_TIMEOUT_SECONDS) -> None:
        self._store = store
        self._timeout_seconds = timeout_seconds
        self._known: set[ResultId] = set()
        self._texts: OrderedDict[ResultId, NumberedText | None] = OrderedDict()
        self._checked: dict[tuple[Marker, Claim], Citation | None] = {}
        self._timeouts = 0

    def note(self, messages: Iterable[Message]) -> None:
        """The results of `messages` belong to this conversation, from now on also when compaction removes them."""
        self._known |= result_ids(messages)

    async def check(self, marker: Marker, claim: Claim) -> Citation | None:
        """The citation, with corrected lines if need be, or None when it does not hold."""
        key = (marker, claim)
        if key not in self._checked:
            if len(self._checked) >= _MAX_CHECKS:
                return None
            self._checked[key] = await self._check(marker, claim)
        return self._checked[key]

    async def _check(self, marker: Marker, claim: Claim) -> Citation | None:
        if self._timeouts >= _MAX_TIMEOUTS:
            return None
        deadline = time.monotonic() + self._timeout_seconds
        try:
            async with asyncio.timeout(self._timeout_seconds):
                text = await self._text(marker.result_id)
                lines = await asyncio.to_thread(cited_lines, text, marker, claim, deadline) if text else None
        except TimeoutError:
            self._timeouts += 1
            return None
        if lines is None:
            return None
        return Citation(result_id=marker.result_id, first_line=lines[0], last_line=lines[1], claim=claim.text)

    async def _text(self, result_id: ResultId) -> NumberedText | None:
        if result_id in self._texts:
            self._texts.move_to_end(result_id)
            return self._texts[result_id]
        if self._store is None or result_id not in self._known:
            return None
        try:
            content, stored = await self._store.read(result_id)
        except (HolmesError, OSError):
            text = None
        else:
            is_picture = stored.media_type.startswith("image/")
            text = None if is_picture else await asyncio.to_thread(NumberedText, content)
        self._texts[result_id] = text
        while (
            len(self._texts) > 1 and sum(len(each.text) for each in self._texts.values() if each) > _CACHED_CHARACTERS
        ):
            self._texts.popitem(last=False)
        return text


def result_ids(messages: Iterable[Message]) -> set[ResultId]:
    """Ids of the results that `messages` show or point to, or that the ledger of a summary cites.

    The first part of a summary has the words of a model, which may name what is none of this conversation's; the parts
    after it are the ledger, whose citations were checked, and what else Holmes says about what was removed.
    """
    found: set[ResultId] = set()
    for message in messages:
        if isinstance(message, (ToolMessage, UserMessage)):
            found.update(stored.id for stored in message.stored)
        if isinstance(message, UserMessage) and message.kind == "summary":
            for text in (part.text for part in message.parts[1:] if isinstance(part, Text)):
                found.update(marker.result_id for marker in markers_in(text))
                found.update(ResultId(match[1]) for match in _ID_IN_NOTE.finditer(text))
    return found


def cited_lines(text: NumberedText, marker: Marker, claim: Claim, deadline: float) -> tuple[int, int] | None:
    """The lines that prove `claim`: those of `marker`, those where the quote really stands, or None. CPU work.

    `deadline` is on the monotonic clock; raises `TimeoutError` after it.
    """
    exists = 1 <= marker.first_line <= marker.last_line <= text.total_lines
    span = text.span(marker.first_line, marker.last_line) if exists else None
    if span and _holds(text, span, claim, deadline):
        return marker.first_line, marker.last_line
    for quote in claim.quotes:
        if quote.length >= _SHORTEST_MOVED_CHARACTERS and (lines := _nearest(text, quote, marker, deadline)):
            is_about_it = span is not None and bool(claim.names) and _has_name(text, span, claim, deadline)
            return _widened(marker, lines) if is_about_it else lines
    return None


def _widened(marker: Marker, lines: tuple[int, int]) -> tuple[int, int]:
    """The lines of `marker`, which are what the claim is about, with those of its quote if they are near."""
    first, last = min(marker.first_line, lines[0]), max(marker.last_line, lines[1])
    missing = (last - first) - (marker.last_line - marker.first_line)
    return (first, last) if missing <= _MAX_WIDENED_LINES else lines


def _holds(text: NumberedText, span: tuple[int, int], claim: Claim, deadline: float) -> bool:
    """Whether at least one quote, or without quotes one name, stands in `span`; a claim with neither holds."""
    if claim.quotes:
        return any(
            _contains(text, span, parts, deadline) for quote in claim.quotes for parts in (quote.parts, quote.pieces)
        )
    return not claim.names or _has_name(text, span, claim, deadline)


def _has_name(text: NumberedText, span: tuple[int, int], claim: Claim, deadline: float) -> bool:
    return any(True for _ in text.find(names_pattern(claim.names), span, deadline=deadline))


def _contains(text: NumberedText, span: tuple[int, int], parts: tuple[QuotePart, ...], deadline: float) -> bool:
    return all(
        any(True for _ in text.find(part.pattern, span, contains=part.literal, deadline=deadline)) for part in parts
    )


def _nearest(text: NumberedText, quote: Quote, marker: Marker, deadline: float) -> tuple[int, int] | None:
    """Where `quote` stands in the whole text, next to the cited lines if several times; None when it does not."""
    whole = (0, len(text.text))
    if not _contains(text, whole, quote.parts, deadline):
        return None
    longest = max(quote.parts, key=lambda part: len(part.pattern.pattern))
    best: tuple[int, int] | None = None
    matches = text.find(longest.pattern, whole, contains=longest.literal, deadline=deadline)
    for count, lines in enumerate(matches):
        if best is None or abs(lines[0] - marker.first_line) < abs(best[0] - marker.first_line):
            best = lines
        elif lines[0] > marker.first_line:
            break
        if count >= _MAX_MATCHES:
            break
    return best
