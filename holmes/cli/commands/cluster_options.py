"""`--snapshot`, `--demo`, `--kubeconfig` and `--context`: which cluster to look at. Used by `ask` and `scan`."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    Command = TypeVar("Command", bound=Callable[..., object])

_PATH = click.Path(path_type=Path)


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
        from holmes.app.cluster_choice import ClusterChoice

        live = [name for name in ("kubeconfig", "kube_context") if options.get(name)]
        if (snapshot is not None) + demo + bool(live) > 1:
            message = "--demo, --snapshot, and --kubeconfig or --context exclude each other"
            raise click.UsageError(message)
        return command(*arguments, cluster=ClusterChoice(snapshot=snapshot, demo=demo), **options)

    return with_cluster  # type: ignore[return-value]  # it takes the place of the command
