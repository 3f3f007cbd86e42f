"""The only place that reads the variables of this process. Called by the faces, once at start."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def process_environment() -> Mapping[str, str]:
    """A copy of the variables of this process."""
    return dict(os.environ)


def trust_own_authorities() -> None:
    """Make this process, and all that it starts, trust CERTIFICATE. Raises `SettingsError` when that is not valid."""
    if os.environ.get("CERTIFICATE"):
        # Imported here: nearly nobody needs it.
        from holmes.settings.certificate import certificate_variables

        os.environ.update(certificate_variables(os.environ))
