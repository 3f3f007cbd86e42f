"""Decides whether a name that does not exist is an existing one misspelt. Called by rules about missing names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_EDITS: Final = 2
_SHORTEST_CHARACTERS: Final = 4


def meant(name: str, existing: Iterable[str]) -> str | None:
    """The existing name of which `name` is evidently a misspelling: one or two letters differ, and no digit."""
    found = nearest(name, existing)
    return found if found is not None and _misspelt(name, found) else None


def _misspelt(name: str, other: str) -> bool:
    if name.lower() == other.lower() or name.replace("_", "-") == other.replace("_", "-"):
        return True
    if min(len(name), len(other)) < _SHORTEST_CHARACTERS:
        return False
    same_digits = [each for each in name if each.isdigit()] == [each for each in other if each.isdigit()]
    allowed = _MOST_EDITS if min(len(name), len(other)) > _SHORTEST_CHARACTERS + 1 else 1
    return same_digits and _edits(name, other) <= allowed


def _edits(one: str, other: str) -> int:
    """The edit distance, two swapped neighbours counting once; 99 when the lengths differ by more than two."""
    if abs(len(one) - len(other)) > _MOST_EDITS:
        return 99
    before: list[int] = []
    row = list(range(len(other) + 1))
    for index, letter in enumerate(one):
        above, before_above = row, before
        row = [index + 1]
        for position, other_letter in enumerate(other):
            cost = min(above[position + 1] + 1, row[position] + 1, above[position] + (letter != other_letter))
            swapped = index and position and letter == other[position - 1] and one[index - 1] == other_letter
            if swapped:
                cost = min(cost, before_above[position - 1] + 1)
            row.append(cost)
        before = above
    return row[-1]
