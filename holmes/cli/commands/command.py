"""Provides the options, the settings and the event loop that all commands share.

`holmes --help` imports this module, so large packages are imported inside the functions.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from typing import TypeVar

    from holmes.cli.commands.interrupts import Interrupts
    from holmes.settings.settings import Settings

    Command = TypeVar("Command", bound=Callable[..., object])

PATH: Final = click.Path(path_type=Path)


class CommandLineState:
    """State of the running command. If `verbose` is true, errors show their traceback, and citations their paths."""

    verbose = False


def verbose_option(command: Command) -> Command:
    """Add the option `-v`."""
    option = click.option(
        "-v",
        "--verbose",
        is_flag=True,
        expose_value=False,
        callback=_set_verbose,
        help="Show the paths of cited results, and the traceback of errors.",
    )
    return option(command)


def _set_verbose(context: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001  click's interface
    state: CommandLineState | None = context.obj
    if state is not None:
        state.verbose = value


def is_verbose() -> bool:
    """Return whether the running command has the option `-v`."""
    context = click.get_current_context(silent=True)
    return context is not None and context.obj is not None and bool(context.obj.verbose)


def config_option(command: Command) -> Command:
    """Add the option `--config`."""
    return click.option("--config", type=PATH, help="Use this config file. Default: ~/.holmes/config.yaml.")(command)


def toolset_option(command: Command) -> Command:
    """Add the option `--custom-toolsets`."""
    return click.option(
        "-t",
        "--custom-toolsets",
        multiple=True,
        type=click.Path(),
        help="Add the toolsets in this file; may be repeated.",
    )(command)


def live_cluster_options(command: Command) -> Command:
    """Add the options `--kubeconfig` and `--context`."""
    command = click.option("--context", "kube_context", help="Use this kubeconfig context.")(command)
    return click.option("--kubeconfig", type=PATH, help="Use this kubeconfig file.")(command)


def cluster_options(command: Command) -> Command:
    """Add the options for choosing a cluster.

    The options are passed to `command` as `cluster` (a `ClusterChoice`), `kubeconfig` and `kube_context`.
    """

    @live_cluster_options
    @click.option(
        "--snapshot",
        type=PATH,
        help="Use a recorded cluster: a folder from `holmes snapshot create` or `kubectl cluster-info dump`, or "
        "manifests.",
    )
    @click.option("--demo", is_flag=True, help="Use the bundled recording of a demo cluster.")
    @functools.wraps(command)
    def with_cluster(*arguments: object, snapshot: Path | None, demo: bool, **options: object) -> object:
        from holmes.app.cluster import ClusterChoice

        live = [name for name in ("kubeconfig", "kube_context") if options.get(name)]
        if (snapshot is not None) + demo + bool(live) > 1:
            message = "--demo, --snapshot and --kubeconfig/--context are mutually exclusive"
            raise click.UsageError(message)
        return command(*arguments, cluster=ClusterChoice(snapshot=snapshot, demo=demo), **options)

    return with_cluster  # type: ignore[return-value]  # the function replaces the command


def question_options(command: Command) -> Command:
    """Add the options that are common to all commands that ask a model about a cluster."""
    for option in (
        verbose_option,
        click.option("--refresh-toolsets", is_flag=True, help="Check all toolsets again."),
        click.option("--log-costs", is_flag=True, help="Show the cost of each model reply."),
        click.option("--show-tool-output", is_flag=True, help="Show complete tool results."),
        cluster_options,
        click.option("--max-steps", type=int, help="Maximum number of model replies for one question."),
        toolset_option,
        config_option,
        click.option("--api-key", help="Use this API key for the model provider."),
        click.option("--model", help="Use this model: a name from the model list or a litellm model name."),
    ):
        command = option(command)
    return command


def read_settings(config: Path | None, overrides: Mapping[str, object]) -> Settings:
    """Read the settings of this process. The keys of `overrides` are config keys. Raises `ConfigError`."""
    from holmes.cli.render.terminal import tolerate_narrow_encodings
    from holmes.settings.load import load_settings
    from holmes.settings.process import process_environment

    tolerate_narrow_encodings()
    return load_settings(process_environment(), config, overrides)


def run_until_signal(work: Callable[[Interrupts], Coroutine[object, object, int]], notice: str = "interrupted") -> int:
    """Run `work` in an event loop. Returns its exit code, or the exit code of the signal that ended it."""
    import asyncio

    from holmes.cli.commands.interrupts import Interrupts

    interrupts = Interrupts()
    try:
        return asyncio.run(work(interrupts))
    except asyncio.CancelledError:
        click.echo(f"holmes: {notice}", err=True)
        return interrupts.exit_code
