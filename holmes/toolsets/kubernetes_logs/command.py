"""The `kubectl` command that comes closest to a call, for people who want to repeat it. Called by `toolset.py`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holmes.kubernetes.workloads import FoundPods
    from holmes.toolsets.kubernetes_logs.request import LogRequest


def kubectl_command(request: LogRequest, found: FoundPods, *, context: str) -> str:
    """One line of shell. What kubectl cannot do (`until`, the automatic choice of `previous`) is left out."""
    words = ["kubectl", "logs", "--context", context, "-n", found.namespace]
    words.append(f"{found.kind.lower()}/{found.name}")
    words += ["-c", request.container] if request.container else ["--all-containers"]
    if found.kind != "Pod":
        words += ["--all-pods", "--prefix"]
    words.append("--timestamps")
    if request.previous:
        words.append("--previous")
    if request.since_seconds is not None:
        words.append(f"--since={request.since_seconds}s")
    if request.since_time is not None:
        words.append(f"--since-time={request.since_time.isoformat(timespec='seconds')}")
    filters = [("grep -iP", request.include), ("grep -viP", request.exclude)]
    searches = [f"{command} {shlex.quote(pattern)}" for command, pattern in filters if pattern]
    if not searches:
        words.append(f"--tail={request.tail_lines}")
        return shlex.join(words)
    return " | ".join([shlex.join([*words, "--tail=-1"]), *searches, f"tail -n {request.tail_lines}"])
