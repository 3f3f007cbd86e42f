"""The agentic loop: requests replies from the model and runs the tools that the model calls, until the model answers.

The loop is independent of providers, tools and user interfaces. It reports its progress through the events of
`call_stream()`.
"""

from __future__ import annotations

from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

from holmes.core.answer_review import AnswerReview, written
from holmes.core.hook_runner import HookRunner
from holmes.core.loop_run import LoopRun
from holmes.core.tools_utils.tool_context_window_limiter import (
    SpillOutcome,
    ToolOutcome,
    spill_oversized_tool_result,
)
from holmes.core.tools_utils.tool_executor import bound_reply, tool_result_message
from holmes.values.errors import HolmesError, ModelError
from holmes.values.events import (
    ApprovalRequired,
    AssistantReplied,
    TokensCounted,
    ToolCallStarted,
    TurnStarted,
)
from holmes.values.messages import user_text
from holmes.values.on_demand import called
from holmes.values.steps import concurrently, stream_events

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from holmes.core.hooks import Moment
    from holmes.core.loop_run import LoopParts
    from holmes.core.tools_utils.tool_executor import BoundedReply
    from holmes.values.events import AgentEvent, AnswerFinished
    from holmes.values.messages import HandedOver, Message, ToolCall, ToolMessage
    from holmes.values.model import EmitEvent, ModelReply


