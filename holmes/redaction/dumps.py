"""Secrets in what Go programs print of their values: `map[password:[104 117]]`, `[]uint8{0x68}`, Secrets as a whole.

A list of bytes is a text. In a Secret every value is masked, elsewhere those whose name says that they are secret.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.redaction.kinds import Span
from holmes.redaction.kubernetes_secrets import may_be_shown, secret_span
from holmes.redaction.names import label_of, strength_of
from holmes.redaction.values import is_reference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.redaction.pieces import Window

_NUMBERS: Final = r"(?:0x[0-9a-fA-F]{1,2}|[0-9]{1,3})(?:,?[ \t]{1,4}(?:0x[0-9a-fA-F]{1,2}|[0-9]{1,3})){2,8000}"
_NAMED_BYTES: Final = re.compile(
    rf"(?P<name>[A-Za-z_][A-Za-z0-9_.\-]{{0,100}})\\{{0,7}}\"?:[ \t]{{0,4}}(?:\[\](?:uint8|byte)\{{|\[)"
    rf"(?P<secret>{_NUMBERS}),?[\]}}]"
)
_NAMED_CAST: Final = re.compile(
    r"(?P<name>[A-Za-z_][A-Za-z0-9_.\-]{0,100})\\{0,7}\"?:[ \t]{0,4}(?:\(\*?[a-z\[\]0-9]{1,20}\)[ \t]{0,2}"
    r"(?:\(0x[0-9a-f]{1,16}\)|\(len=[0-9]{1,9}(?: cap=[0-9]{1,9})?\))?[ \t]{0,2}\(?"
    r"|\[\]byte\()\\{0,7}\"(?P<secret>[^\"\n\\]{1,4000})"
)
# An environment variable without names of fields: `{DB_PASSWORD x nil}`.
_NAMELESS: Final = re.compile(r"\{(?P<name>[A-Z][A-Z0-9_]{2,80}) (?P<secret>[^\s{}]{1,400}) (?:nil|<nil>)\}")
# What shows that a map belongs to a Secret, before or behind it in the same dump.
_OF_SECRET: Final = re.compile(
    r"kind:Secret\b|\bSecret\{|StringData:|Type:(?:Opaque|kubernetes\.io/)|type:(?:Opaque|kubernetes\.io/)"
)
_DATA: Final = re.compile(r"\b(?:[Dd]ata|[sS]tringData):[ \t]{0,2}map\[(?:string\](?:\[\](?:uint8|byte)|string)\{)?")
_ENTRY: Final = re.compile(
    r"\s{0,4},?\s{0,4}\\{0,7}\"?(?P<name>[A-Za-z0-9_.\-]{1,253})\\{0,7}\"?:[ \t]{0,4}"
    rf"(?:(?:\[\](?:uint8|byte)\{{|\[)(?P<bytes>{_NUMBERS})?,?[\]}}]"
    r"|\[\](?:uint8|byte)\(\\{0,7}\"(?P<text>[^\"\n\\]{1,4000})\\{0,7}\"\)"
    r"|\\{0,7}\"(?P<quoted>[^\"\n\\]{0,4000})\\{0,7}\"|(?P<plain>[^\s\]\[}{\",]{1,4000}))"
)
_AROUND: Final = 2000


def dumped_secrets(window: Window) -> Iterator[Span]:
    """The secrets of this window in dumps of Go values."""
    if (
        not window.names_secrets
        and not window.has("Opaque", folded=False)
        and not window.has("StringData", folded=False)
    ):
        return
    yield from _strongly_named(window, _NAMELESS)
    if "[" not in window.piece and "(" not in window.piece:
        return
    maps = window.has("map[")
    if (
        not maps
        and not window.has("byte")
        and not window.has("uint8")
        and not window.has("(*")
        and not window.has("(len=")
    ):
        return
    for match in _NAMED_BYTES.finditer(window.piece):
        if strength_of(match["name"]) != "none" and _text_of(match["secret"]):
            yield _span(window, match.span("secret"), label_of(match["name"]), _text_of(match["secret"]))
    yield from _strongly_named(window, _NAMED_CAST)
    if maps and (window.has("secret{") or window.has(":secret") or window.has("stringdata:") or window.has("type:")):
        yield from _of_secrets(window)


def _strongly_named(window: Window, pattern: re.Pattern[str]) -> Iterator[Span]:
    for match in pattern.finditer(window.piece):
        if strength_of(match["name"]) == "strong" and not is_reference(match["secret"]):
            yield _span(window, match.span("secret"), label_of(match["name"]), match["secret"])


def _of_secrets(window: Window) -> Iterator[Span]:
    piece = window.piece
    for match in _DATA.finditer(piece):
        around = piece[max(0, match.start() - _AROUND) : match.end() + _AROUND]
        if not match[0].lower().startswith("stringdata") and not _OF_SECRET.search(around):
            continue
        position = match.end()
        entry = _ENTRY.match(piece, position)
        while entry:
            group = next((name for name in ("bytes", "text", "quoted", "plain") if entry[name]), None)
            if group:
                value = _text_of(entry[group]) if group == "bytes" else entry[group]
                if not may_be_shown(value):
                    span = secret_span(entry["name"], *entry.span(group), value)
                    yield Span(
                        start=window.start + span.start,
                        end=window.start + span.end,
                        label=span.label,
                        secret=span.secret,
                    )
            position = entry.end()
            entry = _ENTRY.match(piece, position)


def _text_of(numbers: str) -> str:
    """What a list of bytes says; empty when it is no text."""
    codes = [
        int(number, 16 if number.startswith("0x") else 10) for number in re.findall(r"0x[0-9a-fA-F]+|[0-9]+", numbers)
    ]
    if not all(9 <= code < 127 for code in codes):
        return ""
    return "".join(map(chr, codes))


def _span(window: Window, place: tuple[int, int], label: str, secret: str) -> Span:
    return Span(start=window.start + place[0], end=window.start + place[1], label=label, secret=secret)
