"""The events of a run, the only output of the loop. `total` is the cost of the run so far, this event included.

Readers use `match` with `assert_never`, so that a new event shows every place that must handle it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from holmes.values.stats import NOTHING_SPENT

if TYPE_CHECKING:
    from holmes.values.messages import AssistantMessage, Message, ResultId, StoredResult, ToolCall, ToolMessage
    from holmes.values.stats import RequestStats


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted:
    """A step of the loop begins. `step` counts from 1."""

    step: int
    max_steps: int
    kind: Literal["turn_started"] = "turn_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """A piece of the reply's text as it arrives. `checked` says that its citations are judged (N6)."""

    text: str
    checked: bool = False
    kind: Literal["text_delta"] = "text_delta"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptDiscarded:
    """The text streamed since the last reply is void: the attempt failed and is made again.

    `stats` is what the attempt was billed; the reply or error that ends the call counts it too.
    """

    model: str
    reason: str
    retry_in_seconds: float
    stats: RequestStats = NOTHING_SPENT
    total: RequestStats = field(default=NOTHING_SPENT, compare=False)
    kind: Literal["attempt_discarded"] = "attempt_discarded"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSwitched:
    """The model failed for good; the next one of the chain goes on."""

    from_model: str
    to_model: str
    reason: str
    total: RequestStats = field(default=NOTHING_SPENT, compare=False)
    kind: Literal["model_switched"] = "model_switched"


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantReplied:
    """A reply is complete. `checked` says that the citations in its text are judged (N6)."""

    message: AssistantMessage
    stats: RequestStats
    model: str
    checked: bool = False
    total: RequestStats = field(default=NOTHING_SPENT, compare=False)
    kind: Literal["assistant_replied"] = "assistant_replied"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallStarted:
    """A tool call runs. `description` is one line for people."""

    call: ToolCall
    toolset: str | None
    description: str
    kind: Literal["tool_call_started"] = "tool_call_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallFinished:
    """A tool call is done. `message` is what the model will see; `error` is set when it failed."""

    call: ToolCall
    toolset: str | None
    description: str
    message: ToolMessage
    invocation: str | None
    error: str | None
    elapsed_seconds: float
    kind: Literal["tool_call_finished"] = "tool_call_finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResultSpilled:
    """A result was too large for the conversation: it is in the store, the model sees a pointer and a preview.

    `stored` is false when the store failed and the data had to be dropped. `limit` is a clause that names the limit it
    was over ("the limit is 25,000 tokens"), which may be one of characters or of the whole round; empty when nobody
    said so.
    """

    call: ToolCall
    tokens: int
    cap_tokens: int
    stored: bool
    limit: str = ""
    kind: Literal["tool_result_spilled"] = "tool_result_spilled"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequired:
    """A tool call needs a person's decision. It comes before the decision, once for each such call."""

    call: ToolCall
    description: str
    kind: Literal["approval_required"] = "approval_required"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionStarted:
    """The history is being compacted. Sizes are in tokens as the provider counts them, tool schemas included.

    `tokens` may be below `trigger_tokens`: a number of messages, a hook or a person can ask for it too.
    """

    tokens: int
    trigger_tokens: int
    kind: Literal["compaction_started"] = "compaction_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryCompacted:
    """The history was compacted. `strategy` says how; `emergency` is the answer to a provider's overflow.

    `flagged` are names in the summary that what it stands for never had (N8). `removed` is where the removed messages
    lie, None when they could not be stored; `lost` says that this is so although there is a store. `messages` is the
    history to go on with.
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
    """A compaction was not adopted; `reason` says why and what happens instead."""

    reason: str
    stats: RequestStats
    total: RequestStats = field(default=NOTHING_SPENT, compare=False)
    kind: Literal["compaction_failed"] = "compaction_failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResultsMasked:
    """Old tool results aged: `count` of them were replaced by fingerprints, previews or paths (P rows).

    `messages` is the history to go on with.
    """

    count: int
    policy: Literal["fingerprint", "preview", "path"]
    tokens_before: int
    tokens_after: int
    messages: tuple[Message, ...] = ()
    kind: Literal["tool_results_masked"] = "tool_results_masked"


@dataclass(frozen=True, slots=True, kw_only=True)
class HookFired:
    """A hook of the user did something; `text` is one line for people."""

    hook_id: str
    action: Literal["compact_context", "inject_message", "module_action", "log"]
    text: str
    kind: Literal["hook_fired"] = "hook_fired"


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptShortened:
    """The provider counted far fewer prompt tokens than were sent: it may have cut the prompt silently (S5)."""

    model: str
    estimated_tokens: int
    reported_tokens: int
    kind: Literal["prompt_shortened"] = "prompt_shortened"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextOverflowed:
    """The provider refused the request as too long. `window_tokens` is the real window if it told it."""

    model: str
    reason: str
    window_tokens: int | None = None
    total: RequestStats = field(default=NOTHING_SPENT, compare=False)
    kind: Literal["context_overflowed"] = "context_overflowed"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensCounted:
    """How full the window is, and what the run has cost so far. `max_output_tokens` is what a reply may take of it."""

    prompt_tokens: int
    context_window_tokens: int
    stats: RequestStats
    max_output_tokens: int | None = None
    kind: Literal["tokens_counted"] = "tokens_counted"


CitationOutcome: TypeAlias = Literal["checked", "cited", "not_found"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A claim of the answer and the lines of a stored result that it cites; lines count from 1, both included.

    `checked`: the lines show all that the claim says. `cited`: its names, numbers and quotes stand there, but bytes
    cannot show all of it, a cause for example. `not_found`: `missing` is what the lines lack, as far as it has a name.
    """

    result_id: ResultId
    first_line: int
    last_line: int
    claim: str
    outcome: CitationOutcome = "checked"
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFinished:
    """The end of a run that answered. `messages` is the whole conversation, ready to be continued.

    `citations` are what `text` cites, each with what came of the check against the stored bytes (N6).
    """

    text: str
    messages: tuple[Message, ...]
    stats: RequestStats
    steps: int
    model: str
    citations: tuple[Citation, ...] = ()
    kind: Literal["answer_finished"] = "answer_finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryReplaced:
    """The end of a compaction that a person asked for. `messages` is the conversation to go on with."""

    messages: tuple[Message, ...]
    stats: RequestStats
    kind: Literal["history_replaced"] = "history_replaced"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFailed:
    """The end of a run that could not answer. `messages` keeps everything found until then."""

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
"""The events that carry a `total`."""


