"""The secrets that were found in one text, packed: millions of them fit in memory.

Called by the redactor. Each is four numbers in the bucket of the place where it starts; the secret itself is not kept.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

from holmes.redaction.kinds import Masked
from holmes.redaction.registry import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holmes.redaction.kinds import Span
    from holmes.redaction.placeholders import Placeholders

_BUCKET_CHARACTERS: Final = 32 * 1024
_MOST_SMALL: Final = 2**32
_NUMBERS: Final = 4
_SHORTEST_KIND: Final = 16
_LONGEST_KIND: Final = 4096


class FoundSecrets:
    """The secrets of one text in order, those that overlap made into one. The longest gives the name."""

    __slots__ = ("_buckets", "_looks", "_names", "_placeholders", "_text")

    def __init__(self, text: str, placeholders: Placeholders) -> None:
        self._text = text
        self._placeholders = placeholders
        self._buckets: dict[int, array[int]] = {}
        # Label and quote of a span, by the number that is kept for them.
        self._looks: list[tuple[str, str]] = []
        self._names: dict[tuple[str, str], int] = {}

    def add(self, spans: Iterable[Span]) -> None:
        """Take spans in any order."""
        code = "I" if len(self._text) < _MOST_SMALL else "Q"
        for span in spans:
            look = self._look(_label_of(span), span.quote)
            bucket = self._buckets.setdefault(span.start // _BUCKET_CHARACTERS, array(code))
            bucket.extend((span.start, span.end, look, self._placeholders.number(span.secret)))

    def __iter__(self) -> Iterator[Masked]:
        """The places to mask in order."""
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
    """The name of the kind that the secret has by itself, so that one secret has one placeholder; else its label."""
    kind = kind_of(span.secret) if _SHORTEST_KIND <= len(span.secret) <= _LONGEST_KIND else None
    return span.label if kind is None else kind.label or kind.name
