"""Settings for alerts: sources, routes and destinations."""

from __future__ import annotations

import re
from pathlib import Path  # noqa: TC003  pydantic reads it at run time
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, field_validator

from holmes.settings.setting import Setting, SettingsGroup

UPSTREAM_SLACK = "slack"
"""The name of the destination that the HolmesGPT keys `slack_token` and `slack_channel` define."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class RouteSettings(_Part):
    """Defines how alerts with matching labels are handled. The first matching route applies."""

    name: str = Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_.\-]+$")
    match: dict[str, str] = Field(default_factory=dict)
    """Labels, each with a regular expression that must match the complete value. A missing label has an empty value."""
    investigate: bool | None = None
    """Investigate the alerts. If false, only show them. Default: investigate all alerts except those that only show
    that alerting works, such as `Watchdog`, `InfoInhibitor` and alerts with severity `none`.
    """
    model: str | None = Field(default=None, min_length=1)
    """Model for these alerts, in the same format as the setting `model`. Default: the general model."""
    max_cost: float | None = Field(default=None, ge=0)
    """Maximum cost of one investigation, in US dollars. Default: the general limit."""
    max_per_hour: int | None = Field(default=None, ge=1)
    """Maximum number of LLM investigations per hour, within the general limit. Above this number, `builtin/triage`
    answers.
    """
    destinations: tuple[str, ...] | None = None
    """Names of destinations. Default: all destinations."""

    @field_validator("match")
    @classmethod
    def _expressions(cls, value: dict[str, str]) -> dict[str, str]:
        for label, expression in value.items():
            try:
                re.compile(expression)
            except re.error as error:
                message = f"{label}: {expression!r} is not a valid regular expression: {error}"
                raise ValueError(message) from None
            except (RecursionError, OverflowError):
                message = f"{label}: {expression[:100]!r} is nested too deeply or has too many repetitions"
                raise ValueError(message) from None
        return value


class SlackSettings(_Part):
    """A destination that is a Slack channel."""

    type: Literal["slack"]
    token: SecretStr
    """Bot token with the scope `chat:write`. The scope `channels:history` (`groups:history` for private channels)
    prevents duplicate messages after a lost connection. The scope `files:write` adds the pictures of an answer.
    """
    channel: str = Field(min_length=1)
    """ID or name of the channel."""
    api_url: str = "https://slack.com/api/"
    """Base URL of the Web API."""


class WebhookSettings(_Part):
    """A destination that is an HTTP endpoint and receives JSON."""

    type: Literal["webhook"]
    url: str = Field(pattern=r"^https?://")
    """URL of the endpoint."""
    secret: SecretStr | None = None
    """Key for the signature of each request: `X-Holmes-Signature: sha256=<HMAC of timestamp.body>`."""


DestinationSettings = Annotated[SlackSettings | WebhookSettings, Field(discriminator="type")]
DestinationName = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9_.\-]+$")]


def _unlimited(value: object) -> object:
    """Convert `unlimited` to None, because a variable cannot contain null."""
    return None if isinstance(value, str) and value.strip().lower() == "unlimited" else value


class AlertSettings(SettingsGroup):
    section: ClassVar[str] = "alerts"
    flat_aliases: ClassVar[bool] = False

    routes: Annotated[tuple[RouteSettings, ...], Setting(key="routes")] = ()
    """Routes for alerts: a list of objects with `name`, `match` (regular expressions by label), `investigate`, `model`,
    `max_cost`, `max_per_hour` and `destinations`. The first matching route applies. An alert without a matching route
    is investigated with the general settings.
    """

    destinations: Annotated[dict[DestinationName, DestinationSettings], Setting(key="destinations")] = Field(
        default_factory=dict
    )
    """Destinations for incident notifications, by name: `type: slack` with `token` and `channel`, or `type: webhook`
    with `url` and `secret`.
    """

    cluster_label: Annotated[str, Setting("HOLMES_ALERT_CLUSTER_LABEL"), Field(min_length=1)] = "cluster"
    """Label of an alert that names its cluster, if `clusters` is set. An alert that names an unknown cluster is not
    investigated.
    """

    max_per_hour: Annotated[
        Annotated[int, Field(ge=0)] | None,
        BeforeValidator(_unlimited),
        Setting("HOLMES_MAX_INVESTIGATIONS_PER_HOUR"),
    ] = 30
    """Maximum number of LLM investigations that alerts may start per hour, across all routes and replicas. Above this
    number, the built-in rules answer, and the answer states the reason. `unlimited` removes the limit. Investigations
    that users or clients request are not counted.
    """

    slack_token: Annotated[SecretStr | None, Setting(key="slack_token", aliases=("slack_token",))] = None
    """Slack token, for configurations of HolmesGPT. Requires `slack_channel`. Both keys define the destination `slack`,
    which `destinations` must not define differently.
    """

    slack_channel: Annotated[str | None, Setting(key="slack_channel", aliases=("slack_channel",))] = None
    """Name or ID of the Slack channel, for configurations of HolmesGPT. Requires `slack_token`."""

    reopen_hours: Annotated[float, Setting("HOLMES_REOPEN_HOURS"), Field(ge=0)] = 24
    """Number of hours within which a closed incident is reopened if its alerts fire again."""

    stale_hours: Annotated[float, Setting("HOLMES_ALERT_STALE_HOURS"), Field(gt=0)] = 24
    """Number of hours after which an open incident is closed if no notification about its alerts arrives. The time must
    be longer than Alertmanager's `repeat_interval`.
    """

    def with_upstream_slack(self) -> Self:
        """Return these settings with the destination that the HolmesGPT keys define.

        If one of these keys is missing, the settings are unchanged.
        """
        if self.slack_token is None or self.slack_channel is None or UPSTREAM_SLACK in self.destinations:
            return self
        made = SlackSettings(type="slack", token=self.slack_token, channel=self.slack_channel)
        return self.model_copy(update={"destinations": {UPSTREAM_SLACK: made, **self.destinations}})


def _one_or_more(value: object) -> object:
    """Accept a single matcher that is not in a list. A comma does not separate matchers."""
    return (value,) if isinstance(value, str) else value


class SourceSettings(SettingsGroup):
    alertmanager_url: Annotated[
        str | None, Setting(key="alertmanager_url", option="--alertmanager-url"), Field(pattern=r"^https?://")
    ] = None
    """URL of the Alertmanager that `holmes investigate alertmanager` reads."""

    alertmanager_username: Annotated[
        str | None, Setting(key="alertmanager_username", option="--alertmanager-username")
    ] = None
    """User name for basic authentication."""

    alertmanager_password: Annotated[
        SecretStr | None, Setting(key="alertmanager_password", option="--alertmanager-password")
    ] = None
    """Password for basic authentication."""

    alertmanager_alertname: Annotated[
        str | None, Setting(key="alertmanager_alertname", option="--alertmanager-alertname")
    ] = None
    """Select only alerts with this name."""

    alertmanager_label: Annotated[
        tuple[str, ...],
        Setting(key="alertmanager_label", option="--alertmanager-label"),
        BeforeValidator(_one_or_more),
    ] = ()
    """Select only alerts whose labels match all these matchers, for example `severity=critical` or
    `namespace=~"shop|legacy"`.
    """

    alertmanager_file: Annotated[Path | None, Setting(key="alertmanager_file", option="--alertmanager-file")] = None
    """Read alerts from this file: a webhook payload, or a response from `/api/v2/alerts`."""
