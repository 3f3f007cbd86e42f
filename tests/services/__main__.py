"""Command line of the services: `python -m tests.services build` installs what is missing.

Debian's packages come first, then the MCP servers from their own packages, into the cache.
"""

from __future__ import annotations

import argparse
import sys

from tests.cluster.errors import ClusterError
from tests.cluster.layout import Layout
from tests.services import mcp_servers, programs


def main() -> None:
    """Install, and print where the programs are; errors end with exit code 1 and their message."""
    parser = argparse.ArgumentParser(prog="python -m tests.services", description="Real services for the tests.")
    parser.add_argument("command", choices=["build"], help="install what is missing")
    parser.parse_args()
    try:
        layout = Layout.from_environment()
        programs.build(layout)
        mcp_servers.build(layout)
        installed = (*programs.everything(), *mcp_servers.everything(layout))
        sys.stdout.write("".join(f"{program}\n" for program in installed))
    except ClusterError as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main()
