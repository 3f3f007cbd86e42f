"""What the machine must offer: called before the cluster is built or started.

Installs missing Debian packages. Refuses, in one line, everything else: it does not fetch Go, and does not
try to run without root.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from tests.cluster.debian import install, missing_packages
from tests.cluster.errors import CannotRunHereError

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
    install(missing_packages(PACKAGES), layout.cache)
    probe = subprocess.run([*UNSHARE, "true"], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        raise CannotRunHereError(f"the test cluster needs its own namespaces: {probe.stderr.strip()}")
