"""Verifies citations against stored results before the text is shown, and keeps the ledger of checked claims.

Each run of the loop has one `CitationVerifier`. It rejects citations of results from other conversations and of
lines that do not exist. It corrects wrong lines only if exactly one other record proves the claim. It never raises
storage errors. A claim whose result cannot be read in time has the outcome *not found*.

`CitationFilter` verifies a stream, and `verify_citations` verifies a whole text. Text is passed on immediately. Only a
marker is held back, from `[[` until it is complete and judged. The marker then contains the outcome: checked, cited, or
not found. Stream, history and answer contain the same text.

`ledger_of` reads the ledger from the conversation, so the ledger survives compactions and restarts. Checked claims in
replies are judged again, because a client may have written the replies. The ledger of a summary is trusted.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.evidence.markers import (
    Marker,
    MarkerGroup,
    MarkerScanner,
    claim_before,
    clipped_claim,
    markers_in,
    scan_markers,
)
from holmes.evidence.passages import CitedText, NumberedText, judge_cited
from holmes.evidence.sources import UNKNOWN_SOURCE, Source, source_of
from holmes.values.errors import HolmesError
from holmes.values.events import AttemptDiscarded, Citation, TextDelta
from holmes.values.expressions import expression
from holmes.values.messages import AssistantMessage, ResultId, Text, ToolMessage, UserMessage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holmes.evidence.markers import Claim, TextOrMarkers
    from holmes.tokens import TokenCounter
    from holmes.values.events import AgentEvent
    from holmes.values.messages import Message, ToolCall
    from holmes.values.model import EmitEvent
    from holmes.values.tools import ResultStore


_CHECK_TIMEOUT_SECONDS = 5.0
_MAX_TIMEOUTS = 3
_MAX_CHECKS = 1_000
_CACHED_CHARACTERS = 32_000_000
_ID_IN_NOTE = expression(r"\bresults? ([0-9a-f]{12,64})\b")
LEDGER_HEADING: Final = (
    "Claims verified so far, with their evidence (result id and lines; repeat these citations unchanged):"
)
_MAX_CITATIONS_OF_A_CLAIM = 5
_WORD = expression(r"\w+")


class CitationVerifier:
    """Reads each cited result once and caches the outcomes, so that equal claims have equal outcomes.

    `store` is None if storage is off. Without a store, every claim has the outcome *not found*. `timeout_seconds`
    limits one check. After three timeouts, no more results are read.
    """

    def __init__(self, store: ResultStore | None, *, timeout_seconds: float = _CHECK_TIMEOUT_SECONDS) -> None:
        self._store = store
        self._timeout_seconds = timeout_seconds
        self._known: set[ResultId] = set()
        self._calls: dict[str, ToolCall] = {}
        self._sources: dict[ResultId, Source] = {}
        self._texts: OrderedDict[ResultId, CitedText | None] = OrderedDict()
        self._judged: dict[tuple[tuple[Marker, ...], Claim], tuple[Citation, ...]] = {}
        self._timeouts = 0

    def note(self, messages: Iterable[Message]) -> None:
        """Add the results of `messages` to this conversation.

        The results remain valid after compaction. The calls in `messages` show the source of each result and whether a
        list is complete.
        """
        messages = tuple(messages)
        self._known |= result_ids(messages)
        for message in messages:
            if isinstance(message, AssistantMessage):
                self.note_calls(message.tool_calls)
            elif isinstance(message, ToolMessage) and message.call_id in self._calls:
                for stored in message.stored:
                    self._sources.setdefault(stored.id, source_of(self._calls[message.call_id]))

    def note_calls(self, calls: Iterable[ToolCall]) -> None:
        """Remember these calls, so that a later `note` can determine the sources of their results."""
        self._calls |= {call.id: call for call in calls}

    async def judge(self, markers: tuple[Marker, ...], claim: Claim) -> tuple[Citation, ...]:
        """Judge the citations of one claim, and correct their lines.

        A claim has at least one citation. The outcome is never better than the outcome in the markers: a *cited*
        claim does not become *checked*.
        """
        key = (markers, claim)
        if key not in self._judged:
            if len(self._judged) >= _MAX_CHECKS:
                return _refused(markers, claim, "too many citations")
            self._judged[key] = await self._judge(markers, claim)
        return self._judged[key]

    async def _judge(self, markers: tuple[Marker, ...], claim: Claim) -> tuple[Citation, ...]:
        settled = tuple(_citation(marker, claim) for marker in markers if marker.outcome == "not_found")
        markers = tuple(marker for marker in markers if marker.outcome != "not_found")
        if not markers:
            return settled
        if self._timeouts >= _MAX_TIMEOUTS:
            return (*_refused(markers, claim, "result not readable"), *settled)
        deadline = time.monotonic() + self._timeout_seconds
        try:
            async with asyncio.timeout(self._timeout_seconds):
                texts = [await self._text(marker.result_id) for marker in markers]
                found = await asyncio.to_thread(judge_cited, texts, markers, claim, deadline)
        except TimeoutError:
            self._timeouts += 1
            return (*_refused(markers, claim, "result not readable"), *settled)
        return (*(_citation(marker, claim) for marker in found), *settled)

    async def _text(self, result_id: ResultId) -> CitedText | None:
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
            source = self._sources.get(result_id, UNKNOWN_SOURCE)
            is_picture = stored.media_type.startswith("image/")
            text = None if is_picture else CitedText(await asyncio.to_thread(NumberedText, content), source)
        self._texts[result_id] = text
        while (
            len(self._texts) > 1 and sum(each.characters for each in self._texts.values() if each) > _CACHED_CHARACTERS
        ):
            self._texts.popitem(last=False)
        return text


def _citation(marker: Marker, claim: Claim) -> Citation:
    return Citation(
        result_id=marker.result_id,
        first_line=marker.first_line,
        last_line=marker.last_line,
        claim=claim.text,
        outcome=marker.outcome,
        missing=marker.missing,
    )


def _refused(markers: tuple[Marker, ...], claim: Claim, why: str) -> tuple[Citation, ...]:
    return tuple(_citation(replace(marker, outcome="not_found", missing=(why,)), claim) for marker in markers)


def result_ids(messages: Iterable[Message]) -> set[ResultId]:
    """Return the ids of the results that `messages` show or point to, or that the ledger of a summary cites.

    A model writes the first part of a summary, which may name results of other conversations. Holmes writes the other
    parts: the ledger, and notes on removed messages.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedText:
    """A text whose markers contain outcomes, and the citations of the text in order."""

    text: str
    citations: tuple[Citation, ...] = ()


