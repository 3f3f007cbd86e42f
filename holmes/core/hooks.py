"""Declared reactions of the loop: when something is true at the start or the end of a turn, do something (C8).

Values and the pure decision which hooks are due. Made by `holmes.app` from the settings; evaluated by the loop. A turn
is one round of the agent. Refuses to run anything itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from holmes.values.messages import ToolCallId, user_text

if TYPE_CHECKING:
    from holmes.values.json_types import JsonObject
    from holmes.values.messages import ToolMessage, UserMessage

AUTO_COMPACT_ID = "_auto_compact"
_CALL_ID = re.compile(r"hook-(.+)-\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPressure:
    """Tokens / (window - output reserve) is above `threshold`; None stands for the policy's own triggers."""

    threshold: float | None = None
    type: Literal["context_pressure"] = "context_pressure"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCount:
    """It is turn number `count`; counts from 1."""

    count: int
    type: Literal["turn_count"] = "turn_count"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalls:
    """More than `threshold` tools were called in this run."""

    threshold: int
    type: Literal["tool_calls"] = "tool_calls"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageCount:
    """The history has more than `threshold` messages."""

    threshold: int
    type: Literal["message_count"] = "message_count"


@dataclass(frozen=True, slots=True, kw_only=True)
class Always:
    """Every time."""

    type: Literal["always"] = "always"


Condition: TypeAlias = ContextPressure | TurnCount | ToolCalls | MessageCount | Always


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactContext:
    """Compact the history. What is None is as the policy says."""

    strategy: Literal["summarize", "truncate"] | None = None
    keep_recent: int | None = None
    summary_max_tokens: int | None = None
    type: Literal["compact_context"] = "compact_context"


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectMessage:
    """Add a message. A `system` one becomes a marked user message, so that the prefix stays."""

    message: str
    role: Literal["system", "user"] = "system"
    type: Literal["inject_message"] = "inject_message"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTool:
    """Call a tool; its result joins the history. `module` is the toolset (any when empty), `action` the tool."""

    action: str
    module: str = ""
    params: JsonObject = field(default_factory=dict)
    type: Literal["module_action"] = "module_action"


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """Say a line. `{turn}`, `{tokens}` and `{messages}` are filled in."""

    message: str
    type: Literal["log"] = "log"


Action: TypeAlias = CompactContext | InjectMessage | CallTool | Log
Moment: TypeAlias = Literal["turn_start", "turn_end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """One hook. `cooldown_seconds` is the least time between two firings."""

    id: str
    condition: Condition
    action: Action
    on: Moment = "turn_end"
    cooldown_seconds: float = 0.0


def hook_call_id(hook_id: str, turn: int) -> ToolCallId:
    """The id of the call that a hook makes in a turn."""
    return ToolCallId(f"hook-{hook_id}-{turn}")


def hook_of(call_id: str) -> str | None:
    """The id of the hook that made a call, None for a call of the model."""
    match = _CALL_ID.fullmatch(call_id)
    return match[1] if match else None


def hook_note(hook_id: str, result: ToolMessage) -> UserMessage:
    """How the result joins the conversation, since no provider knows a call that its model did not make."""
    note = user_text(f"[Hook {hook_id!r} called {result.tool_name}]\n{result.text}", kind="note")
    return replace(note, stored=result.stored)


def auto_compact_hook(threshold: float | None) -> Hook:
    """What `auto_compact: true` stands for; without `threshold` it is due when the policy's own triggers are."""
    return Hook(
        id=AUTO_COMPACT_ID,
        on="turn_start",
        condition=ContextPressure(threshold=threshold),
        action=CompactContext(),
        cooldown_seconds=30.0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnState:
    """What conditions look at. `pressure` is tokens / (window - reserve); `triggered` is the policy's own triggers."""

    turn: int
    tokens: int
    messages: int
    tool_calls: int
    pressure: float
    triggered: bool


def is_due(condition: Condition, state: TurnState) -> bool:
    """Whether `condition` holds."""
    match condition:
        case ContextPressure(threshold=None):
            return state.triggered
        case ContextPressure(threshold=threshold):
            return threshold is not None and state.pressure > threshold
        case TurnCount():
            return state.turn == condition.count
        case ToolCalls():
            return state.tool_calls > condition.threshold
        case MessageCount():
            return state.messages > condition.threshold
        case Always():
            return True


class HookClock:
    """Which hooks may fire: remembers when each fired last. One for each run."""

    def __init__(self) -> None:
        self._fired_at_seconds: dict[str, float] = {}

    def due(self, hooks: tuple[Hook, ...], moment: Moment, state: TurnState, now_seconds: float) -> tuple[Hook, ...]:
        """The hooks of `moment` that are due now, in order; they count as fired."""
        due = tuple(
            hook
            for hook in hooks
            if hook.on == moment and self._rested(hook, now_seconds) and is_due(hook.condition, state)
        )
        self._fired_at_seconds.update(dict.fromkeys((hook.id for hook in due), now_seconds))
        return due

    def _rested(self, hook: Hook, now_seconds: float) -> bool:
        fired_at = self._fired_at_seconds.get(hook.id)
        return fired_at is None or now_seconds - fired_at >= hook.cooldown_seconds
