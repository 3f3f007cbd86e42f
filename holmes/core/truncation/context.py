"""What compaction is handed, what it hands back, and how the window is divided. Used by every stage of this package.

Built by the loop from the model and the settings. No policy here: the stages decide, these values only do sums.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holmes.core.messages import SystemMessage
from holmes.core.stats import RequestStats

if TYPE_CHECKING:
    from holmes.core.history import History
    from holmes.core.model import ChatModel, EmitEvent
    from holmes.core.steps import StepRunner
    from holmes.core.tokens import TokenCounter
    from holmes.core.tools import Tool

TAIL_SHARE = 0.20
MAX_TAIL_TOKENS = 20_000
NEWEST_ROUND_SHARE = 0.30
MAX_SUMMARY_TOKENS = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextLimits:
    """The limits that users set; the variables are named in the documents of the settings.

    `user_message_char_limit` is in characters, percentages are of the model's window.
    """

    compaction_enabled: bool = True
    compaction_threshold_pct: float = 95.0
    tool_result_max_pct: float = 15.0
    tool_result_max_tokens: int = 25_000
    user_message_char_limit: int = 30_000

    def tool_result_cap_tokens(self, window_tokens: int) -> int:
        """The most one tool result may take (T2). A percentage outside (0, 100] leaves the absolute cap alone."""
        if not 0 < self.tool_result_max_pct <= 100:
            return self.tool_result_max_tokens
        return min(int(window_tokens * self.tool_result_max_pct / 100), self.tool_result_max_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionContext:
    """Everything a compaction needs besides the history.

    `prompt` is the rendered compaction prompt, `step_name` the unique name of the loop's iteration, to which the stages
    add their own suffix.
    """

    model: ChatModel
    tools: tuple[Tool, ...]
    limits: ContextLimits
    emit: EmitEvent
    steps: StepRunner
    counter: TokenCounter
    prompt: str
    step_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionOutcome:
    """The history to go on with, the same object when nothing changed, and what making it cost."""

    history: History
    stats: RequestStats = field(default_factory=RequestStats)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How a window is divided. All sizes in tokens; `schema_tokens` is what the tools take in every request."""

    window_tokens: int
    reserve_tokens: int
    schema_tokens: int
    system_tokens: int
    threshold_pct: float

    @property
    def history_limit_tokens(self) -> int:
        """A history above this is compacted: (total + reserve) > window * threshold (C2)."""
        return int(self.window_tokens * self.threshold_pct / 100) - self.reserve_tokens - self.schema_tokens

    @property
    def hard_limit_tokens(self) -> int:
        """A history above this cannot be sent at all."""
        return self.window_tokens - self.reserve_tokens - self.schema_tokens

    @property
    def usable_tokens(self) -> int:
        """What is left for the conversation: window minus reserve, system prompt and schemas."""
        return max(0, self.hard_limit_tokens - self.system_tokens)

    @property
    def tail_tokens(self) -> int:
        """What the rounds that stay verbatim may take."""
        return min(int(self.usable_tokens * TAIL_SHARE), MAX_TAIL_TOKENS)

    @property
    def newest_round_tokens(self) -> int:
        """What the newest round may take, since the model has not seen its results yet."""
        return max(self.tail_tokens, int(self.usable_tokens * NEWEST_ROUND_SHARE))

    @property
    def summary_tokens(self) -> int:
        """The longest summary that is asked for."""
        return max(64, min(MAX_SUMMARY_TOKENS, self.usable_tokens // 8))


def budget_of(history: History, context: CompactionContext) -> Budget:
    """The division of the window of the context's model. Tokenizes the system prompt and the schemas once."""
    limits = context.model.limits
    system = (message for message in history if isinstance(message, SystemMessage))
    return Budget(
        window_tokens=limits.context_window_tokens,
        reserve_tokens=limits.output_reserve_tokens,
        schema_tokens=context.counter.count_tools(context.tools),
        system_tokens=sum(context.counter.count_message(message) for message in system),
        threshold_pct=context.limits.compaction_threshold_pct,
    )
