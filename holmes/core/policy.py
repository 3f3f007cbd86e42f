"""How a conversation is kept inside the window: every threshold of context management, as values.

Made by `holmes.core.policies` (one named policy for each published system) and `holmes.app` (the user's settings on
top); read by the spill, the join stage, the compaction stages and the loop. Values only: nothing here decides. Row ids
(T2, P4, C2 ...) are those of the table in docs/context-management.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from holmes.core.hooks import AUTO_COMPACT_ID, ContextPressure

if TYPE_CHECKING:
    from holmes.core.hooks import Hook

MaskKind: TypeAlias = Literal["fingerprint", "preview", "path"]
PreviewKind: TypeAlias = Literal["structured", "head"]
Strategy: TypeAlias = Literal["summarize", "truncate"]
Mode: TypeAlias = Literal["compact", "compress", "auto"]

UNLIMITED_TOKENS = 1_000_000
"""More than any window has: only the other limits count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpillPolicy:
    """What happens to one tool result, or one user message, that is too large (T rows).

    `max_pct` is in percent of the window; outside (0, 100] only `max_tokens` counts (T2). `available_share` caps a
    result at this share of what is still free in the window. `char_limit` is a second cap in characters (T3).
    `round_factor` caps all results of one round together at this many single caps. A preview takes at most
    min(cap * `preview_share`, `preview_max_tokens`), and is either `structured` (findings, outline) or the `head`: the
    beginning, of a JSON array the first items that fit. `user_message_char_limit` is T16.
    """

    max_pct: float = 15.0
    max_tokens: int = 25_000
    available_share: float | None = None
    char_limit: int | None = None
    round_factor: float | None = 2.0
    preview_share: float = 0.25
    preview_max_tokens: int = 1_500
    preview: PreviewKind = "structured"
    user_message_char_limit: int = 30_000

    def cap_tokens(self, window_tokens: int) -> int:
        """The most one tool result may take (T2)."""
        if not 0 < self.max_pct <= 100:
            return self.max_tokens
        return min(int(window_tokens * self.max_pct / 100), self.max_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskingPolicy:
    """How old tool results age (P rows). Only the fields of the active `kind` count.

    `fingerprint`: results older than `protect_rounds` rounds, except the newest min(`protect_tokens`,
    `protect_share` of the usable window) tokens of tool output, and only when min(`minimum_tokens`, `minimum_share` of
    the usable window) come free (P4 to P6). `preview`: when the history has more than `max_total_tokens`, each result
    above `max_tool_message_tokens` except in the last `keep_recent_messages` messages (P2). `path`: results older than
    the last `older_than_messages` messages and larger than `larger_than_characters` (P1). `protected_tools` are never
    masked (P7); `enabled` switches all of it (P9). `every_step` masks at the top of every iteration instead of only in
    a pass that resets the prefix anyway. The mode `compress` masks nothing.
    """

    enabled: bool = True
    kind: MaskKind = "fingerprint"
    every_step: bool = False
    protected_tools: tuple[str, ...] = ("skill", "fetch_skill")
    protect_rounds: int = 2
    protect_tokens: int = 40_000
    protect_share: float = 0.20
    minimum_tokens: int = 20_000
    minimum_share: float = 0.10
    max_total_tokens: int = 20_000
    max_tool_message_tokens: int = 2_000
    keep_recent_messages: int = 1
    older_than_messages: int = 10
    larger_than_characters: int = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerPolicy:
    """When a history is compacted (C2). Triggers that are None are off; those that are set are OR-ed.

    `enabled` is C4: off means only after a provider's overflow. `threshold_pct`: tokens + reserve above this percentage
    of the window. `tokens`, `fraction` (of the window) and `messages`: more than that. `pressure`: tokens / (window -
    reserve) above it. `output_reserved` is that reserve and caps what a reply may have; None: what the model can write,
    up to a quarter of the window (`ModelLimits.reserve_tokens`). `reserved`: fewer than max(`reserved`, the model's
    largest output) tokens left.
    """

    enabled: bool = True
    threshold_pct: float | None = 95.0
    tokens: int | None = None
    fraction: float | None = None
    messages: int | None = None
    pressure: float | None = None
    output_reserved: int | None = None
    reserved: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepPolicy:
    """What of the end of a history stays verbatim, always in whole rounds (K2, K9).

    The tail is min(`tail_share` of the usable window, `tail_tokens`). `messages` keeps that many messages instead;
    `fraction` keeps the newest part of this share of the history when it is truncated (P10). `newest_round` keeps the
    round that the model has not seen yet, cut to `newest_round_share` of the usable window if it is larger.
    """

    tail_share: float = 0.20
    tail_tokens: int = 20_000
    messages: int | None = None
    fraction: float | None = 0.40
    newest_round: bool = True
    newest_round_share: float = 0.30

    def counting(self, messages: int) -> KeepPolicy:
        """The newest `messages` messages stay, however long they are, also where there is no summary."""
        return replace(self, messages=messages, tail_share=1.0, tail_tokens=UNLIMITED_TOKENS, fraction=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryPolicy:
    """How summaries are written.

    `max_tokens` caps one (K5); None means min(4096, usable window / 8). `group_token_threshold` splits a long history
    into groups that are summarised one by one and stored under `chat_id` (K10). `compress_above_tokens` asks for no
    summary while what it would stand for is smaller. `reminder` is K8, `verify_entities` N7 and N8.
    """

    max_tokens: int | None = None
    group_token_threshold: int | None = None
    compress_above_tokens: int | None = None
    chat_id: str | None = None
    reminder: bool = True
    verify_entities: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetyPolicy:
    """What keeps compaction from running for ever (S1 to S3).

    No compaction for `cooldown_rounds` rounds and `cooldown_share` of the usable window in new tokens after one, except
    above the hard limit. At most `max_attempts` in a row, and two that free less than `least_progress` end it.
    `mask_is_enough_share`: masking alone is enough when at most this share of the trigger is used afterwards;
    `compaction_target_share` is
    also what a compaction aims at. `auto_ratio` is C5: summarise after masking if the ratio is still above it.
    `emergency_share` of the window is what an overflow cuts to.
    """

    cooldown_rounds: int = 2
    cooldown_share: float = 0.10
    max_attempts: int = 3
    least_progress: float = 0.05
    mask_is_enough_share: float = 0.30
    compaction_target_share: float = 0.60
    auto_ratio: float | None = None
    emergency_share: float = 0.50


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidencePolicy:
    """What makes answers checkable, and polling cheap.

    `citations` labels every result and verifies what the answer cites (N6). `unchanged_answers` answers a repeated call
    with "unchanged" or a diff (N4).
    """

    citations: bool = True
    unchanged_answers: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPolicy:
    """All of it. `name` is the named policy that it started from; the defaults are those of `balanced`.

    `mode` is C5: `compact` only masks, `compress` only summarises, `auto` does what is needed. `counting` chooses the
    exact tokenizer or the estimator (S11).
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
    counting: Literal["exact", "estimate"] = "exact"

    def without_automatic_triggers(self) -> ContextPolicy:
        """The same policy without the triggers that its automatic hook stands for (C8); the hard limit always stays.

        A hook without a threshold stands for all of them, one with a threshold for `pressure`.
        """
        automatic = next((hook for hook in self.hooks if hook.id == AUTO_COMPACT_ID), None)
        if automatic is None:
            return self
        if isinstance(automatic.condition, ContextPressure) and automatic.condition.threshold is not None:
            return replace(self, trigger=replace(self.trigger, pressure=None))
        return replace(self, trigger=TriggerPolicy(enabled=self.trigger.enabled, threshold_pct=None))
