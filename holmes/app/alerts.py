"""Builds the alert intake, its routes and the notification destinations from the settings.

Invalid routes, tokens and URLs are rejected before the first notification is sent.
"""

from __future__ import annotations

import logging
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, assert_never

import httpx

from holmes.app.cluster import default_cluster
from holmes.investigations.alerts.clusters import AlertClusters
from holmes.investigations.alerts.routes import LabelPattern, Route, Routes
from holmes.settings.alerts import UPSTREAM_SLACK, SlackSettings, WebhookSettings
from holmes.settings.located import nearest
from holmes.values.errors import ConfigError, ToolError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Mapping

    from pydantic import SecretStr
    from sqlalchemy import Connection

    from holmes.destinations.destination import Destination
    from holmes.investigations.alerts.intake import AlertIntake, OnNews
    from holmes.investigations.alerts.intake_state import IncidentEvent
    from holmes.investigations.records.database import Database
    from holmes.investigations.records.values import Incident
    from holmes.settings.alerts import DestinationSettings, RouteSettings
    from holmes.settings.settings import Settings
    from holmes.yaml_documents import KeyPath


def alert_routes(settings: Settings, models: Collection[str]) -> Routes:
    """Build the routes from the setting `alerts.routes`. `models` contains the names of the available models.

    Raises `ConfigError` for an unknown model or destination, and for duplicate route names.
    """
    routes = tuple(_route(each) for each in settings.alerts.routes)
    names = [route.name for route in routes]
    for route in routes:
        place = f"alerts.routes: {route.name!r}"
        if names.count(route.name) > 1:
            raise ConfigError(f"{place}: duplicate route name")
        if why := settings.left_out_models.get(route.model or ""):
            raise ConfigError(f"{place}: {why}")
        if route.model is not None and route.model not in models:
            raise ConfigError(f"{place}: unknown model {route.model!r}; available models: {', '.join(models)}")
        known = settings.alerts.destinations
        for destination in route.destinations or ():
            if destination not in known:
                there = nearest(destination, tuple(known)) if known else "alerts.destinations is empty"
                raise ConfigError(f"{place}: unknown destination {destination!r}; {there}")
    return Routes(routes)


def alert_clusters(settings: Settings) -> AlertClusters:
    """Build the assignment of alerts to clusters. Raises `ConfigError` for an unknown default cluster.

    A recording, or a cluster that options of kubectl select, gets all alerts.
    """
    if settings.cluster == "":
        return AlertClusters()
    return AlertClusters(
        names=tuple(settings.clusters.clusters),
        label=settings.alerts.cluster_label,
        default=settings.cluster or default_cluster(settings),
        only=settings.cluster,
    )


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


_UNLIMITED: Final = (
    "the cost and the number of investigations that alerts start are not limited: "
    "set HOLMES_MAX_COST_PER_DAY or HOLMES_MAX_INVESTIGATIONS_PER_HOUR"
)
_log = logging.getLogger(__name__)


def alert_intake(
    settings: Settings, database: Database, models: Collection[str], on_queued: Callable[[], None]
) -> AlertIntake:
    """Build the alert intake of the server. Raises `ConfigError` for invalid routes."""
    from holmes.investigations.alerts.intake import AlertIntake, IntakePolicy

    alerts, max_cost_per_day = settings.alerts, settings.server.max_cost_per_day
    policy = IntakePolicy(
        reopen_hours=alerts.reopen_hours,
        max_cost_per_day=max_cost_per_day,
        max_per_hour=alerts.max_per_hour,
        asks_llm=settings.asks_llm,
        clusters=alert_clusters(settings),
    )
    models_of_alerts = (None, *(route.model for route in alerts.routes))
    if max_cost_per_day is None and alerts.max_per_hour is None and any(map(settings.asks_llm, models_of_alerts)):
        _log.warning(_UNLIMITED)
    news = _tell(tuple(settings.alerts.destinations))
    return AlertIntake(database, alert_routes(settings, models), policy, on_queued, news)


