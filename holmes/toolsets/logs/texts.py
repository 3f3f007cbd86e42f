"""Writes the rows of a query and the names of fields for the model, with the count of everything that is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.observability.logs.source import rfc3339
from holmes.toolsets.kubernetes_logs.troubles import readable, troubles
from holmes.toolsets.kubernetes_logs.window import LONGEST_LINE_BYTES
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.observability.logs.source import QueryRow, QueryRows, WantedLines

_MOST_NAMES: Final = 200
_FIELD_CHARACTERS: Final = 200
_ANALYSED_CHARACTERS: Final = 1_000


def rows_text(source: str, found: QueryRows, wanted: WantedLines) -> str:
    """List the rows with the fields in which they differ, after the fields that all of them share."""
    shown, total = len(found.rows), found.total
    count = f"showing {shown:,} of at least {shown:,}" if total is None else f"showing {shown:,} of {total:,}"
    order = "oldest" if wanted.oldest else "newest"
    reach = f"from {_moment(wanted.span.start_ns)} to {_moment(wanted.span.end_ns)}"
    hint = "; to see other rows, narrow the query or the range" if total is None or shown < total else ""
    notes = "".join(f"; {note}" for note in found.notes)
    head = f"{source}: {count} rows, the {order} first, {reach}{hint}{notes}"
    shared = _shared(found.rows)
    parts = [head, *([f"In all rows: {_fields(tuple(shared))}"] if shared else [])]
    lines = [each for each in found.rows if each.text]
    timed = [
        readable(f"{each.time} {each.text[:_ANALYSED_CHARACTERS]}")
        for each in (lines if wanted.oldest else reversed(lines))
    ]
    parts += troubles([("these rows", timed)])
    return "\n".join([*parts, *(_row(each, shared) for each in found.rows)])


def names_text(noun: str, names: Sequence[tuple[str, int]], *, is_cut: bool = False) -> str:
    """List fields or values, those with the most lines first. Returns an empty string if there are none.

    With `is_cut`, the source has more names than these.
    """
    if not names:
        return ""
    ordered = sorted(names, key=lambda pair: (-pair[1], pair[0]))[:_MOST_NAMES]
    total = f"more than {len(names):,}" if is_cut else f"{len(names):,}"
    head = f"showing {len(ordered)} of {total} names of the kind: {noun}"
    counted = (f"{name} ({count:,} lines)" if count else name for name, count in ordered)
    return "\n".join([head, *(shortened(" ".join(each.split()), _FIELD_CHARACTERS) for each in counted)])


def _shared(rows: Sequence[QueryRow]) -> list[tuple[str, str]]:
    """Return the fields that are the same in all rows, if there are several rows."""
    first, *others = rows
    return [pair for pair in first.fields if others and all(pair in each.fields for each in others)]


def _row(row: QueryRow, shared: Sequence[tuple[str, str]]) -> str:
    own = _fields(tuple(pair for pair in row.fields if pair not in shared))
    words = [row.time, f"{{{own}}}" if own and row.text else own, row.text]
    return shortened(readable(" ".join(filter(None, words))), LONGEST_LINE_BYTES)


def _fields(fields: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{name}={shortened(' '.join(value.split()), _FIELD_CHARACTERS)}" for name, value in fields)


def _moment(nanoseconds: int) -> str:
    return f"{rfc3339(nanoseconds)[:19]}Z"