class CitationFilter:
    """Replaces `emit` for one request: `await model.complete(request, filter)`, then `await finish(text)`."""

    def __init__(self, emit: EmitEvent, verifier: CitationVerifier) -> None:
        self._emit = emit
        self._verifier = verifier
        self._start()

    async def __call__(self, event: AgentEvent) -> None:
        """Pass on `event` with verified text."""
        if isinstance(event, TextDelta):
            self._heard.append(event.text)
            await self._pass_on(self._scanner.feed(event.text))
            return
        if isinstance(event, AttemptDiscarded):
            self._start()
        await self._emit(event)

    async def finish(self, text: str) -> VerifiedText:
        """Pass on the held-back text, and return the verified text to store.

        `text` is the finished reply.
        """
        await self._pass_on(self._scanner.finish())
        if "".join(self._heard) == text:
            return VerifiedText(text="".join(self._said), citations=tuple(self._citations))
        return await verify_citations(text, self._verifier)

    def _start(self) -> None:
        self._scanner = MarkerScanner()
        self._heard: list[str] = []
        self._said: list[str] = []
        self._citations: list[Citation] = []

    async def _pass_on(self, pieces: Iterable[TextOrMarkers]) -> None:
        for piece in pieces:
            verified = await _verified(piece, self._verifier)
            self._said.append(verified.text)
            self._citations.extend(verified.citations)
            if verified.text:
                await self._emit(TextDelta(text=verified.text, checked=True))


async def verify_citations(text: str, verifier: CitationVerifier) -> VerifiedText:
    """Judge the citations in `text`, and write the outcomes into the markers. The function is idempotent."""
    scanner = MarkerScanner()
    pieces = [await _verified(piece, verifier) for piece in (*scanner.feed(text), *scanner.finish())]
    return VerifiedText(
        text="".join(piece.text for piece in pieces),
        citations=tuple(citation for piece in pieces for citation in piece.citations),
    )


async def _verified(piece: TextOrMarkers, verifier: CitationVerifier) -> VerifiedText:
    if not isinstance(piece, MarkerGroup):
        return VerifiedText(text=piece)
    claim = claim_before(piece.before)
    citations = tuple(dict.fromkeys(await verifier.judge(piece.markers, claim)))
    return VerifiedText(text="".join(str(marker_of(citation)) for citation in citations), citations=citations)


