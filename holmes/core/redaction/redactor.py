"""Masks the secrets of texts. Called by the wrapper around toolsets, for messages of users, and by the filter of logs.

Finds spans window by window, joins those that overlap, and puts a placeholder where each was. Pure: the same text and
key give the same result, and a text without secrets comes back as the same object.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.core.redaction.assignments import assigned_secrets
from holmes.core.redaction.dumps import dumped_secrets
from holmes.core.redaction.encoded import encoded_secrets
from holmes.core.redaction.escape_sequences import beyond_ascii, strip_escape_sequences
from holmes.core.redaction.kinds import Span
from holmes.core.redaction.pairs import paired_secrets
from holmes.core.redaction.pieces import PIECE_CHARACTERS, windows
from holmes.core.redaction.placeholders import Placeholders, outside_placeholders, without_placeholders
from holmes.core.redaction.private_keys import private_keys
from holmes.core.redaction.registry import gated_kinds, kinds
from holmes.core.redaction.rows import secrets_of_rows
from holmes.core.redaction.secret_json import JsonSecrets
from holmes.core.redaction.secret_yaml import YamlSecrets
from holmes.core.redaction.sentences import told_secrets
from holmes.core.redaction.views import decoded_view
from holmes.core.redaction.wrapped import wrapped_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holmes.core.redaction.kinds import Kind
    from holmes.core.redaction.pieces import Window

# A text of this size takes about a millisecond.
SHORT_TEXT_CHARACTERS: Final = 16 * 1024
_FEW_LITERALS: Final = 4
# Encodings inside of encodings are undone so often.
_MOST_LEVELS: Final = 3


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

    __slots__ = ("_piece_characters", "_placeholders")

    def __init__(self, key: bytes, *, piece_characters: int = PIECE_CHARACTERS) -> None:
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
        spans = _joined(outside_placeholders(text, self._spans(text, beyond)))
        parts = without_placeholders(text, spans) if spans else []
        if not parts:
            return Redaction(text=text, masked=0)
        pieces: list[str] = []
        position = 0
        for span, start, end in parts:
            pieces.append(text[position:start])
            masked = Span(start=start, end=end, label=span.label, secret=span.secret, quote=span.quote)
            pieces.append(self._placeholders.replacement(text, masked))
            position = end
        pieces.append(text[position:])
        return Redaction(text="".join(pieces), masked=len(parts))

    def _spans(self, text: str, beyond: str, level: int = 0) -> Iterator[Span]:
        """The secrets of `text`, and of what it says once its encodings are undone.

        `beyond` are its characters that are not ASCII.
        """
        yield from self._plain_spans(text, beyond, level)
        view = decoded_view(text, beyond) if level < _MOST_LEVELS else None
        if view:
            for span in self._spans(view.text, beyond_ascii(view.text), level + 1):
                start, end = view.original(span.start, span.end)
                yield Span(start=start, end=end, label=span.label, secret=span.secret)

    def _plain_spans(self, text: str, beyond: str, level: int) -> Iterator[Span]:
        yaml_secrets = YamlSecrets(text)
        json_secrets = JsonSecrets(text)
        for window in windows(text, beyond, self._piece_characters):
            yield from yaml_secrets.find(window)
            yield from json_secrets.find(window)
            yield from private_keys(window)
            for find in _FINDERS:
                yield from window.settle(find(window))
            if level < _MOST_LEVELS:
                yield from encoded_secrets(window, lambda said: self._found(said, level + 1))

    def _found(self, text: str, level: int) -> list[Span]:
        return outside_placeholders(text, self._spans(text, beyond_ascii(text), level))


async def redact_off_loop(redactor: Redactor, text: str) -> str:
    """`redactor.redact(text)` without holding up the event loop: a long text is read in a thread."""
    if len(text) <= SHORT_TEXT_CHARACTERS:
        return redactor.redact(text)
    return await asyncio.to_thread(redactor.redact, text)


def _of_known_kinds(window: Window) -> Iterator[Span]:
    piece = window.piece
    for gate, members in gated_kinds():
        # Many literals cost more than one gate; few of them are known already or rare.
        few = sum(len(kind.literals) for kind in members) <= _FEW_LITERALS
        # A single sign is found faster than any literal.
        if gate is not None and len(gate.pattern) == 1 and gate.pattern not in piece:
            continue
        if few and not any(_shows(window, kind) for kind in members):
            continue
        if gate is not None and gate.search(piece) is None:
            continue
        for kind in members:
            if not _shows(window, kind) or (kind.before and kind.gate and not kind.gate.search(piece)):
                continue
            for start, end in kind.find(piece, window.lower):
                label = kind.label or kind.name
                yield Span(start=window.start + start, end=window.start + end, label=label, secret=piece[start:end])
            if kind.prefixed:
                yield from wrapped_tokens(window, kind)


_FINDERS: Final = (assigned_secrets, paired_secrets, told_secrets, dumped_secrets, secrets_of_rows, _of_known_kinds)


def _shows(window: Window, kind: Kind) -> bool:
    return not (kind.long_word and window.long_word < 0) and any(
        window.has(literal, folded=kind.folded) for literal in kind.literals
    )


def _joined(spans: Iterable[Span]) -> list[Span]:
    """The spans in order, those that overlap made into one.

    The longest gives the name, because it knows where the secret ends.
    """
    joined: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if not joined or span.start >= joined[-1].end:
            joined.append(_named_by_shape(span))
            continue
        last = joined[-1]
        if span.end > last.end:
            joined[-1] = Span(
                start=last.start, end=span.end, label=last.label, secret=last.secret + span.secret, quote=last.quote
            )
    return joined


def _named_by_shape(span: Span) -> Span:
    """The span under the name of the kind that its secret has by itself, so that one secret has one placeholder."""
    kind = _kind_of(span.secret)
    if kind is None:
        return span
    return Span(start=span.start, end=span.end, label=kind.label or kind.name, secret=span.secret, quote=span.quote)


def _kind_of(secret: str) -> Kind | None:
    if not 16 <= len(secret) <= 4096:
        return None
    return next((kind for kind in kinds() if kind.is_exactly(secret)), None)
