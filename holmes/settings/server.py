"""Settings for `holmes serve`: the listener, access and limits, investigations, and traces."""

from __future__ import annotations

import ipaddress
from pathlib import Path  # noqa: TC003  pydantic reads it at run time
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field, SecretStr, field_validator

from holmes.settings.setting import CommaSeparated, Setting, SettingsGroup

if TYPE_CHECKING:
    from collections.abc import Mapping

LOOPBACK = "127.0.0.1"
EVERYWHERE = "0.0.0.0"  # noqa: S104  used only with a key (see `listen_host`)


class ServerSettings(SettingsGroup):
    section: ClassVar[str] = "server"
    flat_aliases: ClassVar[bool] = False

    host: Annotated[
        str | None, Setting("HOLMES_HOST", option="--host", shown_default="loopback, or all interfaces if a key is set")
    ] = None
    """Address to listen on. Without a key, only loopback is allowed."""

    port: Annotated[int, Setting("HOLMES_PORT", option="--port"), Field(ge=0, le=65_535)] = 5050
    """Port to listen on. 0 selects a free port."""

    api_key: Annotated[SecretStr | None, Setting("HOLMES_API_KEY"), Field(min_length=8)] = None
    """Key for all routes except `/healthz`, `/readyz` and the webhooks. Clients send it as `X-API-Key` or
    `Authorization: Bearer`. Users enter it in the login form of the web page.
    """

    webhook_key: Annotated[SecretStr | None, Setting("HOLMES_WEBHOOK_KEY"), Field(min_length=8)] = None
    """Key for alert webhooks only. Default: the API key."""

    approval_signing_key: Annotated[
        SecretStr | None,
        Setting("HOLMES_APPROVAL_SIGNING_KEY", shown_default="a key stored in the database"),
        Field(min_length=8),
    ] = None
    """Key that signs the tool results and pending tool calls that chat clients send back. Set the same key on servers
    that share clients but not a database.
    """

    ssl_certfile: Annotated[Path | None, Setting("HOLMES_SSL_CERTFILE")] = None
    """Certificate for HTTPS in PEM format, with its chain. Requires `server.ssl_keyfile`. Default: plain HTTP."""

    ssl_keyfile: Annotated[Path | None, Setting("HOLMES_SSL_KEYFILE")] = None
    """Private key of the certificate, in PEM format."""

    ssl_keyfile_password: Annotated[SecretStr | None, Setting("HOLMES_SSL_KEYFILE_PASSWORD")] = None
    """Password of an encrypted private key."""

    ssl_ca_certs: Annotated[Path | None, Setting("HOLMES_SSL_CA_CERTS")] = None
    """CA certificates that verify client certificates, in PEM format. Clients may connect without a certificate, but
    not with a certificate from another CA.
    """

    public_url: Annotated[str | None, Setting("HOLMES_PUBLIC_URL")] = None
    """Public URL of the web page, for links in notifications. Default: notifications contain no links."""

    trusted_proxies: Annotated[CommaSeparated, Setting("HOLMES_TRUSTED_PROXIES")] = ()
    """Comma-separated addresses and ranges of trusted proxies, for example `10.0.0.0/8`. Behind these proxies,
    `X-Forwarded-For` identifies a client. Otherwise, the client's address identifies it.
    """

    session_hours: Annotated[float, Setting("HOLMES_SESSION_HOURS"), Field(gt=0)] = 12
    """Lifetime of a login session on the web page, in hours."""

    max_body_megabytes: Annotated[float, Setting("HOLMES_MAX_BODY_MEGABYTES"), Field(gt=0)] = 10
    """Maximum size of a request, in MB."""

    chats_per_client: Annotated[int, Setting("HOLMES_CHATS_PER_CLIENT"), Field(ge=1)] = 4
    """Maximum number of concurrent chats per client. Further chats receive HTTP 429."""

    chats: Annotated[int, Setting("HOLMES_CHATS"), Field(ge=1)] = 16
    """Maximum number of concurrent chats per replica. Further chats receive HTTP 429."""

    investigations_per_client: Annotated[int, Setting("HOLMES_INVESTIGATIONS_PER_CLIENT"), Field(ge=1)] = 20
    """Maximum number of unfinished investigations that one client started through the API of one replica. Further
    requests receive HTTP 429.
    """

    queue_limit: Annotated[int, Setting("HOLMES_QUEUE_LIMIT"), Field(ge=1)] = 1_000
    """Maximum number of queued and running investigations. Further API requests receive HTTP 429. Alerts are always
    accepted.
    """

    resume_seconds: Annotated[float, Setting("HOLMES_RESUME_SECONDS"), Field(ge=0)] = 10
    """Time that a streamed chat continues after its client disconnects, in seconds. During this time, the client can
    resume with `Last-Event-ID`. If it does not, the chat is cancelled.
    """

    heartbeat_seconds: Annotated[float, Setting("HOLMES_HEARTBEAT_SECONDS"), Field(gt=0)] = 15
    """Time without an event after which a stream sends a comment, in seconds. The comments prevent proxies from closing
    the connection.
    """

    max_cost: Annotated[float | None, Setting("HOLMES_MAX_COST"), Field(ge=0)] = None
    """Maximum cost of one investigation, in US dollars. Above this cost, `builtin/triage` answers. Clients may request
    a lower limit, and an alert route may set a higher limit. Default: no limit.
    """

    max_cost_per_day: Annotated[float | None, Setting("HOLMES_MAX_COST_PER_DAY"), Field(ge=0)] = None
    """Maximum cost of all chats and investigations per day (UTC), in US dollars. Above this cost, chats receive HTTP
    429, and investigations use `builtin/triage`. Default: no limit.
    """

    @field_validator("trusted_proxies")
    @classmethod
    def _networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for each in value:
            try:
                ipaddress.ip_network(each, strict=False)
            except ValueError:
                message = f"{each!r} is not a valid IP address or range"
                raise ValueError(message) from None
        return value

    def listen_host(self) -> str:
        """Return the configured address. The default is all interfaces if a key is set, and loopback otherwise."""
        return self.host or (EVERYWHERE if self.api_key else LOOPBACK)


