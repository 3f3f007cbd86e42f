"""Where the programs of the services lie: called by the services, by `fixtures` and by the command line.

`build` installs what is missing; everything else only looks.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.cluster.debian import disable_at_boot, install, missing_packages
from tests.cluster.errors import CannotRunHereError

if TYPE_CHECKING:
    from tests.cluster.layout import Layout

# What each package enables at boot.
PACKAGES: Final[dict[str, tuple[str, ...]]] = {
    "chromium": (),
    "curl": (),
    "jq": (),
    "nodejs": (),
    "npm": (),
    "postgresql": ("postgresql.service",),
    "prometheus": ("prometheus.service",),
    "prometheus-alertmanager": ("prometheus-alertmanager.service",),
    "prometheus-node-exporter": ("prometheus-node-exporter.service",),
    "prometheus-postgres-exporter": ("prometheus-postgres-exporter.service",),
    "prometheus-redis-exporter": ("prometheus-redis-exporter.service",),
    "redis-server": ("redis-server.service",),
    "sqlite3": (),
    "victoria-metrics": ("victoria-metrics.service",),
}
# The programs of packages that many machines have from elsewhere, which Debian's packages would conflict with.
ANY_ORIGIN: Final = {"nodejs": "node", "npm": "npm"}
POSTGRESQL: Final = Path("/usr/lib/postgresql")


def build(layout: Layout) -> None:
    """Install the packages that are missing (minutes on a fresh machine, nothing when all are there)."""
    wanted = [package for package in PACKAGES if shutil.which(ANY_ORIGIN.get(package, "")) is None]
    missing = missing_packages(wanted)
    install(missing, layout.cache)
    units = [unit for package in missing for unit in PACKAGES[package]]
    if units:
        disable_at_boot(units)


def everything() -> tuple[Path, ...]:
    """Return every program; raise CannotRunHereError for the first that is missing."""
    exporters = node_exporter(), postgresql_exporter(), redis(), redis_exporter()
    return chromium(), postgresql("postgres"), prometheus(), alertmanager(), victoria_metrics(), vmalert(), *exporters


def chromium() -> Path:
    """Return the browser, to be driven headless."""
    return _program("chromium")


def prometheus() -> Path:
    """Return the server that scrapes and evaluates rules."""
    return _program("prometheus")


def promtool() -> Path:
    """Return the tool that writes samples of the past into the files of Prometheus."""
    return _program("promtool")


def alertmanager() -> Path:
    """Return the server that groups alerts and sends them to receivers."""
    return _program("prometheus-alertmanager")


def node_exporter() -> Path:
    """Return the exporter of the machine."""
    return _program("prometheus-node-exporter")


def postgresql_exporter() -> Path:
    """Return the exporter of PostgreSQL."""
    return _program("prometheus-postgres-exporter")


def redis() -> Path:
    """Return the server of Redis, whose connections the tests use up."""
    return _program("redis-server")


def redis_exporter() -> Path:
    """Return the exporter of Redis."""
    return _program("prometheus-redis-exporter")


def victoria_metrics() -> Path:
    """Return the server that stores metrics and answers queries, without rules."""
    return _program("victoria-metrics")


def vmalert() -> Path:
    """Return the server that evaluates rules for `victoria_metrics`."""
    return _program("vmalert")


def nodejs() -> Path:
    """Return the program that runs JavaScript."""
    return _program("node")


def npm() -> Path:
    """Return the program that installs packages of Node.js."""
    return _program("npm")


def postgresql(name: str) -> Path:
    """Return the program `name` of the newest PostgreSQL; most of them are not on the search path."""
    found = sorted(POSTGRESQL.glob(f"*/bin/{name}"), key=lambda path: int(re.sub(r"\D", "", path.parts[-3]) or 0))
    if not found:
        raise CannotRunHereError(_missing(name))
    return found[-1]


def _program(name: str) -> Path:
    found = shutil.which(name)
    if found is None:
        raise CannotRunHereError(_missing(name))
    return Path(found)


def _missing(name: str) -> str:
    return f"there is no {name!r}: run `python -m tests.services build` once, as root"
