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
    """Add the options that choose a live cluster.

    They are passed to `command` as `cluster` (a `ClusterChoice`), `kubeconfig` and `kube_context`.
    """
    return _live_options(_with_choice(command))


def _live_options(command: Command) -> Command:
    for option in (
        click.option("--context", "kube_context", help="Use this kubeconfig context."),
        click.option("--kubeconfig", type=PATH, help="Use this kubeconfig file."),
        click.option("--cluster", "cluster_name", help="Use this cluster from `clusters` in the configuration."),
    ):
        command = option(command)
    return command


def _with_choice(command: Command) -> Command:
    @functools.wraps(command)
    def with_choice(
        *arguments: object,
        cluster_name: str | None,
        snapshot: Path | None = None,
        demo: bool = False,
        **options: object,
    ) -> object:
        from holmes.app.cluster import ClusterChoice

        by_kubeconfig = any(options.get(each) for each in ("kubeconfig", "kube_context"))
        choice = ClusterChoice(snapshot=snapshot, demo=demo, name=cluster_name, by_kubeconfig=by_kubeconfig)
        if choice.clash:
            raise click.UsageError(choice.clash)
        return command(*arguments, cluster=choice, **options)

    return with_choice  # type: ignore[return-value]  # the function replaces the command


def cluster_options(command: Command) -> Command:
    """Add the options for choosing a live or a recorded cluster. They are passed like `live_cluster_options`."""
    command = _with_choice(command)
    for option in (
        click.option("--demo", is_flag=True, help="Use the bundled recording of a demo cluster."),
        click.option(
            "--snapshot",
            type=PATH,
            help="Use a cluster in files: a recording, a support bundle, a must-gather, a cluster dump, output of "
            "`kubectl get -o yaml`, manifests or logs, as a folder or archive.",
        ),
    ):
        command = option(command)
    return _live_options(command)


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
