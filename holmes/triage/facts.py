"""Builds the answer to a question of fact: one sentence, and a table of at most 15 rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.values.first_look import FirstLook, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.triage.asked import Asked
    from holmes.values.verdicts import VerdictKind

MOST_ROWS: Final = 15


def place_of(asked: Asked) -> str:
    """Return the subject as a phrase: `of Deployment shop/web`, or `in namespace shop`."""
    return f"of {asked.subject.objects[0].ref}" if asked.subject.named else asked.subject.place


def table_of(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table | None:
    """Return a table with the first 15 rows, or None without rows."""
    if not rows:
        return None
    lines = tuple(" | ".join(cell.replace("|", "/") or "-" for cell in row) for row in rows[:MOST_ROWS])
    return Table(header=" | ".join(header), rows=lines, total=len(rows))


def fact(
    asked: Asked, summary: str, table: Table | None = None, verdict: VerdictKind = "answered", **more: tuple[str, ...]
) -> FirstLook:
    """Return the answer to a question of fact."""
    return FirstLook(
        verdict=verdict,
        summary=summary,
        subject=tuple(str(each.ref) for each in asked.subject.objects[:4]),
        scope=asked.subject.place,
        table=table,
        not_checked=more.get("not_checked", ()),
        lines=more.get("lines", ()),
        notes=more.get("notes", ()),
        taken_at=asked.report.taken_at,
    )
