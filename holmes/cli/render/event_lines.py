"""Converts each event to plain lines, and a run to its cost line. Both renderers print these lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, assert_never

from holmes.cli.render.terminal import cost_line, counted, duration, one_line, price, sanitized, size, tokens, usage
from holmes.values.events import (
    AgentEvent,
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
from holmes.values.messages import Image
from holmes.values.stats import RequestStats
from holmes.values.tools import output_text

if TYPE_CHECKING:
    from holmes.values.events import AgentEvent
    from holmes.values.messages import ToolMessage

_INDENT = "  "
_NAMES_CHARACTERS = 120
_MASKS = {"fingerprint": "one line each", "preview": "previews", "path": "paths"}
_COMPACTIONS = {
    "summarize": "older messages summarised",
    "truncate": "older messages removed",
    "emergency": "conversation cut to fit",
}

Style: TypeAlias = Literal["good", "bad", "warning", "dim"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A sanitised line and its style."""

    text: str
    style: Style


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """Options that show complete tool results, the cost of each model reply, and the paths of cited results."""

    tool_output: bool = False
    reply_costs: bool = False
    paths: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotSpace:
    """The width for the chart of a result, and the encoding of the terminal."""

    columns: int
    encoding: str


def event_lines(event: AgentEvent, detail: Detail, plot: PlotSpace | None = None) -> tuple[Line, ...]:
    """Return the lines of an event. Many events have no lines. Without `plot`, charts are not shown."""
    match event:
        case ToolCallFinished():
            return (*_finished_lines(event, detail), *(_plot_lines(event, plot) if plot is not None else ()))
        case ToolResultSpilled() | ApprovalRequired():
            return (_tool_line(event),)
        case CompactionStarted() | HistoryCompacted() | CompactionFailed() | ContextOverflowed() | ToolResultsMasked():
            return (_history_line(event), *(_summary_costs(event) if detail.reply_costs else ()))
        case AttemptDiscarded() | ModelSwitched() | PromptShortened() | HookFired():
            return (_model_line(event),)
        case AssistantReplied():
            line = Line(text=f"  {one_line(event.model)} · {usage(event.stats)}", style="dim")
            return (line,) if detail.reply_costs else ()
        case (
            TurnStarted()
            | TextDelta()
            | ToolCallStarted()
            | TokensCounted()
            | AnswerFinished()
            | HistoryReplaced()
            | RunFailed()
        ):
            return ()
        case _:
            assert_never(event)


def _finished_lines(event: ToolCallFinished, detail: Detail) -> tuple[Line, ...]:
    took = duration(event.elapsed_seconds)
    what = one_line(event.description)
    match event.message.status:
        case "success":
            line = Line(text=f"✓ {what} · {took} · {_amount(event.message)}", style="good")
        case "no_data":
            line = Line(text=f"✓ {what} · {took} · nothing found", style="good")
        case "error":
            line = Line(text=f"✗ {what} · {took} · {one_line(event.error or event.message.text)}", style="bad")
        case "approval_required":
            line = Line(text=f"✗ {what} · not run", style="bad")
        case _:
            assert_never(event.message.status)
    if not detail.tool_output:
        return (line,)
    output = sanitized(output_text(event.message)).splitlines()
    return (line, *(Line(text=f"  │ {text}", style="dim") for text in output))


def _plot_lines(event: ToolCallFinished, space: PlotSpace) -> tuple[Line, ...]:
    if event.chart is None:
        return ()
    from holmes.charts import draw_plot

    drawn = draw_plot(event.chart, space.columns - len(_INDENT), encoding=space.encoding)
    return tuple(Line(text=f"{_INDENT}{sanitized(line)}", style="dim") for line in drawn)


def _amount(message: ToolMessage) -> str:
    """Return the size of a result. For a stored result, this is the stored size, not the preview size."""
    if message.spilled and message.stored:
        return f"{size(sum(stored.size_bytes for stored in message.stored))}, stored"
    pictures = sum(isinstance(part, Image) for part in message.parts)
    lines = len(output_text(message).splitlines())
    amounts = [counted(lines, "line")] if lines or not pictures else []
    return ", ".join([*amounts, counted(pictures, "image")] if pictures else amounts)


def _tool_line(event: ToolResultSpilled | ApprovalRequired) -> Line:
    match event:
        case ToolResultSpilled():
            limit = one_line(event.limit) or f"the limit is {event.cap_tokens:,} tokens"
            text = f"  result of {one_line(event.call.name)} is too large ({tokens(event.tokens)} tokens; {limit})"
            if event.stored:
                return Line(text=f"{text}: it is stored, and the model sees a preview", style="dim")
            return Line(text=f"{text}: it cannot be stored, so the model must request less", style="warning")
        case ApprovalRequired():
            return Line(text=f"  requires approval: {one_line(event.description)}", style="warning")
        case _:
            assert_never(event)


