"""Routes: the settings for alerts whose labels match."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.toolsets.patterns import LONGEST_OF_USERS, bounded_pattern

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MATCH_SECONDS: Final = 0.1
_MOST_CHARACTERS: Final = 1_000
_REMEMBERED: Final = 2_000
_log = logging.getLogger(__name__)


class LabelPattern:
    """A label and a regular expression for its whole value; a missing label is empty.

    Labels come from outside: an expression that takes too long does not match.
    """

    def __init__(self, label: str, expression: str) -> None:
        """Raises `ToolError` if the expression is not valid or too large."""
        self.label = label
        self._pattern = bounded_pattern(expression, name=label, longest=LONGEST_OF_USERS)
        self._known: dict[str, bool] = {}

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.label, "")[:_MOST_CHARACTERS]
        known = self._known.get(value)
        if known is None:
            known = self._matches(value)
            if len(self._known) < _REMEMBERED:
                self._known[value] = known
        return known

    def _matches(self, value: str) -> bool:
        try:
            return self._pattern.fullmatch(value, timeout=_MATCH_SECONDS) is not None
        except TimeoutError:
            _log.warning("the expression for the label %r took too long and does not match", self.label)
            return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Settings for alerts that `match`. None means the general setting.

    `max_cost` is in US dollars. `destinations` is None for all of them. `max_per_hour` limits the investigations that
    may use an LLM.
    """

    name: str = ""
    match: tuple[LabelPattern, ...] = ()
    investigate: bool = True
    model: str | None = None
    max_cost: float | None = None
    max_per_hour: int | None = None
    destinations: tuple[str, ...] | None = None

    def takes(self, labels: Mapping[str, str]) -> bool:
        """True if all patterns match."""
        return all(pattern.matches(labels) for pattern in self.match)


NO_ROUTE: Final = Route()
"""The route of all other alerts: investigated with the general settings."""


class Routes:
    """The routes in order."""

    def __init__(self, routes: Sequence[Route] = ()) -> None:
        self._routes = tuple(routes)

    def of(self, labels: Mapping[str, str]) -> Route:
        """The first route that matches these labels."""
        return next((route for route in self._routes if route.takes(labels)), NO_ROUTE)

    def named(self, name: str) -> Route:
        """The route with this name; the default route if it is no longer configured."""
        return next((route for route in self._routes if route.name == name), NO_ROUTE)
