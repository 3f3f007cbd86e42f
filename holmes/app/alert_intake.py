"""The intake of alerts for these settings, and what destinations hear of it. Called by `holmes.app.serving`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from holmes.app.alerts import alert_routes
from holmes.investigations.alerts.intake import AlertIntake, IntakePolicy
from holmes.investigations.deliveries.records import NewDelivery, queue_delivery

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from sqlalchemy import Connection

    from holmes.investigations.alerts.intake import OnNews
    from holmes.investigations.alerts.intake_state import IncidentEvent
    from holmes.investigations.alerts.routes import Route
    from holmes.investigations.database import Database
    from holmes.investigations.values import Incident
    from holmes.settings.settings import Settings


def alert_intake(
    settings: Settings, database: Database, models: Collection[str], on_queued: Callable[[], None]
) -> AlertIntake:
    """Where the alerts of the server come in. Raises `ConfigError` for routes that cannot work."""
    policy = IntakePolicy(reopen_hours=settings.alerts.reopen_hours, max_cost_per_day=settings.server.max_cost_per_day)
    news = _tell(tuple(settings.alerts.destinations))
    return AlertIntake(database, alert_routes(settings, models), policy, on_queued, news)


def destinations_of(route: Route, configured: Collection[str]) -> tuple[str, ...]:
    """The names of those who hear of a route's incidents."""
    chosen = configured if route.destinations is None else route.destinations
    return tuple(name for name in chosen if name in configured)


def _tell(configured: Collection[str]) -> OnNews:
    def tell(connection: Connection, incident: Incident, event: IncidentEvent, route: Route) -> None:
        new = NewDelivery(event=event, incident_id=incident.id, ordinal=incident.reopened)
        queue_delivery(connection, new, destinations_of(route, configured), time.time())

    return tell