def blank_keys(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the key variables that are set but empty, probably by mistake."""
    names = ("HOLMES_API_KEY", "HOLMES_WEBHOOK_KEY", "HOLMES_APPROVAL_SIGNING_KEY")
    return tuple(name for name in names if name in environment and not environment[name].strip())


class InvestigationsSettings(SettingsGroup):
    """Settings for server investigations, which survive a restart."""

    section: ClassVar[str] = "investigations"
    flat_aliases: ClassVar[bool] = False

    database_url: Annotated[
        SecretStr | None, Setting("HOLMES_DATABASE_URL", shown_default="~/.holmes/investigations.db")
    ] = None
    """Database URL: `postgresql://user:password@host/name` for any number of replicas, or `sqlite:///FILE` for one
    replica.
    """

    concurrency: Annotated[int, Setting("HOLMES_INVESTIGATION_CONCURRENCY"), Field(ge=1)] = 4
    """Maximum number of concurrent investigations per replica. Other investigations wait in the queue."""

    retention_days: Annotated[float, Setting("HOLMES_INVESTIGATION_RETENTION_DAYS"), Field(gt=0)] = 30
    """Number of days after which a finished investigation is deleted, with its events and stored results."""

    lease_seconds: Annotated[float, Setting("HOLMES_LEASE_SECONDS"), Field(ge=1)] = 15
    """Time without a heartbeat after which other replicas take over a replica's investigations, in seconds."""

    drain_seconds: Annotated[float, Setting("HOLMES_DRAIN_SECONDS"), Field(ge=0)] = 20
    """Time for running investigations to finish when the server stops, in seconds. After this time, other replicas
    resume them.
    """

    timeout_seconds: Annotated[float, Setting("HOLMES_INVESTIGATION_TIMEOUT_SECONDS"), Field(gt=0)] = 1_800
    """Time limit for an investigation, in seconds."""

    cluster_wait_seconds: Annotated[float, Setting("HOLMES_CLUSTER_WAIT_SECONDS"), Field(ge=0)] = 600
    """Time that an investigation waits for an unreachable cluster before it fails, in seconds."""


_TRACES_PATH = "v1/traces"


class TelemetrySettings(SettingsGroup):
    section: ClassVar[str] = "telemetry"
    flat_aliases: ClassVar[bool] = False

    otlp_endpoint: Annotated[str | None, Setting("OTEL_EXPORTER_OTLP_ENDPOINT")] = None
    """URL of the OpenTelemetry collector for traces, for example `http://collector:4318`. Default: no traces. Holmes
    also supports the other `OTEL_*` variables.
    """

    otlp_traces_endpoint: Annotated[str | None, Setting("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")] = None
    """Complete URL for traces. Default: the path `v1/traces` under `telemetry.otlp_endpoint`."""

    otlp_protocol: Annotated[str, Setting("OTEL_EXPORTER_OTLP_PROTOCOL")] = "http/protobuf"
    """Protocol for traces. Only `http/protobuf` is supported. Other values disable traces."""

    traces_exporter: Annotated[str, Setting("OTEL_TRACES_EXPORTER")] = "otlp"
    """`none` disables traces."""

    sdk_disabled: Annotated[str, Setting("OTEL_SDK_DISABLED")] = "false"
    """`true` disables OpenTelemetry."""

    def traces_address(self) -> str | None:
        """Return the URL for traces, or None if traces are disabled or not configured."""
        if self.sdk_disabled.strip().lower() == "true" or self.traces_exporter.strip().lower() == "none":
            return None
        if self.otlp_traces_endpoint:
            return self.otlp_traces_endpoint
        return f"{self.otlp_endpoint.rstrip('/')}/{_TRACES_PATH}" if self.otlp_endpoint else None
