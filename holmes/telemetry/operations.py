"""What took time in a run, as values: made by `timeline`, turned into figures and spans.

Times are nanoseconds since the epoch. There is no text of the user, the model or a tool in here, only names, sizes and
counts. `error_type` is one of the constants below, `cancelled`, or the class of an error; None when it went well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.values.events import CompactionFailed, CompactionStarted, HistoryCompacted, ToolResultsMasked
from holmes.values.stats import NOTHING_SPENT

if TYPE_CHECKING:
    from holmes.values.messages import ToolCallId, ToolStatus
    from holmes.values.stats import RequestStats

CANCELLED: Final = "cancelled"
CONTEXT_OVERFLOW: Final = "context_overflow"
NO_REPLY: Final = "no_reply"
TOOL_ERROR: Final = "tool_error"
UNKNOWN_TOOL: Final = "unknown_tool"
COMPACTION_FAILED: Final = "compaction_failed"

Strategy: TypeAlias = Literal["mask", "summarize", "truncate", "emergency"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """An attempt of a call failed; the next one came after `wait_seconds`."""

    at_ns: int
    model: str
    wait_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """A model was asked, with all attempts. `model` is its name in the configuration, None if not known."""

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
    """A tool ran. `tool` is None for a name that the model made up, `status` None when the run ended before it."""

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
    """The history was made shorter, or that was tried. `strategy` is the last thing that worked."""

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
        """What is known after `event`, which belongs to it."""
        known = replace(self, ended_ns=now_ns)
        match event:
            case CompactionStarted():
                return replace(known, tokens_before=event.tokens)
            case CompactionFailed():
                return replace(known, stats=self.stats + event.stats, error_type=COMPACTION_FAILED)
            case ToolResultsMasked():
                count = self.masked_results + event.count
                known = replace(known, strategy=self.strategy or "mask", masked_results=count)
            case HistoryCompacted():
                known = replace(known, strategy=event.strategy, stats=self.stats + event.stats)
        before = event.tokens_before if self.tokens_before is None else self.tokens_before
        return replace(known, tokens_before=before, tokens_after=event.tokens_after, error_type=None)


Operation: TypeAlias = ModelCall | ToolRun | Compaction
