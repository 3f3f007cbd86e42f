"""`holmes context offload`: moves large tool results of a conversation into files, and summarises what is old.

The conversation with its metadata goes to standard output or to a file, one line for people to standard error.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holmes.cli.commands.options import verbose_option

if TYPE_CHECKING:
    from holmes.app.offload import OffloadedDocument
    from holmes.core.policy import Mode
    from holmes.settings.settings import Settings
    from holmes.values.json_types import JsonObject

_PATH = click.Path(path_type=Path)
_TOKENS = click.IntRange(min=0)
_EXIT_FAILED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadArguments:
    """What the command was told."""

    file: str
    mode: Mode
    store_dir: Path | None
    max_total_tokens: int
    max_tool_message_tokens: int
    group_token_threshold: int | None
    keep_recent_count: int | None
    chat_id: str | None
    output: Path | None
    model: str | None
    api_key: str | None
    config: Path | None


@click.group()
def context() -> None:
    """Keep conversations small."""


@context.command()
@click.argument("file")
@click.option(
    "--mode",
    type=click.Choice(["compact", "compress", "auto"]),
    default="auto",
    show_default=True,
    help="Move large results, summarise old messages, or both when the first does not free a quarter.",
)
@click.option("--store-dir", type=_PATH, help="Where results go. Default: the folder of stored results.")
@click.option("--max-total-tokens", type=_TOKENS, default=20_000, show_default=True, help="Nothing happens up to here.")
@click.option(
    "--max-tool-message-tokens", type=_TOKENS, default=2_000, show_default=True, help="Results up to here stay whole."
)
@click.option("--group-token-threshold", type=_TOKENS, help="Summarise groups of this size. Default: one group.")
@click.option(
    "--keep-recent-count", type=_TOKENS, help="Messages at the end that stay. Default: 1 to compact, 2 to compress."
)
@click.option("--chat-id", help="Names the stored groups. Default: a new UUID.")
@click.option("--output", type=_PATH, help="Write to this file instead of standard output.")
@click.option("--model", help="The model that writes summaries.")
@click.option("--api-key", help="The provider's key.")
@click.option("--config", type=_PATH, help="The config file. Default: ~/.holmes/config.yaml.")
@verbose_option
@click.pass_context
def offload(command: click.Context, /, **given: object) -> None:
    """Move large tool results of the conversation in FILE into files, and summarise what is old.

    FILE is JSON: a list of messages in the format of OpenAI's chat or in that of Holmes, an object with "messages"
    (such as a report of `holmes ask`), or a conversation that `holmes ask` keeps; - reads standard input.
    """
    command.exit(_run(OffloadArguments(**given)))  # type: ignore[arg-type]  # click has checked them


def _run(arguments: OffloadArguments) -> int:
    """Read, offload, write. Returns the exit code."""
    # Imported here: `holmes context --help` does not need them.
    import asyncio

    from holmes.app.offload import offload_directory, offload_document
    from holmes.cli.commands.options import read_settings
    from holmes.cli.commands.report_file import check_report_path
    from holmes.cli.render.terminal import one_line, tolerate_narrow_encodings, write_line
    from holmes.core.truncation.offload import OffloadOptions
    from holmes.settings.process import process_environment
    from holmes.stores.chat_documents import read_chat_document

    tolerate_narrow_encodings()
    overrides = {"model": arguments.model, "api_key": arguments.api_key}
    settings = read_settings(process_environment(), arguments.config, overrides)
    if arguments.output is not None:
        check_report_path(arguments.output, "--output")
    document = read_chat_document(_read_input(arguments.file, settings), _name(arguments.file))
    if document.unread_bytes:
        what = f"the last {document.unread_bytes:,} bytes of {_name(arguments.file)} cannot be read and are left out"
        write_line(sys.stderr, f"holmes: warning: {one_line(what, limit=1_000)}")
    options = OffloadOptions(
        mode=arguments.mode,
        max_total_tokens=arguments.max_total_tokens,
        max_tool_message_tokens=arguments.max_tool_message_tokens,
        group_token_threshold=arguments.group_token_threshold,
        keep_recent_count=arguments.keep_recent_count,
        chat_id=arguments.chat_id,
    )
    offloaded = asyncio.run(offload_document(document, options, settings, arguments.store_dir))
    _write_output(offloaded, arguments.output)
    directory = str(offload_directory(settings, arguments.store_dir))
    write_line(sys.stderr, one_line(summary_line(offloaded, directory), limit=1_000))
    failure = offloaded.metadata.failure
    if failure is None:
        return 0
    write_line(sys.stderr, f"holmes: {one_line(failure, limit=1_000)}")
    return _EXIT_FAILED


def summary_line(offloaded: OffloadedDocument, directory: str) -> str:
    """`45 messages, 25k → 38 messages, 14.2k tokens; 5 results in DIR`."""
    from holmes.cli.render.wording import counted, tokens, usage

    metadata = offloaded.metadata
    secrets = offloaded.redacted_messages
    notes = [f"secrets masked in {counted(secrets, 'message')}"] if secrets else []
    notes += [usage(metadata.stats)] if metadata.stats.calls else []
    before = f"{counted(metadata.messages_before, 'message')}, {tokens(metadata.tokens_before)}"
    if not metadata.moved and not metadata.groups:
        return "; ".join((f"{before} tokens: nothing was moved", *notes))
    after = f"{counted(metadata.messages_after, 'message')}, {tokens(metadata.tokens_after)} tokens"
    moved = [counted(len(metadata.moved), "result")] if metadata.moved else []
    moved += [counted(len(metadata.groups), "group")] if metadata.groups else []
    return "; ".join((f"{before} → {after}", f"{' and '.join(moved)} in {directory}", *notes))


def _name(file: str) -> str:
    return "standard input" if file == "-" else file


def _read_input(file: str, settings: Settings) -> str:
    from holmes.cli.commands.inputs import read_piped_text, read_text_file
    from holmes.cli.render.terminal import write_line

    if file != "-":
        return read_text_file(Path(file))
    wait_seconds = settings.investigation.stdin_timeout_seconds
    return read_piped_text(sys.stdin, wait_seconds, lambda text: write_line(sys.stderr, f"holmes: {text}"))


def _write_output(offloaded: OffloadedDocument, output: Path | None) -> None:
    from holmes.app.offload import metadata_to_json
    from holmes.cli.commands.report_file import write_json_file

    value: JsonObject = {"messages": offloaded.messages, "metadata": metadata_to_json(offloaded)}
    if output is None:
        click.echo(json.dumps(value, indent=2))
    else:
        write_json_file(output, value, "the conversation")
