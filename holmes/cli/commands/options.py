"""Options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    Command = TypeVar("Command", bound=Callable[..., object])


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
