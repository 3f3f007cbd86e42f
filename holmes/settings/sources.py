"""Where `holmes investigate` gets its alerts. Read by `holmes.cli`, handed to `holmes.sources`."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003  pydantic reads it at run time
from typing import Annotated

from pydantic import BeforeValidator, Field, SecretStr

from holmes.settings.setting import Setting, SettingsGroup


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
