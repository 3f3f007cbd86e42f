"""The agentic loop: ask the model, run the tools it calls, until it answers. Built in `holmes.app`.

Knows neither provider nor tool nor face: whoever wants to see an investigation reads the events of `call_stream()`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING

from holmes.core.concurrently import concurrently
from holmes.core.errors import HolmesError, ModelError, StepLimitReached
from holmes.core.event_stream import stream_events
from holmes.core.events import (
    AnswerFinished,
    ApprovalRequired,
    AssistantReplied,
    TokensCounted,
    ToolCallFinished,
    ToolCallStarted,
    ToolResultSpilled,
    TurnStarted,
)
from holmes.core.hook_runner import HookRunner
from holmes.core.investigation import Investigation
from holmes.core.messages import AssistantMessage, user_text
from holmes.core.tools_utils.tool_context_window_limiter import (
    SpillOutcome,
    spill_oversized_tool_result,
)
from holmes.core.tools_utils.tool_result_message import tool_result_message

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from holmes.core.events import AgentEvent
    from holmes.core.investigation import LoopParts
    from holmes.core.messages import Message, ToolCall, ToolMessage
    from holmes.core.model import EmitEvent, ModelReply

_MAX_EMPTY_REPLIES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutcome:
    """What one tool step leaves behind: small enough for a journal, since large data is in the store."""

    spill: SpillOutcome
    cap_tokens: int
    invocation: str | None
    error: str | None
    elapsed_seconds: float


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
            await self._join_reply(investigation, reply)
            if not reply.message.tool_calls:
                if reply.message.text.strip():
                    await hooks.run("turn_end", step)
                    return await self._answer(investigation, reply, step)
                self._refuse_silence(investigation, reply, last=last)
            else:
                await self._run_tool_calls(investigation, reply.message.tool_calls, step)
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

    def _refuse_silence(self, investigation: Investigation, reply: ModelReply, *, last: bool) -> None:
        """An empty reply is answered with a nudge, twice at most; on the last step it ends the run."""
        if last:
            raise StepLimitReached(self._unanswered(investigation))
        investigation.empty_replies += 1
        if investigation.empty_replies > _MAX_EMPTY_REPLIES:
            message = (
                f"The model {reply.model!r} answered {investigation.empty_replies} times with nothing "
                f"(finish reason {reply.finish_reason!r}). "
                "Try again, another model, or a larger OVERRIDE_MAX_OUTPUT_TOKEN."
            )
            raise ModelError(message, provider="", model=reply.model, retryable=True)
        investigation.history.append(user_text(self._parts.prompts.empty_reply, kind="note"))

    def _unanswered(self, investigation: Investigation) -> str:
        """What a run without an answer says: the limit, the way out, and the last thing the model wrote."""
        found = next((text for text in map(_assistant_text, reversed(investigation.history)) if text), None)
        last_words = f" It wrote last: {found}" if found else ""
        return f"No answer within {self._max_steps} steps: raise --max-steps or ask a narrower question.{last_words}"

    async def _run_tool_calls(self, investigation: Investigation, calls: tuple[ToolCall, ...], step: int) -> None:
        """Run all calls of one reply at once; the results join in the order of the calls, fitted to their own cap."""
        messages = await concurrently(
            self._run_tool_call(investigation, call, f"step-{step}/tool-{index}") for index, call in enumerate(calls)
        )
        await investigation.join_results(calls, messages)

    async def _run_tool_call(self, investigation: Investigation, call: ToolCall, step_name: str) -> ToolMessage:
        executor = self._parts.executor
        toolset, description = executor.toolset_name(call), executor.describe(call)
        await investigation.emit(ToolCallStarted(call=call, toolset=toolset, description=description))
        outcome = await self._parts.steps.run(step_name, lambda: self._invoke_llm_tool_call(investigation, call))
        message = await investigation.answer_repeated(call, outcome.spill.message)
        if outcome.spill.spilled:
            await investigation.emit(
                ToolResultSpilled(
                    call=call,
                    tokens=outcome.spill.tokens,
                    cap_tokens=outcome.cap_tokens,
                    stored=outcome.spill.stored,
                    limit=outcome.spill.limit,
                )
            )
        if message.status == "approval_required":
            await investigation.emit(ApprovalRequired(call=call, description=description))
        await investigation.emit(
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
        result = await self._parts.executor.run(call)
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
