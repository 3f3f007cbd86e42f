"""Searches one text for secrets: every finder over every window, then what the text says once it is decoded.

Yields spans in no order; they may overlap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.redaction.assignments import assigned_secrets
from holmes.redaction.dumps import dumped_secrets
from holmes.redaction.encoded import Unpacking, encoded_secrets
from holmes.redaction.escape_sequences import beyond_ascii
from holmes.redaction.kinds import Span, gated_kinds
from holmes.redaction.kubernetes_secrets import JsonSecrets, YamlSecrets
from holmes.redaction.multiline import private_keys, wrapped_tokens
from holmes.redaction.pairs import paired_secrets
from holmes.redaction.pieces import windows
from holmes.redaction.placeholders import outside_placeholders
from holmes.redaction.sentences import told_secrets
from holmes.redaction.tables import ColumnSecrets, secrets_of_rows
from holmes.redaction.views import command_view, decoded_view

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.redaction.kinds import Kind
    from holmes.redaction.pieces import Window
    from holmes.redaction.views import View

# Encodings inside of encodings are undone so often.
_MOST_LEVELS: Final = 3


class Search:
    """The search of one text. Holds how much of it may still be unpacked."""

    __slots__ = ("_piece_characters", "_unpacking")

    def __init__(self, characters: int, piece_characters: int) -> None:
        self._piece_characters = piece_characters
        self._unpacking = Unpacking(characters)

    def spans(self, text: str, beyond: str, level: int = 0) -> Iterator[Span]:
        """The secrets of `text`, and of what it says once its encodings are undone, but none of its placeholders.

        `beyond` are its characters that are not ASCII.
        """
        return outside_placeholders(text, self._all_spans(text, beyond, level))

    def _all_spans(self, text: str, beyond: str, level: int) -> Iterator[Span]:
        yield from self._plain_spans(text, beyond, level)
        view = decoded_view(text, beyond) if level < _MOST_LEVELS else None
        if view:
            yield from self._spans_of_view(view, 0, level)

    def _spans_of_view(self, view: View, offset: int, level: int) -> Iterator[Span]:
        """The secrets of a view of what begins at `offset` of the text."""
        for span in self._all_spans(view.text, beyond_ascii(view.text), level + 1):
            start, end = view.original(span.start, span.end)
            yield Span(start=offset + start, end=offset + end, label=span.label, secret=span.secret)

    def _plain_spans(self, text: str, beyond: str, level: int) -> Iterator[Span]:
        yaml_secrets = YamlSecrets(text)
        json_secrets = JsonSecrets(text)
        columns = ColumnSecrets(text)
        for window in windows(text, beyond, self._piece_characters):
            yield from columns.find(window)
            yield from yaml_secrets.find(window)
            yield from json_secrets.find(window)
            yield from private_keys(window)
            for find in _FINDERS:
                yield from window.settle(find(window))
            if level < _MOST_LEVELS:
                yield from self._unsaid_spans(window, level)

    def _unsaid_spans(self, window: Window, level: int) -> Iterator[Span]:
        """The secrets of words that are encoded, and of commands with one word to a line."""
        yield from encoded_secrets(
            window, lambda said: self.spans(said, beyond_ascii(said), level + 1), self._unpacking
        )
        commands = command_view(window)
        if commands:
            yield from self._spans_of_view(commands, window.start, level)


def _of_known_kinds(window: Window) -> Iterator[Span]:
    piece = window.piece
    for gate, members, few in gated_kinds():
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


_FINDERS: Final = (
    assigned_secrets,
    paired_secrets,
    told_secrets,
    dumped_secrets,
    secrets_of_rows,
    _of_known_kinds,
)


def _shows(window: Window, kind: Kind) -> bool:
    return not (kind.long_word and window.long_word < 0) and any(
        window.has(literal, folded=kind.folded) for literal in kind.literals
    )
