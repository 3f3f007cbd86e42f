"""The path (P1): where the result lies, and no more of it than whose it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holmes.core.messages import StoredResult
    from holmes.core.truncation.masking.facts import ResultFacts


def path_text(facts: ResultFacts, stored: tuple[StoredResult, ...]) -> str:
    """The paths, or the result ids when the store is no folder. The tools over stored results take both."""
    where = ", ".join(result.path or result.id for result in stored)
    return f"[Tool output moved to {where} — {facts.call} returned {facts.amount}]"