class RunningCost:
    """The cost of one run, event by event. The loop keeps it and puts it on the events as their `total`."""

    def __init__(self) -> None:
        self._settled = self._pending = NOTHING_SPENT

    @property
    def stats(self) -> RequestStats:
        """The settled cost, and failed attempts that no reply or error has counted yet."""
        return self._settled if self._pending is NOTHING_SPENT else self._settled + self._pending

    def charge(self, stats: RequestStats) -> None:
        """Add the cost of a call, its failed attempts included."""
        self._settle(self._settled + stats)

    def note(self, event: AgentEvent) -> None:
        """Add the cost of `event`."""
        match event:
            case AttemptDiscarded():
                self._pending += event.stats
            case AssistantReplied() | HistoryCompacted() | CompactionFailed():
                self.charge(event.stats)
            case ContextOverflowed() | ModelSwitched():  # the call failed for good: no reply will count its attempts
                self._settle(self.stats)
            case AnswerFinished() | HistoryReplaced() | RunFailed():
                self._settle(event.stats)
            case _:
                pass

    def _settle(self, stats: RequestStats) -> None:
        self._settled, self._pending = stats, NOTHING_SPENT


def total_cost(event: AgentEvent, before: RequestStats) -> RequestStats:
    """The cost of the run after `event`; `before` is the cost until then."""
    match event:
        case AnswerFinished() | HistoryReplaced() | RunFailed():
            return event.stats
        case _:
            return event.total if isinstance(event, COSTLY_EVENTS) else before
