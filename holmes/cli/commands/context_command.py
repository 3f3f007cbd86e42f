"""Implements `holmes context offload`, which makes a conversation shorter.

The command moves large tool results into files and summarises old messages. The conversation and its metadata go to
standard output or a file, and a summary line goes to standard error. The command does not need a cluster. It needs a
model only for summaries.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holmes.cli.commands.command import PATH, config_option, read_settings, verbose_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.core.policy import Mode
    from holmes.core.truncation.offload import OffloadMetadata, OffloadOptions, OffloadOutcome
    from holmes.settings.settings import Settings
    from holmes.stores.chat_documents import ChatDocument
    from holmes.values.json_types import JsonObject, JsonValue
    from holmes.values.messages import Message, StoredResult
    from holmes.values.tools import ResultStore

_TOKENS = click.IntRange(min=0)
_EXIT_FAILED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadArguments:
    """The arguments and options of `holmes context offload`."""

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
    """Shorten conversations."""


@context.command()
@click.argument("file")
@click.option(
    "--mode",
    type=click.Choice(["compact", "compress", "auto"]),
    default="auto",
    show_default=True,
    help="compact moves large results into files. compress summarises old messages. auto compacts first, and "
    "also compresses if compacting frees less than a quarter of the tokens.",
)
@click.option("--store-dir", type=PATH, help="Store results in this folder. Default: the folder for stored results.")
@click.option(
    "--max-total-tokens",
    type=_TOKENS,
    default=20_000,
    show_default=True,
    help="Leave conversations of at most this number of tokens unchanged.",
)
@click.option(
    "--max-tool-message-tokens",
    type=_TOKENS,
    default=2_000,
    show_default=True,
    help="Keep results of at most this number of tokens in the conversation.",
)
@click.option(
    "--group-token-threshold",
    type=_TOKENS,
    help="Summarise messages in groups of this number of tokens. Default: one group.",
)
@click.option(
    "--keep-recent-count",
    type=_TOKENS,
    help="Keep this number of newest messages unchanged. Default: 1 for compact, 2 for compress.",
)
@click.option("--chat-id", help="Use this name for stored groups of summarised messages. Default: a new UUID.")
@click.option("--output", type=PATH, help="Write to this file instead of standard output.")
@click.option("--model", help="Use this model for summaries.")
@click.option("--api-key", help="Use this API key for the model provider.")
@config_option
@verbose_option
@click.pass_context
def offload(command: click.Context, /, **given: object) -> None:
    """Move large tool results of the conversation in FILE into files, and summarise old messages.

    FILE is JSON: a list of messages in OpenAI or Holmes format, an object with "messages" (such as a report of `holmes
    ask`), or a conversation that `holmes ask` stored. Use - to read standard input.
    """
    command.exit(_run(OffloadArguments(**given)))  # type: ignore[arg-type]  # checked by click


def _run(arguments: OffloadArguments) -> int:
    """Read, offload and write the conversation. Returns the exit code."""
    # Imported here, because `holmes context --help` does not need these modules.
    import asyncio

    from holmes.cli.commands.report_file import check_report_path
    from holmes.cli.render.terminal import one_line, write_line
    from holmes.core.truncation.offload import OffloadOptions
    from holmes.stores.chat_documents import read_chat_document

    settings = read_settings(arguments.config, {"model": arguments.model, "api_key": arguments.api_key})
    if arguments.output is not None:
        check_report_path(arguments.output, "--output")
    document = read_chat_document(_read_input(arguments.file, settings), _name(arguments.file))
    if document.unread_bytes:
        what = f"the last {document.unread_bytes:,} bytes of {_name(arguments.file)} cannot be read and are skipped"
        write_line(sys.stderr, f"holmes: warning: {one_line(what, limit=1_000)}")
    options = OffloadOptions(
        mode=arguments.mode,
        max_total_tokens=arguments.max_total_tokens,
        max_tool_message_tokens=arguments.max_tool_message_tokens,
        group_token_threshold=arguments.group_token_threshold,
        keep_recent_count=arguments.keep_recent_count,
        chat_id=arguments.chat_id,
    )
    directory = _directory(settings, arguments.store_dir)
    offloaded = asyncio.run(_offload_document(document, options, settings, directory))
    _write_output(offloaded, arguments.output)
    write_line(sys.stderr, one_line(_summary_line(offloaded, str(directory)), limit=1_000))
    failure = offloaded.metadata.failure
    if failure is None:
        return 0
    write_line(sys.stderr, f"holmes: {one_line(failure, limit=1_000)}")
    return _EXIT_FAILED


def _directory(settings: Settings, directory: Path | None) -> Path:
    """Return the folder for stored results. Raises `ConfigError` if no folder is given and storage is disabled."""
    from holmes.values.errors import ConfigError

    if directory is not None:
        return directory
    if not settings.storage.results_enabled:
        raise ConfigError("storage of tool results is disabled: specify a folder with --store-dir")
    return settings.storage.results_path


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadedDocument:
    """The offloaded conversation, in the format of the input file.

    `redacted_messages` is the number of messages that contained secrets.
    """

    messages: tuple[JsonObject, ...]
    metadata: OffloadMetadata
    redacted_messages: int


async def _offload_document(
    document: ChatDocument, options: OffloadOptions, settings: Settings, directory: Path
) -> OffloadedDocument:
    """Mask secrets, then offload the conversation into `directory`.

    Raises `ConfigError` for invalid options, and for an unknown model or a missing key if a summary is needed.
    """
    from holmes.app.redaction import make_redactor
    from holmes.redaction.redactor import redact_message_off_loop
    from holmes.stores.result_store import FileResultStore

    redactor = make_redactor(settings)
    safe = document.messages
    if redactor is not None:
        safe = tuple([await redact_message_off_loop(redactor, message) for message in document.messages])
    redacted = document.with_messages(safe)
    outcome = await _offload(safe, options, settings, FileResultStore(directory))
    return OffloadedDocument(
        messages=redacted.written(outcome.messages),
        metadata=outcome.metadata,
        redacted_messages=sum(new is not old for new, old in zip(safe, document.messages, strict=True)),
    )


async def _offload(
    messages: Sequence[Message], options: OffloadOptions, settings: Settings, store: ResultStore
) -> OffloadOutcome:
    from holmes.core.truncation.offload import offload_context

    if options.mode == "compact":
        return await offload_context(messages, options, store=store)
    from holmes.app.models import build_models, check_models
    from holmes.prompts import render_prompt

    chain = build_models(settings)
    writer = chain.models[0].summary_model or chain.models[0].model
    try:
        if options.mode == "compress":
            await check_models(settings, chain.configured)
        return await offload_context(messages, options, store=store, model=writer, prompt=render_prompt("compaction"))
    finally:
        for model in chain.configured:
            await model.aclose()


def _summary_line(offloaded: OffloadedDocument, directory: str) -> str:
    """Return a summary, for example `45 messages, 25k → 38 messages, 14.2k tokens; 5 results in DIR`."""
    from holmes.cli.render.terminal import counted, tokens, usage

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
    from holmes.cli.commands.report_file import write_json_file

    value: JsonObject = {"messages": offloaded.messages, "metadata": _metadata_json(offloaded)}
    if output is None:
        click.echo(json.dumps(value, indent=2))
    else:
        write_json_file(output, value, "the conversation")


def _metadata_json(offloaded: OffloadedDocument) -> JsonObject:
    """Return the metadata as JSON. Sizes are in tokens, and positions start at 0."""
    from holmes.values.stats import spend_by_model

    metadata = offloaded.metadata
    return {
        "mode": metadata.mode,
        "chat_id": metadata.chat_id,
        "tokens_before": metadata.tokens_before,
        "tokens_after": metadata.tokens_after,
        "messages_before": metadata.messages_before,
        "messages_after": metadata.messages_after,
        "moved": [
            {
                "position": moved.position,
                "tool_name": moved.tool_name,
                "tokens_before": moved.tokens_before,
                "tokens_after": moved.tokens_after,
                "stored": _stored(moved.stored),
            }
            for moved in metadata.moved
        ],
        "groups": [
            {
                "messages": group.messages,
                "tokens_before": group.tokens_before,
                "tokens_after": group.tokens_after,
                "stored": _stored((group.stored,)),
            }
            for group in metadata.groups
        ],
        "redacted_messages": offloaded.redacted_messages,
        "failure": metadata.failure,
        "stats": {**asdict(metadata.stats), "summaries": [{**each} for each in spend_by_model(metadata.stats)]},
    }


def _stored(stored: tuple[StoredResult, ...]) -> JsonValue:
    from holmes.stores.message_codec import stored_result_to_json

    return [stored_result_to_json(result) for result in stored]
