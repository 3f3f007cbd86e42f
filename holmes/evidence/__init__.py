"""Checks the claims of an answer against the stored results that the answer cites.

`CitationVerifier` judges the claims of one run. `CitationFilter` verifies streamed text before it becomes an event.
Compaction keeps checked claims in a `Ledger`. `scan_markers` finds citations in finished text.
"""

from holmes.evidence.markers import (
    OUTCOME_WORDS,
    Marker,
    MarkerGroup,
    MarkerScanner,
    markers_in,
    scan_markers,
    without_markers,
)
from holmes.evidence.passages import NumberedText
from holmes.evidence.verification import (
    LEDGER_HEADING,
    CitationFilter,
    CitationVerifier,
    Ledger,
    LedgerEntry,
    VerifiedText,
    ledger_of,
    marker_of,
    result_ids,
    verify_citations,
    written_ledger,
)

__all__ = [
    "LEDGER_HEADING",
    "OUTCOME_WORDS",
    "CitationFilter",
    "CitationVerifier",
    "Ledger",
    "LedgerEntry",
    "Marker",
    "MarkerGroup",
    "MarkerScanner",
    "NumberedText",
    "VerifiedText",
    "ledger_of",
    "marker_of",
    "markers_in",
    "result_ids",
    "scan_markers",
    "verify_citations",
    "without_markers",
    "written_ledger",
]
