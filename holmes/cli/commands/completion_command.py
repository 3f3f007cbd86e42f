"""`holmes completion bash|zsh|fish`: prints the script that makes the shell complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the shell completion script.

    For bash, put this into ~/.bashrc:  eval "$(holmes completion bash)"
    """
    completion_class = get_completion_class(shell)
    if completion_class is None:
        message = f"there is no completion for {shell!r}"
        raise click.UsageError(message)
    root = context.find_root().command
    click.echo(completion_class(root, {}, "holmes", "_HOLMES_COMPLETE").source())
