"""Real MCP servers of other projects, installed from their packages and run on this machine.

    with everything_over_http("sse") as server:
        server.url

`server-everything` (TypeScript) speaks all three transports, `mcp-server-time` (Python) standard input and output.
`build` installs what is missing; everything else only looks.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from tests.cluster.errors import CannotRunHereError
from tests.cluster.programs import appearing_at, building, run
from tests.services import programs
from tests.services.service import Service, free_port

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.toolsets.mcp.servers import HttpMode
    from tests.cluster.layout import Layout

EVERYTHING: Final = "@modelcontextprotocol/server-everything"
EVERYTHING_VERSION: Final = "2026.8.31"
# Needs version 1 of the SDK, as many servers do. Our own environment has version 2.
TIME: Final = "mcp-server-time"
TIME_VERSION: Final = "2026.8.18"
# A certified authorization server, for the OAuth of MCP.
PROVIDER: Final = "oidc-provider"
PROVIDER_VERSION: Final = "9.13.3"

Command: TypeAlias = tuple[str, ...]


def build(layout: Layout) -> None:
    """Install what the cache lacks (half a minute when cold, nothing when all is there)."""
    script, provider, python = _everything_script(layout), _provider_module(layout), _time_python(layout)
    if all(each.is_file() for each in (script, provider, python)):
        return
    with building(layout):
        if not script.is_file():
            _install_package(layout, f"{EVERYTHING}@{EVERYTHING_VERSION}", script.parents[4])
        if not provider.is_file():
            _install_package(layout, f"{PROVIDER}@{PROVIDER_VERSION}", provider.parents[3])
        if not python.is_file():
            _install_time(layout)


def everything(layout: Layout) -> tuple[Path, ...]:
    """Return what is installed; raise CannotRunHereError for the first that is missing."""
    return programs.nodejs(), *map(_installed, (_everything_script(layout), provider(layout), _time_python(layout)))


def everything_command(layout: Layout) -> Command:
    """Return the command of `server-everything`, which takes the transport as an argument."""
    return str(programs.nodejs()), str(_installed(_everything_script(layout)))


def provider(layout: Layout) -> Path:
    """Return the module of `oidc-provider`, to be imported by a script of Node.js."""
    return _installed(_provider_module(layout))


def time_command(layout: Layout) -> Command:
    """Return the command of `mcp-server-time` over standard input and output."""
    return str(_installed(_time_python(layout))), "-m", TIME.replace("-", "_")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpServer:
    """`server-everything` at a URL, which stays the same when it is stopped and started again."""

    service: Service
    url: str
    port: int
    command: Command

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        self.service.start(self.command, self.is_ready)

    def kill(self) -> None:
        """End the server without a goodbye to its clients."""
        self.service.stop(signal.SIGKILL)

    def is_ready(self) -> bool:
        """Whether the server accepts connections."""
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


@contextmanager
def everything_over_http(layout: Layout, mode: HttpMode) -> Iterator[HttpServer]:
    """Yield a `server-everything` that accepts connections."""
    command = everything_command(layout)
    argument, path = {"sse": ("sse", "/sse"), "streamable-http": ("streamableHttp", "/mcp")}[mode]
    port = free_port()
    # One of its tools tells all its variables to everybody who asks.
    clean = ("env", "--ignore-environment", f"PATH={os.environ['PATH']}", f"PORT={port}")
    server = HttpServer(
        service=Service("mcp-everything", end_signal=signal.SIGTERM),
        url=f"http://127.0.0.1:{port}{path}",
        port=port,
        command=(*clean, *command, argument),
    )
    try:
        server.start()
        yield server
    finally:
        server.service.close()


def _everything_script(layout: Layout) -> Path:
    folder = layout.cache / f"mcp-server-everything-{EVERYTHING_VERSION}"
    return folder / "node_modules" / EVERYTHING / "dist" / "index.js"


def _provider_module(layout: Layout) -> Path:
    return layout.cache / f"{PROVIDER}-{PROVIDER_VERSION}" / "node_modules" / PROVIDER / "lib" / "index.js"


def _time_python(layout: Layout) -> Path:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return layout.cache / f"{TIME}-{TIME_VERSION}-python{version}" / "bin" / "python"


def _installed(path: Path) -> Path:
    if not path.is_file():
        raise CannotRunHereError("the MCP servers are not installed: run `python -m tests.services build` once")
    return path


def _install_package(layout: Layout, package: str, target: Path) -> None:
    """Install a package of Node.js with what it needs."""
    log = layout.cache / f"install-{target.name}.log"
    options = ("--no-audit", "--no-fund", "--ignore-scripts")
    with _replacing(target) as unfinished:
        run([str(programs.npm()), "install", package, "--prefix", str(unfinished), *options], log, cwd=unfinished)


def _install_time(layout: Layout) -> None:
    """Nobody may call the scripts of this environment: they name the folder in which it was made."""
    target, log = _time_python(layout).parents[1], layout.cache / "install-mcp-server-time.log"
    with _replacing(target) as unfinished:
        run([sys.executable, "-m", "venv", str(unfinished)], log)
        pip = [str(unfinished / "bin" / "python"), "-m", "pip", "install"]
        run([*pip, "--only-binary=:all:", f"{TIME}=={TIME_VERSION}"], log)


@contextmanager
def _replacing(target: Path) -> Iterator[Path]:
    """Yield the folder that becomes `target`, also where the Python of an environment there has since gone."""
    shutil.rmtree(target, ignore_errors=True)
    with appearing_at(target) as unfinished:
        yield unfinished
