"""Command line of the test cluster: `python -m tests.cluster up|down|status|build|images`."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, Final

from tests.cluster.errors import CannotRunHereError, ClusterError
from tests.cluster.images import SHOP
from tests.cluster.layout import REGISTRY, Layout
from tests.cluster.lifecycle import describe, down, is_up, up
from tests.cluster.prerequisites import require_machine
from tests.cluster.programs import build, fetch_helm

if TYPE_CHECKING:
    from collections.abc import Callable


def _up(layout: Layout) -> str:
    started = time.monotonic()
    cluster = up(layout)
    return f"# up after {time.monotonic() - started:.1f} s\nexport KUBECONFIG={cluster.admin}"


def _down(layout: Layout) -> str:
    down(layout)
    return "down"


def _status(layout: Layout) -> str:
    return f"up at {describe(layout).server}, state in {layout.run}" if is_up(layout) else "down"


def _build(layout: Layout) -> str:
    started = time.monotonic()
    require_machine(layout)
    programs = build(layout)
    return f"{programs.directory}\n{programs.kubectl}\n{_helm(layout)}\n# after {time.monotonic() - started:.1f} s"


def _helm(layout: Layout) -> str:
    """The cluster works without it, so a machine that has no helm is no failure."""
    try:
        return str(fetch_helm(layout))
    except CannotRunHereError as error:
        return f"# {error}"


def _images(_: Layout) -> str:
    return "\n".join(f"{REGISTRY}/{name}" for name in SHOP)


COMMANDS: Final[dict[str, Callable[[Layout], str]]] = {
    "up": _up,
    "down": _down,
    "status": _status,
    "build": _build,
    "images": _images,
}


def main() -> None:
    """Run one command; errors end with exit code 1 and their message."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description="A real Kubernetes for the tests.")
    parser.add_argument("command", choices=COMMANDS, help="build only builds; images lists what pods can run")
    try:
        sys.stdout.write(COMMANDS[parser.parse_args().command](Layout.from_environment()) + "\n")
    except ClusterError as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main()