def destinations_of(route: Route, configured: Collection[str]) -> tuple[str, ...]:
    """Return the names of the destinations that `route` notifies. By default, these are all configured destinations."""
    chosen = configured if route.destinations is None else route.destinations
    return tuple(name for name in chosen if name in configured)


def _tell(configured: Collection[str]) -> OnNews:
    from holmes.investigations.deliveries.records import NewDelivery, queue_delivery

    def tell(connection: Connection, incident: Incident, event: IncidentEvent, route: Route) -> None:
        new = NewDelivery(event=event, incident_id=incident.id, ordinal=incident.reopened)
        queue_delivery(connection, new, destinations_of(route, configured), time.time())

    return tell


_TIMEOUT: Final = httpx.Timeout(15.0, connect=5.0)


@asynccontextmanager
async def open_destinations(settings: Settings) -> AsyncIterator[Mapping[str, Destination]]:
    """Open all destinations and yield them by name. Leaving the context closes the connections.

    Raises `ConfigError`.
    """
    _refuse_half(settings)
    # httpx logs every URL, and a webhook URL often contains a secret.
    logging.getLogger("httpx").setLevel(max(logging.WARNING, logging.getLogger("httpx").level))
    async with httpx.AsyncClient(timeout=_TIMEOUT) as client:
        yield {name: _destination(settings, client, name, own) for name, own in settings.alerts.destinations.items()}


def _refuse_half(settings: Settings) -> None:
    """Reject `slack_token` without `slack_channel` and vice versa, and a second destination with the same name."""
    alerts = settings.alerts
    for given, missing, value, other in (
        ("slack_token", "slack_channel", alerts.slack_token, alerts.slack_channel),
        ("slack_channel", "slack_token", alerts.slack_channel, alerts.slack_token),
    ):
        if value is not None and other is None:
            raise ConfigError(f"{_place(settings, given)}{given!r} requires {missing!r}")
    made = alerts.destinations.get(UPSTREAM_SLACK)
    if alerts.slack_token and not (isinstance(made, SlackSettings) and made.token == alerts.slack_token):
        raise ConfigError(
            f"{_place(settings, 'slack_token')}'slack_token' defines the destination {UPSTREAM_SLACK!r}, and "
            "'alerts.destinations' defines another destination with this name: remove one of them"
        )


def _destination(settings: Settings, client: httpx.AsyncClient, name: str, own: DestinationSettings) -> Destination:
    from holmes.destinations.slack import SlackDestination
    from holmes.destinations.slack_api import SlackApi
    from holmes.destinations.webhook import WebhookDestination

    where = f"{_place(settings, 'alerts', 'destinations', name)}destination {name!r}"
    match own:
        case SlackSettings():
            token = _sendable(own.token, f"{where}: `token`")
            url = str(_address(own.api_url, f"{where}: `api_url`"))
            return SlackDestination(SlackApi(name=name, url=url, token=token), channel=own.channel)
        case WebhookSettings():
            secret = own.secret.get_secret_value() if own.secret else None
            return WebhookDestination(client, name=name, url=str(_address(own.url, f"{where}: `url`")), secret=secret)
        case _:
            assert_never(own)


def _sendable(secret: SecretStr, where: str) -> str:
    """Return the secret as a header value, without the trailing newline that many secret files contain."""
    text = secret.get_secret_value().strip()
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise ConfigError(f"{where} is empty or contains characters that are not valid in a token; copy it again")
    return text


def _address(text: str, where: str) -> httpx.URL:
    try:
        url = httpx.URL(text.strip())
    except (httpx.InvalidURL, ValueError):
        url = httpx.URL("")
    if url.scheme not in {"http", "https"} or not url.host:
        # The message does not contain the URL, because the URL may contain a secret.
        raise ConfigError(f"{where} is not a valid URL; expected for example https://host/path")
    return url


def _place(settings: Settings, *path: str | int) -> str:
    """Return the location of a key as a prefix `file:line: `, or an empty string if the key is not in a file."""
    keys: KeyPath = path
    while keys and keys not in settings.config_lines:
        keys = keys[:-1]
    return f"{settings.config_file}:{settings.config_lines[keys]}: " if keys else ""
