"""Masks secrets in texts, messages and log records.

Spans are found window by window, and overlapping spans are joined. Each span is replaced with a placeholder. The same
text and key give the same result. A text without secrets is returned as the same object.
"""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.redaction.assignments import assigned_secrets
from holmes.redaction.encoded import Unpacking, encoded_secrets, private_keys, wrapped_tokens
from holmes.redaction.kinds import Span, gated_kinds
from holmes.redaction.kubernetes_secrets import JsonSecrets, YamlSecrets
from holmes.redaction.pairs import dumped_secrets, paired_secrets
from holmes.redaction.pieces import PIECE_CHARACTERS, windows
from holmes.redaction.placeholders import FoundSecrets, Placeholders, outside_placeholders, without_placeholders
from holmes.redaction.sentences import told_secrets
from holmes.redaction.tables import ColumnSecrets, secrets_of_rows
from holmes.redaction.values import looks_random
from holmes.redaction.views import beyond_ascii, command_view, decoded_view, strip_escape_sequences
from holmes.values.messages import Text, ToolMessage, UserMessage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holmes.redaction.kinds import Kind, Masked
    from holmes.redaction.pieces import Window
    from holmes.redaction.views import View
    from holmes.values.messages import Message, Part


# Maximum number of nested encodings that are decoded.
_MOST_LEVELS: Final = 3
# Redacting a text of this size takes about a millisecond.
_SHORT_TEXT_CHARACTERS: Final = 16 * 1024
_PIECES_AT_ONCE: Final = 4096
_PLAIN = logging.Formatter()
_MASKED: Final = "***"
_SHORT_CHARACTERS: Final = 8
_LONG_CHARACTERS: Final = 16


class Search:
    """Searches one text for secrets, and limits how much of the text is decoded."""

    __slots__ = ("_piece_characters", "_unpacking")

    def __init__(self, characters: int, piece_characters: int) -> None:
        self._piece_characters = piece_characters
        self._unpacking = Unpacking(characters)

    def spans(self, text: str, beyond: str, level: int = 0) -> Iterator[Span]:
        """Yield the secrets in `text` and in its decoded forms, outside placeholders.

        `beyond` contains the non-ASCII characters of `text`.
        """
        return outside_placeholders(text, self._all_spans(text, beyond, level))

    def _all_spans(self, text: str, beyond: str, level: int) -> Iterator[Span]:
        yield from self._plain_spans(text, beyond, level)
        view = decoded_view(text, beyond) if level < _MOST_LEVELS else None
        if view:
            yield from self._spans_of_view(view, 0, level)

    def _spans_of_view(self, view: View, offset: int, level: int) -> Iterator[Span]:
        """Yield the secrets in a view. The view starts at `offset` in the text."""
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
        """Yield the secrets in encoded words, and in commands with one word per line."""
        yield from encoded_secrets(
            window, lambda said: self.spans(said, beyond_ascii(said), level + 1), self._unpacking
        )
        commands = command_view(window)
        if commands:
            yield from self._spans_of_view(commands, window.start, level)


def _of_known_kinds(window: Window) -> Iterator[Span]:
    piece = window.piece
    for gate, members, few in gated_kinds():
        # A search for one character is faster than a search for any literal.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """A text without its secrets, and the number of masked spans."""

    text: str
    masked: int


class Redactor:
    """Replaces secrets with placeholders. Each placeholder contains a hash that is computed with one key.

    A redactor has no state, so threads can share it. `key` contains at least 16 random bytes. Equal secrets have equal
    placeholders only with the same key. `piece_characters` limits the duration of one search.
    """

    __slots__ = ("_piece_characters", "_placeholders", "key")

    def __init__(self, key: bytes, *, piece_characters: int = PIECE_CHARACTERS) -> None:
        self.key = key
        self._placeholders = Placeholders(key)
        self._piece_characters = piece_characters

    def redact(self, text: str) -> str:
        """Mask every secret in `text`, and remove terminal escape sequences. Line numbers are unchanged.

        Returns the same object if `text` has neither secrets nor escape sequences.
        """
        return self.redaction(text).text

    def redaction(self, text: str) -> Redaction:
        """Mask secrets like `redact`, and count the masked spans."""
        beyond = beyond_ascii(text)
        shown = strip_escape_sequences(text, beyond)
        text, beyond = shown, beyond if shown is text else beyond_ascii(shown)
        found = FoundSecrets(text, self._placeholders)
        found.add(Search(len(text), self._piece_characters).spans(text, beyond))
        return self._with_placeholders(text, found)

    def _with_placeholders(self, text: str, found: Iterable[Masked]) -> Redaction:
        # Many small strings use more memory than the text, so they are joined early.
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
    """Run `redactor.redact(text)` without blocking the event loop. A long text is redacted in a thread."""
    if len(text) <= _SHORT_TEXT_CHARACTERS:
        return redactor.redact(text)
    return await asyncio.to_thread(redactor.redact, text)


async def redact_message_off_loop(redactor: Redactor, message: Message) -> Message:
    """Return `message` without secrets, or the same object if it has none.

    Redacts text from users, attachments and tools, but not instructions or model replies.
    """
    if not isinstance(message, UserMessage | ToolMessage):
        return message
    parts = [
        _redacted(part, await redact_off_loop(redactor, part.text)) if isinstance(part, Text) else part
        for part in message.parts
    ]
    return _with_parts(message, tuple(parts))


async def redacted_requests(redactor: Redactor | None, messages: Sequence[Message]) -> Sequence[Message]:
    """Redact the user messages in `messages`. Messages without secrets remain the same objects."""
    if redactor is None:
        return messages
    return [
        await redact_message_off_loop(redactor, message) if isinstance(message, UserMessage) else message
        for message in messages
    ]


def _redacted(part: Text, text: str) -> Text:
    return part if text is part.text else Text(text=text)


def _with_parts(message: UserMessage | ToolMessage, parts: tuple[Part, ...]) -> Message:
    if all(new is old for new, old in zip(parts, message.parts, strict=True)):
        return message
    return replace(message, parts=parts)


class RedactingFilter(logging.Filter):
    """Masks the message, exception and stack of every log record. No record is dropped."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record in place, so that later handlers also write the masked text."""
        record.msg = self._redactor.redact(_message_of(record))
        record.args = None
        if record.exc_info:
            # Formatters use this text. Without the exception, they cannot create the unmasked text again.
            record.exc_text = record.exc_text or _PLAIN.formatException(record.exc_info)
            record.exc_info = None
        if record.exc_text:
            record.exc_text = self._redactor.redact(record.exc_text)
        if record.stack_info:
            record.stack_info = self._redactor.redact(record.stack_info)
        return True


def _message_of(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        # A wrong number of arguments must not hide the record or leave secrets in it.
        return f"{record.msg} {record.args!r}"


def without_known_keys(text: str, keys: Iterable[str]) -> str:
    """Replace each of `keys` in `text` with `***` where it occurs as a whole word.

    A key that could be an ordinary word (`none`, `test`) is not masked. Users configure such keys for servers without
    authentication.
    """
    for key in keys:
        is_short = len(key) < _SHORT_CHARACTERS or (key.isalpha() and len(key) < _LONG_CHARACTERS)
        if not is_short or looks_random(key, password=True):
            text = re.sub(rf"(?<![A-Za-z0-9_\-]){re.escape(key)}(?![A-Za-z0-9_\-])", _MASKED, text)
    return text
