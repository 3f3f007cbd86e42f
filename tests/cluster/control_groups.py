"""One subtree of control groups per cluster, made by `supervisor` and removed by `lifecycle`.

The kubelet removes every pod group below its root that it does not know, so two clusters must not share one.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from tests.cluster.errors import ClusterError

ROOT: Final = Path("/sys/fs/cgroup")


def _hierarchies() -> list[Path]:
    """Return the one hierarchy of version 2, or all of version 1 (links are second names of a hierarchy)."""
    if (ROOT / "cgroup.controllers").exists():
        return [ROOT]
    return [path for path in ROOT.iterdir() if path.is_dir() and not path.is_symlink()]


def create(name: str) -> None:
    """Make the group `name` in every hierarchy; the kubelet refuses to start when one lacks it."""
    for hierarchy in _hierarchies():
        group = hierarchy / name
        group.mkdir(exist_ok=True)
        if hierarchy.name == "cpuset":  # of version 1, which is born empty and then admits no process
            for file in ("cpuset.cpus", "cpuset.mems"):
                (group / file).write_text((hierarchy / file).read_text())


def remove(name: str, timeout_seconds: float = 15) -> None:
    """Remove the group `name` everywhere, waiting for processes that are about to end."""
    deadline = time.monotonic() + timeout_seconds
    while remaining := [group for group in existing(name) if not _remove_tree(group)]:
        if time.monotonic() > deadline:
            raise ClusterError(f"control groups are still in use after {timeout_seconds} s: {remaining}")
        time.sleep(0.05)


def existing(name: str) -> list[Path]:
    """Return the folders of the group `name` that exist."""
    return [group for hierarchy in _hierarchies() if (group := hierarchy / name).is_dir()]


def _remove_tree(group: Path) -> bool:
    try:
        below = [path for path in group.rglob("*") if path.is_dir()]
        for folder in (*sorted(below, reverse=True), group):  # children sort after their parents
            folder.rmdir()
    except OSError:  # still busy, or gone in between: the caller looks again
        return False
    return True
