"""`holmes toolset list|refresh`: what Holmes can look at, and why something cannot be used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from holmes.cli.commands.options import verbose_option
from holmes.cli.render.terminal import one_line
from holmes.cli.render.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.app.toolsets import ToolsetReport
    from holmes.toolsets.registry import ToolsetStatus


def report_lines(report: ToolsetReport) -> str:
    """The warnings, then the toolsets."""
    warnings = (f"warning: {one_line(warning, limit=1_000)}" for warning in report.warnings)
    return "\n".join((*warnings, toolset_lines(report.statuses)))


def toolset_lines(states: Sequence[ToolsetStatus]) -> str:
    """One line for each toolset, in columns, by name."""
    if not states:
        return "no toolsets"
    rows = sorted(states, key=lambda status: status.name)
    width = max(len(status.name) for status in rows)
    return "\n".join(_line(status, width) for status in rows)


def _line(status: ToolsetStatus, width: int) -> str:
    detail = one_line(status.reason or "") if status.state != "enabled" else counted(status.tool_count, "tool")
    return f"{one_line(status.name):<{width}}  {status.state:<8}  {detail}".rstrip()


_config = click.option(
    "--config", type=click.Path(path_type=Path), help="The config file. Default: ~/.holmes/config.yaml."
)
_custom_toolsets = click.option(
    "-t", "--custom-toolsets", multiple=True, type=click.Path(), help="A file with more toolsets; may be repeated."
)


@click.group()
def toolset() -> None:
    """Show what Holmes can look at."""


@toolset.command(name="list")
@_config
@_custom_toolsets
@verbose_option
def list_toolsets(config: Path | None, custom_toolsets: tuple[str, ...]) -> None:
    """List all toolsets with their state, as it was checked last."""
    _print_toolsets(config, custom_toolsets, refresh=False)


@toolset.command()
@_config
@_custom_toolsets
@verbose_option
def refresh(config: Path | None, custom_toolsets: tuple[str, ...]) -> None:
    """Check all toolsets again and list them."""
    _print_toolsets(config, custom_toolsets, refresh=True)


def _print_toolsets(config: Path | None, custom_toolsets: tuple[str, ...], *, refresh: bool) -> None:
    # Imported here: `holmes toolset --help` does not need them.
    import asyncio

    from holmes.app.toolsets import toolset_report
    from holmes.cli.commands.options import read_settings
    from holmes.cli.render.terminal import one_line
    from holmes.settings.process import process_environment

    settings = read_settings(process_environment(), config, {"custom_toolsets": custom_toolsets})
    report = asyncio.run(toolset_report(settings, refresh=refresh))
    for warning in report.warnings:
        click.echo(f"holmes: warning: {one_line(warning, limit=1_000)}", err=True)
    click.echo(toolset_lines(report.statuses))
