"""Masks the secrets of texts. Called by the wrapper around toolsets, for messages of users, and by the filter of logs.

Finds spans window by window, joins those that overlap, and puts a placeholder where each was. Pure: the same text and
key give the same result, and a text without secrets comes back as the same object.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.redaction.escape_sequences import beyond_ascii, strip_escape_sequences
from holmes.redaction.found import FoundSecrets
from holmes.redaction.pieces import PIECE_CHARACTERS
from holmes.redaction.placeholders import Placeholders, without_placeholders
from holmes.redaction.search import Search

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holmes.redaction.kinds import Masked

# A text of this size takes about a millisecond.
SHORT_TEXT_CHARACTERS: Final = 16 * 1024
_PIECES_AT_ONCE: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """A text without its secrets, and how many places of it were masked."""

    text: str
    masked: int


class Redactor:
    """Masks secrets with the placeholders of one key. Holds nothing of the texts, so threads can share it.

    `key` is at least 16 random bytes; texts that are to have equal placeholders need the same key.
    `piece_characters` bounds how long one search may run.
    """

    __slots__ = ("_piece_characters", "_placeholders", "key")

    def __init__(self, key: bytes, *, piece_characters: int = PIECE_CHARACTERS) -> None:
        self.key = key
        self._placeholders = Placeholders(key)
        self._piece_characters = piece_characters

    def redact(self, text: str) -> str:
        """`text` with a placeholder for every secret, in as many lines, and without escape sequences of terminals.

        The same object when it has neither.
        """
        return self.redaction(text).text

    def redaction(self, text: str) -> Redaction:
        """Like `redact`, and says how many places were masked."""
        beyond = beyond_ascii(text)
        shown = strip_escape_sequences(text, beyond)
        text, beyond = shown, beyond if shown is text else beyond_ascii(shown)
        found = FoundSecrets(text, self._placeholders)
        found.add(Search(len(text), self._piece_characters).spans(text, beyond))
        return self._with_placeholders(text, found)

    def _with_placeholders(self, text: str, found: Iterable[Masked]) -> Redaction:
        # Many small pieces take more memory than the text: they are joined as they come.
        finished: list[str] = []
        pieces: list[str] = []
        position = masked = 0
        for part in without_placeholders(text, found):
            pieces += (text[position : part.start], self._placeholders.replacement(text, part))
            position = part.end
            masked += 1
            if len(pieces) > _PIECES_AT_ONCE:
                finished.append("".join(pieces))
                pieces.clear()
        if not masked:
            return Redaction(text=text, masked=0)
        return Redaction(text="".join([*finished, *pieces, text[position:]]), masked=masked)


async def redact_off_loop(redactor: Redactor, text: str) -> str:
    """`redactor.redact(text)` without holding up the event loop: a long text is read in a thread."""
    if len(text) <= SHORT_TEXT_CHARACTERS:
        return redactor.redact(text)
    return await asyncio.to_thread(redactor.redact, text)
