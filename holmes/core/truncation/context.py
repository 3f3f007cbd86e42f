"""The budget of a model's context window, the parts of a compaction, and the limits that prevent endless compaction.

Contains only arithmetic; the stages decide about messages. All sizes are in locally counted tokens, which are already
corrected for the provider's way of counting. `CompactionGuard` stops a run whose attempts free too little. After a
compaction, the next one waits. The summary message stores that state as a mark, so it survives a restart.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from holmes.values.errors import CompactionInsufficientError
from holmes.values.messages import AssistantMessage, SystemMessage, UserMessage
from holmes.values.stats import RequestStats

if TYPE_CHECKING:
    from holmes.core.policy import ContextPolicy, SafetyPolicy
    from holmes.evidence.verification import CitationVerifier
    from holmes.tokens import TokenCounter
    from holmes.tokens.history import History
    from holmes.values.model import ChatModel, EmitEvent
    from holmes.values.steps import StepRunner
    from holmes.values.tools import ResultStore, Tool

LOW_GAINS_THAT_END_IT = 2


class CompactionGuard:
    """Counts the compaction attempts of one run.

    Each reply of the model resets the number of consecutive attempts. Attempts with a low gain are remembered until one
    gains more, because a history that cannot shrink would be compacted at every step.
    """

    def __init__(self) -> None:
        self._attempts = 0
        self._low_gains = 0

    @property
    def is_futile(self) -> bool:
        """Whether the last attempts freed so little that another attempt below the hard limit is useless."""
        return self._low_gains >= LOW_GAINS_THAT_END_IT

    def begin(self, safety: SafetyPolicy, window_tokens: int) -> None:
        """Count an attempt. Raises `CompactionInsufficientError` after too many consecutive attempts."""
        if self._attempts >= safety.max_attempts:
            raise CompactionInsufficientError(
                f"the conversation was compacted {self._attempts} times in a row and is still too long for the model's "
                f"context window of {window_tokens:,} tokens. Start a new conversation, or use a model with a larger "
                "context window."
            )
        self._attempts += 1

    def record(self, before_tokens: int, after_tokens: int, safety: SafetyPolicy) -> None:
        gained = before_tokens - after_tokens
        is_low = gained < before_tokens * safety.least_progress
        self._low_gains = self._low_gains + 1 if is_low else 0

    def step_succeeded(self) -> None:
        """Reset the number of consecutive attempts, because the model answered."""
        self._attempts = 0


def is_cooling_down(history: History, budget: HistoryBudget) -> bool:
    """Whether too few turns or too few new tokens followed the last compaction.

    The caller checks the hard limit first.
    """
    rounds = 0
    for message in reversed(history):
        if isinstance(message, AssistantMessage):
            rounds += 1
        elif isinstance(message, UserMessage) and message.mark is not None:
            rounds -= message.mark.kept_rounds
            new_tokens = max(0, history.tokens() - message.mark.tokens)
            safety = budget.policy.safety
            return rounds < safety.cooldown_rounds or new_tokens < budget.usable_tokens * safety.cooldown_share
    return False


MAX_SUMMARY_TOKENS = 4_096
SMALLEST_SUMMARY_TOKENS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryBudget:
    """How a policy divides a model's context window, in locally counted tokens.

    `reserve_tokens` stays free for the reply; `max_output_tokens` is the model's own limit for a reply. `schema_tokens`
    (the tools of every request) and `system_tokens` are 0 until `measured` sets them. `count_factor` is the number of
    provider tokens per local token.
    """

    window_tokens: int
    reserve_tokens: int
    max_output_tokens: int
    policy: ContextPolicy
    schema_tokens: int = 0
    system_tokens: int = 0
    count_factor: float = 1.0

    def provider_tokens(self, our_tokens: int) -> int:
        """Convert a local count to the provider's count, for display."""
        return round(our_tokens * self.count_factor)

    @property
    def history_limit_tokens(self) -> int:
        """Size above which a history is compacted: the lowest trigger that is set, at most the hard limit."""
        trigger = self.policy.trigger
        totals = [self.window_tokens - self.reserve_tokens]
        if trigger.threshold_pct is not None:  # (total + reserve) > window * threshold
            totals.append(int(self.window_tokens * trigger.threshold_pct / 100) - self.reserve_tokens)
        if trigger.tokens is not None:
            totals.append(trigger.tokens)
        if trigger.fraction is not None:
            totals.append(int(self.window_tokens * trigger.fraction))
        if trigger.pressure is not None:
            totals.append(int((self.window_tokens - self.reserve_tokens) * trigger.pressure))
        if trigger.reserved is not None:
            # A reserve above half of a small context window would cause endless compaction.
            reserved = min(max(trigger.reserved, self.max_output_tokens), self.window_tokens // 2)
            totals.append(self.window_tokens - reserved)
        return min(totals) - self.schema_tokens

    @property
    def hard_limit_tokens(self) -> int:
        """Size above which a history cannot be sent."""
        return self.window_tokens - self.reserve_tokens - self.schema_tokens

    @property
    def usable_tokens(self) -> int:
        """Tokens available for the conversation: context window minus reserve, system prompt and schemas."""
        return max(0, self.hard_limit_tokens - self.system_tokens)

    @property
    def target_tokens(self) -> int:
        """Maximum size of a history after a compaction, without schemas."""
        return self._share_of_limit(self.policy.safety.compaction_target_share)

    @property
    def mask_is_enough_tokens(self) -> int:
        """Maximum size of a history after masking at which no summary is needed."""
        return self._share_of_limit(self.policy.safety.mask_is_enough_share)

    def _share_of_limit(self, share: float) -> int:
        limit = self.history_limit_tokens + self.schema_tokens
        return int(limit * share) - self.schema_tokens

    @property
    def tail_tokens(self) -> int:
        """Maximum size of the turns that stay verbatim."""
        return min(int(self.usable_tokens * self.policy.keep.tail_share), self.policy.keep.tail_tokens)

    @property
    def newest_round_tokens(self) -> int:
        """Maximum size of the newest turn, whose results the model has not seen yet."""
        return max(self.tail_tokens, int(self.usable_tokens * self.policy.keep.newest_round_share))

    @property
    def summary_tokens(self) -> int:
        wanted = self.policy.summary.max_tokens or min(MAX_SUMMARY_TOKENS, self.usable_tokens // 8)
        return max(SMALLEST_SUMMARY_TOKENS, min(wanted, self.usable_tokens // 4))


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionOutcome:
    """The resulting history and its cost. If nothing changed, the history is the same object."""

    history: History
    stats: RequestStats = field(default_factory=RequestStats)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionContext:
    """Everything that a compaction needs besides the history.

    `summary_model`, if set, writes summaries in place of `model`. `store` is None if storage is disabled. `prompt` is
    the rendered compaction prompt. `step_name` is unique in the run; each stage adds a suffix. `guard` belongs to the
    run. `verifier` checks the citations of replies before they enter the ledger. Without a verifier, no citation of a
    reply enters the ledger.
    """

    model: ChatModel
    budget: HistoryBudget
    tools: tuple[Tool, ...]
    store: ResultStore | None
    emit: EmitEvent
    steps: StepRunner
    counter: TokenCounter
    prompt: str
    step_name: str
    summary_model: ChatModel | None = None
    guard: CompactionGuard = field(default_factory=CompactionGuard)
    verifier: CitationVerifier | None = None

    @property
    def policy(self) -> ContextPolicy:
        return self.budget.policy

    def request_tokens(self, history: History) -> int:
        """Return the size of a request with `history` and the tools, as the provider counts it."""
        return self.budget.provider_tokens(history.tokens() + self.budget.schema_tokens)


def measured(history: History, context: CompactionContext) -> CompactionContext:
    """Return `context` with a budget that counts the tools and the system prompt. Tokenizes them once."""
    system = (message for message in history if isinstance(message, SystemMessage))
    budget = replace(
        context.budget,
        schema_tokens=context.counter.count_tools(context.tools),
        system_tokens=sum(context.counter.count_message(message) for message in system),
    )
    return replace(context, budget=budget)


def budget_of(history: History, context: CompactionContext) -> HistoryBudget:
    """Return the budget of `context`, with the tools and the system prompt of `history` counted."""
    return measured(history, context).budget
