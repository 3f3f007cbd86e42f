"""From the settings to what hears of incidents.

Refuses tokens and addresses that cannot be sent, before anything is. That routes name destinations which are there is
checked where routes are made (`holmes.app.alerts`).
"""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, assert_never

import httpx

from holmes.destinations.slack import SlackDestination
from holmes.destinations.slack_api import SlackApi
from holmes.destinations.webhook import WebhookDestination
from holmes.settings.alerts import UPSTREAM_SLACK, SlackSettings, WebhookSettings
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from pydantic import SecretStr

    from holmes.destinations.destination import Destination
    from holmes.settings.alerts import DestinationSettings
    from holmes.settings.settings import Settings
    from holmes.yaml_documents import KeyPath

_TIMEOUT: Final = httpx.Timeout(15.0, connect=5.0)


@asynccontextmanager
async def open_destinations(settings: Settings) -> AsyncIterator[Mapping[str, Destination]]:
    """The destinations by name; leaving the context closes their connections. Raises `ConfigError`."""
    _refuse_half(settings)
    # httpx logs every address, and that of a webhook often holds its secret.
    logging.getLogger("httpx").setLevel(max(logging.WARNING, logging.getLogger("httpx").level))
    async with httpx.AsyncClient(timeout=_TIMEOUT) as client:
        yield {name: _destination(settings, client, name, own) for name, own in settings.alerts.destinations.items()}


def _refuse_half(settings: Settings) -> None:
    """HolmesGPT's keys make a destination only together, and none that is there already."""
    alerts = settings.alerts
    for given, missing, value, other in (
        ("slack_token", "slack_channel", alerts.slack_token, alerts.slack_channel),
        ("slack_channel", "slack_token", alerts.slack_channel, alerts.slack_token),
    ):
        if value is not None and other is None:
            raise ConfigError(f"{_place(settings, given)}{given!r} needs {missing!r} as well")
    made = alerts.destinations.get(UPSTREAM_SLACK)
    if alerts.slack_token and not (isinstance(made, SlackSettings) and made.token == alerts.slack_token):
        raise ConfigError(
            f"{_place(settings, 'slack_token')}'slack_token' makes a destination {UPSTREAM_SLACK!r}, and "
            "'alerts.destinations' has another one of this name: remove one of them"
        )


def _destination(settings: Settings, client: httpx.AsyncClient, name: str, own: DestinationSettings) -> Destination:
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
    """The text of a secret for a header; files of secrets often end with a newline."""
    text = secret.get_secret_value().strip()
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise ConfigError(f"{where} is empty or has characters that no token has; copy it again")
    return text


def _address(text: str, where: str) -> httpx.URL:
    try:
        url = httpx.URL(text.strip())
    except (httpx.InvalidURL, ValueError):
        url = httpx.URL("")
    if url.scheme not in {"http", "https"} or not url.host:
        raise ConfigError(f"{where} is no address: https://host/path")  # without it: it may hold a secret
    return url


def _place(settings: Settings, *path: str | int) -> str:
    """`file:line: ` of a key, or nothing when it is not in a file."""
    keys: KeyPath = path
    while keys and keys not in settings.config_lines:
        keys = keys[:-1]
    return f"{settings.config_file}:{settings.config_lines[keys]}: " if keys else ""
