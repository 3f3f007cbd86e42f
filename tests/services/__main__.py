"""Command line of the services: `python -m tests.services build` installs what is missing.

Debian's packages come first, then the MCP servers from their own packages, VictoriaLogs from its Go module, and the
kinds of toolsets, into the cache. The long form also makes the programs whose outputs are recorded for the short form.
"""

from __future__ import annotations

import argparse
import sys

from tests.cluster.errors import ClusterError
from tests.cluster.layout import Layout
from tests.services import containers, mcp_servers, programs
from tests.services.go_programs import HUBBLE, JAEGER, VICTORIA_LOGS, build
from tests.support.long_form import LONG
from tests.toolsets.shipped import kinds


def main() -> None:
    """Install, and print where the programs are; errors end with exit code 1 and their message."""
    parser = argparse.ArgumentParser(prog="python -m tests.services", description="Real services for the tests.")
    parser.add_argument("command", choices=["build"], help="install what is missing")
    parser.parse_args()
    try:
        layout = Layout.from_environment()
        programs.build(layout)
        mcp_servers.build(layout)
        kinds.build(layout)
        servers = (VICTORIA_LOGS, JAEGER, HUBBLE) if LONG else (VICTORIA_LOGS,)
        for server in servers:
            build(server, layout)
        if LONG:
            containers.build(layout)
        found = (*programs.everything(), *mcp_servers.everything(layout), *(each.path(layout) for each in servers))
        sys.stdout.write("".join(f"{program}\n" for program in found))
    except ClusterError as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main()
