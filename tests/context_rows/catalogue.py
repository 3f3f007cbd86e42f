"""Every row of the specification, with its id, the required behaviour and the settings.

This list is written by hand. `tests.context_rows.table` adds the tests of each row to the table in the documentation.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of the specification. `settings` contains configuration keys, and is empty if the behaviour has none."""

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
    _row("T1", "Each result is checked separately, right after its tool returns", _PCT, _TOKENS),
    _row(
        "T2",
        "A result above min(share of the context window, number of tokens) is removed from the conversation",
        _PCT,
        _TOKENS,
    ),
    _row("T3", "A result can have an additional limit, in characters", "context.tool_result_limit"),
    _row("T5", "The full text is stored under its hash and a readable name, with a manifest", _PATH),
    _row("T7", "Images are stored as files and removed from the message", _PATH),
    _row(
        "T8",
        "A pointer replaces a large result and shows its size, id, path, a preview, and how to read the result",
        "context.preview_max_tokens",
    ),
    _row(
        "T10",
        "A result that cannot be stored is dropped, and a message advises the model to request less data",
        _STORAGE,
    ),
    _row("T11", "Errors are stored too; their first 500 characters stay in the conversation"),
    _row("T12", "An image that is too large to read causes an error and is never stored again"),
    _row("T14", "The preview of a JSON array contains an outline and the first items that fit, as valid JSON"),
    _row(
        "T15",
        "The pointer states the shown and the total size, explains how to narrow the query, and warns against guessing",
    ),
    _row(
        "T16", "Large questions, files and piped texts are stored in the same way", "context.supervisor_msg_char_limit"
    ),
    _row("T17", "The model can read stored results with dedicated tools"),
    _row(
        "P1",
        "`path`: the path and the beginning of a large, old result replace the result",
        "context.mask_kind",
        "context.mask_older_than_messages",
        "context.mask_larger_than_characters",
    ),
    _row(
        "P2",
        "`preview`: in a long conversation, previews replace large results",
        "context.max_total_tokens",
        "context.max_tool_message_tokens",
        "context.keep_recent_count",
    ),
    _row(
        "P3",
        "`fingerprint`: a line with tool, arguments, size, first line and id replaces an old result",
        "context.mask_kind",
    ),
    _row("P4", "Results of the newest turns are never masked", "context.mask_protect_rounds"),
    _row("P5", "The newest tokens of tool results are never masked", "context.mask_protect_tokens"),
    _row(
        "P6",
        "Masking must free a minimum number of tokens, which is lower for small context windows",
        "context.mask_minimum_tokens",
    ),
    _row("P7", "Protected tools are never masked", "context.mask_protected_tools"),
    _row("P8", "Masking a masked result has no effect"),
    _row("P9", "Masking can be disabled", "context.prune"),
    _row("P10", "Truncation keeps the most recent share of the conversation", "context.keep_fraction"),
    _row("C1", "The triggers of compaction are checked before each request to the model", _ENABLED),
    _row(
        "C2",
        "Compaction runs if tokens plus reserve exceed a share of the context window; more triggers can be set",
        "context.context_window_compaction_threshold_pct",
        "context.summarization_trigger_tokens",
        "context.summarization_trigger_fraction",
        "context.summarization_trigger_messages",
        "context.compression_trigger",
        "context.reserved",
    ),
    _row("C3", "The size of the context window can be requested from the provider", "override_max_content_size"),
    _row("C4", "Compaction can be disabled; an overflow is still handled", _ENABLED),
    _row(
        "C5",
        "The strategies `summarize` and `truncate` and the modes `compact`, `compress` and `auto` can be set",
        "context.strategy",
        "context.context_manage_mode",
        "context.auto_ratio",
    ),
    _row(
        "C6",
        "The size of a context window comes from the user, the registry, a table or a default, in this order",
        "override_max_content_size",
        "override_max_output_token",
    ),
    _row(
        "C8",
        "Hooks run actions at the start and end of a turn if their conditions are true",
        "context.hooks",
        "context.auto_compact",
    ),
    _row("C9", "Every setting can apply to all models or to one model"),
    _row("C10", "`/compact` compacts the conversation now"),
    _row("C11", "`/context` shows how much of the context window is used"),
    _row("K1", "A compacted history contains system prompt, task, summary, last question and tail"),
    _row(
        "K2",
        "Recent messages stay verbatim, up to a number of messages or tokens",
        "context.keep_recent",
        "context.summarization_keep_tokens",
    ),
    _row(
        "K5",
        "The request states the maximum size of a summary, and a much longer summary is cut",
        "context.summary_max_tokens",
    ),
    _row("K6", "The prompt for a summary requests all sections that an investigation needs"),
    _row("K7", "`truncate` replaces the older messages with a one-line note", "context.strategy"),
    _row("K8", "Every compaction adds a reminder of the tools"),
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
    _row("K14", "If a summary request is too large, its images are removed"),
    _row("K15", "`offload_context` is available as a library call and as a command"),
    _row("K16", "A compaction that does not shorten the history is discarded"),
    _row(
        "S1",
        "The next compaction waits for a cooldown, even after a restart",
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
    _row(
        "S4",
        "Overflow errors of all providers are recognised, but not similar errors; the real context window is learned",
    ),
    _row("S5", "A provider that counts far fewer tokens than were sent is detected"),
    _row("S7", "All tokens and costs of a compaction are counted and shown"),
    _row("S8", "Prompt caching works as each provider requires", "prompt_caching"),
    _row("S9", "The first summary request extends the agent's last request; the second request is plain text"),
    _row("S11", "The number of tokens can be estimated from the kind of text", "context.counting"),
    _row("S12", "An event reports every change to the conversation"),
    _row("N1", "Previews support logs, tables, JSON, YAML and events", "context.preview_max_tokens"),
    _row("N2", "Search, line ranges, jq and statistics of stored results return a limited amount of text"),
    _row(
        "N3",
        "The store is content-addressed and deduplicated, and has a retention time and a quota",
        _PATH,
        "tool_result_retention_days",
        "tool_result_quota_megabytes",
    ),
    _row("N4", "The result of a repeated call shows only the changes", "context.unchanged_answers"),
    _row("N6", "Claims cite stored lines, and each claim is checked before it is shown", "context.citations"),
    _row("N7", "Important names that are missing in a summary are requested, then appended", "context.verify_entities"),
    _row("N8", "Names that a summary invented are marked", "context.verify_entities"),
    _row("N9", "The cost of counting depends only on new messages"),
    _row("N13", "Secrets are masked before anything is stored, summarised, sent or logged", "redaction"),
    _row("I1", "Every call has exactly one result, which follows its reply"),
    _row("I2", "The system prompt and the tool schemas never change"),
    _row("I3", "Between two prefix resets, each request starts with the previous request"),
    _row("I4", "Every stage is idempotent"),
    _row("I5", "Every stage reduces the tokens or returns the same object"),
    _row("I6", "Every byte of every result can be read"),
    _row("I7", "The pointer and the preview of any text fit within the cap"),
    _row("I8", "After a failed summary, the conversation is still valid"),
    _row("I9", "The task and the last question stay unchanged, byte for byte"),
    _row("I10", "If every request overflows, the run ends"),
    _row("I11", "After a compaction, the conversation has at most 60% of the tokens that triggered it"),
    _row("I12", "The sum of the costs equals the cost that the provider reported"),
    _row("I13", "Files are private, inside the store, and never overwritten"),
    _row("I14", "A message is tokenized once"),
    _row("I15", "The summary request fits the context window of its model"),
)
