"""Runs hooks at the start and the end of a turn.

A failed tool call or compaction does not end the run. The hook's event reports the failure.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, assert_never

from holmes.core.hooks import (
    CallTool,
    CompactContext,
    HookClock,
    InjectMessage,
    Log,
    TurnState,
    hook_call_id,
    hook_note,
)
from holmes.core.truncation.context import budget_of, is_cooling_down
from holmes.core.truncation.input_context_window_limiter import compact_on_request, is_triggered
from holmes.values.errors import CompactionInsufficientError
from holmes.values.events import HookFired
from holmes.values.messages import SystemMessage, ToolCall, user_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from holmes.core.hooks import Hook, Moment
    from holmes.core.loop_run import LoopParts, LoopRun
    from holmes.core.policy import ContextPolicy
    from holmes.values.messages import ToolMessage

Invoke: TypeAlias = "Callable[[ToolCall, str], Awaitable[ToolMessage]]"


class HookRunner:
    def __init__(self, run: LoopRun, parts: LoopParts, invoke: Invoke) -> None:
        """`invoke` runs a tool as the step with the given name and fits the result into the context window."""
        self._run = run
        self._parts = parts
        self._invoke = invoke
        self._clock = HookClock()

    async def run(self, moment: Moment, step: int) -> None:
        """Run the hooks of `moment` whose conditions are true, in order of declaration.

        Hooks in their cooldown are skipped.
        """
        hooks = self._run.models.current.policy.hooks
        if not any(hook.on == moment for hook in hooks):
            return
        state = await self._state(step)
        for hook in self._clock.due(hooks, moment, state, self._parts.steps.now_seconds()):
            await self._fire(hook, state)

    async def _state(self, step: int) -> TurnState:
        run = self._run
        history, context = run.history, run.compaction_context(f"step-{step}/hooks")
        budget = await asyncio.to_thread(budget_of, history, context)
        triggered = await asyncio.to_thread(is_triggered, history, budget)  # the count is exact only near the trigger
        tokens = await asyncio.to_thread(history.tokens) + budget.schema_tokens
        return TurnState(
            turn=step,
            tokens=tokens,
            messages=sum(not isinstance(message, SystemMessage) for message in history),
            tool_calls=run.tool_calls,
            pressure=tokens / max(1, budget.window_tokens - budget.reserve_tokens),
            triggered=triggered,
        )

    async def _fire(self, hook: Hook, state: TurnState) -> None:
        match hook.action:
            case Log(message=message):
                values = {"turn": state.turn, "tokens": state.tokens, "messages": state.messages}
                text = _filled(message, values)
            case InjectMessage(message=message, role=role):
                marked = f"[Reminder from hook {hook.id!r}] {message}" if role == "system" else message
                self._run.history.append(user_text(marked, kind="note"))
                text = message
            case CompactContext():
                text = await self._compact(hook.id, hook.action, state)
            case CallTool():
                text = await self._call(hook, hook.action, state)
            case _:
                assert_never(hook.action)
        await self._run.emit(HookFired(hook_id=hook.id, action=hook.action.type, text=text))

    async def _compact(self, hook_id: str, action: CompactContext, state: TurnState) -> str:
        run = self._run
        context = run.compaction_context(f"step-{state.turn}/hook-{hook_id}")
        context = replace(context, budget=replace(context.budget, policy=_adjusted(context.policy, action)))
        before = run.history
        budget = await asyncio.to_thread(budget_of, before, context)
        too_long = await asyncio.to_thread(before.exceeds, budget.hard_limit_tokens)
        if not too_long and is_cooling_down(before, budget):
            return "not compacted: the cooldown of the last compaction has not ended"
        try:
            outcome = await compact_on_request(before, context, summarise=False)
        except CompactionInsufficientError as insufficient:
            return f"not compacted: {insufficient}"
        run.adopt(outcome)
        return "not compacted" if outcome.history is before else "conversation compacted"

    async def _call(self, hook: Hook, action: CallTool, state: TurnState) -> str:
        """Run the tool, append its result as a note, and return the line for the hook's event."""
        call_id = hook_call_id(hook.id, state.turn)
        call = ToolCall(id=call_id, name=action.action, arguments=json.dumps(action.params))
        toolset = self._parts.executor.toolset_name(call)
        if action.module and toolset != action.module:
            return f"toolset {action.module!r} has no tool {action.action!r}"
        message = await self._invoke(call, f"step-{state.turn}/hook-{hook.id}")
        self._run.history.append(hook_note(hook.id, message))
        return f"{self._parts.executor.describe(call)}: {message.status}"


def _filled(message: str, values: dict[str, int]) -> str:
    """Replace the placeholders in `message`. Other braces stay unchanged."""
    for name, value in values.items():
        message = message.replace(f"{{{name}}}", f"{value}")
    return message


def _adjusted(policy: ContextPolicy, action: CompactContext) -> ContextPolicy:
    """Return `policy` with the values that `action` sets."""
    if action.strategy is not None:
        policy = replace(policy, strategy=action.strategy)
    if action.keep_recent is not None:
        policy = replace(policy, keep=policy.keep.counting(action.keep_recent))
    if action.summary_max_tokens is not None:
        policy = replace(policy, summary=replace(policy.summary, max_tokens=action.summary_max_tokens))
    return policy