class ToolCallingLLM:
    """Runs the loop. One object can run any number of conversations."""

    def __init__(self, parts: LoopParts, *, max_steps: int = 100) -> None:
        self._parts = parts
        self._max_steps = max_steps

    def call_stream(self, messages: Sequence[Message]) -> AsyncGenerator[AgentEvent, None]:
        """Answer `messages`, which start with the system message and end with the user's message.

        The last event is `AnswerFinished` or `RunFailed`. Closing the generator cancels the request to the model and
        stops the process groups of the tools.
        """

        async def produce(emit: EmitEvent) -> None:
            run = await LoopRun.begin(messages, self._parts, emit)
            try:
                await emit(await self._loop(run))
            except HolmesError as error:
                await emit(run.failed(error))

        return stream_events(produce)

    async def _loop(self, run: LoopRun) -> AnswerFinished:
        hooks = HookRunner(run, self._parts, lambda call, name: self._run_tool_call(run, call, name))
        review = AnswerReview(run, self._parts, lambda call, name: self._run_tool_call(run, call, name))
        closing = False
        for step in range(1, self._max_steps + 1):
            last = closing or step == self._max_steps
            await run.emit(TurnStarted(step=step, max_steps=self._max_steps))
            if step == 1:
                await review.open()
            await _run_hooks(hooks, run, "turn_start", step)
            reply, bounded = await self._reply(run, step, last=last)
            if reply.message.tool_calls:
                await self._run_tool_calls(run, bounded, step)
            elif reply.message.text.strip():
                await _run_hooks(hooks, run, "turn_end", step)
                answer = await review.finish(written(reply, run), step, is_final=last)
                if answer is not None:
                    return answer
                continue
            elif last:
                break
            try:
                await self._require_use(run, reply, bounded.running, step)
            except ModelError as error:
                return await review.stopped(error, step)
            await _run_hooks(hooks, run, "turn_end", step)
            if run.is_stuck:
                answer, closing = await review.stuck(step), True
                if answer is not None:
                    return answer
        return await review.unanswered(step, self._max_steps)

    async def _reply(self, run: LoopRun, step: int, *, last: bool) -> tuple[ModelReply, BoundedReply]:
        """Request a reply and add it to the history. The `last` reply cannot call tools."""
        if last and step > 1:
            run.history.append(user_text(self._parts.prompts.last_step, kind="note"))
        await run.compact_if_necessary(step)
        reply = await run.complete(step, tool_choice="none" if last else "auto")
        if last:  # a model may ignore "none", and every call must have a result
            reply = replace(reply, message=replace(reply.message, tool_calls=()))
        bounded = bound_reply(reply.message)
        reply = replace(reply, message=bounded.message)
        await self._join_reply(run, reply)
        return reply, bounded

    async def _join_reply(self, run: LoopRun, reply: ModelReply) -> None:
        run.join(reply)
        current = run.models.current
        await run.emit(
            AssistantReplied(
                message=reply.message,
                stats=reply.stats,
                model=reply.model,
                checked=current.policy.evidence.citations,
            )
        )
        await run.emit(
            TokensCounted(
                prompt_tokens=reply.context_tokens or reply.stats.prompt_tokens,
                context_window_tokens=current.model.limits.context_window_tokens,
                stats=run.stats,
                max_output_tokens=run.models.output_tokens,
            )
        )

    async def _require_use(self, run: LoopRun, reply: ModelReply, calls: Sequence[ToolCall], step: int) -> None:
        """Add a reminder after an empty reply, and switch to the next model after too many useless replies.

        `calls` are the calls of `reply` that ran.
        """
        problems = [self._parts.executor.problem(call) for call in calls]
        if None in problems:
            run.models.useful()
            return
        if not problems:
            run.history.append(user_text(self._parts.prompts.empty_reply, kind="note"))
        try:
            run.models.useless(reply, problems[-1] if problems else None)
        except ModelError as error:
            await run.switch_model(error, step)

    async def _run_tool_calls(self, run: LoopRun, reply: BoundedReply, step: int) -> None:
        """Run all calls of one reply concurrently, and add their results to the history in the order of the calls."""
        calls = reply.message.tool_calls
        messages = await concurrently(
            self._run_tool_call(run, call, f"step-{step}/tool-{index}", answer)
            for index, (call, answer) in enumerate(zip(calls, reply.answers, strict=True))
        )
        await run.join_results(calls, messages)

    async def _run_tool_call(
        self, run: LoopRun, call: ToolCall, step_name: str, answer: ToolMessage | None = None
    ) -> ToolMessage:
        """Run `call` as a durable step, unless `answer` already contains its result."""
        executor, emit, shown = self._parts.executor, run.emit, called(call)
        toolset, description = executor.toolset_name(call), executor.describe(call)
        await emit(ToolCallStarted(call=shown, toolset=toolset, description=description))
        asks = answer is None and executor.needs_approval(call)
        if asks:
            await emit(ApprovalRequired(call=shown, description=description))
        answer = answer or run.refused(call)
        if answer is None:
            outcome = await self._parts.steps.run(
                step_name, lambda: invoke_llm_tool_call(self._parts, run, call, run.handed_over)
            )
        else:
            outcome = ToolOutcome.of(answer)
        message = await run.answer_repeated(call, outcome.spill.message)
        if spilled := outcome.spilled(shown):
            await emit(spilled)
        if message.status == "approval_required" and not asks:  # the tool itself requires approval
            await emit(ApprovalRequired(call=shown, description=description))
        await emit(outcome.finished(shown, message, toolset=toolset, description=description))
        return message


async def invoke_llm_tool_call(parts: LoopParts, run: LoopRun, call: ToolCall, handed_over: HandedOver) -> ToolOutcome:
    """Run `call`, which may read the results in `handed_over`, and fit its result into the context window."""
    started = monotonic()
    result = await parts.executor.run(call, handed_over)
    message = tool_result_message(call, result)
    cap_tokens = run.tool_result_cap_tokens
    spill = SpillOutcome(message=message, tokens=0, spilled=False, stored=False)
    if result.spillable:
        policy = run.models.current.policy
        spill = await spill_oversized_tool_result(
            message,
            cap_tokens=cap_tokens,
            counter=run.history.counter,
            store=parts.store,
            policy=policy.spill,
            label=policy.evidence.citations,
        )
    return ToolOutcome(
        spill=spill,
        cap_tokens=cap_tokens,
        invocation=result.invocation,
        error=result.error if result.status == "error" else None,
        elapsed_seconds=monotonic() - started,
        chart=result.chart,
    )


async def _run_hooks(hooks: HookRunner, run: LoopRun, moment: Moment, step: int) -> None:
    if run.models.current.policy.hooks:
        await hooks.run(moment, step)
