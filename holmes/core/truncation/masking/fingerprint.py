"""The fingerprint (P3): what was called with which arguments, how much came back, how it began, where it is now."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holmes.core.truncation.masking.facts import ResultFacts
    from holmes.values.messages import StoredResult


def fingerprint_text(facts: ResultFacts, stored: tuple[StoredResult, ...]) -> str:
    """For example `[Tool output cleared — get(kind: pods) returned 2 lines, 1.2 KB — "NAME"; full output: 1f2e3d]`."""
    first_line = f' — "{facts.first_line}"' if facts.first_line else ""
    where = ", ".join(result.id for result in stored)
    return f"[Tool output cleared — {facts.call} returned {facts.amount}{first_line}; full output: {where}]"
