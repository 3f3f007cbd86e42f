"""Hook declarations. A hook runs an action at the start or end of a turn if its condition is true.

The configuration is validated directly against these classes. This module selects the hooks to run, and `hook_runner`
runs them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, TypeAlias, get_args

from annotated_types import Ge, Gt, Le, MinLen

from holmes.values.expressions import expression
from holmes.values.messages import ToolCallId, user_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.values.messages import ToolMessage, UserMessage

AUTO_COMPACT_ID = "_auto_compact"
NOTE_OF_HOOK = "[Hook "
"""The result of a hook, as a note in the conversation, starts with these words."""
_CALL_ID = expression(r"hook-(.+)-\d+")
_Name: TypeAlias = Annotated[str, MinLen(1)]


class _Declared:
    """Base class of all parts of a hook declaration. Unknown keys are errors."""

    __slots__ = ()
    __pydantic_config__: ClassVar[Mapping[str, str]] = {"extra": "forbid"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPressure(_Declared):
    """A condition that is true if tokens / (context window - output reserve) is above `threshold`.

    If `threshold` is None, the condition is true when a trigger of the policy fires.
    """

    threshold: Annotated[float, Gt(0), Le(1)] | None = None
    type: Literal["context_pressure"] = "context_pressure"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCount(_Declared):
    """A condition that is true in turn `count`. Turns are numbered from 1."""

    count: Annotated[int, Ge(1)]
    type: Literal["turn_count"] = "turn_count"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalls(_Declared):
    """A condition that is true if the run has made more than `threshold` tool calls."""

    threshold: Annotated[int, Ge(0)]
    type: Literal["tool_calls"] = "tool_calls"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageCount(_Declared):
    """A condition that is true if the history has more than `threshold` messages."""

    threshold: Annotated[int, Ge(0)]
    type: Literal["message_count"] = "message_count"


@dataclass(frozen=True, slots=True, kw_only=True)
class Always(_Declared):
    type: Literal["always"] = "always"


Condition: TypeAlias = ContextPressure | TurnCount | ToolCalls | MessageCount | Always


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactContext(_Declared):
    """Compacts the history. If a field is None, the value of the policy applies."""

    strategy: Literal["summarize", "truncate"] | None = None
    keep_recent: Annotated[int, Ge(0)] | None = None
    summary_max_tokens: Annotated[int, Ge(1)] | None = None
    type: Literal["compact_context"] = "compact_context"


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectMessage(_Declared):
    """Adds a message. A `system` message becomes a marked user message, so that the cached prefix stays valid."""

    message: _Name
    role: Literal["system", "user"] = "system"
    type: Literal["inject_message"] = "inject_message"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTool(_Declared):
    """Calls the tool `action` and adds its result.

    The tool must be in the toolset `module`. If `module` is empty, any toolset matches. `params` contains the arguments
    of the tool.
    """

    action: _Name
    module: str = ""
    params: dict[str, object] = field(default_factory=dict)
    type: Literal["module_action"] = "module_action"


@dataclass(frozen=True, slots=True, kw_only=True)
class Log(_Declared):
    """Shows a line of text, in which `{turn}`, `{tokens}` and `{messages}` are replaced with the current values."""

    message: _Name
    type: Literal["log"] = "log"


Action: TypeAlias = CompactContext | InjectMessage | CallTool | Log
Moment: TypeAlias = Literal["turn_start", "turn_end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook(_Declared):
    """An action, and the condition under which it runs.

    `cooldown` is the minimum time between two runs of the action, in seconds.
    """

    id: _Name
    condition: Condition
    action: Action
    on: Moment = "turn_end"
    cooldown: Annotated[float, Ge(0)] = 0.0


def hook_keys(types: tuple[str | int, ...]) -> tuple[str, ...]:
    """Return the keys of the condition or action whose type is in `types`.

    If no type matches, return the keys of a hook.
    """
    for part in (*get_args(Condition), *get_args(Action)):
        defaults = {each.name: each.default for each in fields(part)}
        if defaults["type"] in types:
            return tuple(defaults)
    return tuple(each.name for each in fields(Hook))


def hook_call_id(hook_id: str, turn: int) -> ToolCallId:
    """Return the call id for the tool call that a hook makes in a turn."""
    return ToolCallId(f"hook-{hook_id}-{turn}")


def hook_of(call_id: str) -> str | None:
    """Return the id of the hook that made a call, or None if the model made it."""
    match = _CALL_ID.fullmatch(call_id)
    return match[1] if match else None


def hook_note(hook_id: str, result: ToolMessage) -> UserMessage:
    """Return the tool result as a note, because providers reject a result if the model did not call the tool."""
    note = user_text(f"{NOTE_OF_HOOK}{hook_id!r} called {result.tool_name}]\n{result.text}", kind="note")
    return replace(note, stored=result.stored)


def auto_compact_hook(threshold: float | None) -> Hook:
    """Return the hook that `auto_compact: true` enables.

    If `threshold` is None, the hook runs when a trigger of the policy fires.
    """
    return Hook(
        id=AUTO_COMPACT_ID,
        on="turn_start",
        condition=ContextPressure(threshold=threshold),
        action=CompactContext(),
        cooldown=30.0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnState:
    """The state that the conditions are checked against.

    `pressure` is tokens / (context window - reserve). `triggered` is true if a trigger of the policy fired.
    """

    turn: int
    tokens: int
    messages: int
    tool_calls: int
    pressure: float
    triggered: bool


def _is_due(condition: Condition, state: TurnState) -> bool:
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
    """Selects the hooks to run, and applies their cooldowns within one run."""

    def __init__(self) -> None:
        self._fired_at_seconds: dict[str, float] = {}

    def due(self, hooks: tuple[Hook, ...], moment: Moment, state: TurnState, now_seconds: float) -> tuple[Hook, ...]:
        """Return the hooks of `moment` that run now, in order, and start their cooldowns.

        A hook runs if its condition is true and its cooldown has ended.
        """
        due = tuple(
            hook
            for hook in hooks
            if hook.on == moment and self._rested(hook, now_seconds) and _is_due(hook.condition, state)
        )
        self._fired_at_seconds.update(dict.fromkeys((hook.id for hook in due), now_seconds))
        return due

    def _rested(self, hook: Hook, now_seconds: float) -> bool:
        fired_at = self._fired_at_seconds.get(hook.id)
        return fired_at is None or now_seconds - fired_at >= hook.cooldown
