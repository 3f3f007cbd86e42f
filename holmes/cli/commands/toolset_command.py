"""`holmes toolset list|refresh`: what Holmes can look at, and why something cannot be used."""

from __future__ import annotations

from pathlib import Path

import click

from holmes.cli.commands.options import verbose_option

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
    from holmes.cli.commands.configuration import read_settings
    from holmes.cli.render.sanitize import one_line
    from holmes.cli.render.toolset_lines import toolset_lines
    from holmes.settings.process import process_environment

    settings = read_settings(process_environment(), config, {"custom_toolsets": custom_toolsets})
    report = asyncio.run(toolset_report(settings, refresh=refresh))
    for warning in report.warnings:
        click.echo(f"holmes: warning: {one_line(warning, limit=1_000)}", err=True)
    click.echo(toolset_lines(report.statuses))
