"""Debian packages that tests need: called by `prerequisites` and by `tests.services`.

Installs what is missing, without recommended packages. No daemon of a new package is started, now or at boot: the
tests start their own. Refuses machines without apt-get.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.cluster.errors import CannotRunHereError, tail
from tests.cluster.locks import exclusive

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

POLICY: Final = Path("/usr/sbin/policy-rc.d")
POLICY_TEXT: Final = "#!/bin/sh\n# Made by the tests of Holmes while they install packages; nothing starts.\nexit 101\n"


def missing_packages(packages: Sequence[str]) -> list[str]:
    """Return those of `packages` that are not installed."""
    if shutil.which("dpkg-query") is None or shutil.which("apt-get") is None:
        raise CannotRunHereError("the tests need Debian or a relative of it: there is no apt-get")
    query = ["dpkg-query", "--show", "--showformat", "${Package} ${db:Status-Status}\n", *packages]
    listing = subprocess.run(query, capture_output=True, text=True, check=False).stdout
    return [package for package in packages if f"{package} installed" not in listing.splitlines()]


def install(packages: Sequence[str], cache: Path) -> None:
    """Install `packages`; the package lists are refreshed first, since a fresh machine has none."""
    if not packages:
        return
    if os.geteuid() != 0:
        raise CannotRunHereError(f"only root can install what is missing: apt-get install {' '.join(packages)}")
    log = cache / "apt-get.log"
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    with exclusive(cache / "apt-get.lock"), log.open("w") as output, _daemons_stay_off():
        for command in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
            done = subprocess.run(["apt-get", *command], stdout=output, stderr=output, env=environment, check=False)
            if done.returncode != 0:
                raise CannotRunHereError(f"`apt-get {' '.join(command)}` failed, the end of {log}:\n{tail(log)}")


def disable_at_boot(units: Sequence[str]) -> None:
    """Take what a package has just enabled out of the boot of the machine, if it boots with systemd at all."""
    if shutil.which("systemctl") is not None:
        subprocess.run(["systemctl", "disable", *units], capture_output=True, check=False)


@contextmanager
def _daemons_stay_off() -> Iterator[None]:
    """Deny starts of daemons by Debian's own means; a policy that the machine has already stays as it is."""
    if POLICY.exists() and POLICY.read_text() != POLICY_TEXT:
        yield
        return
    POLICY.write_text(POLICY_TEXT)
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink(missing_ok=True)
