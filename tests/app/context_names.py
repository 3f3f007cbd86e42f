"""Every documented name of a threshold of context management, and what of the policy it sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holmes.core.policy import ContextPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A key below `context:`, a value that differs from every default, and where the policy has it.

    `variable` and `aliases` are what the documents of the other systems say.
    """

    key: str
    value: object
    read: Callable[[ContextPolicy], object]
    variable: str = ""
    aliases: tuple[str, ...] = ()


NAMES = (
    Name(
        key="policy",
        value="octo",
        read=lambda policy: policy.name,
        variable="HOLMES_CONTEXT_POLICY",
        aliases=("context_policy",),
    ),
    Name(key="counting", value="estimate", read=lambda policy: policy.counting),
    Name(
        key="tool_max_allocated_context_window_pct",
        value=7.5,
        read=lambda policy: policy.spill.max_pct,
        variable="TOOL_MAX_ALLOCATED_CONTEXT_WINDOW_PCT",
        aliases=("tool_max_allocated_context_window_pct",),
    ),
    Name(
        key="tool_max_allocated_context_window_tokens",
        value=1_234,
        read=lambda policy: policy.spill.max_tokens,
        variable="TOOL_MAX_ALLOCATED_CONTEXT_WINDOW_TOKENS",
        aliases=("tool_max_allocated_context_window_tokens",),
    ),
    Name(key="tool_result_available_share", value=0.3, read=lambda policy: policy.spill.available_share),
    Name(
        key="tool_result_limit",
        value=20_001,
        read=lambda policy: policy.spill.char_limit,
        variable="TOOL_RESULT_LIMIT",
        aliases=("tool_result_limit",),
    ),
    Name(key="round_cap_factor", value=3.5, read=lambda policy: policy.spill.round_factor),
    Name(key="preview_max_tokens", value=301, read=lambda policy: policy.spill.preview_max_tokens),
    Name(
        key="supervisor_msg_char_limit",
        value=31_000,
        read=lambda policy: policy.spill.user_message_char_limit,
        variable="SUPERVISOR_MSG_CHAR_LIMIT",
        aliases=("supervisor_msg_char_limit",),
    ),
    Name(key="prune", value=False, read=lambda policy: policy.masking.enabled, aliases=("compaction.prune",)),
    Name(key="mask_kind", value="preview", read=lambda policy: policy.masking.kind),
    Name(key="mask_every_step", value=True, read=lambda policy: policy.masking.every_step),
    Name(key="mask_protected_tools", value=("a", "b"), read=lambda policy: policy.masking.protected_tools),
    Name(key="mask_protect_rounds", value=5, read=lambda policy: policy.masking.protect_rounds),
    Name(key="mask_protect_tokens", value=41_000, read=lambda policy: policy.masking.protect_tokens),
    Name(key="mask_minimum_tokens", value=21_000, read=lambda policy: policy.masking.minimum_tokens),
    Name(key="max_total_tokens", value=22_000, read=lambda policy: policy.masking.max_total_tokens),
    Name(key="max_tool_message_tokens", value=2_100, read=lambda policy: policy.masking.max_tool_message_tokens),
    Name(key="keep_recent_count", value=4, read=lambda policy: policy.masking.keep_recent_messages),
    Name(key="mask_older_than_messages", value=11, read=lambda policy: policy.masking.older_than_messages),
    Name(key="mask_larger_than_characters", value=4_100, read=lambda policy: policy.masking.larger_than_characters),
    Name(
        key="enable_conversation_history_compaction",
        value=False,
        read=lambda policy: policy.trigger.enabled,
        variable="ENABLE_CONVERSATION_HISTORY_COMPACTION",
        aliases=("enable_conversation_history_compaction", "compaction.auto"),
    ),
    Name(
        key="context_window_compaction_threshold_pct",
        value=80.5,
        read=lambda policy: policy.trigger.threshold_pct,
        variable="CONTEXT_WINDOW_COMPACTION_THRESHOLD_PCT",
        aliases=("context_window_compaction_threshold_pct",),
    ),
    Name(
        key="summarization_trigger_tokens",
        value=99_000,
        read=lambda policy: policy.trigger.tokens,
        variable="SUMMARIZATION_TRIGGER_TOKENS",
        aliases=("summarization_trigger_tokens",),
    ),
    Name(
        key="summarization_trigger_fraction",
        value=0.65,
        read=lambda policy: policy.trigger.fraction,
        variable="SUMMARIZATION_TRIGGER_FRACTION",
        aliases=("summarization_trigger_fraction",),
    ),
    Name(key="summarization_trigger_messages", value=101, read=lambda policy: policy.trigger.messages),
    Name(key="compression_trigger", value=0.6, read=lambda policy: policy.trigger.pressure),
    Name(key="output_reserved", value=4_000, read=lambda policy: policy.trigger.output_reserved),
    Name(key="reserved", value=20_500, read=lambda policy: policy.trigger.reserved, aliases=("compaction.reserved",)),
    Name(key="auto_compact", value=True, read=lambda policy: bool(policy.hooks) or None),
    Name(key="strategy", value="truncate", read=lambda policy: policy.strategy),
    Name(key="context_manage_mode", value="compress", read=lambda policy: policy.mode),
    Name(key="auto_ratio", value=0.7, read=lambda policy: policy.safety.auto_ratio),
    Name(key="keep_recent", value=6, read=lambda policy: policy.keep.messages),
    Name(
        key="summarization_keep_tokens",
        value=19_000,
        read=lambda policy: policy.keep.tail_tokens,
        variable="SUMMARIZATION_KEEP_TOKENS",
        aliases=("summarization_keep_tokens",),
    ),
    Name(key="keep_fraction", value=0.35, read=lambda policy: policy.keep.fraction),
    Name(key="compaction_cooldown_rounds", value=7, read=lambda policy: policy.safety.cooldown_rounds),
    Name(key="compaction_max_attempts", value=4, read=lambda policy: policy.safety.max_attempts),
    Name(key="emergency_share", value=0.45, read=lambda policy: policy.safety.emergency_share),
    Name(key="summary_max_tokens", value=512, read=lambda policy: policy.summary.max_tokens),
    Name(key="group_token_threshold", value=8_000, read=lambda policy: policy.summary.group_token_threshold),
    Name(key="chat_id", value="chat-7", read=lambda policy: policy.summary.chat_id),
    Name(key="verify_entities", value=False, read=lambda policy: policy.summary.verify_entities),
    Name(key="citations", value=False, read=lambda policy: policy.evidence.citations),
    Name(key="unchanged_answers", value=False, read=lambda policy: policy.evidence.unchanged_answers),
)
"""All keys but `summary_model` and `hooks`, which have tests of their own."""
