"""Matches alert labels against routes, which select the settings for investigations."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.toolsets.patterns import LONGEST_OF_USERS, bounded_pattern
from holmes.triage.alert_subjects import is_heartbeat

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MATCH_SECONDS: Final = 0.1
_MOST_CHARACTERS: Final = 1_000
_REMEMBERED: Final = 2_000
_log = logging.getLogger(__name__)


class LabelPattern:
    """Matches the whole value of a label against a regular expression. A missing label has an empty value.

    Labels are untrusted, so matching has a time limit. An expression that exceeds the limit does not match.
    """

    def __init__(self, label: str, expression: str) -> None:
        """Compile the expression. Raises `ToolError` if it is invalid or too large."""
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
            _log.warning("the expression for the label %r took too long, so it does not match", self.label)
            return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Settings for alerts whose labels match all patterns in `match`.

    `model` and `max_cost` default to the general settings, and `destinations` to all destinations. `max_cost` is in US
    dollars. `max_per_hour` limits the investigations that may use an LLM. None means no limit. If `investigate` is
    None, all alerts except heartbeats are investigated.
    """

    name: str = ""
    match: tuple[LabelPattern, ...] = ()
    investigate: bool | None = None
    model: str | None = None
    max_cost: float | None = None
    max_per_hour: int | None = None
    destinations: tuple[str, ...] | None = None

    def investigates(self, labels: Mapping[str, str]) -> bool:
        """Return whether an alert with these labels is investigated."""
        return not is_heartbeat(labels) if self.investigate is None else self.investigate

    def takes(self, labels: Mapping[str, str]) -> bool:
        """Return whether all patterns match `labels`."""
        return all(pattern.matches(labels) for pattern in self.match)


NO_ROUTE: Final = Route()
"""The default route, for alerts that no other route matches. It uses the general settings."""


class Routes:
    """The configured routes. The first matching route applies to an alert."""

    def __init__(self, routes: Sequence[Route] = ()) -> None:
        self._routes = tuple(routes)

    def of(self, labels: Mapping[str, str]) -> Route:
        """Return the first route that matches `labels`, or else the default route."""
        return next((route for route in self._routes if route.takes(labels)), NO_ROUTE)

    def named(self, name: str) -> Route:
        """Return the route named `name`, or the default route if `name` is no longer configured."""
        return next((route for route in self._routes if route.name == name), NO_ROUTE)
