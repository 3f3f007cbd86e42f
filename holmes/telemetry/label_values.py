"""Keeps the number of label values small, whatever clients, models and configurations say. Used by `metrics`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

OTHER: Final = "other"


class KnownValues:
    """A closed set; everything else is `other`."""

    def __init__(self, values: Iterable[str]) -> None:
        self._values = frozenset(values)

    def of(self, value: str) -> str:
        """The label for `value`."""
        return value if value in self._values else OTHER


class LimitedValues:
    """The first `limit` different values; everything after them is `other`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: set[str] = set()

    def of(self, value: str) -> str:
        """The label for `value`."""
        if value in self._values:
            return value
        if len(self._values) >= self._limit:
            return OTHER
        self._values.add(value)
        return value
