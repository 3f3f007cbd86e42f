"""`holmes ask`: reads the options, opens an investigator, and answers once or in a loop.

Everything that can be wrong with the options, files and settings is said before anything is started.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from holmes.cli.commands.options import cluster_options, verbose_option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.cli.commands.ask_run import AskJob, AskOptions

_PATH = click.Path(path_type=Path)
SETTING_OPTIONS: Final = (
    "model", "api_key", "custom_toolsets", "max_steps", "kubeconfig", "kube_context", "namespace",
    "system_prompt_additions",
)  # fmt: skip
"""The options that are settings, by config key."""


@click.command()
@click.argument("prompt", required=False)
@click.option(
    "-i/-n",
    "--interactive/--no-interactive",
    default=None,
    help="Go on asking. Default on a terminal; -n answers once.",
)
@click.option("-pf", "--prompt-file", type=_PATH, help="Read the question from a file.")
@click.option(
    "-f", "--file", multiple=True, type=_PATH, help="A text file that goes with the question; may be repeated."
)
@click.option("--model", help="The model: a name of the model list, or what litellm calls it.")
@click.option("--api-key", help="The provider's key.")
@click.option("--config", type=_PATH, help="The config file. Default: ~/.holmes/config.yaml.")
@click.option(
    "-t", "--custom-toolsets", multiple=True, type=click.Path(), help="A file with more toolsets; may be repeated."
)
@click.option("--max-steps", type=int, help="The most replies of the model for one question.")
@cluster_options
@click.option("--namespace", help="The namespace the question is about.")
@click.option("--system-prompt-additions", help="Text that is added to the instructions of the model.")
@click.option("--json-output-file", type=_PATH, help="Write answer, tool calls and messages to a file as JSON.")
@click.option("--show-tool-output", is_flag=True, help="Show what each tool returned.")
@click.option("--log-costs", is_flag=True, help="Show what each reply of the model cost.")
@click.option("--refresh-toolsets", is_flag=True, help="Check again which toolsets can be used.")
@click.option("--continue", "continue_last", is_flag=True, help="Go on with the last conversation.")
@verbose_option
@click.pass_context
def ask(context: click.Context, /, **given: object) -> None:
    """Ask why something in a cluster does not work.

    The answer goes to standard output, progress to standard error. Text that is piped in goes with the question.
    """
    # Imported here and below: `holmes ask --help` does not need them.
    from holmes.cli.commands.ask_run import AskOptions

    overrides = {key: given.pop(key) for key in SETTING_OPTIONS}
    options = AskOptions(**given)  # type: ignore[arg-type]  # click has checked them
    context.exit(_run(_prepare(options, overrides)))


def _prepare(options: AskOptions, overrides: Mapping[str, object]) -> AskJob:
    """Read and check everything. Raises `ConfigError`, or `UsageError` when there is no question."""
    from holmes.cli.commands.ask_run import AskJob
    from holmes.cli.commands.inputs import collect_question, read_piped_text
    from holmes.cli.commands.options import read_settings
    from holmes.cli.commands.report_file import check_report_path
    from holmes.cli.render.event_lines import Detail
    from holmes.cli.render.terminal import is_terminal, tolerate_narrow_encodings, write_line
    from holmes.settings.process import process_environment

    tolerate_narrow_encodings()
    environment = process_environment()
    settings = read_settings(environment, options.config, overrides)
    if options.json_output_file:
        check_report_path(options.json_output_file)
    wait_seconds = settings.investigation.stdin_timeout_seconds
    piped = read_piped_text(sys.stdin, wait_seconds, lambda text: write_line(sys.stderr, f"holmes: {text}"))
    question = collect_question(options.prompt, options.prompt_file, options.file, piped)
    on_terminal = is_terminal(sys.stdin) and is_terminal(sys.stdout)
    if options.interactive and not on_terminal:
        message = "--interactive needs a terminal"
        raise click.UsageError(message)
    interactive = on_terminal if options.interactive is None else options.interactive
    if not question.text and not interactive:
        message = "there is no question: give one as an argument, with --prompt-file, or on standard input"
        raise click.UsageError(message)
    return AskJob(
        settings=settings,
        environment=environment,
        question=question,
        interactive=interactive,
        detail=Detail(tool_output=options.show_tool_output, reply_costs=options.log_costs),
        options=options,
    )


def _run(job: AskJob) -> int:
    """Do the job in an event loop. Returns the exit code."""
    import asyncio

    from holmes.cli.commands.ask_run import run_ask
    from holmes.cli.commands.interrupts import Interrupts

    interrupts = Interrupts()
    try:
        return asyncio.run(run_ask(job, interrupts))
    except asyncio.CancelledError:
        click.echo("holmes: interrupted", err=True)
        return interrupts.exit_code
