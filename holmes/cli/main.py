"""The `holmes` command: finds the subcommand, and converts errors to one-line messages and exit codes.

A subcommand is imported when it runs, so that `holmes --help` needs only click. Exit codes: 0 answered, 1 failed, 2
wrong usage or configuration, 3 source or cluster unreachable, 129 after SIGHUP, 130 after Ctrl-C, 143 after SIGTERM,
141 if the process that reads the output exits.
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys
from pathlib import Path
from typing import Final

import click

from holmes import __version__
from holmes.cli.commands.command import CommandLineState
from holmes.values.errors import HolmesError, mask_errors, masked

_SUBCOMMANDS: Final = {
    "ask": ("holmes.cli.commands.questions:ask", "Ask why something in a cluster does not work."),
    "completion": ("", "Print the shell completion script."),
    "context": ("holmes.cli.commands.context_command:context", "Shorten conversations."),
    "investigate": ("holmes.cli.commands.questions:investigate", "Investigate alerts from other systems."),
    "mcp": ("holmes.cli.commands.mcp_command:mcp", "Offer Holmes to editors and other agents as an MCP server."),
    "rules": ("holmes.cli.commands.list_commands:rules", "List and explain the rules of `holmes scan`."),
    "scan": ("holmes.cli.commands.scan_command:scan", "Find problems and their causes, without an LLM."),
    "serve": ("holmes.server.command:serve", "Serve the HTTP API, the alert webhook and the web pages."),
    "snapshot": (
        "holmes.cli.commands.snapshot_command:snapshot",
        "Record a cluster to files, and serve or show a recording.",
    ),
    "toolset": ("holmes.cli.commands.list_commands:toolset", "List and check the toolsets."),
    "version": ("", "Print the version."),
}

_WITHOUT_VARIABLES: Final = {"completion", "rules"}

_EXIT_FAILED = 1
_EXIT_USAGE = 2
_EXIT_INTERRUPTED = 130
_EXIT_BROKEN_PIPE = 141
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class ReaderGone(Exception):
    """Raised if the process that reads the output has exited.

    It is not an `OSError`, because click exits with code 1 for an `OSError`.
    """


def _add_env_file(context: click.Context, _: click.Parameter, path: Path | None) -> None:
    """Set the variables in the file before any variable is read. Raises `ConfigError`."""
    if path is None or context.resilient_parsing:
        return
    from holmes.settings.process import add_env_file

    add_env_file(path)


def _env_file_option() -> click.Option:
    return click.Option(
        ["--env-file"],
        type=click.Path(path_type=Path),
        is_eager=True,
        expose_value=False,
        callback=_add_env_file,
        help="Read variables from this file of NAME=value lines. Variables that are already set keep their values.",
    )


def _accept_env_file(command: click.Command) -> None:
    """Add `--env-file` to `command` and its subcommands."""
    if isinstance(command, click.Group):
        for below in command.commands.values():
            _accept_env_file(below)
    elif not any("--env-file" in parameter.opts for parameter in command.params):
        command.params.append(_env_file_option())


class LazyGroup(click.Group):
    """Imports a subcommand when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's interface
        return sorted(_SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        target, _ = _SUBCOMMANDS.get(cmd_name, ("", ""))
        if not target:
            return super().get_command(ctx, cmd_name)
        module, _, name = target.partition(":")
        command = getattr(importlib.import_module(module), name)
        if not isinstance(command, click.Command):
            message = f"{target} is not a command"
            raise TypeError(message)
        if cmd_name not in _WITHOUT_VARIABLES:
            _accept_env_file(command)
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run the subcommand. Raises `ReaderGone` instead of `BrokenPipeError`."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ReaderGone from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the subcommands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in sorted(_SUBCOMMANDS.items())])


@click.group(cls=LazyGroup, params=[_env_file_option()], context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="holmes", message="%(prog)s %(version)s")
def cli() -> None:
    """Find the root cause of Kubernetes problems."""
    # Imported here, because `holmes --help` does not need this module.
    from holmes.settings.process import trust_own_authorities

    trust_own_authorities()


@cli.command()
def version() -> None:
    """Print the version."""
    click.echo(f"holmes {__version__}")


@cli.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the shell completion script.

    For bash, add this line to ~/.bashrc:  eval "$(holmes completion bash)"
    """
    from click.shell_completion import get_completion_class

    completion_class = get_completion_class(shell)
    if completion_class is None:
        message = f"completion is not available for {shell!r}"
        raise click.UsageError(message)
    root = context.find_root().command
    click.echo(completion_class(root, {}, "holmes", "_HOLMES_COMPLETE").source())


class Messages(io.TextIOWrapper):
    """Standard error. If it cannot be written, for example because the disk is full, the messages are dropped.

    So the result on standard output and the exit code stay right.
    """

    def __init__(self, descriptor: int, encoding: str) -> None:
        super().__init__(
            open(descriptor, "wb", closefd=False),  # noqa: SIM115  this stream stays open until the end
            encoding=encoding,
            errors="backslashreplace",
            line_buffering=True,
        )

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except BrokenPipeError:
            raise
        except OSError:
            _silence(self.fileno())
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except BrokenPipeError:
            raise
        except OSError:
            _silence(self.fileno())
            super().flush()


def main() -> None:
    """Run the command line of this process, and exit with its code."""
    state = CommandLineState()
    mask_errors(_mask_early)
    if sys.stderr is not None:
        sys.stderr = Messages(sys.stderr.fileno(), sys.stderr.encoding)
    try:
        code = cli.main(prog_name="holmes", standalone_mode=False, obj=state)
        _flush_streams()
    except (ReaderGone, BrokenPipeError):
        _silence(1, 2)
        code = _EXIT_BROKEN_PIPE
    except (KeyboardInterrupt, click.Abort):
        _say("holmes: interrupted")
        code = _EXIT_INTERRUPTED
    except click.ClickException as error:
        code = _report_usage(error)
    except OSError as error:
        code = _report_full_output(error) if error.errno in _NO_ROOM else _report(error, verbose=state.verbose)
    except Exception as error:  # noqa: BLE001  the last handler before the process exits
        code = _report(error, verbose=state.verbose)
    sys.exit(code if isinstance(code, int) else 0)


def _report_usage(error: click.ClickException) -> int:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return _EXIT_USAGE
    context = getattr(error, "ctx", None)
    advice = f" (see '{context.command_path} --help')" if context else ""
    _say(f"holmes: {error.format_message().rstrip('.')}{advice}")
    return _EXIT_USAGE


def _report(error: Exception, *, verbose: bool) -> int:
    """Show one line for a `HolmesError`, and the traceback for a bug. Returns the exit code."""
    # Imported here, because only a failed run needs this module.
    import traceback

    if verbose or not isinstance(error, HolmesError):
        _say("".join(traceback.format_exception(error)).rstrip())
    if isinstance(error, HolmesError):
        _say(f"holmes: {' '.join(str(error).split())}")
        return error.exit_code
    _say("holmes: internal error; please report it with the lines above")
    return _EXIT_FAILED


def _report_full_output(error: OSError) -> int:
    """Report that standard output cannot be written, for example because the disk is full. Returns the exit code."""
    _silence(1)
    _say(f"holmes: the output cannot be written: {error.strerror}")
    return _EXIT_FAILED


def _say(text: str) -> None:
    """Print an error to standard error."""
    if sys.stderr is not None:
        from holmes.cli.render.terminal import sanitized

        click.echo(sanitized(masked(text)), err=True)


def _mask_early(text: str) -> str:
    """Mask secrets in `text` without the settings, which might not have been read yet."""
    from holmes.app.redaction import early_redactor

    return early_redactor().redact(text)


def _flush_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def _silence(*descriptors: int) -> None:
    """Redirect the streams to the null device, so that the interpreter does not fail when it flushes them at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in descriptors:
        os.dup2(nowhere, descriptor)
    os.close(nowhere)


if __name__ == "__main__":
    main()
