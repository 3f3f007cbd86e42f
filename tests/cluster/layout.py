"""Where everything lies and what it is called: the only reader of the environment in this package.

HOLMES_TEST_CACHE         what is expensive to make: the built programs (default ~/.cache/holmes-tests)
HOLMES_TEST_CLUSTER_DIR   the state of one running cluster (default: the folder `run` of the cache)
HOLMES_TEST_KEEP_CLUSTER  1: the cluster outlives the test session and serves the next one
CI                        true: a cluster that does not start fails the tests instead of skipping them
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Final

from tests.cluster.errors import ClusterError

SOURCES: Final = Path(__file__).parent
NODE_NAME: Final = "node1"
NODE_IP: Final = "10.89.0.1"
POD_CIDR: Final = "10.88.0.0/24"
SERVICE_CIDR: Final = "10.96.0.0/16"
API_SERVICE_IP: Final = "10.96.0.1"
DNS_IP: Final = "10.96.0.10"
# How the cluster's own parts reach the API server.
INNER_ADDRESS: Final = ("127.0.0.1", 6443)
INNER_SERVER: Final = "https://{}:{}".format(*INNER_ADDRESS)
REGISTRY: Final = "registry.shop.example"
# The cluster covers these two with a private, empty file system (see `isolation`).
COVERED: Final = (Path("/run"), Path("/var"))


@dataclass(frozen=True)
class Layout:
    """The folders of one cluster. Two layouts with different `run` folders can be up at the same time."""

    cache: Path
    run: Path

    @classmethod
    def from_environment(cls) -> Layout:
        """Read the HOLMES_TEST_* variables described above."""
        cache = Path(os.environ.get("HOLMES_TEST_CACHE") or Path.home() / ".cache" / "holmes-tests")
        return cls(cache.absolute(), Path(os.environ.get("HOLMES_TEST_CLUSTER_DIR") or cache / "run").absolute())

    @property
    def cgroup(self) -> str:
        """Name of this cluster's control group, in every hierarchy."""
        return f"holmes-test-{hashlib.sha256(bytes(self.run)).hexdigest()[:8]}"

    @property
    def lock(self) -> Path:
        """Held while the cluster is started or stopped; outside `run`, which is deleted."""
        return self.run.with_name(self.run.name + ".lock")

    @property
    def users_lock(self) -> Path:
        """Held, shared, by every test session that uses the cluster."""
        return self.run.with_name(self.run.name + ".users.lock")

    @property
    def pid_file(self) -> Path:
        """Process id of the one process whose death ends the cluster."""
        return self.run / "unshare.pid"

    @property
    def ready_file(self) -> Path:
        """Exists from the moment when the node is Ready."""
        return self.run / "ready"

    @property
    def containerd_socket(self) -> Path:
        """Where containerd listens."""
        return self.run / "containerd.sock"

    def kubeconfig(self, user: str) -> Path:
        """Return the kubeconfig path of `user`."""
        return self.run / f"{user}.kubeconfig"

    def log(self, name: str) -> Path:
        """Return the log file of the daemon `name`."""
        return self.run / "log" / f"{name}.log"

    def check(self) -> None:
        """Raise ClusterError for a folder that the cluster itself would cover."""
        for folder in (self.cache, self.run):
            if any(folder.is_relative_to(covered) for covered in COVERED):
                raise ClusterError(f"{str(folder)!r} lies below /run or /var; choose another folder (see layout.py)")

    def fill(self, template: str, target: Path, **values: str) -> None:
        """Write `templates/<template>` to `target` with this layout's names and `values` put in."""
        known = {
            "run": str(self.run),
            "cgroup": self.cgroup,
            "node_ip": NODE_IP,
            "dns_ip": DNS_IP,
            "pod_cidr": POD_CIDR,
            "registry": REGISTRY,
        }
        text = (SOURCES / "templates" / template).read_text()
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(Template(text).substitute(known | values))


def keep_cluster() -> bool:
    """Say whether the cluster shall outlive the test session."""
    return os.environ.get("HOLMES_TEST_KEEP_CLUSTER", "") == "1"


def in_ci() -> bool:
    """Say whether a missing cluster is a failure."""
    return os.environ.get("CI", "").lower() == "true"
