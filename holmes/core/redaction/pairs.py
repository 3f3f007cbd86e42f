"""Secrets whose name stands in a field of its own: `name: DB_PASSWORD` and then `value: ...`, as containers have them.

Called by the redactor for each window. Reads YAML and JSON, also escaped, with the name first; JSON also the other way
round. XML elements belong here too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.core.redaction.assignments import Place, secret_at, starts_line
from holmes.core.redaction.kinds import Span
from holmes.core.redaction.names import label_of, strength_of
from holmes.core.redaction.values import is_reference, looks_random

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.core.redaction.pieces import Window

_BREAK: Final = r"(?:\s{1,200}+|\\{1,7}[nrt]){0,200}+"
_NAME_FIRST: Final = tuple(
    re.compile(
        field
        + r"\\{0,7}[\"']?[ \t]{0,4}:[ \t]{0,40}\\{0,7}[\"']?(?P<name>[a-z_][a-z0-9_.\-]{0,100}+)\\{0,7}[\"']?,?"
        + _BREAK
        + r"(?P<open>\\{0,7}[\"']?)value\\{0,7}[\"']?[ \t]{0,4}:[ \t]{0,40}"
    )
    for field in ("name", "key")
)
_VALUE_FIRST: Final = re.compile(
    r"value(?P<quote>\\{0,7}[\"'])[ \t]{0,4}:[ \t]{0,40}(?P=quote)(?P<secret>[^\"'\n\\]{1,400})(?P=quote),"
    + _BREAK
    + r"(?P=quote)(?:name|key)(?P=quote)[ \t]{0,4}:[ \t]{0,40}(?P=quote)(?P<name>[a-z_][a-z0-9_.\-]{0,100}+)(?P=quote)"
)
_ELEMENT: Final = re.compile(r"</(?P<name>[A-Za-z_][\w.\-]{0,60})>")


def paired_secrets(window: Window) -> Iterator[Span]:
    """The secrets of this window whose name is a field beside them."""
    if window.has("value"):
        yield from _after_names(window)
        yield from _before_names(window)
    if window.has("</"):
        yield from _elements(window)


def _after_names(window: Window) -> Iterator[Span]:
    for pattern in _NAME_FIRST:
        for match in pattern.finditer(window.lower):
            name = window.piece[match.start("name") : match.end("name")]
            strength = strength_of(name)
            if strength == "none":
                continue
            place = Place(
                name=name,
                strength=strength,
                value=match.end(),
                operator=":",
                quote=match["open"],
                starts_line=starts_line(window.piece, match.start("open")),
                opened=True,
            )
            span = secret_at(window, place)
            if span:
                yield span


def _before_names(window: Window) -> Iterator[Span]:
    for match in _VALUE_FIRST.finditer(window.lower):
        name = window.piece[match.start("name") : match.end("name")]
        start, end = match.span("secret")
        value = window.piece[start:end]
        strength = strength_of(name)
        if strength == "none" or is_reference(value, amounts=True):
            continue
        if strength == "strong" or looks_random(value, password=True):
            yield Span(start=window.start + start, end=window.start + end, label=label_of(name), secret=value)


def _elements(window: Window) -> Iterator[Span]:
    """`<password>...</password>` of Maven, Jenkins and the like."""
    piece = window.piece
    for match in _ELEMENT.finditer(piece):
        if strength_of(match["name"]) != "strong":
            continue
        start = piece.rfind(">", max(0, match.start() - 400), match.start()) + 1
        value = piece[start : match.start()]
        if start and "\n" not in value and piece.endswith(f"<{match['name']}>", 0, start) and not is_reference(value):
            label = label_of(match["name"])
            yield Span(start=window.start + start, end=window.start + match.start(), label=label, secret=value)
