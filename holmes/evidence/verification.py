"""Judges citations against the stored bytes that they cite, between the model and whoever reads it (N6).

One `CitationVerifier` for each run of the loop. It refuses results of other conversations and lines that do not exist.
Lines that are merely wrong are corrected only where one other record of the result shows the very claim. It never
raises because of storage: what cannot be read in time is not found.

`CitationFilter` stands between `model.complete` and the run's `emit`; `verify_citations` does the same to a whole text.
Text passes at once; from `[[` on it is held back until the marker is complete and its bytes are judged. A marker then
says what came of it: checked, cited, or not found there. What streams, what joins the history and what is the answer
are the same text.
"""

from __future__ import annotations

import asyncio
import re
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
from holmes.values.messages import AssistantMessage, ResultId, Text, ToolMessage, UserMessage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holmes.evidence.markers import Claim, Piece
    from holmes.tokens import TokenCounter
    from holmes.values.events import AgentEvent
    from holmes.values.messages import Message, ToolCall
    from holmes.values.model import EmitEvent
    from holmes.values.tools import ResultStore


CHECK_TIMEOUT_SECONDS = 5.0
_MAX_TIMEOUTS = 3
_MAX_CHECKS = 1_000
_CACHED_CHARACTERS = 32_000_000
_ID_IN_NOTE = re.compile(r"\bresults? ([0-9a-f]{12,64})\b")


class CitationVerifier:
    """Reads cited results once, and remembers what came of each check, so that the same claim is judged alike.

    `store` is None when storage is off: then nothing is found. `timeout_seconds` is for one check; after three timeouts
    nothing is read any more.
    """

    def __init__(self, store: ResultStore | None, *, timeout_seconds: float = CHECK_TIMEOUT_SECONDS) -> None:
        self._store = store
        self._timeout_seconds = timeout_seconds
        self._known: set[ResultId] = set()
        self._calls: dict[str, ToolCall] = {}
        self._sources: dict[ResultId, Source] = {}
        self._texts: OrderedDict[ResultId, CitedText | None] = OrderedDict()
        self._judged: dict[tuple[tuple[Marker, ...], Claim], tuple[Citation, ...]] = {}
        self._timeouts = 0

    def note(self, messages: Iterable[Message]) -> None:
        """The results of `messages` belong to this conversation, from now on also when compaction removes them.

        The calls among `messages` say what each result is from, and so whether a list is complete.
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
        """The results that follow answer `calls`."""
        self._calls |= {call.id: call for call in calls}

    async def judge(self, markers: tuple[Marker, ...], claim: Claim) -> tuple[Citation, ...]:
        """The citations of one claim, at least one, with what came of each and corrected lines if need be.

        Never better than the markers say: a claim that was *cited* before is not *checked* now.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedText:
    """A text whose markers say what came of each, and its citations in the order in which they stand there."""

    text: str
    citations: tuple[Citation, ...] = ()


