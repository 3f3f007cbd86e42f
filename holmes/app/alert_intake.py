"""The intake of alerts for these settings, and what destinations hear of it. Called by `holmes.app.serving`."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

from holmes.app.alerts import alert_routes
from holmes.investigations.alerts.intake import AlertIntake, IntakePolicy
from holmes.investigations.deliveries.records import NewDelivery, queue_delivery

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from sqlalchemy import Connection

    from holmes.investigations.alerts.intake import OnNews
    from holmes.investigations.alerts.intake_state import IncidentEvent
    from holmes.investigations.alerts.routes import Route
    from holmes.investigations.records.database import Database
    from holmes.investigations.records.values import Incident
    from holmes.settings.settings import Settings

_UNLIMITED: Final = (
    "neither the cost nor the number of investigations that alerts begin is limited: "
    "set HOLMES_MAX_COST_PER_DAY or HOLMES_MAX_INVESTIGATIONS_PER_HOUR"
)
_log = logging.getLogger(__name__)


def alert_intake(
    settings: Settings, database: Database, models: Collection[str], on_queued: Callable[[], None]
) -> AlertIntake:
    """Where the alerts of the server come in. Raises `ConfigError` for routes that cannot work."""
    alerts, max_cost_per_day = settings.alerts, settings.server.max_cost_per_day
    policy = IntakePolicy(
        reopen_hours=alerts.reopen_hours,
        max_cost_per_day=max_cost_per_day,
        max_per_hour=alerts.max_per_hour,
        asks_llm=settings.asks_llm,
    )
    models_of_alerts = (None, *(route.model for route in alerts.routes))
    if max_cost_per_day is None and alerts.max_per_hour is None and any(map(settings.asks_llm, models_of_alerts)):
        _log.warning(_UNLIMITED)
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
