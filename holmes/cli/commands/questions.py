"""Implements `holmes ask` and `holmes investigate alertmanager`: reads and checks options, files and settings.

Invalid input is reported before this module imports `run` and opens the environment.
"""

from __future__ import annotations

import gc
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import click

from holmes.cli.commands.command import PATH, is_verbose, question_options, read_settings, run_until_signal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from holmes.app.cluster import ClusterChoice
    from holmes.cli.commands.inputs import AskJob, Output
    from holmes.settings.settings import Settings
    from holmes.sources import LabelMatcher

_SHARED: Final = ("model", "api_key", "custom_toolsets", "max_steps", "kubeconfig", "kube_context")
SETTING_OPTIONS: Final = (*_SHARED, "namespace", "details", "system_prompt_additions")
"""The config keys of the settings that are also options of `holmes ask`."""

_ALERT_OPTIONS: Final = (
    *_SHARED, "alertmanager_url", "alertmanager_username", "alertmanager_password", "alertmanager_alertname",
    "alertmanager_label", "alertmanager_file",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _AskOptions:
    prompt: str | None
    prompt_file: Path | None
    file: tuple[Path, ...]
    interactive: bool | None
    json_output_file: Path | None
    continue_last: bool


@click.command()
@click.argument("prompt", required=False)
@click.option(
    "-i/-n",
    "--interactive/--no-interactive",
    default=None,
    help="Stay open for follow-up questions (default on a terminal).",
)
@click.option("-pf", "--prompt-file", type=PATH, help="Read the question from this file.")
@click.option("-f", "--file", multiple=True, type=PATH, help="Attach this text file to the question; may be repeated.")
@click.option("--namespace", help="Ask about this namespace.")
@click.option("--details", is_flag=True, default=None, help="Print everything that a short answer omits.")
@click.option("--system-prompt-additions", help="Add this text to the model's instructions.")
@click.option("--json-output-file", type=PATH, help="Write the answer, tool calls and messages to this file as JSON.")
@click.option("--continue", "continue_last", is_flag=True, help="Continue the last conversation.")
@question_options
@click.pass_context
def ask(context: click.Context, /, config: Path | None, cluster: ClusterChoice, **given: object) -> None:
    """Ask why something in a cluster does not work.

    The answer goes to standard output, progress to standard error. Piped text is attached to the question.
    """
    gc.disable()  # imports leave no garbage; `Desk.open` switches the collector on again
    overrides = {key: given.pop(key) for key in SETTING_OPTIONS}
    output = _output(given)
    options = _AskOptions(**given)  # type: ignore[arg-type]  # checked by click
    job = _ask_job(options, read_settings(config, overrides), cluster, output)

    from holmes.cli.commands.run import run_ask

    context.exit(run_until_signal(lambda interrupts: run_ask(job, interrupts)))


def _output(given: dict[str, object]) -> Output:
    from holmes.cli.commands.inputs import Output

    names = [name for name in Output.__slots__ if name != "verbose"]
    return Output(verbose=is_verbose(), **{name: bool(given.pop(name)) for name in names})


def _ask_job(options: _AskOptions, settings: Settings, cluster: ClusterChoice, output: Output) -> AskJob:
    """Build the job of `holmes ask`. Raises `ConfigError`, or `UsageError` for a missing question."""
    from holmes.cli.commands.inputs import AskJob, collect_question, read_piped_text
    from holmes.cli.commands.report_file import check_report_path
    from holmes.cli.render.terminal import is_terminal, write_line

    if options.json_output_file:
        check_report_path(options.json_output_file)
    on_terminal = is_terminal(sys.stdin) and is_terminal(sys.stdout)
    if options.interactive and not on_terminal:
        message = "--interactive requires a terminal"
        raise click.UsageError(message)
    wait_seconds = settings.investigation.stdin_timeout_seconds
    piped = read_piped_text(sys.stdin, wait_seconds, lambda text: write_line(sys.stderr, f"holmes: {text}"))
    question = collect_question(options.prompt, options.prompt_file, options.file, piped)
    interactive = on_terminal if options.interactive is None else options.interactive
    if not question.text and not interactive:
        message = "no question: give one as an argument, with --prompt-file, or on standard input"
        raise click.UsageError(message)
    return AskJob(
        settings=settings,
        cluster=cluster,
        output=output,
        question=question,
        interactive=interactive,
        continue_last=options.continue_last,
        report_path=options.json_output_file,
    )


@click.group()
def investigate() -> None:
    """Investigate alerts from other systems."""


@investigate.command()
@click.option("--alertmanager-url", help="Read alerts from this Alertmanager, for example http://localhost:9093.")
@click.option("--alertmanager-username", help="Use this user for basic authentication.")
@click.option("--alertmanager-password", help="Use this password for basic authentication.")
@click.option("--alertmanager-alertname", help="Select only alerts with this name.")
@click.option(
    "--alertmanager-label",
    multiple=True,
    help="Select only alerts with matching labels: severity=critical, or 'namespace=~\"shop|cart\"'; may be repeated.",
)
@click.option("--alertmanager-limit", type=click.IntRange(min=1), help="Maximum number of alerts to investigate.")
@click.option(
    "--alertmanager-file",
    type=PATH,
    help="Read alerts from this file: a webhook payload, or a response of /api/v2/alerts.",
)
@question_options
@click.pass_context
def alertmanager(
    context: click.Context,
    /,
    config: Path | None,
    cluster: ClusterChoice,
    alertmanager_limit: int | None,
    **given: object,
) -> None:
    """Investigate the firing alerts from Alertmanager.

    Alerts about the same object are investigated together. Answers go to standard output, progress to standard error.

    Exit codes: 0 all answered or no alert is firing, 1 failed, 2 wrong usage, 3 Alertmanager or cluster unreachable.
    """
    overrides = {key: given.pop(key) for key in _ALERT_OPTIONS}
    if overrides["alertmanager_url"] and overrides["alertmanager_file"]:
        message = "--alertmanager-url and --alertmanager-file are mutually exclusive"
        raise click.UsageError(message)
    settings = _with_source(read_settings(config, overrides), overrides)
    from holmes.cli.commands.inputs import InvestigateJob

    job = InvestigateJob(
        settings=settings,
        cluster=cluster,
        output=_output(given),
        matchers=_matchers(settings),
        limit=alertmanager_limit,
    )

    from holmes.cli.commands.run import run_investigate

    context.exit(run_until_signal(lambda interrupts: run_investigate(job, interrupts)))


def _with_source(settings: Settings, overrides: Mapping[str, object]) -> Settings:
    """Return the settings with exactly one alert source. An option takes precedence over the configuration file."""
    sources = settings.sources
    if not sources.alertmanager_url and not sources.alertmanager_file:
        message = "no alert source: specify --alertmanager-url or --alertmanager-file"
        raise click.UsageError(message)
    if not overrides["alertmanager_url"]:
        return settings
    return replace(settings, sources=sources.model_copy(update={"alertmanager_file": None}))


def _matchers(settings: Settings) -> tuple[LabelMatcher, ...]:
    from holmes.sources import LabelMatcher, parse_matcher

    matchers = tuple(map(parse_matcher, settings.sources.alertmanager_label))
    name = settings.sources.alertmanager_alertname
    return (LabelMatcher(label="alertname", operator="=", value=name), *matchers) if name else matchers
