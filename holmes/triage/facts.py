"""Builds the answer to a question of fact: one sentence, and a table of at most 15 rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.values.first_look import FirstLook, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.triage.asked import Asked
    from holmes.values.verdicts import VerdictKind

NOT_KNOWN: Final = "Not known"
"""The heading of a question of fact that the facts do not answer."""
MOST_ROWS: Final = 15
_MOST_NAMES: Final = 3


def place_of(asked: Asked) -> str:
    """Return the subject as a phrase: `of Deployment shop/web and Pod shop/db-0`, or `in namespace shop`."""
    names = list(dict.fromkeys(str(named.objects[0].ref) for named in asked.subject.named))
    shown = [*names[:_MOST_NAMES], *([f"{len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else [])]
    return f"of {' and '.join(shown)}" if shown else asked.subject.place


def table_of(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table | None:
    """Return a table with the first 15 rows, or None without rows."""
    if not rows:
        return None
    lines = tuple(" | ".join(cell.replace("|", "/") or "-" for cell in row) for row in rows[:MOST_ROWS])
    return Table(header=" | ".join(header), rows=lines, total=len(rows))


def not_answered(asked: Asked, parts: Sequence[str], *, to: str = "", what: str = "number") -> FirstLook:
    """Return the answer without a number or an order, because parts of the question could not be applied."""
    told = ", ".join(f"`{part}`" for part in parts)
    place = f" to {to}" if to else ""
    text = f"Not answered: {told} could not be applied{place}, so any {what} would be wrong."
    return fact(asked, text, verdict="inconclusive")


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
        heading="" if verdict != "inconclusive" or asked.question.wants_reason else NOT_KNOWN,
    )
