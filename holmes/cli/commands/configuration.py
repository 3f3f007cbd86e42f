"""Reads the settings for a command and turns their mistakes into `ConfigError`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from holmes.settings.settings import Settings


def read_settings(environment: Mapping[str, str], file: Path | None, overrides: Mapping[str, object]) -> Settings:
    """The settings of this process. `overrides` go by config key. Raises `ConfigError`."""
    # Imported here: pydantic costs 100 ms, and `--help` does not need it.
    from holmes.settings.errors import SettingsError
    from holmes.settings.load import load_settings

    try:
        return load_settings(environment, file, overrides)
    except SettingsError as error:
        raise ConfigError(str(error)) from error
