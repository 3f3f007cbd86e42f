"""Settings for context management: the limits that keep a conversation within the context window.

This module declares each field with its type, bounds and default. `holmes.settings.context` maps configuration keys to
fields and validates their values against these types.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, TypeAlias

from annotated_types import Ge, Gt, Le, MinLen

from holmes.core.hooks import AUTO_COMPACT_ID, ContextPressure, Hook

MaskKind: TypeAlias = Literal["fingerprint", "preview", "path"]
PreviewKind: TypeAlias = Literal["structured", "head"]
Strategy: TypeAlias = Literal["summarize", "truncate"]
Mode: TypeAlias = Literal["compact", "compress", "auto"]
Counting: TypeAlias = Literal["exact", "estimate"]

Count: TypeAlias = Annotated[int, Ge(0)]
Positive: TypeAlias = Annotated[int, Gt(0)]
Share: TypeAlias = Annotated[float, Ge(0), Le(1)]

UNLIMITED_TOKENS = 1_000_000
"""A limit larger than any context window, so that only the other limits apply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpillPolicy:
    """Limits for one tool result or user message, and for its preview.

    `max_pct` is a percentage of the context window. If it is outside (0, 100], only `max_tokens` applies.
    `available_share` limits a result to this share of the free part of the context window. `char_limit` is an
    additional limit in characters. All results of one turn together take at most `round_factor` times the limit of one
    result. A preview takes at most min(limit * `preview_share`, `preview_max_tokens`) tokens. A `structured` preview
    shows unusual values and an outline. A `head` preview shows the beginning of a text, or the first items of a JSON
    array.
    """

    max_pct: float = 15.0
    max_tokens: Positive = 25_000
    available_share: Share | None = None
    char_limit: Count | None = None
    round_factor: Annotated[float, Ge(0)] | None = 2.0
    preview_share: float = 0.25
    preview_max_tokens: Positive = 1_500
    preview: PreviewKind = "structured"
    user_message_char_limit: Positive = 30_000

    def cap_tokens(self, window_tokens: int) -> int:
        if not 0 < self.max_pct <= 100:
            return self.max_tokens
        return min(int(window_tokens * self.max_pct / 100), self.max_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskingPolicy:
    """Settings for masking old tool results. Only the fields of the active `kind` apply.

    `fingerprint` masks results older than `protect_rounds` turns. The newest min(`protect_tokens`, `protect_share` of
    the usable context window) tokens of results stay. Masking must free at least min(`minimum_tokens`, `minimum_share`
    of the usable context window) tokens.

    `preview` applies to histories above `max_total_tokens`. It masks results above `max_tool_message_tokens`, except in
    the last `keep_recent_messages` messages.

    `path` masks results that are older than the last `older_than_messages` messages and larger than
    `larger_than_characters`.

    Results of `protected_tools` are never masked. If `every_step` is true, masking runs before each request. Otherwise
    it runs only when the prompt cache becomes invalid anyway. In the mode `compress`, no results are masked.
    """

    enabled: bool = True
    kind: MaskKind = "fingerprint"
    every_step: bool = False
    protected_tools: tuple[str, ...] = ("skill", "fetch_skill")
    protect_rounds: Count = 2
    protect_tokens: Count = 40_000
    protect_share: float = 0.20
    minimum_tokens: Count = 20_000
    minimum_share: float = 0.10
    max_total_tokens: Count = 20_000
    max_tool_message_tokens: Count = 2_000
    keep_recent_messages: Count = 1
    older_than_messages: Count = 10
    larger_than_characters: Count = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerPolicy:
    """Triggers of a compaction. A compaction runs if any one of them fires. A trigger that is None is disabled.

    If `enabled` is false, compaction runs only after the provider rejects a request as too long. `threshold_pct` limits
    tokens plus reserve, in percent of the context window. `tokens`, `fraction` (of the context window) and `messages`
    limit the size of the history. `pressure` limits tokens / (context window - reserve). `output_reserved` sets both
    this reserve and the maximum length of a reply. If it is None, the output limit of the model applies, up to a
    quarter of the context window. `reserved` fires if fewer than max(`reserved`, output limit of the model) tokens are
    free.
    """

    enabled: bool = True
    threshold_pct: Annotated[float, Ge(0), Le(100)] | None = 95.0
    tokens: Count | None = None
    fraction: Share | None = None
    messages: Count | None = None
    pressure: Share | None = None
    output_reserved: Count | None = None
    reserved: Count | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepPolicy:
    """The messages at the end of a history that stay verbatim, in whole turns.

    The tail has min(`tail_share` of the usable context window, `tail_tokens`) tokens. If `messages` is set, the tail
    has this number of messages instead. A truncation keeps the share `fraction` of the history. If `newest_round` is
    true, the turn that the model has not seen yet stays, cut to `newest_round_share` of the usable context window.
    """

    tail_share: float = 0.20
    tail_tokens: Count = 20_000
    messages: Count | None = None
    fraction: Share | None = 0.40
    newest_round: bool = True
    newest_round_share: float = 0.30

    def counting(self, messages: int) -> KeepPolicy:
        """Return settings that keep the newest `messages` messages, regardless of their size and of the strategy."""
        return replace(self, messages=messages, tail_share=1.0, tail_tokens=UNLIMITED_TOKENS, fraction=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryPolicy:
    """Settings for summaries.

    `max_tokens` limits one summary. If it is None, the limit is min(4096, usable context window / 8). A long history is
    split into groups of at most `group_token_threshold` tokens. Each group is summarised separately and stored under
    `chat_id`. A history of at most `compress_above_tokens` is not summarised. `reminder` adds a list of the tools after
    a compaction. `verify_entities` checks a summary for missing and invented names.
    """

    max_tokens: Annotated[int, Ge(1)] | None = None
    group_token_threshold: Count | None = None
    compress_above_tokens: Count | None = None
    chat_id: Annotated[str, MinLen(1)] | None = None
    reminder: bool = True
    verify_entities: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetyPolicy:
    """Limits that prevent endless compaction.

    The next compaction waits until `cooldown_rounds` turns have ended and new tokens fill `cooldown_share` of the
    usable context window. Above the hard limit, a compaction does not wait. Compaction stops after `max_attempts` in a
    row, or after two attempts that free less than `least_progress`. Masking is enough if it shortens the history to at
    most `mask_is_enough_share` of the trigger. The target of a compaction is `compaction_target_share` of the trigger.
    If `auto_ratio` is set, masking is enough only if it leaves at most this share of the history. After an overflow,
    the history is cut to `emergency_share` of the context window.
    """

    cooldown_rounds: Count = 2
    cooldown_share: float = 0.10
    max_attempts: Annotated[int, Ge(1)] = 3
    least_progress: float = 0.05
    mask_is_enough_share: float = 0.30
    compaction_target_share: float = 0.60
    auto_ratio: Share | None = None
    emergency_share: Annotated[float, Gt(0), Le(1)] = 0.50


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidencePolicy:
    """Settings for citations and repeated calls.

    `citations` labels every result and checks the citations of the answer. `unchanged_answers` replaces the result of a
    repeated call with "unchanged" or a diff.
    """

    citations: bool = True
    unchanged_answers: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPolicy:
    """A complete policy. The defaults are the values of `balanced`.

    `name` is the named policy on which this policy is based. `mode` is `compact` to only mask, `compress` to only
    summarise, or `auto` to do both as needed. `counting` selects the exact tokenizer or an estimate.
    """

    name: str = "balanced"
    spill: SpillPolicy = field(default_factory=SpillPolicy)
    masking: MaskingPolicy = field(default_factory=MaskingPolicy)
    trigger: TriggerPolicy = field(default_factory=TriggerPolicy)
    strategy: Strategy = "summarize"
    mode: Mode = "auto"
    keep: KeepPolicy = field(default_factory=KeepPolicy)
    summary: SummaryPolicy = field(default_factory=SummaryPolicy)
    safety: SafetyPolicy = field(default_factory=SafetyPolicy)
    evidence: EvidencePolicy = field(default_factory=EvidencePolicy)
    hooks: tuple[Hook, ...] = ()
    counting: Counting = "exact"

    def without_automatic_triggers(self) -> ContextPolicy:
        """Return the policy without the triggers that its automatic hook replaces. The hard limit still applies.

        A hook with a threshold replaces `pressure`. A hook without a threshold replaces all triggers.
        """
        automatic = next((hook for hook in self.hooks if hook.id == AUTO_COMPACT_ID), None)
        if automatic is None:
            return self
        if isinstance(automatic.condition, ContextPressure) and automatic.condition.threshold is not None:
            return replace(self, trigger=replace(self.trigger, pressure=None))
        return replace(self, trigger=TriggerPolicy(enabled=self.trigger.enabled, threshold_pct=None))
