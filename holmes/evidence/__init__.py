"""Evidence: what an answer claims, checked against the stored results that it cites (context.md, N6).

The loop makes one `CitationVerifier` for each run and puts a `CitationFilter` between the model and the stream of
events; compaction carries the `Ledger`; the faces show citations with `scan_markers`. This is the door.
"""

from holmes.evidence.markers import Marker, MarkerGroup, MarkerScanner, markers_in, scan_markers, without_markers
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
