"""What a test holds in its hand: the running cluster and a patient way to look at it."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from tests.cluster.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KUBECTL_TIMEOUT_SECONDS: Final = 60
User = Literal["admin", "viewer", "nobody"]
State = TypeVar("State")


@dataclass(frozen=True)
class Cluster:
    """A running cluster: one kubeconfig per user, the kubectl that fits, and the server's address."""

    admin: Path
    viewer: Path
    nobody: Path
    kubectl: Path
    server: str

    def kubeconfig(self, user: User) -> Path:
        """Return the kubeconfig of `user`."""
        return {"admin": self.admin, "viewer": self.viewer, "nobody": self.nobody}[user]

    def attempt(self, *arguments: str, user: User = "admin") -> subprocess.CompletedProcess[str]:
        """Run kubectl as `user` and return its exit code, output and errors, whatever they are."""
        command = [str(self.kubectl), f"--kubeconfig={self.kubeconfig(user)}", *arguments]
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=KUBECTL_TIMEOUT_SECONDS,
            check=False,
        )

    def run(self, *arguments: str, user: User = "admin") -> str:
        """Run kubectl as `user` and return its output; raise ClusterError when it fails."""
        done = self.attempt(*arguments, user=user)
        if done.returncode != 0:
            raise ClusterError(f"`kubectl {' '.join(arguments)}` as {user!r} failed: {done.stderr.strip()}")
        return done.stdout


def wait_until(
    what: str,
    observe: Callable[[], State],
    accept: Callable[[State], bool],
    *,
    timeout_seconds: float = 60,
    interval_seconds: float = 0.3,
) -> State:
    """Observe until the state is accepted and return it; TimeoutError names `what` and shows the last state."""
    deadline = time.monotonic() + timeout_seconds
    while not accept(state := observe()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {timeout_seconds} s, last state: {state!r}")
        time.sleep(interval_seconds)
    return state
