"""Between the model and whoever reads it: no citation passes that was not judged (N6).

`CitationFilter` stands between `model.complete` and the run's `emit`; `verify_citations` does the same to a whole text.
Text passes at once; from `[[` on it is held back until the marker is complete and its bytes are judged. A marker then
says what came of it: checked, cited, or not found there. What streams, what joins the history and what is the answer
are the same text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.evidence.claims import claim_before
from holmes.evidence.markers import Marker, MarkerGroup, MarkerScanner
from holmes.values.events import AttemptDiscarded, TextDelta

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holmes.evidence.markers import Piece
    from holmes.evidence.verification import CitationVerifier
    from holmes.values.events import AgentEvent, Citation
    from holmes.values.model import EmitEvent


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
