"""The budget of a model's context window, the inputs of a compaction, and the limits that prevent endless compaction.

This module computes sizes, and the stages of a compaction select the messages. All sizes are in locally counted
tokens. The size of the context window is converted with the token factor of the model. `CompactionGuard` limits the
compaction attempts of a run. The cooldown after a compaction is stored in the summary message, so it survives a
restart.
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

_LOW_GAINS_THAT_END_IT = 2


class CompactionGuard:
    """Counts the compaction attempts of one run.

    Each reply of the model resets the number of consecutive attempts. The number of consecutive attempts with a low
    gain is kept, because otherwise a history that cannot become shorter would be compacted at every step.
    """

    def __init__(self) -> None:
        self._attempts = 0
        self._low_gains = 0

    @property
    def is_futile(self) -> bool:
        """Whether the last attempts freed so little that another attempt below the hard limit is useless."""
        return self._low_gains >= _LOW_GAINS_THAT_END_IT

    def begin(self, safety: SafetyPolicy, window_tokens: int) -> None:
        """Count an attempt.

        Raises `CompactionInsufficientError` if the maximum number of consecutive attempts is exceeded.
        """
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
    """Return whether the cooldown of the last compaction is still active.

    During the cooldown, too few turns or too few new tokens have followed the compaction. The caller checks the hard
    limit first.
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


_MAX_SUMMARY_TOKENS = 4_096
SMALLEST_SUMMARY_TOKENS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryBudget:
    """Divides a model's context window as the policy requires. Sizes are in locally counted tokens.

    `reserve_tokens` is reserved for the reply. `max_output_tokens` is the model's limit for a reply. `schema_tokens` is
    the size of the tool schemas, and `system_tokens` the size of the system prompt. Both are 0 until `measured` sets
    them. `count_factor` is the number of provider tokens per local token.
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
        """Size above which a history is compacted: the lowest of the enabled triggers and the hard limit."""
        trigger = self.policy.trigger
        totals = [self.window_tokens - self.reserve_tokens]
        if trigger.threshold_pct is not None:  # fires if (total + reserve) > window * threshold
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
        """Size above which a history does not fit in a request."""
        return self.window_tokens - self.reserve_tokens - self.schema_tokens

    @property
    def usable_tokens(self) -> int:
        """Size of the context window minus the reserve, the system prompt and the tool schemas."""
        return max(0, self.hard_limit_tokens - self.system_tokens)

    @property
    def target_tokens(self) -> int:
        """Maximum size of a history after a compaction, not counting the tool schemas."""
        return self._share_of_limit(self.policy.safety.compaction_target_share)

    @property
    def mask_is_enough_tokens(self) -> int:
        """Maximum size of a masked history that does not need a summary."""
        return self._share_of_limit(self.policy.safety.mask_is_enough_share)

    def _share_of_limit(self, share: float) -> int:
        limit = self.history_limit_tokens + self.schema_tokens
        return int(limit * share) - self.schema_tokens

    @property
    def tail_tokens(self) -> int:
        """Maximum size of the tail, which contains the turns that stay verbatim."""
        return min(int(self.usable_tokens * self.policy.keep.tail_share), self.policy.keep.tail_tokens)

    @property
    def newest_round_tokens(self) -> int:
        """Maximum size of the newest turn. The model has not seen its results yet."""
        return max(self.tail_tokens, int(self.usable_tokens * self.policy.keep.newest_round_share))

    @property
    def summary_tokens(self) -> int:
        wanted = self.policy.summary.max_tokens or min(_MAX_SUMMARY_TOKENS, self.usable_tokens // 8)
        return max(SMALLEST_SUMMARY_TOKENS, min(wanted, self.usable_tokens // 4))


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionOutcome:
    """The history after a compaction, and the cost. An unchanged history is the same object."""

    history: History
    stats: RequestStats = field(default_factory=RequestStats)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionContext:
    """The inputs of a compaction, except for the history.

    If `summary_model` is set, it writes the summaries instead of `model`. `store` is None if storage is disabled.
    `prompt` is the rendered compaction prompt. `step_name` is unique in the run, and each stage adds a suffix. All
    compactions of a run share `guard`. `verifier` checks the citations of replies before the ledger includes them. If
    `verifier` is None, the ledger includes no citation of a reply.
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
        """Return the size of a request with `history` and the tools, in provider tokens."""
        return self.budget.provider_tokens(history.tokens() + self.budget.schema_tokens)


def measured(history: History, context: CompactionContext) -> CompactionContext:
    """Return `context` with a budget that contains the sizes of the tools and of the system prompt in `history`."""
    system = (message for message in history if isinstance(message, SystemMessage))
    budget = replace(
        context.budget,
        schema_tokens=context.counter.count_tools(context.tools),
        system_tokens=sum(context.counter.count_message(message) for message in system),
    )
    return replace(context, budget=budget)


def budget_of(history: History, context: CompactionContext) -> HistoryBudget:
    """Return the budget of `context` with the sizes of the tools and of the system prompt in `history`."""
    return measured(history, context).budget
