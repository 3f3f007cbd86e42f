"""What can go wrong between a test and its cluster; `fixtures` turns the two kinds into skips and failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class ClusterError(Exception):
    """The cluster could not be built, started or used; the message says why and shows the end of the log."""


class CannotRunHereError(ClusterError):
    """This machine lacks something that the cluster needs; the message is one line that names it."""


def tail(log: Path, lines: int = 15) -> str:
    """Return the last `lines` lines of `log`, each indented, or a note that there is no such file."""
    if not log.is_file():
        return f"  (no log at {log})"
    return "\n".join(f"  {line}" for line in log.read_text(errors="replace").splitlines()[-lines:])
