"""Creates placeholders for secrets: `(REDACTED:password:1f3a9c2b)`, and `(REDACTED)` for any further lines.

The number is a keyed hash. Equal secrets have equal placeholders, and short secrets cannot be guessed. Round brackets
are used because square brackets are lists in YAML and `[[` starts a citation. A span is stored as four numbers, without
the secret, so millions of spans fit in memory.
"""

from __future__ import annotations

from array import array
from dataclasses import replace
from hashlib import blake2s
from typing import TYPE_CHECKING, Final

from holmes.redaction.kinds import Masked, kind_of
from holmes.values.errors import HolmesError
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holmes.redaction.kinds import Span

_FURTHER_LINE: Final = "(REDACTED)"
_MINIMUM_KEY_BYTES: Final = 16
_PLACEHOLDER: Final = expression(r"\(REDACTED(?::[a-z0-9\-]{1,60}:[0-9a-f]{8})?\)")
_SHARED_START: Final = "(REDACTED"
_LONGEST: Final = 90
_ESCAPED_BREAK: Final = expression(r"(?:\\+[nrt]|[ \t])+")
_BUCKET_CHARACTERS: Final = 32 * 1024
_MOST_SMALL: Final = 2**32
_NUMBERS: Final = 4
_SHORTEST_KIND: Final = 16
_LONGEST_KIND: Final = 4096


class Placeholders:
    """Creates placeholders with one key."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        if len(key) < _MINIMUM_KEY_BYTES:
            raise HolmesError(
                f"the redaction key has only {len(key)} bytes, so placeholders could be guessed; "
                f"use at least {_MINIMUM_KEY_BYTES} random bytes"
            )
        self._key = blake2s(key).digest()

    def number(self, secret: str) -> int:
        """Return the keyed hash of `secret` (32 bits)."""
        digest = blake2s(secret.encode("utf-8", "surrogatepass"), key=self._key, digest_size=4).digest()
        return int.from_bytes(digest)

    def replacement(self, text: str, masked: Masked) -> str:
        """Return the placeholder for `masked`, which has as many lines as the masked text."""
        first = f"(REDACTED:{masked.label}:{masked.number:08x})"
        lines = text[masked.start : masked.end].splitlines(keepends=True)
        if len(lines) == 1 and not lines[0][-1:].isspace():
            return f"{masked.quote}{first}{masked.quote}"
        shown: list[str] = []
        placeholder = first
        for line in lines:
            content = line.strip()
            if content:
                start = line.index(content)
                line = f"{line[:start]}{placeholder}{line[start + len(content) :]}"  # noqa: PLW2901
                placeholder = _FURTHER_LINE
            shown.append(line)
        return "".join(shown)


def outside_placeholders(text: str, spans: Iterable[Span]) -> Iterator[Span]:
    """Yield the spans that do not start inside a placeholder, because words in a placeholder are not names."""
    return (span for span in spans if not _begins_inside(text, span.start))


def _begins_inside(text: str, position: int) -> bool:
    lowest = max(0, position - _LONGEST)
    start = text.rfind(_SHARED_START, lowest, position + len(_SHARED_START) - 1)
    if start < 0 or start >= position:
        return False
    match = _PLACEHOLDER.match(text, start)
    return match is not None and position < match.end()


def without_placeholders(text: str, found: Iterable[Masked]) -> Iterator[Masked]:
    """Yield the parts of each span outside existing placeholders.

    A redacted text keeps its placeholders, which makes redaction idempotent.
    """
    for masked in found:
        position = masked.start
        # A placeholder that contains the start of the span starts at most one placeholder length before the span.
        lowest, highest = max(0, masked.start - _LONGEST), min(len(text), masked.end + _LONGEST)
        if text.find(_SHARED_START, lowest, highest) < 0:
            yield masked
            continue
        for match in _PLACEHOLDER.finditer(text, lowest, highest):
            if match.end() <= masked.start or match.start() >= masked.end:
                continue
            yield from _part(text, masked, position, min(match.start(), masked.end))
            position = match.end()
        yield from _part(text, masked, position, masked.end)


def _part(text: str, masked: Masked, start: int, end: int) -> Iterator[Masked]:
    if start < end and _ESCAPED_BREAK.sub("", text[start:end]).strip():
        yield replace(masked, start=start, end=end)


class FoundSecrets:
    """The secrets of one text in order. Overlapping spans are joined, and the longest span determines the label."""

    __slots__ = ("_buckets", "_looks", "_names", "_placeholders", "_text")

    def __init__(self, text: str, placeholders: Placeholders) -> None:
        self._text = text
        self._placeholders = placeholders
        self._buckets: dict[int, array[int]] = {}
        # Pairs of label and quote. A stored span refers to a pair by its number.
        self._looks: list[tuple[str, str]] = []
        self._names: dict[tuple[str, str], int] = {}

    def add(self, spans: Iterable[Span]) -> None:
        """Add spans in any order."""
        code = "I" if len(self._text) < _MOST_SMALL else "Q"
        for span in spans:
            look = self._look(_label_of(span), span.quote)
            bucket = self._buckets.setdefault(span.start // _BUCKET_CHARACTERS, array(code))
            bucket.extend((span.start, span.end, look, self._placeholders.number(span.secret)))

    def __iter__(self) -> Iterator[Masked]:
        """Yield the spans to mask, in order."""
        last: Masked | None = None
        for masked in self._in_order():
            if last is None or masked.start >= last.end:
                if last is not None:
                    yield last
                last = masked
            elif masked.end > last.end:
                number = self._placeholders.number(self._text[last.start : masked.end])
                last = Masked(start=last.start, end=masked.end, label=last.label, number=number, quote=last.quote)
        if last is not None:
            yield last

    def _in_order(self) -> Iterator[Masked]:
        for key in sorted(self._buckets):
            numbers = self._buckets.pop(key)
            for start, end, look, number in sorted(
                zip(*(numbers[first::_NUMBERS] for first in range(_NUMBERS)), strict=True),
                key=lambda span: (span[0], -span[1]),
            ):
                label, quote = self._looks[look]
                yield Masked(start=start, end=end, label=label, number=number, quote=quote)

    def _look(self, label: str, quote: str) -> int:
        look = self._names.setdefault((label, quote), len(self._looks))
        if look == len(self._looks):
            self._looks.append((label, quote))
        return look


def _label_of(span: Span) -> str:
    """Return the label of the secret's kind if the shape determines the kind, otherwise the label of the span.

    Equal secrets therefore have equal placeholders.
    """
    kind = kind_of(span.secret) if _SHORTEST_KIND <= len(span.secret) <= _LONGEST_KIND else None
    return span.label if kind is None else kind.label or kind.name
