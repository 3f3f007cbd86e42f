"""The preview (P2): a view of the result and where the whole of it lies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.previews import structured_preview

if TYPE_CHECKING:
    from holmes.core.truncation.masking.facts import ResultFacts
    from holmes.tokens import TokenCounter
    from holmes.values.messages import StoredResult

_SMALLEST_PREVIEW_TOKENS = 16


def preview_text(
    facts: ResultFacts, stored: tuple[StoredResult, ...], text: str, cap_tokens: int, counter: TokenCounter
) -> str:
    """One line that says what was moved where, then a view of `text` of at most `cap_tokens`."""
    where = ", ".join(result.id if result.path is None else f"{result.id} (file {result.path})" for result in stored)
    line = f"[Tool output moved to the store — {facts.call} returned {facts.amount}; full output: {where}]"
    if not text.strip() or cap_tokens < _SMALLEST_PREVIEW_TOKENS:
        return line
    preview = structured_preview(text, cap_tokens, counter)
    return f"{line}\nPreview, {preview.shown}:\n{preview.text}" if preview.text else line
