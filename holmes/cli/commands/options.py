"""What several commands share: `--verbose`, which cluster to look at, and how settings are read."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    from holmes.settings.settings import Settings

    Command = TypeVar("Command", bound=Callable[..., object])

_PATH = click.Path(path_type=Path)


class CommandLineState:
    """What the edge needs to know of the command that runs. `verbose`: errors show where they came from."""

    verbose = False


def verbose_option(command: Command) -> Command:
    """`-v`: the edge shows the trace of an error, not only its line."""
    option = click.option(
        "-v",
        "--verbose",
        is_flag=True,
        expose_value=False,
        callback=_set_verbose,
        help="Show where errors come from.",
    )
    return option(command)


def _set_verbose(context: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001  click's interface
    state: CommandLineState | None = context.obj
    if state is not None:
        state.verbose = value


def cluster_options(command: Command) -> Command:
    """Adds the options; the command gets `cluster`, a `ClusterChoice`, `kubeconfig` and `kube_context`."""

    @click.option("--kubeconfig", type=_PATH, help="The kubeconfig file.")
    @click.option("--context", "kube_context", help="The kubeconfig context.")
    @click.option(
        "--snapshot",
        type=_PATH,
        help="A recorded cluster instead of a live one: a folder of `holmes snapshot create` or of "
        "`kubectl cluster-info dump`, or manifests.",
    )
    @click.option("--demo", is_flag=True, help="The recorded demo cluster that comes with Holmes.")
    @functools.wraps(command)
    def with_cluster(*arguments: object, snapshot: Path | None, demo: bool, **options: object) -> object:
        from holmes.app.cluster import ClusterChoice

        live = [name for name in ("kubeconfig", "kube_context") if options.get(name)]
        if (snapshot is not None) + demo + bool(live) > 1:
            message = "--demo, --snapshot, and --kubeconfig or --context exclude each other"
            raise click.UsageError(message)
        return command(*arguments, cluster=ClusterChoice(snapshot=snapshot, demo=demo), **options)

    return with_cluster  # type: ignore[return-value]  # it takes the place of the command


def read_settings(environment: Mapping[str, str], file: Path | None, overrides: Mapping[str, object]) -> Settings:
    """The settings of this process. `overrides` go by config key. Raises `ConfigError`."""
    # Imported here: pydantic costs 100 ms, and `--help` does not need it.
    from holmes.settings.load import load_settings

    return load_settings(environment, file, overrides)
