"""Alerts between settings and investigations: routes, the intake's rules, and alerts of the command line.

Called by `holmes.app.serving`, the webhook and `holmes investigate`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from holmes.investigations.alerts.intake_plan import IntakePlan
from holmes.investigations.alerts.intake_state import IntakeRules, IntakeState
from holmes.investigations.alerts.routes import LabelPattern, Route, Routes
from holmes.settings.located import nearest
from holmes.values.errors import ConfigError, ToolError

if TYPE_CHECKING:
    from collections.abc import Collection

    from holmes.investigations.records.values import AlertGroup, NewInvestigation
    from holmes.settings.alerts import RouteSettings
    from holmes.settings.settings import Settings


def alert_routes(settings: Settings, models: Collection[str]) -> Routes:
    """The routes of `alerts.routes`. `models` are the names that can be asked for.

    Raises `ConfigError` for a model or destination that is not configured, and for two routes of one name.
    """
    routes = tuple(_route(each) for each in settings.alerts.routes)
    names = [route.name for route in routes]
    for route in routes:
        place = f"alerts.routes: {route.name!r}"
        if names.count(route.name) > 1:
            raise ConfigError(f"{place}: there are two routes of this name")
        if why := settings.left_out_models.get(route.model or ""):
            raise ConfigError(f"{place}: {why}")
        if route.model is not None and route.model not in models:
            raise ConfigError(f"{place}: unknown model {route.model!r}; there are: {', '.join(models)}")
        known = settings.alerts.destinations
        for destination in route.destinations or ():
            if destination not in known:
                there = nearest(destination, tuple(known)) if known else "alerts.destinations has none"
                raise ConfigError(f"{place}: unknown destination {destination!r}; {there}")
    return Routes(routes)


def investigations_of(group: AlertGroup, routes: Routes) -> tuple[NewInvestigation, ...]:
    """What the server would investigate if these were its first alerts, in the order of the alerts."""
    plan = IntakePlan(IntakeState(), IntakeRules(source="alertmanager", routes=routes), datetime.now(UTC))
    plan.take(group)
    return tuple(plan.changes().new_investigations.values())


def _route(given: RouteSettings) -> Route:
    return Route(
        name=given.name,
        match=tuple(_pattern(given.name, label, expression) for label, expression in given.match.items()),
        investigate=given.investigate,
        model=given.model,
        max_cost=given.max_cost,
        max_per_hour=given.max_per_hour,
        destinations=given.destinations,
    )


def _pattern(route: str, label: str, expression: str) -> LabelPattern:
    try:
        return LabelPattern(label, expression)
    except ToolError as error:
        raise ConfigError(f"alerts.routes: {route!r}: {error}") from None
