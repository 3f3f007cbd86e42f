"""Settings of alerts: sources, routes and destinations."""

from __future__ import annotations

import re
from pathlib import Path  # noqa: TC003  pydantic reads it at run time
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, field_validator

from holmes.settings.setting import Setting, SettingsGroup

UPSTREAM_SLACK = "slack"
"""What the destination is called that HolmesGPT's keys `slack_token` and `slack_channel` make."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True)


class RouteSettings(_Part):
    """What happens with the alerts whose labels match. The first route that matches decides."""

    name: str = Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_.\-]+$")
    match: dict[str, str] = Field(default_factory=dict)
    """Labels and the regular expression that their whole value must match; a label that is missing is empty."""
    investigate: bool = True
    """Whether the alerts are investigated; if not, they are only shown."""
    model: str | None = Field(default=None, min_length=1)
    """The model, as for `model`. Unset: the general one."""
    max_cost: float | None = Field(default=None, ge=0)
    """The most US dollars for one investigation. Unset: the general limit."""
    max_per_hour: int | None = Field(default=None, ge=1)
    """Investigations with a model per hour, within the limit of all routes; beyond it `builtin/triage` answers."""
    destinations: tuple[str, ...] | None = None
    """Names of `destinations`. Unset: all of them."""

    @field_validator("match")
    @classmethod
    def _expressions(cls, value: dict[str, str]) -> dict[str, str]:
        for label, expression in value.items():
            try:
                re.compile(expression)
            except re.error as error:
                message = f"{label}: {expression!r} is no regular expression: {error}"
                raise ValueError(message) from None
            except (RecursionError, OverflowError):
                message = f"{label}: {expression[:100]!r} is nested too deeply, or repeats too much"
                raise ValueError(message) from None
        return value


class SlackSettings(_Part):
    """A channel in Slack."""

    type: Literal["slack"]
    token: SecretStr
    """The bot's token; it needs `chat:write`. With `channels:history` (private channels: `groups:history`) a message is
    not sent twice after a connection that broke.
    """
    channel: str = Field(min_length=1)
    """Id of the channel, or its name."""
    api_url: str = "https://slack.com/api/"
    """Where the Web API is."""


class WebhookSettings(_Part):
    """An address that gets JSON."""

    type: Literal["webhook"]
    url: str = Field(pattern=r"^https?://")
    """Where to send it."""
    secret: SecretStr | None = None
    """Signs each request: `X-Holmes-Signature: sha256=<HMAC of timestamp.body>`."""


DestinationSettings = Annotated[SlackSettings | WebhookSettings, Field(discriminator="type")]
DestinationName = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9_.\-]+$")]


def _unlimited(value: object) -> object:
    """The word that lifts a limit, where null cannot be written."""
    return None if isinstance(value, str) and value.strip().lower() == "unlimited" else value


class AlertSettings(SettingsGroup):
    """Alerts."""

    section: ClassVar[str] = "alerts"
    flat_aliases: ClassVar[bool] = False

    routes: Annotated[tuple[RouteSettings, ...], Setting(key="routes")] = ()
    """Rules for alerts, first match decides: `name`, `match` (label: regular expression), `investigate`, `model`,
    `max_cost`, `max_per_hour`, `destinations`. Without a match an alert is investigated with the general settings.
    """

    destinations: Annotated[dict[DestinationName, DestinationSettings], Setting(key="destinations")] = Field(
        default_factory=dict
    )
    """Who hears of incidents, by name: `type: slack` with `token` and `channel`, or `type: webhook` with `url` and
    `secret`.
    """

    max_per_hour: Annotated[
        Annotated[int, Field(ge=0)] | None,
        BeforeValidator(_unlimited),
        Setting("HOLMES_MAX_INVESTIGATIONS_PER_HOUR"),
    ] = 30
    """Investigations with a model that alerts may begin within an hour, over all routes and replicas. Beyond it the
    built-in rules answer and say so. `unlimited` lifts the limit. What people and programs ask for does not count.
    """

    slack_token: Annotated[SecretStr | None, Setting(key="slack_token", aliases=("slack_token",))] = None
    """HolmesGPT's key: with `slack_channel` it makes a destination called `slack`, unless there is one."""

    slack_channel: Annotated[str | None, Setting(key="slack_channel", aliases=("slack_channel",))] = None
    """HolmesGPT's key: name or id of the channel of the destination called `slack`."""

    reopen_hours: Annotated[float, Setting("HOLMES_REOPEN_HOURS"), Field(ge=0)] = 24
    """Hours in which a resolved alert that fires again reopens its incident instead of starting another one."""

    stale_hours: Annotated[float, Setting("HOLMES_ALERT_STALE_HOURS"), Field(gt=0)] = 24
    """Hours after which an open incident is closed when no message about its alerts comes any more; more than
    Alertmanager's `repeat_interval`.
    """

    def with_upstream_slack(self) -> Self:
        """These settings with the destination that HolmesGPT's keys make; the same when one of the two is missing."""
        if self.slack_token is None or self.slack_channel is None or UPSTREAM_SLACK in self.destinations:
            return self
        made = SlackSettings(type="slack", token=self.slack_token, channel=self.slack_channel)
        return self.model_copy(update={"destinations": {UPSTREAM_SLACK: made, **self.destinations}})


def _one_or_more(value: object) -> object:
    """One matcher may stand for a list of them; a comma is part of it."""
    return (value,) if isinstance(value, str) else value


class SourceSettings(SettingsGroup):
    """Sources of alerts."""

    alertmanager_url: Annotated[
        str | None, Setting(key="alertmanager_url", option="--alertmanager-url"), Field(pattern=r"^https?://")
    ] = None
    """The Alertmanager whose firing alerts `holmes investigate alertmanager` investigates."""

    alertmanager_username: Annotated[
        str | None, Setting(key="alertmanager_username", option="--alertmanager-username")
    ] = None
    """The user for basic authentication."""

    alertmanager_password: Annotated[
        SecretStr | None, Setting(key="alertmanager_password", option="--alertmanager-password")
    ] = None
    """The password for basic authentication."""

    alertmanager_alertname: Annotated[
        str | None, Setting(key="alertmanager_alertname", option="--alertmanager-alertname")
    ] = None
    """Only alerts of this name."""

    alertmanager_label: Annotated[
        tuple[str, ...],
        Setting(key="alertmanager_label", option="--alertmanager-label"),
        BeforeValidator(_one_or_more),
    ] = ()
    """Only alerts whose labels match, for example `severity=critical` or `namespace=~"shop|legacy"`; a list."""

    alertmanager_file: Annotated[Path | None, Setting(key="alertmanager_file", option="--alertmanager-file")] = None
    """A file with alerts instead: the payload of a webhook, or what `/api/v2/alerts` gives."""
