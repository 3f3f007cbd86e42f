"""The events of a run, with which the loop reports its progress.

`total` is the cost of the run so far, including this event. Readers use `match` with `assert_never`, so that the type
checker finds every reader that does not handle a new event.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from holmes.values.stats import NOTHING_SPENT

if TYPE_CHECKING:
    from holmes.values.charts import Chart
    from holmes.values.messages import AssistantMessage, Message, ResultId, StoredResult, ToolCall, ToolMessage
    from holmes.values.stats import RequestStats
    from holmes.values.verdicts import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted:
    """A turn of the loop starts. `step` is the number of the turn, starting at 1."""

    step: int
    max_steps: int
    kind: Literal["turn_started"] = "turn_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """Streamed text of a reply. `checked` is true if the citations in the text have been checked."""

    text: str
    checked: bool = False
    kind: Literal["text_delta"] = "text_delta"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptDiscarded:
    """An attempt failed, so the text that was streamed since the last reply is discarded.

    `stats` is the cost of the attempt. The final reply or error of the model call includes this cost.
    """

    model: str
    reason: str
    retry_in_seconds: float
    stats: RequestStats = NOTHING_SPENT
    total: RequestStats = field(default=NOTHING_SPENT, compare=False)
    kind: Literal["attempt_discarded"] = "attempt_discarded"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSwitched:
    """The model failed permanently, and the next model of the chain continues."""

    from_model: str
    to_model: str
    reason: str
    total: RequestStats = field(default=NOTHING_SPENT, compare=False)
    kind: Literal["model_switched"] = "model_switched"


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantReplied:
    """A reply is complete. `checked` is true if the citations in its text have been checked."""

    message: AssistantMessage
    stats: RequestStats
    model: str
    checked: bool = False
    total: RequestStats = field(default=NOTHING_SPENT, compare=False)
    kind: Literal["assistant_replied"] = "assistant_replied"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallStarted:
    """A tool call starts. `description` is one line for the user."""

    call: ToolCall
    toolset: str | None
    description: str
    kind: Literal["tool_call_started"] = "tool_call_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallFinished:
    """A tool call ended. `message` is the result for the model. `error` is set if the call failed.

    `chart` is the result as a diagram with few samples, if it can be shown as one.
    """

    call: ToolCall
    toolset: str | None
    description: str
    message: ToolMessage
    invocation: str | None
    error: str | None
    elapsed_seconds: float
    chart: Chart | None = None
    kind: Literal["tool_call_finished"] = "tool_call_finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResultSpilled:
    """A result was too large for the conversation, so the model gets a pointer and a preview.

    `stored` is false if the store failed and the data was discarded. `limit` describes the exceeded limit, for example
    "the limit is 25,000 tokens", or is empty if unknown. A limit can also be in characters or apply to the whole turn.
    """

    call: ToolCall
    tokens: int
    cap_tokens: int
    stored: bool
    limit: str = ""
    kind: Literal["tool_result_spilled"] = "tool_result_spilled"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequired:
    """A tool call requires approval. The event is emitted once per call, before the decision."""

    call: ToolCall
    description: str
    kind: Literal["approval_required"] = "approval_required"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionStarted:
    """A compaction starts. Sizes are in tokens as counted by the provider, and include tool schemas.

    `tokens` can be below `trigger_tokens`, because the number of messages, a hook or a user can also start a
    compaction.
    """

    tokens: int
    trigger_tokens: int
    kind: Literal["compaction_started"] = "compaction_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryCompacted:
    """The conversation was compacted with `strategy`, which is `emergency` after an overflow.

    `flagged` contains names in the summary that do not occur in the summarised messages. `removed` is the stored result
    with the removed messages. `lost` is true if storing these messages failed. `messages` is the new conversation.
    """

    strategy: Literal["summarize", "truncate", "emergency"]
    tokens_before: int
    tokens_after: int
    messages_before: int
    messages_after: int
    summary: str | None
    stats: RequestStats
    flagged: tuple[str, ...] = ()
    removed: StoredResult | None = None
    lost: bool = False
    messages: tuple[Message, ...] = ()
    total: RequestStats = field(default=NOTHING_SPENT, compare=False)
    kind: Literal["history_compacted"] = "history_compacted"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionFailed:
    """A compaction failed and was not applied. `reason` states the cause and the next action."""

    reason: str
    stats: RequestStats
    total: RequestStats = field(default=NOTHING_SPENT, compare=False)
    kind: Literal["compaction_failed"] = "compaction_failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResultsMasked:
    """Masks replaced `count` old tool results. The policy determines the kind of mask.

    `messages` is the new conversation.
    """

    count: int
    policy: Literal["fingerprint", "preview", "path"]
    tokens_before: int
    tokens_after: int
    messages: tuple[Message, ...] = ()
    kind: Literal["tool_results_masked"] = "tool_results_masked"


@dataclass(frozen=True, slots=True, kw_only=True)
class HookFired:
    """A hook ran its action. `text` is one line for the user."""

    hook_id: str
    action: Literal["compact_context", "inject_message", "module_action", "log"]
    text: str
    kind: Literal["hook_fired"] = "hook_fired"


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptShortened:
    """The provider counted far fewer prompt tokens than were sent, so it may have cut the prompt silently."""

    model: str
    estimated_tokens: int
    reported_tokens: int
    kind: Literal["prompt_shortened"] = "prompt_shortened"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextOverflowed:
    """The provider rejected the request as too long. `window_tokens` is the real context window if known."""

    model: str
    reason: str
    window_tokens: int | None = None
    total: RequestStats = field(default=NOTHING_SPENT, compare=False)
    kind: Literal["context_overflowed"] = "context_overflowed"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensCounted:
    """Reports the size of the last request and the cost of the run so far.

    `max_output_tokens` is the maximum length of a reply.
    """

    prompt_tokens: int
    context_window_tokens: int
    stats: RequestStats
    max_output_tokens: int | None = None
    kind: Literal["tokens_counted"] = "tokens_counted"


CitationOutcome: TypeAlias = Literal["checked", "cited", "not_found"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A claim in the answer, and the lines of a stored result that the claim cites.

    Line numbers start at 1, and `last_line` is included. The outcome is `checked` if the lines support the whole claim.
    It is `cited` if the lines contain the claim's names, numbers and quotes but cannot prove it, for example because it
    is about a cause. It is `not_found` if the lines do not contain the parts in `missing`. `missing` is empty if the
    missing parts cannot be determined.
    """

    result_id: ResultId
    first_line: int
    last_line: int
    claim: str
    outcome: CitationOutcome = "checked"
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFinished:
    """The run ended with an answer.

    `messages` is the whole conversation, which can be continued. `citations` are the checked citations in `text`.
    `verdict` is None if the loop has no judge.
    """

    text: str
    messages: tuple[Message, ...]
    stats: RequestStats
    steps: int
    model: str
    citations: tuple[Citation, ...] = ()
    verdict: Verdict | None = None
    kind: Literal["answer_finished"] = "answer_finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryReplaced:
    """A requested compaction ended. `messages` is the new conversation."""

    messages: tuple[Message, ...]
    stats: RequestStats
    kind: Literal["history_replaced"] = "history_replaced"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFailed:
    """The run ended without an answer. `messages` is the conversation so far."""

    error: str
    exit_code: int
    messages: tuple[Message, ...]
    stats: RequestStats
    kind: Literal["run_failed"] = "run_failed"


