"""The one error of this package. A leaf imports nothing above it, so the faces turn it into their `ConfigError`."""

from __future__ import annotations


class SettingsError(Exception):
    """A variable, key, option or file is wrong; the message names the place, the reason and what is valid."""
