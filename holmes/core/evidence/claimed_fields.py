"""Which fields of a record a number or a text of an assertion may be about. Pure."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from holmes.core.evidence.bindings import FREE_TEXT, NEGATIVE, REPLICAS, agrees, holds_text
from holmes.core.evidence.quantities import quantities_in
from holmes.core.evidence.records import plain_key, tokens_of
from holmes.core.evidence.sources import canonical_kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.core.evidence.bindings import Reading
    from holmes.core.evidence.quantities import Dimension
    from holmes.core.evidence.records import Field, Record
    from holmes.core.evidence.sources import Source
    from holmes.core.evidence.words import Token

_PAIR = re.compile(r"([\w.-]+)\s*[:=]\s*(\S+)")
_PIECES = re.compile(r"\[?(?:…|\.{3,})\]?|[,;]\s")


def ago_fields(record: Record) -> tuple[Field, ...]:
    """Fields that say when something was."""
    return tuple(each for each in record.fields if " ago" in each.value or each.key.startswith("last"))


def plain_fields(record: Record) -> tuple[Field, ...]:
    """Fields that hold a value and not a sentence."""
    return tuple(each for each in record.fields if each.key not in FREE_TEXT)


def of_dimension(record: Record, fields: tuple[Field, ...], dimensions: frozenset[Dimension]) -> tuple[Field, ...]:
    """`fields`, or the share beside each: `MEMORY%` for `84% memory`."""
    if dimensions != {"percent"} or any("%" in each.value for each in fields):
        return fields
    return record.of(f"{each.key}percent" for each in fields)


def of_kind(following: Token | None, fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """Those of `fields` that count the kind named after the number: `a capacity of 110 pods`."""
    kind = following.concept("kind") if following is not None else ""
    return tuple(each for each in fields if kind and each.key in (kind, f"{kind}s")) or fields


def is_share(record: Record, token: Token, fields: Sequence[Field]) -> bool:
    """`2 of 3 replicas are available`: one field has the part, another the whole."""
    wholes = record.of((*REPLICAS.split(), "ready", "current"))
    part, whole = token.parts
    return all(agrees(part, each, "=", frozenset()) for each in fields) and any(
        agrees(whole, each, "=", frozenset({"desired"})) for each in wholes
    )


def has_dimension(each: Field, dimensions: frozenset[str]) -> bool:
    """Whether a field is a value of one of `dimensions`."""
    found = quantities_in(each.value[:200])
    return bool(found) and bool(found[0].dimensions & dimensions) and each.value.strip().startswith(found[0].text)


def first_number(value: str) -> object:
    """The count that a value begins with; None when it begins with something else."""
    found = quantities_in(value[:200].partition("/")[0])
    return found[0].number("count") if found and value.strip().startswith(found[0].text) else None


def fit_together(elements: Sequence[frozenset[tuple[str, ...]]]) -> bool:
    """Whether one element has all of them, or part of it."""
    return any(
        all(any(path[: len(other)] == other or other[: len(path)] == path for other in others) for others in elements)
        for path in elements[0]
    )


def stands(token: Token, reading: Reading, source: Source) -> bool:
    """Whether it stands in the record's own lines, or is what the whole result is about."""
    text, record = token.text, reading.record
    if record.says(text, exactly=token.quoted):
        is_word = record.form == "object" and " " not in text and not any(sign in text for sign in ":=")
        return not is_word or any(
            holds_text(each.value, text) or plain_key(text) in each.path for each in record.fields
        )
    if token.quoted and (match := _PAIR.fullmatch(text)):
        own = reading.own_key(replace(token, text=match[1]))
        return any(each.value.casefold() == match[2].casefold() for each in own)
    pieces = [piece.strip() for piece in _PIECES.split(text) if piece.strip(" .")]
    if token.quoted and text.endswith(("…", "...")) and pieces:
        pieces[-1] = pieces[-1].rpartition(" ")[0]  # the last word may be cut
    if token.quoted and pieces and pieces != [text]:
        return all(record.says(piece) for piece in pieces if piece)
    around = {*record.names, *record.labels, *source.names, source.namespace}
    parts = [part for part in text.split("/") if not canonical_kind(part)] if "/" in text else [text]
    return all(part in around or (len(parts) > 1 and record.says(part)) for part in parts)


def is_denied(record: Record, text: str) -> bool:
    """Whether the record says `no` or `not` right before the words of a quote."""
    parts = record.folded.split(tokens_of(text).casefold())[:-1]
    return bool(parts) and all(part.split()[-1:] and part.split()[-1] in NEGATIVE for part in parts)


def counts_containers(record: Record, token: Token) -> bool | None:
    """Whether a number is that of the containers of an object, or the second part of `1/2`; None without either."""
    if token.quantity is None:
        return None
    ratios = record.of(("ready",))
    if record.form == "row" and len(ratios) == 1:
        return None if token.parts else agrees(token.quantity, ratios[0], "=", frozenset({"container"}))
    named = {each.labels for each in record.fields if each.path[:-2] and "containers" in each.path[-3:-1]}
    return token.quantity.number("count") == len(named) if named and record.form == "object" else None
