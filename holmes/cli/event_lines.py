"""What each event says in plain lines. Both renderers print these; how text streams and spins is theirs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, assert_never

from holmes.cli.sanitize import one_line, sanitized
from holmes.cli.wording import counted, duration, tokens, usage
from holmes.core.events import (
    AnswerFinished,
    ApprovalRequired,
    AssistantReplied,
    AttemptDiscarded,
    CompactionFailed,
    CompactionStarted,
    ContextOverflowed,
    HistoryCompacted,
    ModelSwitched,
    RunFailed,
    TextDelta,
    TokensCounted,
    ToolCallFinished,
    ToolCallStarted,
    ToolResultSpilled,
    TurnStarted,
)

if TYPE_CHECKING:
    from holmes.core.events import AgentEvent

Style: TypeAlias = Literal["good", "bad", "warning", "dim"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line for people; already safe to show."""

    text: str
    style: Style


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """How much is shown: whole tool results, and what each reply of the model cost."""

    tool_output: bool = False
    reply_costs: bool = False


def event_lines(event: AgentEvent, detail: Detail) -> tuple[Line, ...]:
    """The lines that an event adds to the record of the run; many add none."""
    match event:
        case ToolCallFinished():
            return _finished_lines(event, detail)
        case ToolResultSpilled() | ApprovalRequired():
            return (_tool_line(event),)
        case CompactionStarted() | HistoryCompacted() | CompactionFailed() | ContextOverflowed():
            return (_history_line(event),)
        case AttemptDiscarded() | ModelSwitched():
            return (_model_line(event),)
        case AssistantReplied():
            line = Line(text=f"  {one_line(event.model)} · {usage(event.stats)}", style="dim")
            return (line,) if detail.reply_costs else ()
        case TurnStarted() | TextDelta() | ToolCallStarted() | TokensCounted() | AnswerFinished() | RunFailed():
            return ()
        case _:
            assert_never(event)


def _finished_lines(event: ToolCallFinished, detail: Detail) -> tuple[Line, ...]:
    took = duration(event.elapsed_seconds)
    what = one_line(event.description)
    match event.message.status:
        case "success":
            size = counted(len(event.message.text.splitlines()), "line")
            line = Line(text=f"✓ {what} · {took} · {size}", style="good")
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
    output = sanitized(event.message.text).splitlines()
    return (line, *(Line(text=f"  │ {text}", style="dim") for text in output))


def _tool_line(event: ToolResultSpilled | ApprovalRequired) -> Line:
    match event:
        case ToolResultSpilled():
            fate = "kept on disk, the model sees a preview" if event.stored else "dropped, it could not be kept"
            size = f"{tokens(event.tokens)} tokens are over the limit of {tokens(event.cap_tokens)}"
            return Line(text=f"  result of {one_line(event.call.name)}: {size}: {fate}", style="dim")
        case ApprovalRequired():
            return Line(text=f"  not approved: {one_line(event.description)}", style="warning")
        case _:
            assert_never(event)


def _history_line(event: CompactionStarted | HistoryCompacted | CompactionFailed | ContextOverflowed) -> Line:
    match event:
        case CompactionStarted():
            text = f"the conversation has {tokens(event.tokens)} tokens: compacting it"
        case HistoryCompacted():
            sizes = f"{tokens(event.tokens_before)} → {tokens(event.tokens_after)} tokens"
            count = f"{event.messages_before} → {event.messages_after} messages"
            text = f"conversation compacted ({event.strategy}): {sizes}, {count}"
        case CompactionFailed():
            text = f"conversation not compacted: {one_line(event.reason)}"
        case ContextOverflowed():
            text = f"{one_line(event.model)} says the conversation is too long: {one_line(event.reason)}"
        case _:
            assert_never(event)
    return Line(text=f"  {text}", style="dim")


def _model_line(event: AttemptDiscarded | ModelSwitched) -> Line:
    match event:
        case AttemptDiscarded():
            when = f"again in {duration(event.retry_in_seconds)}" if event.retry_in_seconds else "again at once"
            text = f"{one_line(event.model)} failed, {when}: {one_line(event.reason)}"
        case ModelSwitched():
            text = f"going on with {one_line(event.to_model)}: {one_line(event.from_model)} failed: "
            text += one_line(event.reason)
        case _:
            assert_never(event)
    return Line(text=f"  {text}", style="dim")
