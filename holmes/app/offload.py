"""`offload_context` for the faces: the store and the model of the settings, and the result as JSON.

Needs no cluster, and a model only when a summary must be written.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from holmes.app.redaction import make_redactor
from holmes.core.truncation.offload import offload_context
from holmes.redaction.redactor import redact_message_off_loop
from holmes.stores.message_codec import stored_result_to_json
from holmes.stores.result_store import FileResultStore
from holmes.values.errors import ConfigError
from holmes.values.stats import spend_by_model

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.core.truncation.offload import OffloadMetadata, OffloadOptions, OffloadOutcome
    from holmes.settings.settings import Settings
    from holmes.stores.chat_documents import ChatDocument
    from holmes.values.json_types import JsonObject, JsonValue
    from holmes.values.messages import Message, StoredResult
    from holmes.values.tools import ResultStore


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadedDocument:
    """The messages in the format of the file. In `redacted_messages` of those that were given, secrets were masked."""

    messages: tuple[JsonObject, ...]
    metadata: OffloadMetadata
    redacted_messages: int


async def offload_document(
    document: ChatDocument, options: OffloadOptions, settings: Settings, directory: Path | None
) -> OffloadedDocument:
    """`offload_context` into `directory`, or into the folder of stored results; secrets are masked before (N13).

    Raises `ConfigError` for bad options, when storage is off, and for an unknown model or a missing key when a summary
    is needed.
    """
    store = FileResultStore(offload_directory(settings, directory))
    redactor = make_redactor(settings)
    safe = document.messages
    if redactor is not None:
        safe = tuple([await redact_message_off_loop(redactor, message) for message in document.messages])
    redacted = document.with_messages(safe)
    outcome = await _offload(safe, options, settings, store)
    return OffloadedDocument(
        messages=redacted.written(outcome.messages),
        metadata=outcome.metadata,
        redacted_messages=sum(new is not old for new, old in zip(safe, document.messages, strict=True)),
    )


async def _offload(
    messages: tuple[Message, ...], options: OffloadOptions, settings: Settings, store: ResultStore
) -> OffloadOutcome:
    if options.mode == "compact":
        return await offload_context(messages, options, store=store)
    # Imported here: compacting needs no model.
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


def offload_directory(settings: Settings, directory: Path | None) -> Path:
    """Where results go. Raises `ConfigError` when no folder is given and storage is switched off."""
    if directory is not None:
        return directory
    if not settings.storage.results_enabled:
        raise ConfigError("storage of tool results is switched off: name a folder with --store-dir")
    return settings.storage.results_path


def metadata_to_json(offloaded: OffloadedDocument) -> JsonObject:
    """The metadata for files and programs; sizes in tokens, positions count from 0."""
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
    return [stored_result_to_json(result) for result in stored]
