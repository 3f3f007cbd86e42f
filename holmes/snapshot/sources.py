"""Finds out what a path holds and loads it: a recording, a `kubectl cluster-info dump`, or manifests.

Reads what `kubectl cluster-info dump --output-directory` wrote: objects as JSON or YAML, and logs. The logs have no
times, so they cannot be cut by time. Secrets and most kinds are not in a dump.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.snapshot.assembly import Assembly, assemble
from holmes.snapshot.logs import LogKey, RecordedLog
from holmes.snapshot.manifests import changed_at, load_manifests, manifest_files, objects_in
from holmes.snapshot.recording import inside, is_recording, load_recording
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holmes.snapshot.recording import Recording

_MARK: Final = re.compile(rb"^==== (START|END) logs for container (\S+) of pod ([^/\s]+)/(\S+) ====\n", re.MULTILINE)


def is_cluster_dump(folder: Path) -> bool:
    """Whether `folder` looks like such a dump: nodes at the top, pods in the folders of namespaces."""
    return any((folder / f"nodes.{ending}").is_file() for ending in ("json", "yaml")) and any(
        (below / f"pods.{ending}").is_file() for below in folder.iterdir() for ending in ("json", "yaml")
    )


def load_cluster_dump(folder: Path) -> Recording:
    """The dump as a recording. Raises `ConfigError` for broken files."""
    files = manifest_files(folder)
    objects = [item for file in files for item in objects_in(file)]
    logs = {key: log for file in _log_files(folder) for key, log in _logs_in(file)}
    namespaces = {file.parent.name for file in files if file.stem == "pods" and file.parent != folder}
    return assemble(
        Assembly(
            source=folder,
            context="cluster-info dump",
            objects=objects,
            changed_at=changed_at(files),
            namespaces=tuple(sorted(namespaces)),
            logs=logs,
        )
    )


def _log_files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.glob("*/*/logs.txt") if file.is_file() and inside(folder, file))


def _logs_in(file: Path) -> Iterator[tuple[LogKey, RecordedLog]]:
    """The logs of the containers of a pod, which stand one after the other in a file."""
    content = file.read_bytes()
    start: tuple[bytes, int] | None = None
    for mark in _MARK.finditer(content):
        word, container, namespace, pod = mark.groups()
        if word == b"START":
            start = container, mark.end()
        elif start is not None and start[0] == container:
            key = LogKey(namespace=namespace.decode(), pod=pod.decode(), container=container.decode())
            size = mark.start() - start[1]
            yield key, RecordedLog(path=file, offset_bytes=start[1], size_bytes=size, timestamps=False)
            start = None


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