def _summary_costs(event: AgentEvent) -> tuple[Line, ...]:
    """Return a line with the cost of each model that wrote a summary."""
    if not isinstance(event, HistoryCompacted | CompactionFailed):
        return ()
    spends = event.stats.summaries
    return tuple(Line(text=f"  {one_line(each.model)} · {usage(each.stats)} · summary", style="dim") for each in spends)


def _history_line(
    event: CompactionStarted | HistoryCompacted | CompactionFailed | ContextOverflowed | ToolResultsMasked,
) -> Line:
    match event:
        case ToolResultsMasked():
            sizes = f"{tokens(event.tokens_before)} → {tokens(event.tokens_after)} tokens"
            text = f"{counted(event.count, 'old tool result')} shortened to {_MASKS[event.policy]}: {sizes}"
        case CompactionStarted():
            limit = tokens(event.trigger_tokens)
            sizes = f"{tokens(event.tokens)} tokens, compacted above {limit}"
            # A hook, the user or the number of messages triggered the compaction.
            if event.tokens <= event.trigger_tokens:
                sizes = f"{tokens(event.tokens)} of at most {limit} tokens"
            text = f"compacting the conversation: {sizes}"
        case HistoryCompacted():
            return Line(text=f"  {_compacted(event)}", style="warning" if event.lost else "dim")
        case CompactionFailed():
            text = f"no summary: {one_line(event.reason)}"
        case ContextOverflowed():
            window = f" (its context window has {tokens(event.window_tokens)} tokens)" if event.window_tokens else ""
            text = f"{one_line(event.model)} rejected the conversation as too long{window}: {one_line(event.reason)}"
        case _:
            assert_never(event)
    return Line(text=f"  {text}", style="dim")


def _compacted(event: HistoryCompacted) -> str:
    """Return the method, the sizes, the cost and the warnings of a compaction."""
    parts = [
        f"{_COMPACTIONS[event.strategy]}: {tokens(event.tokens_before)} → {tokens(event.tokens_after)} tokens",
        f"{event.messages_before} → {event.messages_after} messages",
    ]
    if event.stats.calls:
        parts.append(price(event.stats))
    text = ", ".join(parts)
    if event.flagged:
        text += f"; {counted(len(event.flagged), 'name')} not found in the conversation: "
        text += one_line(", ".join(event.flagged), _NAMES_CHARACTERS)
    if event.lost:
        text += "; removed messages could not be stored and are lost"
    return text


def _model_line(event: AttemptDiscarded | ModelSwitched | PromptShortened | HookFired) -> Line:
    match event:
        case HookFired():
            text = f"hook {one_line(event.hook_id)}: {one_line(event.text)}"
        case PromptShortened():
            counted_tokens = f"{tokens(event.reported_tokens)} of about {tokens(event.estimated_tokens)} tokens"
            text = f"{one_line(event.model)}: the provider counted only {counted_tokens} "
            text += "and may have ignored part of the conversation"
        case AttemptDiscarded():
            wait = event.retry_in_seconds
            when = f"retrying in {duration(wait)}" if wait else "retrying now"
            text = f"{one_line(event.model)} failed, {when}: {one_line(event.reason)}"
        case ModelSwitched():
            text = f"continuing with {one_line(event.to_model)}, because {one_line(event.from_model)} failed: "
            text += one_line(event.reason)
        case _:
            assert_never(event)
    return Line(text=f"  {text}", style="dim")


class RunSummary:
    """Collects steps, calls, model and cost of one run."""

    def __init__(self, started_at_seconds: float) -> None:
        self._started_at_seconds = started_at_seconds
        self._steps = 0
        self._tool_calls = 0
        self._model = ""
        self._stats = RequestStats()

    def note(self, event: AgentEvent) -> None:
        match event:
            case TurnStarted():
                self._steps = event.step
            case ToolCallFinished():
                self._tool_calls += 1
            case AssistantReplied():
                self._model = event.model
            case AnswerFinished() | RunFailed():
                self._stats = event.stats
            case _:
                pass

    def cost_line(self, now_seconds: float) -> str:
        """Return the cost line of a finished run. It is empty if no model was called."""
        if not self._stats.calls:
            return ""
        elapsed_seconds = now_seconds - self._started_at_seconds
        return cost_line(self._model, self._steps, self._tool_calls, self._stats, elapsed_seconds)
