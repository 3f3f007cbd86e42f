"""Every row of the specification: its id, what it asks for, and the settings that it has.

Written by hand, because only people know what a row means; everything else in the table of the documents (defaults,
tests) is read from the code by `tests.context_rows.table`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row. `settings` are keys of the configuration file; empty when there is nothing to set."""

    id: str
    behaviour: str
    settings: tuple[str, ...] = ()


def _row(row_id: str, behaviour: str, *settings: str) -> Row:
    return Row(id=row_id, behaviour=behaviour, settings=settings)


_PCT = "context.tool_max_allocated_context_window_pct"
_TOKENS = "context.tool_max_allocated_context_window_tokens"
_ENABLED = "context.enable_conversation_history_compaction"
_STORAGE = "tool_result_storage_enabled"
_PATH = "tool_result_storage_path"

ROWS: tuple[Row, ...] = (
    _row("T1", "Each result is checked alone, right after its tool returned", _PCT, _TOKENS),
    _row("T2", "A result above min(share of the window, tokens) is removed from the conversation", _PCT, _TOKENS),
    _row("T3", "A second limit, in characters", "context.tool_result_limit"),
    _row("T5", "The full text is stored under its hash and a readable name, with a manifest", _PATH),
    _row("T7", "Pictures are stored as files and removed from the message", _PATH),
    _row(
        "T8",
        "A pointer replaces it: size, id, path, ways to read it, and a preview",
        "context.preview_max_tokens",
    ),
    _row("T10", "A result that cannot be stored is dropped, and a message advises the model to request less", _STORAGE),
    _row("T11", "Errors are stored too; their first 500 characters stay in the conversation"),
    _row("T12", "A picture that is too large to read is an error and is never stored again"),
    _row("T14", "The preview of a JSON array has an outline and the first items that fit, as valid JSON"),
    _row(
        "T15", "The pointer states the shown and the total size, explains how to narrow the query, and forbids guessing"
    ),
    _row("T16", "Large questions, files and piped texts are stored the same way", "context.supervisor_msg_char_limit"),
    _row("T17", "Stored results can be read with special tools"),
    _row(
        "P1",
        "`path`: old, large results are replaced by their path and their beginning",
        "context.mask_kind",
        "context.mask_older_than_messages",
        "context.mask_larger_than_characters",
    ),
    _row(
        "P2",
        "`preview`: in a long conversation large results become previews",
        "context.max_total_tokens",
        "context.max_tool_message_tokens",
        "context.keep_recent_count",
    ),
    _row(
        "P3",
        "`fingerprint`: old results are replaced by tool, arguments, lines, size, first line and id",
        "context.mask_kind",
    ),
    _row("P4", "Results of the newest turns are never masked", "context.mask_protect_rounds"),
    _row("P5", "The newest tokens of tool results are never masked", "context.mask_protect_tokens"),
    _row(
        "P6",
        "Results are masked only if this frees enough tokens; small windows need fewer",
        "context.mask_minimum_tokens",
    ),
    _row("P7", "Protected tools are never masked", "context.mask_protected_tools"),
    _row("P8", "Masking a masked result changes nothing"),
    _row("P9", "Masking can be switched off", "context.prune"),
    _row("P10", "A truncation keeps the newest share of the conversation", "context.keep_fraction"),
    _row("C1", "Compaction is considered at the top of every iteration", _ENABLED),
    _row(
        "C2",
        "The trigger: tokens and reserve above a share of the window; additional triggers can be set",
        "context.context_window_compaction_threshold_pct",
        "context.summarization_trigger_tokens",
        "context.summarization_trigger_fraction",
        "context.summarization_trigger_messages",
        "context.compression_trigger",
        "context.reserved",
    ),
    _row("C3", "The size of the window can be requested from the provider", "override_max_content_size"),
    _row("C4", "Compaction can be switched off; an overflow is still handled", _ENABLED),
    _row(
        "C5",
        "Strategies `summarize` and `truncate`, modes `compact`, `compress` and `auto`",
        "context.strategy",
        "context.context_manage_mode",
        "context.auto_ratio",
    ),
    _row(
        "C6",
        "The window of a model: the user's value, the registry, a table, a default",
        "override_max_content_size",
        "override_max_output_token",
    ),
    _row("C8", "Hooks: conditions and actions at the start and end of a turn", "context.hooks", "context.auto_compact"),
    _row("C9", "Every setting can apply to all models or to one"),
    _row("C10", "`/compact` compacts now"),
    _row("C11", "`/context` shows the used share of the window"),
    _row("K1", "A compacted history is system prompt, task, summary, last question, tail"),
    _row(
        "K2",
        "Recent messages stay verbatim, by count or tokens",
        "context.keep_recent",
        "context.summarization_keep_tokens",
    ),
    _row("K5", "The size limit of a summary is stated and enforced", "context.summary_max_tokens"),
    _row("K6", "The prompt requests all parts that an investigation needs"),
    _row("K7", "`truncate` replaces the older messages by a line", "context.strategy"),
    _row("K8", "A reminder of the tools follows every compaction"),
    _row("K9", "A call and its results are never separated"),
    _row(
        "K10",
        "A long history is summarised in groups, which are stored",
        "context.group_token_threshold",
        "context.chat_id",
    ),
    _row("K11", "Removed messages are stored and can be read", _PATH),
    _row("K12", "Another model can write the summaries", "context.summary_model"),
    _row("K13", "The run continues automatically after a compaction"),
    _row("K14", "Pictures are removed from a summary request that is too large with them"),
    _row("K15", "`offload_context` is a library call and a command"),
    _row("K16", "A compaction that does not shorten the history is discarded"),
    _row(
        "S1",
        "No compaction runs directly after another one, even after a restart",
        "context.compaction_cooldown_rounds",
    ),
    _row(
        "S2",
        "Repeated compactions end the run with the advice to start a new conversation",
        "context.compaction_max_attempts",
    ),
    _row(
        "S3",
        "An overflow is handled without a model, and the request is repeated",
        "context.emergency_share",
    ),
    _row("S4", "Overflows of all providers are recognised, similar errors are not, and the real window is learned"),
    _row("S5", "A provider that counts far fewer tokens than were sent is detected"),
    _row("S7", "Every token and cent of a compaction is counted and shown"),
    _row("S8", "Prompt caching as each provider requires it", "prompt_caching"),
    _row("S9", "The summary request has the shape of the agent's requests; the second attempt is plain text"),
    _row("S11", "Tokens can be estimated from the kind of text", "context.counting"),
    _row("S12", "Every change of the conversation is an event"),
    _row("N1", "Previews understand logs, tables, JSON, YAML and events", "context.preview_max_tokens"),
    _row("N2", "Search, line ranges, jq and statistics over stored results, with bounded results"),
    _row(
        "N3",
        "The store: content-addressed, deduplicated, with time-to-live and quota",
        _PATH,
        "tool_result_retention_days",
        "tool_result_quota_megabytes",
    ),
    _row("N4", "The result of a repeated call shows only the changes", "context.unchanged_answers"),
    _row("N6", "Claims cite stored lines and are checked before they are shown", "context.citations"),
    _row("N7", "Important names that are missing in a summary are requested, then appended", "context.verify_entities"),
    _row("N8", "Names that a summary invented are marked", "context.verify_entities"),
    _row("N9", "The cost of counting depends on new messages only"),
    _row("N13", "Secrets are masked before anything is stored, summarised, sent or logged", "redaction"),
    _row("I1", "Every call has exactly one result, in place"),
    _row("I2", "System prompt and tool schemas never change"),
    _row("I3", "Between two prefix resets each request continues the one before"),
    _row("I4", "Every stage is idempotent"),
    _row("I5", "The tokens decrease, or the same object is returned"),
    _row("I6", "Every byte of every result is reachable"),
    _row("I7", "Pointer and preview fit the cap, whatever the text"),
    _row("I8", "A failed summary leaves a valid conversation"),
    _row("I9", "Task and last question survive byte for byte"),
    _row("I10", "A provider that always overflows ends the run"),
    _row("I11", "After a compaction at most 60% of the trigger is used"),
    _row("I12", "The costs add up to what the provider reported"),
    _row("I13", "Files are private, inside the store, and never overwritten"),
    _row("I14", "A message is tokenized once"),
    _row("I15", "The summary request fits its model's window"),
)
