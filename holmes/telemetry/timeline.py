"""Measures the model calls, tool calls and compactions in an event stream.

An operation is reported at its end, with its start and end in nanoseconds since the epoch. An event marks the start of
a tool call. A model call starts when the previous operation of the loop ends. Operations contain only names, sizes and
numbers, and no text from users, models or tools. `error_type` is a constant of this module or the class of an error. It
is None after success.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, assert_never

from holmes.values.events import (
    AnswerFinished,
    ApprovalRequired,
    AssistantReplied,
    AttemptDiscarded,
    CompactionFailed,
    CompactionStarted,
    ContextOverflowed,
    HistoryCompacted,
    HistoryReplaced,
    HookFired,
    ModelSwitched,
    PromptShortened,
    RunFailed,
    TextDelta,
    TokensCounted,
    ToolCallFinished,
    ToolCallStarted,
    ToolResultsMasked,
    ToolResultSpilled,
    TurnStarted,
)
from holmes.values.messages import Text
from holmes.values.stats import NOTHING_SPENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from holmes.telemetry.runs import ReplayNotes
    from holmes.values.events import AgentEvent
    from holmes.values.messages import ToolCallId, ToolStatus
    from holmes.values.stats import RequestStats

CANCELLED: Final = "cancelled"
_CONTEXT_OVERFLOW: Final = "context_overflow"
_NO_REPLY: Final = "no_reply"
_TOOL_ERROR: Final = "tool_error"
_UNKNOWN_TOOL: Final = "unknown_tool"
_COMPACTION_FAILED: Final = "compaction_failed"

Strategy: TypeAlias = Literal["mask", "summarize", "truncate", "emergency"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """A failed attempt of a model call. The next attempt, if any, starts after `wait_seconds`."""

    at_ns: int
    model: str
    wait_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """A model call with all its attempts. `model` is the configured name, or None if unknown."""

    started_ns: int
    ended_ns: int
    step: int
    model: str | None
    stats: RequestStats = NOTHING_SPENT
    tool_calls: int = 0
    first_text_ns: int | None = None
    retries: tuple[Retry, ...] = ()
    error_type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRun:
    """A tool call. `tool` is None for an unknown tool. `status` is None if the run ended before the call did."""

    started_ns: int
    ended_ns: int
    step: int
    call_id: ToolCallId
    tool: str | None
    toolset: str | None
    status: ToolStatus | None = None
    result_characters: int = 0
    spilled: bool = False
    error_type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """A compaction, which may have failed. `strategy` is the last strategy that succeeded."""

    started_ns: int
    ended_ns: int
    step: int
    strategy: Strategy | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    masked_results: int = 0
    stats: RequestStats = NOTHING_SPENT
    error_type: str | None = None

    def with_event(
        self, event: CompactionStarted | HistoryCompacted | CompactionFailed | ToolResultsMasked, now_ns: int
    ) -> Compaction:
        """Return this compaction, updated with `event`."""
        known = replace(self, ended_ns=now_ns)
        match event:
            case CompactionStarted():
                return replace(known, tokens_before=event.tokens)
            case CompactionFailed():
                return replace(known, stats=self.stats + event.stats, error_type=_COMPACTION_FAILED)
            case ToolResultsMasked():
                count = self.masked_results + event.count
                known = replace(known, strategy=self.strategy or "mask", masked_results=count)
            case HistoryCompacted():
                known = replace(known, strategy=event.strategy, stats=self.stats + event.stats)
        before = event.tokens_before if self.tokens_before is None else self.tokens_before
        return replace(known, tokens_before=before, tokens_after=event.tokens_after, error_type=None)


Operation: TypeAlias = ModelCall | ToolRun | Compaction


_NANOSECONDS = 1_000_000_000
_PARTS_OF_COMPACTIONS = (CompactionStarted, HistoryCompacted, CompactionFailed, ToolResultsMasked)


class Timeline:
    """Measures the operations of one run.

    `model` is the first model of the chain. Operations that `replays` reports as finished by an earlier attempt are
    omitted.
    """

    def __init__(
        self,
        *,
        model: str | None = None,
        replays: ReplayNotes | None = None,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.step = 0
        self._clock_ns = clock_ns
        self._replays = replays
        self._model = model
        self._calling = False
        self._ready_ns = clock_ns()
        self._first_text_ns: int | None = None
        self._retries: list[Retry] = []
        self._tools: dict[ToolCallId, tuple[int, ToolCallStarted]] = {}
        self._spilled: set[ToolCallId] = set()
        self._compaction: Compaction | None = None

    def note(self, event: AgentEvent) -> tuple[Operation, ...]:
        """Process an event, and return the operations that end with this event."""
        now = self._clock_ns()
        if isinstance(event, TextDelta):  # by far the most frequent event
            if self._first_text_ns is None:
                self._first_text_ns = now
            return self._compaction_over() if self._compaction else ()
        before = () if self._belongs_to_compaction(event) else self._compaction_over()
        return (*before, *self._note_tool(event, now), *self._note_model(event, now))

    def close(self, error_type: str) -> tuple[Operation, ...]:
        """End all unfinished operations with `error_type`, and return these operations."""
        now = self._clock_ns()
        tools = [
            ToolRun(
                started_ns=start,
                ended_ns=now,
                step=self.step,
                call_id=call_id,
                tool=started.call.name if started.toolset else None,
                toolset=started.toolset,
                error_type=error_type,
            )
            for call_id, (start, started) in self._tools.items()
        ]
        self._tools.clear()
        return (*self._compaction_over(), *tools, *self._failed_call(now, error_type))

    def _note_tool(self, event: AgentEvent, now: int) -> tuple[Operation, ...]:
        match event:
            case ToolCallStarted():
                self._tools[event.call.id] = (now, event)
            case ToolResultSpilled():
                self._spilled.add(event.call.id)
            case ToolCallFinished():
                self._ready_ns = now
                start, _ = self._tools.pop(event.call.id, (now - int(event.elapsed_seconds * _NANOSECONDS), None))
                return () if self._is_replayed(event) else (self._tool_run(event, start, now),)
            case HookFired():
                self._ready_ns = now
            case _:
                pass
        return ()

    def _note_model(self, event: AgentEvent, now: int) -> tuple[Operation, ...]:
        match event:
            case TurnStarted():
                self.step = event.step
                self._begin_call(now)
            case AttemptDiscarded():
                self._first_text_ns = None
                if self._compaction is None:
                    self._retries.append(Retry(at_ns=now, model=event.model, wait_seconds=event.retry_in_seconds))
            case AssistantReplied():
                self._model = event.model
                calls = len(event.message.tool_calls)
                call = self._call_over(now, stats=event.stats, tool_calls=calls)
                return () if self._is_replayed(event) else (call,)
            case ContextOverflowed() | ModelSwitched() | RunFailed():
                return self._note_failure(event, now)
            case CompactionStarted() | HistoryCompacted() | CompactionFailed() | ToolResultsMasked():
                self._note_compaction(event, now)
            case TextDelta() | ToolCallStarted() | ToolCallFinished() | ToolResultSpilled() | HookFired():
                pass  # `_note_tool` and `note` handle these events
            case ApprovalRequired() | PromptShortened() | TokensCounted() | AnswerFinished() | HistoryReplaced():
                pass  # these events take no time
            case _:
                assert_never(event)
        return ()

    def _note_failure(self, event: ContextOverflowed | ModelSwitched | RunFailed, now: int) -> tuple[ModelCall, ...]:
        match event:
            case ContextOverflowed():
                self._model = event.model
                return self._failed_call(now, _CONTEXT_OVERFLOW)
            case ModelSwitched():
                self._model = event.from_model
                failed = self._failed_call(now, _NO_REPLY)
                self._model = event.to_model
                self._begin_call(now)
                return failed
            case RunFailed():
                return self._failed_call(now, _NO_REPLY)

    def _begin_call(self, now: int) -> None:
        self._calling, self._ready_ns, self._first_text_ns = True, now, None
        self._retries.clear()

    def _call_over(
        self, now: int, *, stats: RequestStats = NOTHING_SPENT, tool_calls: int = 0, error_type: str | None = None
    ) -> ModelCall:
        call = ModelCall(
            started_ns=self._ready_ns,
            ended_ns=now,
            step=self.step,
            model=self._model,
            stats=stats,
            tool_calls=tool_calls,
            first_text_ns=self._first_text_ns,
            retries=tuple(self._retries),
            error_type=error_type,
        )
        self._begin_call(now)
        self._calling = False
        return call

    def _failed_call(self, now: int, error_type: str) -> tuple[ModelCall, ...]:
        """End the current model call, if any, with an error."""
        return (self._call_over(now, error_type=error_type),) if self._calling else ()

    def _note_compaction(
        self, event: CompactionStarted | HistoryCompacted | CompactionFailed | ToolResultsMasked, now: int
    ) -> None:
        # A compaction without a start event (ageing, overflow) starts when the previous operation ends.
        start = now if isinstance(event, CompactionStarted) else self._ready_ns
        known = self._compaction or Compaction(started_ns=start, ended_ns=now, step=self.step)
        self._compaction = known.with_event(event, now)
        self._ready_ns = now
        if isinstance(event, HistoryCompacted) and event.strategy == "emergency":
            self._calling = True  # the same turn calls the model again

    def _belongs_to_compaction(self, event: AgentEvent) -> bool:
        """Return whether `event` is part of the current compaction.

        A discarded attempt is part of the compaction until the summary is complete.
        """
        if isinstance(event, AttemptDiscarded):
            compaction = self._compaction
            return compaction is not None and compaction.strategy is None and compaction.error_type is None
        return isinstance(event, _PARTS_OF_COMPACTIONS)

    def _compaction_over(self) -> tuple[Compaction, ...]:
        done, self._compaction = self._compaction, None
        if done is None or (self._replays is not None and self._replays.had_compaction(self.step)):
            return ()
        return (done,)

    def _tool_run(self, event: ToolCallFinished, start: int, now: int) -> ToolRun:
        known = event.toolset is not None
        failed = event.message.status == "error"
        return ToolRun(
            started_ns=start,
            ended_ns=now,
            step=self.step,
            call_id=event.call.id,
            tool=event.call.name if known else None,
            toolset=event.toolset,
            status=event.message.status,
            result_characters=sum(len(part.text) for part in event.message.parts if isinstance(part, Text)),
            spilled=event.message.spilled or event.call.id in self._spilled,
            error_type=(_TOOL_ERROR if known else _UNKNOWN_TOOL) if failed else None,
        )

    def _is_replayed(self, event: AgentEvent) -> bool:
        return self._replays is not None and self._replays.is_replayed(event, self.step)
