"""The path (P1): where the result lies, and how it began."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.values.texts import before_placeholder

if TYPE_CHECKING:
    from holmes.core.truncation.masking.facts import ResultFacts
    from holmes.values.messages import StoredResult

_SHOWN_CHARACTERS = 500


def path_text(facts: ResultFacts, stored: tuple[StoredResult, ...], output: str) -> str:
    """The paths, or the result ids when the store is no folder, and the first 500 characters of `output`.

    The tools over stored results take both.
    """
    where = ", ".join(result.path or result.id for result in stored)
    line = f"[Tool output moved to {where} — {facts.call} returned {facts.amount}"
    if not output.strip():
        return f"{line}]"
    rest = "[...]" if len(output) > _SHOWN_CHARACTERS else ""
    return f"{line}; it begins:]\n{output[: before_placeholder(output, _SHOWN_CHARACTERS)]}{rest}"
