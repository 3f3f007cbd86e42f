"""What the machine must offer: called before the cluster is built or started.

Installs missing Debian packages. Refuses, in one line, everything else: it does not fetch Go, and does not
try to run without root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from tests.cluster.errors import CannotRunHereError, tail
from tests.cluster.locks import exclusive

if TYPE_CHECKING:
    from tests.cluster.layout import Layout

PACKAGES: Final = (
    "busybox-static",
    "containerd",
    "containernetworking-plugins",
    "iproute2",
    "iptables",
    "kmod",
    "openssl",
    "runc",
    "util-linux",
)
UNSHARE: Final = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc")


def require_system(layout: Layout) -> None:
    """Check, without changing anything, for what nobody can install: Linux, root and usable folders."""
    if not sys.platform.startswith("linux"):
        raise CannotRunHereError(f"the test cluster needs Linux, this is {sys.platform!r}")
    if os.geteuid() != 0:
        raise CannotRunHereError("the test cluster needs root: it makes namespaces, mounts and control groups")
    layout.check()


def require_machine(layout: Layout) -> None:
    """Make sure that the cluster can run here, installing Debian packages where they are missing."""
    require_system(layout)
    _install(layout, _missing_packages())
    probe = subprocess.run([*UNSHARE, "true"], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        raise CannotRunHereError(f"the test cluster needs its own namespaces: {probe.stderr.strip()}")


def _missing_packages() -> list[str]:
    if shutil.which("dpkg-query") is None or shutil.which("apt-get") is None:
        raise CannotRunHereError("the test cluster needs Debian or a relative of it: there is no apt-get")
    query = ["dpkg-query", "--show", "--showformat", "${Package} ${db:Status-Status}\n", *PACKAGES]
    listing = subprocess.run(query, capture_output=True, text=True, check=False).stdout
    return [package for package in PACKAGES if f"{package} installed" not in listing.splitlines()]


def _install(layout: Layout, packages: list[str]) -> None:
    """Install `packages`; the package lists are refreshed first, since a fresh machine has none."""
    if not packages:
        return
    log = layout.cache / "apt-get.log"
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    with exclusive(layout.cache / "apt-get.lock"), log.open("w") as output:
        for command in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
            done = subprocess.run(["apt-get", *command], stdout=output, stderr=output, env=environment, check=False)
            if done.returncode != 0:
                raise CannotRunHereError(f"`apt-get {' '.join(command)}` failed, the end of {log}:\n{tail(log)}")
