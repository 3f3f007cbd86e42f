"""Settings of `holmes serve`: the listener, access and limits, investigations, and traces."""

from __future__ import annotations

import ipaddress
from pathlib import Path  # noqa: TC003  pydantic reads it at run time
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field, SecretStr, field_validator

from holmes.settings.setting import CommaSeparated, Setting, SettingsGroup

if TYPE_CHECKING:
    from collections.abc import Mapping

LOOPBACK = "127.0.0.1"
EVERYWHERE = "0.0.0.0"  # noqa: S104  only with a key, see `listen_host`


class ServerSettings(SettingsGroup):
    """The server."""

    section: ClassVar[str] = "server"
    flat_aliases: ClassVar[bool] = False

    host: Annotated[
        str | None, Setting("HOLMES_HOST", option="--host", shown_default="loopback; everywhere with a key")
    ] = None
    """The address to listen on. Without a key only loopback is allowed."""

    port: Annotated[int, Setting("HOLMES_PORT", option="--port"), Field(ge=0, le=65_535)] = 5050
    """The port; 0 takes a free one."""

    api_key: Annotated[SecretStr | None, Setting("HOLMES_API_KEY"), Field(min_length=8)] = None
    """The key for everything but `/healthz`, `/readyz` and the webhooks: `X-API-Key`, `Authorization: Bearer`, or the
    login form of the page.
    """

    webhook_key: Annotated[SecretStr | None, Setting("HOLMES_WEBHOOK_KEY"), Field(min_length=8)] = None
    """The key of alert webhooks, which opens nothing else. Unset: the API key."""

    approval_signing_key: Annotated[
        SecretStr | None,
        Setting("HOLMES_APPROVAL_SIGNING_KEY", shown_default="a key kept in the database"),
        Field(min_length=8),
    ] = None
    """Signs the results and the calls to be approved that clients of chats send back. Set the same one for servers with
    databases of their own that share clients.
    """

    ssl_certfile: Annotated[Path | None, Setting("HOLMES_SSL_CERTFILE")] = None
    """The certificate (PEM, with its chain) for HTTPS; needs `server.ssl_keyfile`. Unset: plain HTTP."""

    ssl_keyfile: Annotated[Path | None, Setting("HOLMES_SSL_KEYFILE")] = None
    """The key of the certificate (PEM)."""

    ssl_keyfile_password: Annotated[SecretStr | None, Setting("HOLMES_SSL_KEYFILE_PASSWORD")] = None
    """The password of an encrypted key."""

    ssl_ca_certs: Annotated[Path | None, Setting("HOLMES_SSL_CA_CERTS")] = None
    """Authorities (PEM) of client certificates. A client may show none, but not one that they did not sign."""

    public_url: Annotated[str | None, Setting("HOLMES_PUBLIC_URL")] = None
    """The address under which people reach the page; links in messages start with it. Unset: messages have no links."""

    trusted_proxies: Annotated[CommaSeparated, Setting("HOLMES_TRUSTED_PROXIES")] = ()
    """Addresses and ranges (`10.0.0.0/8`) of the proxies in front, comma-separated. Clients are told apart by their
    address; behind these by what they add to `X-Forwarded-For`.
    """

    session_hours: Annotated[float, Setting("HOLMES_SESSION_HOURS"), Field(gt=0)] = 12
    """Hours after which a login at the page ends."""

    max_body_megabytes: Annotated[float, Setting("HOLMES_MAX_BODY_MEGABYTES"), Field(gt=0)] = 10
    """The largest request, in MB."""

    chats_per_client: Annotated[int, Setting("HOLMES_CHATS_PER_CLIENT"), Field(ge=1)] = 4
    """Chats that one client may have running at once; more are answered with 429."""

    chats: Annotated[int, Setting("HOLMES_CHATS"), Field(ge=1)] = 16
    """Chats that may run at once in one replica; more are answered with 429."""

    investigations_per_client: Annotated[int, Setting("HOLMES_INVESTIGATIONS_PER_CLIENT"), Field(ge=1)] = 20
    """Unfinished investigations that one client may have begun over the API at one replica; more are answered with 429.
    """

    queue_limit: Annotated[int, Setting("HOLMES_QUEUE_LIMIT"), Field(ge=1)] = 1_000
    """Investigations that may be queued or running before the API answers 429. Alerts are always taken."""

    resume_seconds: Annotated[float, Setting("HOLMES_RESUME_SECONDS"), Field(ge=0)] = 10
    """Seconds that a streamed chat goes on after its client went away, so that it can come back with `Last-Event-ID`.
    Then it is cancelled.
    """

    heartbeat_seconds: Annotated[float, Setting("HOLMES_HEARTBEAT_SECONDS"), Field(gt=0)] = 15
    """Seconds of silence after which a stream sends a comment, so that proxies keep it open."""

    max_cost: Annotated[float | None, Setting("HOLMES_MAX_COST"), Field(ge=0)] = None
    """The most US dollars that one investigation may spend; then `builtin/triage` answers. Clients may ask for less, a
    route of alerts may set more. Unset: no limit.
    """

    max_cost_per_day: Annotated[float | None, Setting("HOLMES_MAX_COST_PER_DAY"), Field(ge=0)] = None
    """The most US dollars that all investigations of one day (UTC) may spend. Chats are refused with 429 then, alerts
    are answered by `builtin/triage`. Unset: no limit.
    """

    @field_validator("trusted_proxies")
    @classmethod
    def _networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for each in value:
            try:
                ipaddress.ip_network(each, strict=False)
            except ValueError:
                message = f"{each!r} is no address and no range of addresses"
                raise ValueError(message) from None
        return value

    def listen_host(self) -> str:
        """Where to listen when nobody said so: everywhere with a key, else on loopback only."""
        return self.host or (EVERYWHERE if self.api_key else LOOPBACK)


