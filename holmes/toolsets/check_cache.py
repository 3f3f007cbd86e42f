"""Remembers which checks of toolsets succeeded, for an hour."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from holmes import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.values.environment import Environment

_SUCCESS_LIFETIME_SECONDS = 3600.0
_FILE_NAME = "toolset_checks.json"
_FORMAT = 1


def check_key(configuration: object, environment: Environment) -> str:
    """Hash everything that a check depends on.

    This includes the configuration, the variables, the folders in `PATH` and the version of Holmes.
    """
    folders = (environment.get("PATH") or "").split(os.pathsep)
    parts = [
        __version__,
        repr(configuration),
        environment.variables,
        [(folder, _modified(folder)) for folder in folders],
    ]
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _modified(folder: str) -> int:
    try:
        return Path(folder).stat().st_mtime_ns
    except (OSError, ValueError):
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SuccessCache:
    """The successful checks by toolset name, each with its key and its time in seconds since the epoch."""

    directory: Path
    entries: Mapping[str, tuple[str, float]] = field(default_factory=dict)

    @classmethod
    def read(cls, directory: Path) -> SuccessCache:
        """Read the remembered successes. The cache is empty if the file is missing, invalid or in another format."""
        try:
            content = json.loads((directory / _FILE_NAME).read_text(encoding="utf-8"))
            if content["format"] != _FORMAT:
                return cls(directory=directory)
            entries = {
                str(name): (str(entry["key"]), float(entry["checked_at_seconds"]))
                for name, entry in content["succeeded"].items()
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return cls(directory=directory)
        return cls(directory=directory, entries=entries)

    def holds(self, name: str, key: str) -> bool:
        """Return whether this check succeeded within the last hour."""
        known = self.entries.get(name)
        if known is None or known[0] != key:
            return False
        return 0 <= time.time() - known[1] < _SUCCESS_LIFETIME_SECONDS

    def write(self, succeeded: Mapping[str, tuple[str, float]]) -> None:
        """Replace the file atomically. Only its owner can read the file."""
        entries = {name: {"key": key, "checked_at_seconds": at} for name, (key, at) in succeeded.items()}
        content = json.dumps({"format": _FORMAT, "succeeded": entries}, indent=1, sort_keys=True)
        # If the disk is full or read-only, the checks run again next time.
        with contextlib.suppress(OSError):
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(dir=self.directory, prefix=_FILE_NAME)
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                    file.write(content)
                Path(temporary).replace(self.directory / _FILE_NAME)
            except OSError:
                Path(temporary).unlink(missing_ok=True)
                raise
