"""The agentic loop: ask the model, run the tools it calls, until it answers. Built in `holmes.app`.

Knows neither provider nor tool nor face: whoever wants to see an investigation reads the events of `call_stream()`.
"""

from __future__ import annotations

from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

from holmes.core.event_stream import stream_events
from holmes.core.hook_runner import HookRunner
from holmes.core.investigation import Investigation
from holmes.core.tools_utils.repeated_calls import bound_reply
from holmes.core.tools_utils.tool_context_window_limiter import (
    SpillOutcome,
    ToolOutcome,
    spill_oversized_tool_result,
    tool_result_message,
)
from holmes.values.errors import HolmesError, ModelError, StepLimitReached
from holmes.values.events import (
    AnswerFinished,
    ApprovalRequired,
    AssistantReplied,
    TokensCounted,
    ToolCallFinished,
    ToolCallStarted,
    TurnStarted,
)
from holmes.values.messages import AssistantMessage, user_text
from holmes.values.steps import concurrently

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from holmes.core.investigation import LoopParts
    from holmes.core.tools_utils.repeated_calls import BoundedReply
    from holmes.values.events import AgentEvent
    from holmes.values.messages import Message, ToolCall, ToolMessage
    from holmes.values.model import EmitEvent, ModelReply


class ToolCallingLLM:
    """The loop over fixed parts; one object serves any number of conversations."""

    def __init__(self, parts: LoopParts, *, max_steps: int = 100) -> None:
        self._parts = parts
        self._max_steps = max_steps

    def call_stream(self, messages: Sequence[Message]) -> AsyncGenerator[AgentEvent, None]:
        """Investigate. `messages` starts with the system message and ends with the user's.

        The last event is `AnswerFinished` or `RunFailed`. Closing the generator cancels the model call, the tools and
        their process groups.
        """

        async def produce(emit: EmitEvent) -> None:
            investigation = await Investigation.begin(messages, self._parts, emit)
            try:
                await emit(await self._investigate(investigation))
            except HolmesError as error:
                await emit(investigation.failed(error))

        return stream_events(produce)

    async def _investigate(self, investigation: Investigation) -> AnswerFinished:
        hooks = HookRunner(
            investigation, self._parts, lambda call, name: self._run_tool_call(investigation, call, name)
        )
        for step in range(1, self._max_steps + 1):
            last = step == self._max_steps
            await investigation.emit(TurnStarted(step=step, max_steps=self._max_steps))
            await hooks.run("turn_start", step)
            if last and step > 1:
                investigation.history.append(user_text(self._parts.prompts.last_step, kind="note"))
            await investigation.compact_if_necessary(step)
            reply = await investigation.complete(step, tool_choice="none" if last else "auto")
            if last:  # calls that a model makes all the same can have no results, and pairing must hold
                reply = replace(reply, message=replace(reply.message, tool_calls=()))
            bounded = bound_reply(reply.message)
            reply = replace(reply, message=bounded.message)
            await self._join_reply(investigation, reply)
            if reply.message.tool_calls:
                await self._run_tool_calls(investigation, bounded, step)
            elif reply.message.text.strip():
                await hooks.run("turn_end", step)
                return await self._answer(investigation, reply, step)
            elif last:
                break
            await self._require_use(investigation, reply, bounded.running, step)
            await hooks.run("turn_end", step)
        raise StepLimitReached(self._unanswered(investigation))

    async def _join_reply(self, investigation: Investigation, reply: ModelReply) -> None:
        investigation.join(reply)
        checked = investigation.current.policy.evidence.citations
        await investigation.emit(
            AssistantReplied(message=reply.message, stats=reply.stats, model=reply.model, checked=checked)
        )
        await investigation.emit(
            TokensCounted(
                prompt_tokens=reply.context_tokens or reply.stats.prompt_tokens,
                context_window_tokens=investigation.model.limits.context_window_tokens,
                stats=investigation.stats,
                max_output_tokens=investigation.current.output_tokens,
            )
        )

    async def _answer(self, investigation: Investigation, reply: ModelReply, step: int) -> AnswerFinished:
        text = reply.message.text
        if reply.finish_reason == "length":
            limit = investigation.current.output_tokens
            text += f"\n\n*(The answer was cut off at the model's output limit of {limit} tokens.)*"
        return AnswerFinished(
            text=text,
            messages=investigation.history.messages(),
            stats=investigation.stats,
            steps=step,
            model=reply.model,
            citations=await investigation.citations(text),
        )

    async def _require_use(
        self, investigation: Investigation, reply: ModelReply, calls: Sequence[ToolCall], step: int
    ) -> None:
        """Nudge a model that said nothing. One that makes no use of its turns gives way to the next of the chain.

        `calls` are those of `reply` that were begun.
        """
        problems = [self._parts.executor.problem(call) for call in calls]
        if None in problems:
            investigation.use.useful()
            return
        if not problems:
            investigation.history.append(user_text(self._parts.prompts.empty_reply, kind="note"))
        try:
            investigation.use.useless(reply, problems[-1] if problems else None)
        except ModelError as error:
            await investigation.switch_model(error, step)

    def _unanswered(self, investigation: Investigation) -> str:
        """What a run without an answer says: the limit, the way out, and the last thing the model wrote."""
        found = next((text for text in map(_assistant_text, reversed(investigation.history)) if text), None)
        last_words = f" It wrote last: {found}" if found else ""
        return f"No answer within {self._max_steps} steps: raise --max-steps or ask a narrower question.{last_words}"

    async def _run_tool_calls(self, investigation: Investigation, reply: BoundedReply, step: int) -> None:
        """Run all calls of one reply at once; the results join in the order of the calls, fitted to their own cap."""
        calls = reply.message.tool_calls
        messages = await concurrently(
            self._run_tool_call(investigation, call, f"step-{step}/tool-{index}", answer)
            for index, (call, answer) in enumerate(zip(calls, reply.answers, strict=True))
        )
        await investigation.join_results(calls, messages)

    async def _run_tool_call(
        self, investigation: Investigation, call: ToolCall, step_name: str, answer: ToolMessage | None = None
    ) -> ToolMessage:
        """Run `call` as a step, unless it has its `answer`. `ApprovalRequired` comes before anybody decides."""
        executor, emit = self._parts.executor, investigation.emit
        toolset, description = executor.toolset_name(call), executor.describe(call)
        await emit(ToolCallStarted(call=call, toolset=toolset, description=description))
        asks = answer is None and executor.needs_approval(call)
        if asks:
            await emit(ApprovalRequired(call=call, description=description))
        if answer is None:
            outcome = await self._parts.steps.run(step_name, lambda: self._invoke_llm_tool_call(investigation, call))
        else:
            outcome = ToolOutcome.of(answer)
        message = await investigation.answer_repeated(call, outcome.spill.message)
        if spilled := outcome.spilled(call):
            await emit(spilled)
        if message.status == "approval_required" and not asks:  # the tool itself knows that it may not run
            await emit(ApprovalRequired(call=call, description=description))
        await emit(
            ToolCallFinished(
                call=call,
                toolset=toolset,
                description=description,
                message=message,
                invocation=outcome.invocation,
                error=outcome.error,
                elapsed_seconds=outcome.elapsed_seconds,
            )
        )
        return message

    async def _invoke_llm_tool_call(self, investigation: Investigation, call: ToolCall) -> ToolOutcome:
        started = monotonic()
        result = await self._parts.executor.run(call, investigation.handed_over)
        message = tool_result_message(call, result)
        cap_tokens = investigation.tool_result_cap_tokens
        spill = SpillOutcome(message=message, tokens=0, spilled=False, stored=False)
        if result.spillable:
            policy = investigation.current.policy
            spill = await spill_oversized_tool_result(
                message,
                cap_tokens=cap_tokens,
                counter=investigation.counter,
                store=self._parts.store,
                policy=policy.spill,
                label=policy.evidence.citations,
            )
        return ToolOutcome(
            spill=spill,
            cap_tokens=cap_tokens,
            invocation=result.invocation,
            error=result.error if result.status == "error" else None,
            elapsed_seconds=monotonic() - started,
        )


def _assistant_text(message: Message) -> str:
    return message.text.strip() if isinstance(message, AssistantMessage) else ""