def blank_keys(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The variables of keys that are there and empty: whoever set them meant to have a key."""
    names = ("HOLMES_API_KEY", "HOLMES_WEBHOOK_KEY", "HOLMES_APPROVAL_SIGNING_KEY")
    return tuple(name for name in names if name in environment and not environment[name].strip())


class InvestigationsSettings(SettingsGroup):
    """Investigations of the server, which survive it."""

    section: ClassVar[str] = "investigations"
    flat_aliases: ClassVar[bool] = False

    database_url: Annotated[
        SecretStr | None, Setting("HOLMES_DATABASE_URL", shown_default="~/.holmes/investigations.db")
    ] = None
    """The database: `postgresql://user:password@host/name`, which any number of replicas share, or `sqlite:///FILE`
    for a single one.
    """

    concurrency: Annotated[int, Setting("HOLMES_INVESTIGATION_CONCURRENCY"), Field(ge=1)] = 4
    """Investigations that one replica runs at once; the others wait in the queue."""

    retention_days: Annotated[float, Setting("HOLMES_INVESTIGATION_RETENTION_DAYS"), Field(gt=0)] = 30
    """Days after which a finished investigation is deleted, with its events and stored tool outputs."""

    lease_seconds: Annotated[float, Setting("HOLMES_LEASE_SECONDS"), Field(ge=1)] = 15
    """Seconds without a sign of life after which the other replicas take over the investigations of one."""

    drain_seconds: Annotated[float, Setting("HOLMES_DRAIN_SECONDS"), Field(ge=0)] = 20
    """Seconds that running investigations get to finish when the server is told to end; then others go on with them."""

    timeout_seconds: Annotated[float, Setting("HOLMES_INVESTIGATION_TIMEOUT_SECONDS"), Field(gt=0)] = 1_800
    """Seconds after which an investigation is given up."""

    cluster_wait_seconds: Annotated[float, Setting("HOLMES_CLUSTER_WAIT_SECONDS"), Field(ge=0)] = 600
    """Seconds that an investigation waits for a cluster that does not answer before it fails."""


_TRACES_PATH = "v1/traces"


class TelemetrySettings(SettingsGroup):
    """Traces."""

    section: ClassVar[str] = "telemetry"
    flat_aliases: ClassVar[bool] = False

    otlp_endpoint: Annotated[str | None, Setting("OTEL_EXPORTER_OTLP_ENDPOINT")] = None
    """The OpenTelemetry collector that gets traces, for example `http://collector:4318`. Unset: no traces. The other
    `OTEL_*` variables are honoured, too.
    """

    otlp_traces_endpoint: Annotated[str | None, Setting("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")] = None
    """The whole address for traces, when it is not `v1/traces` below `telemetry.otlp_endpoint`."""

    otlp_protocol: Annotated[str, Setting("OTEL_EXPORTER_OTLP_PROTOCOL")] = "http/protobuf"
    """How traces are sent. Only `http/protobuf` is supported; with another value there are no traces."""

    traces_exporter: Annotated[str, Setting("OTEL_TRACES_EXPORTER")] = "otlp"
    """`none` switches traces off."""

    sdk_disabled: Annotated[str, Setting("OTEL_SDK_DISABLED")] = "false"
    """`true` switches OpenTelemetry off."""

    def traces_address(self) -> str | None:
        """Where to send traces; None when nobody asked for them, or somebody switched them off."""
        if self.sdk_disabled.strip().lower() == "true" or self.traces_exporter.strip().lower() == "none":
            return None
        if self.otlp_traces_endpoint:
            return self.otlp_traces_endpoint
        return f"{self.otlp_endpoint.rstrip('/')}/{_TRACES_PATH}" if self.otlp_endpoint else None