AgentEvent: TypeAlias = (
    TurnStarted
    | TextDelta
    | AttemptDiscarded
    | ModelSwitched
    | AssistantReplied
    | ToolCallStarted
    | ToolCallFinished
    | ToolResultSpilled
    | ApprovalRequired
    | CompactionStarted
    | HistoryCompacted
    | CompactionFailed
    | ToolResultsMasked
    | HookFired
    | PromptShortened
    | ContextOverflowed
    | TokensCounted
    | AnswerFinished
    | HistoryReplaced
    | RunFailed
)

COSTLY_EVENTS = (
    AttemptDiscarded, AssistantReplied, HistoryCompacted, CompactionFailed, ContextOverflowed, ModelSwitched
)  # fmt: skip
"""The events that have a `total`."""


class RunningCost:
    """Adds up the cost of one run, event by event. The loop sets the `total` of its events to the sum."""

    def __init__(self) -> None:
        self._settled = self._pending = NOTHING_SPENT

    @property
    def stats(self) -> RequestStats:
        """The cost so far, including the cost of failed attempts that no reply or error includes yet."""
        return self._settled if self._pending is NOTHING_SPENT else self._settled + self._pending

    def charge(self, stats: RequestStats) -> None:
        """Add the cost of a call, including its failed attempts."""
        self._settle(self._settled + stats)

    def note(self, event: AgentEvent) -> None:
        """Add the cost of `event`."""
        match event:
            case AttemptDiscarded():
                self._pending += event.stats
            case AssistantReplied() | HistoryCompacted() | CompactionFailed():
                self.charge(event.stats)
            case ContextOverflowed() | ModelSwitched():  # no reply includes the attempts of this call
                self._settle(self.stats)
            case AnswerFinished() | HistoryReplaced() | RunFailed():
                self._settle(event.stats)
            case _:
                pass

    def _settle(self, stats: RequestStats) -> None:
        self._settled, self._pending = stats, NOTHING_SPENT


def total_cost(event: AgentEvent, before: RequestStats) -> RequestStats:
    """Return the cost of the run after `event`. `before` is the cost before `event`."""
    match event:
        case AnswerFinished() | HistoryReplaced() | RunFailed():
            return event.stats
        case _:
            return event.total if isinstance(event, COSTLY_EVENTS) else before