def marker_of(citation: Citation) -> Marker:
    """Return the marker for `citation` in a text."""
    return Marker(
        result_id=citation.result_id,
        first_line=citation.first_line,
        last_line=citation.last_line,
        outcome=citation.outcome,
        missing=citation.missing,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """A claim with one to five citations."""

    claim: str
    citations: tuple[Citation, ...]

    def line(self) -> str:
        """Return the entry as a list item: `- <claim> [[id:12-18]]`."""
        return f"- {self.claim} {''.join(str(marker_of(citation)) for citation in self.citations)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Unique claims, newest first. Claims from one message are ordered from most to least specific."""

    entries: tuple[LedgerEntry, ...] = ()

    @property
    def citations(self) -> tuple[Citation, ...]:
        return tuple(citation for entry in self.entries for citation in entry.citations)

    def render(self, cap_tokens: int, counter: TokenCounter) -> str:
        """Return the heading and one line per claim, within `cap_tokens`. Returns an empty string if no claim fits."""
        used = counter.count_text(LEDGER_HEADING)
        lines = [LEDGER_HEADING]
        for line in (entry.line() for entry in self.entries):
            tokens = counter.count_text(line) + 1
            if used + tokens <= cap_tokens:
                used += tokens
                lines.append(line)
        while len(lines) > 1 and counter.count_text("\n".join(lines)) > cap_tokens:
            lines.pop()
        return "\n".join(lines) if len(lines) > 1 else ""

    @classmethod
    def parse(cls, text: str) -> Ledger:
        """Parse the ledger at the start of a text that `render` wrote. Returns an empty ledger for other texts."""
        if not text.startswith(f"{LEDGER_HEADING}\n"):
            return cls()
        rest = text.removeprefix(f"{LEDGER_HEADING}\n")
        citations: list[Citation] = []
        for line in rest.split("\n"):
            found = _citations_in(line, whole_line=True) if line.startswith("- ") else ()
            if not found:
                break
            citations.extend(found)
        return _ledger(citations)


async def ledger_of(messages: Sequence[Message], verifier: CitationVerifier | None) -> Ledger:
    """Collect the ledger of `messages` from earlier summaries and from checked citations of later replies.

    Without a verifier, replies are ignored.
    """
    newest_first: list[Citation] = []
    for message in reversed(messages):
        if isinstance(message, AssistantMessage) and "[[" in message.text:
            judged = (await verify_citations(message.text, verifier)).citations if verifier is not None else ()
            checked = [replace(each, claim=clipped_claim(each.claim)) for each in judged if each.outcome == "checked"]
            newest_first.extend(sorted(checked, key=_specificity, reverse=True))
        elif isinstance(message, UserMessage):
            newest_first.extend(_own_ledger(message).citations)
    return _ledger(newest_first)


def written_ledger(messages: Sequence[Message]) -> Ledger:
    """Collect the claims that replies in `messages` mark as checked, without judging them.

    Use this function only for the text of a summary.
    """
    replies = (message.text for message in reversed(messages) if isinstance(message, AssistantMessage))
    return _ledger(citation for text in replies for citation in _citations_in(text))


def _own_ledger(message: UserMessage) -> Ledger:
    """Return the ledger of a summary, which is a separate part after the model's text."""
    if message.kind != "summary":
        return Ledger()
    texts = [part.text for part in message.parts[1:] if isinstance(part, Text)]
    return next((Ledger.parse(text) for text in texts if text.startswith(LEDGER_HEADING)), Ledger())


def _citations_in(text: str, *, whole_line: bool = False) -> tuple[Citation, ...]:
    """Return the citations that `text` marks as checked.

    If `whole_line` is true, the claim is the whole ledger line.
    """
    found: list[Citation] = []
    for piece in scan_markers(text):
        if isinstance(piece, MarkerGroup):
            claim = piece.before.removeprefix("- ").strip() if whole_line else claim_before(piece.before).text
            found.extend(
                Citation(
                    result_id=marker.result_id,
                    first_line=marker.first_line,
                    last_line=marker.last_line,
                    claim=clipped_claim(claim),
                )
                for marker in piece.markers
                if marker.outcome == "checked"
            )
    return tuple(found)


def _ledger(newest_first: Iterable[Citation]) -> Ledger:
    """Merge claims that differ only in punctuation, and keep the newest wording."""
    claims: dict[str, str] = {}
    citations: dict[str, dict[Marker, Citation]] = {}
    for citation in newest_first:
        key = " ".join(_WORD.findall(citation.claim.casefold()))
        if not key:
            continue
        claim = claims.setdefault(key, citation.claim)
        markers = citations.setdefault(key, {})
        if len(markers) < _MAX_CITATIONS_OF_A_CLAIM:
            markers.setdefault(marker_of(citation), replace(citation, claim=claim))
    return Ledger(
        entries=tuple(LedgerEntry(claim=claims[key], citations=tuple(each.values())) for key, each in citations.items())
    )


def _specificity(citation: Citation) -> tuple[bool, int, int]:
    """Return the sort key of a claim.

    Claims with quotes come first, then claims with fewer lines, then longer claims.
    """
    return "`" in citation.claim or '"' in citation.claim, citation.first_line - citation.last_line, len(citation.claim)
