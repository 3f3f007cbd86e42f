"""Finds out what a path holds and loads it: a recording, a `kubectl cluster-info dump`, or manifests.

Called by the server and by everything that takes `--snapshot`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.snapshot.cluster_dump import is_cluster_dump, load_cluster_dump
from holmes.snapshot.manifests import load_manifests
from holmes.snapshot.recording import is_recording, load_recording
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.snapshot.recording import Recording


def load_snapshot(path: Path) -> Recording:
    """Load what is at `path`, a folder or a file. Blocks on files.

    Raises `ConfigError` with one line that names the file and, where there is one, the place in it.
    """
    try:
        if not path.exists():
            raise ConfigError(f"{str(path)!r} does not exist: name a recording, a cluster dump or manifests")
        if is_recording(path):
            return load_recording(path)
        if path.is_dir() and is_cluster_dump(path):
            return load_cluster_dump(path)
        return load_manifests(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(f"{error.filename or path}: it cannot be read: {reason}") from error
