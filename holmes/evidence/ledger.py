"""What has been proved so far, each claim with its citations: the evidence ledger (N6).

`ledger_of` reads it from the conversation, so it needs no store of its own and survives compactions and restarts;
`render` writes it into the summary message, and the next compaction reads it there. Of replies only what is *checked*
enters, and it is judged again, because a client may have written the reply, or it joined while citations were off. The
ledger of a summary is our own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.evidence.markers import MarkerGroup, claim_before, clipped_claim, scan_markers
from holmes.evidence.verification import marker_of, verify_citations
from holmes.values.events import Citation
from holmes.values.messages import AssistantMessage, Text, UserMessage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holmes.evidence.markers import Marker
    from holmes.evidence.verification import CitationVerifier
    from holmes.tokens import TokenCounter
    from holmes.values.messages import Message

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