class CitationFilter:
    """Takes the place of `emit` for one request: `await model.complete(request, filter)`, then `await finish(text)`."""

    def __init__(self, emit: EmitEvent, verifier: CitationVerifier) -> None:
        self._emit = emit
        self._verifier = verifier
        self._start()

    async def __call__(self, event: AgentEvent) -> None:
        """Pass `event` on; text in verified form."""
        if isinstance(event, TextDelta):
            self._heard.append(event.text)
            await self._pass_on(self._scanner.feed(event.text))
            return
        if isinstance(event, AttemptDiscarded):
            self._start()
        await self._emit(event)

    async def finish(self, text: str) -> VerifiedText:
        """Pass on what was held back. `text` is the finished reply; what comes back is to be stored in its place."""
        await self._pass_on(self._scanner.finish())
        if "".join(self._heard) == text:
            return VerifiedText(text="".join(self._said), citations=tuple(self._citations))
        return await verify_citations(text, self._verifier)

    def _start(self) -> None:
        self._scanner = MarkerScanner()
        self._heard: list[str] = []
        self._said: list[str] = []
        self._citations: list[Citation] = []

    async def _pass_on(self, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            verified = await _verified(piece, self._verifier)
            self._said.append(verified.text)
            self._citations.extend(verified.citations)
            if verified.text:
                await self._emit(TextDelta(text=verified.text, checked=True))


async def verify_citations(text: str, verifier: CitationVerifier) -> VerifiedText:
    """`text` with its citations judged. Doing it again changes nothing."""
    scanner = MarkerScanner()
    pieces = [await _verified(piece, verifier) for piece in (*scanner.feed(text), *scanner.finish())]
    return VerifiedText(
        text="".join(piece.text for piece in pieces),
        citations=tuple(citation for piece in pieces for citation in piece.citations),
    )


async def _verified(piece: Piece, verifier: CitationVerifier) -> VerifiedText:
    if not isinstance(piece, MarkerGroup):
        return VerifiedText(text=piece)
    claim = claim_before(piece.before)
    citations = tuple(dict.fromkeys(await verifier.judge(piece.markers, claim)))
    return VerifiedText(text="".join(str(marker_of(citation)) for citation in citations), citations=citations)


def marker_of(citation: Citation) -> Marker:
    """The marker that stands for `citation` in a text."""
    return Marker(
        result_id=citation.result_id,
        first_line=citation.first_line,
        last_line=citation.last_line,
        outcome=citation.outcome,
        missing=citation.missing,
    )


LEDGER_HEADING: Final = (
    "Proved so far, each claim with its evidence (result id and lines; cite them again as they are):"
)
_MAX_CITATIONS_OF_A_CLAIM = 5
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """A claim and what proves it: one to five citations."""

    claim: str
    citations: tuple[Citation, ...]

    def line(self) -> str:
        """`- <claim> [[id:12-18]]`."""
        return f"- {self.claim} {''.join(str(marker_of(citation)) for citation in self.citations)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Entries, the newest first, and of one message the most specific first. No claim stands there twice."""

    entries: tuple[LedgerEntry, ...] = ()

    @property
    def citations(self) -> tuple[Citation, ...]:
        """All citations, in order."""
        return tuple(citation for entry in self.entries for citation in entry.citations)

    def render(self, cap_tokens: int, counter: TokenCounter) -> str:
        """The heading and one line for each claim, as many as fit into `cap_tokens`; empty when none does."""
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
        """The ledger in a text that begins with what `render` wrote; an empty one when it does not."""
        if not text.startswith(f"{LEDGER_HEADING}\n"):
            return cls()
        rest = text.removeprefix(f"{LEDGER_HEADING}\n")
        citations: list[Citation] = []
        for line in rest.split("\n"):
            found = citations_in(line, whole_line=True) if line.startswith("- ") else ()
            if not found:
                break
            citations.extend(found)
        return _ledger(citations)


async def ledger_of(messages: Sequence[Message], verifier: CitationVerifier | None) -> Ledger:
    """What `messages` prove: the ledgers of earlier summaries and the checked citations of the replies since.

    Without a verifier no reply proves anything.
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
    """What the replies in `messages` say is checked, unjudged: for the words of a summary, never for its ledger."""
    replies = (message.text for message in reversed(messages) if isinstance(message, AssistantMessage))
    return _ledger(citation for text in replies for citation in citations_in(text))


def _own_ledger(message: UserMessage) -> Ledger:
    """The ledger of a summary: a part of its own, after the part that has the words of a model."""
    if message.kind != "summary":
        return Ledger()
    texts = [part.text for part in message.parts[1:] if isinstance(part, Text)]
    return next((Ledger.parse(text) for text in texts if text.startswith(LEDGER_HEADING)), Ledger())


def citations_in(text: str, *, whole_line: bool = False) -> tuple[Citation, ...]:
    """What `text` cites as checked; with `whole_line` it is a line of a ledger, and the claim is all of it."""
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
    """Entries of `newest_first`: claims that differ in punctuation only are one, in the newest wording."""
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
    """A claim that quotes says more than one that does not, and one line more than many."""
    return "`" in citation.claim or '"' in citation.claim, citation.first_line - citation.last_line, len(citation.claim)
