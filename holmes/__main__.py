"""Runs the `holmes` command for `python -m holmes`."""

from __future__ import annotations

from holmes.cli.main import main

if __name__ == "__main__":
    main()
