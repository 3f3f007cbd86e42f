"""`holmes investigate alertmanager`: investigates the alerts that fire now, one incident after the other.

What belongs together and what is asked is decided by the code of the server's webhook. Everything that can be wrong
with the options, files and settings is said before anything is started.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from holmes.cli.commands.options import cluster_options, verbose_option

if TYPE_CHECKING:
    from holmes.cli.commands.investigate_run import InvestigateJob, InvestigateOptions
    from holmes.settings.settings import Settings

_PATH = click.Path(path_type=Path)
_SETTING_OPTIONS: Final = (
    "model", "api_key", "custom_toolsets", "max_steps", "kubeconfig", "kube_context", "alertmanager_url",
    "alertmanager_username", "alertmanager_password", "alertmanager_alertname", "alertmanager_label",
    "alertmanager_file",
)  # fmt: skip
"""The options that are settings, by config key."""


@click.group()
def investigate() -> None:
    """Investigate the alerts of other systems."""


@investigate.command()
@click.option("--alertmanager-url", help="The address of Alertmanager, for example http://localhost:9093.")
@click.option("--alertmanager-username", help="The user for basic authentication.")
@click.option("--alertmanager-password", help="The password for basic authentication.")
@click.option("--alertmanager-alertname", help="Only alerts of this name.")
@click.option(
    "--alertmanager-label",
    multiple=True,
    help="Only alerts whose labels match: severity=critical, or 'namespace=~\"shop|cart\"'; may be repeated.",
)
@click.option("--alertmanager-limit", type=click.IntRange(min=1), help="The most alerts to investigate.")
@click.option(
    "--alertmanager-file",
    type=_PATH,
    help="A file with alerts instead: the payload of a webhook, or what /api/v2/alerts gives.",
)
@click.option("--model", help="The model: a name of the model list, or what litellm calls it.")
@click.option("--api-key", help="The provider's key.")
@click.option("--config", type=_PATH, help="The config file. Default: ~/.holmes/config.yaml.")
@click.option(
    "-t", "--custom-toolsets", multiple=True, type=click.Path(), help="A file with more toolsets; may be repeated."
)
@click.option("--max-steps", type=int, help="The most replies of the model for one investigation.")
@cluster_options
@click.option("--show-tool-output", is_flag=True, help="Show what each tool returned.")
@click.option("--log-costs", is_flag=True, help="Show what each reply of the model cost.")
@click.option("--refresh-toolsets", is_flag=True, help="Check again which toolsets can be used.")
@verbose_option
@click.pass_context
def alertmanager(context: click.Context, /, **given: object) -> None:
    """Investigate the alerts that fire in Alertmanager.

    Alerts about the same thing are investigated together. The answers go to standard output, progress to standard
    error. Exit codes: 0 all answered (also when no alert fires), 1 failed, 2 wrong usage, 3 no Alertmanager or cluster.
    """
    # Imported here and below: `holmes investigate --help` does not need them.
    from holmes.cli.commands.investigate_run import InvestigateOptions

    overrides = {key: given.pop(key) for key in _SETTING_OPTIONS}
    options = InvestigateOptions(**given)  # type: ignore[arg-type]  # click has checked them
    context.exit(_run(_prepare(options, overrides)))


def _prepare(options: InvestigateOptions, overrides: dict[str, object]) -> InvestigateJob:
    """Read and check everything. Raises `ConfigError`, or `UsageError` when there is no source."""
    from holmes.cli.commands.investigate_run import InvestigateJob
    from holmes.cli.commands.options import read_settings
    from holmes.cli.render.event_lines import Detail
    from holmes.cli.render.terminal import tolerate_narrow_encodings
    from holmes.settings.process import process_environment
    from holmes.sources import LabelMatcher, parse_matcher

    tolerate_narrow_encodings()
    if overrides["alertmanager_url"] and overrides["alertmanager_file"]:
        message = "--alertmanager-url and --alertmanager-file exclude each other"
        raise click.UsageError(message)
    environment = process_environment()
    settings = read_settings(environment, options.config, overrides)
    sources = settings.sources
    if not sources.alertmanager_url and not sources.alertmanager_file:
        message = "there is no source of alerts: give --alertmanager-url or --alertmanager-file"
        raise click.UsageError(message)
    matchers = tuple(map(parse_matcher, sources.alertmanager_label))
    if sources.alertmanager_alertname:
        matchers = (LabelMatcher(label="alertname", operator="=", value=sources.alertmanager_alertname), *matchers)
    if overrides["alertmanager_url"]:  # over the file of the configuration
        settings = _without_file(settings)
    return InvestigateJob(
        settings=settings,
        environment=environment,
        matchers=matchers,
        detail=Detail(tool_output=options.show_tool_output, reply_costs=options.log_costs),
        options=options,
    )


def _without_file(settings: Settings) -> Settings:
    from dataclasses import replace

    return replace(settings, sources=settings.sources.model_copy(update={"alertmanager_file": None}))


def _run(job: InvestigateJob) -> int:
    """Do the job in an event loop. Returns the exit code."""
    import asyncio

    from holmes.cli.commands.interrupts import Interrupts
    from holmes.cli.commands.investigate_run import run_investigate

    interrupts = Interrupts()
    try:
        return asyncio.run(run_investigate(job, interrupts))
    except asyncio.CancelledError:
        click.echo("holmes: interrupted", err=True)
        return interrupts.exit_code
