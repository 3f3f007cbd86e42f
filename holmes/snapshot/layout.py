"""Where everything lies in the folder of a recording. Shared by `recorder` and `recording`, so that they agree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from holmes.snapshot.logs import LogKey

FORMAT: Final = 1
MANIFEST: Final = "recording.json"
DISCOVERY: Final = "discovery.json"
OBJECTS: Final = "objects"
LOGS: Final = "logs"
OPENAPI: Final = "openapi"


def inside(folder: Path, path: Path) -> bool:
    """Whether `path` lies in `folder` and leads nowhere else: a bundle from somebody must not name our files."""
    return path.resolve().is_relative_to(folder.resolve())


def objects_file(group: str, plural: str) -> Path:
    """The file of one resource, below the folder of the recording."""
    return Path(OBJECTS, f"{plural}.{group or 'core'}.json")


def log_file(key: LogKey) -> Path:
    """The file of one log, below the folder of the recording."""
    suffix = ".previous.log" if key.previous else ".log"
    return Path(LOGS, key.namespace, key.pod, f"{key.container}{suffix}")


def openapi_file(path: str) -> Path:
    """The file of the OpenAPI document of one group version: of `apis/apps/v1`."""
    return Path(OPENAPI, f"{path.strip('/').replace('/', '__')}.json")
