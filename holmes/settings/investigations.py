"""Where investigations of the server are kept, and how many run."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, SecretStr

from holmes.settings.setting import Setting, SettingsGroup


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
