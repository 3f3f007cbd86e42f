"""The state of one run of the loop: the history, what it cost, which model of the chain answers.

Used by `ToolCallingLLM` only. Everything that changes during a run is here; everything that does not is in `LoopParts`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from holmes.core.errors import ContextOverflow, ModelError
from holmes.core.events import ContextOverflowed, ModelSwitched
from holmes.core.history import History
from holmes.core.messages import AssistantMessage, UserMessage
from holmes.core.model import ModelRequest
from holmes.core.stats import RequestStats
from holmes.core.tokens import TokenCounter
from holmes.core.tools_utils.tool_context_window_limiter import spill_oversized_user_message
from holmes.core.truncation.input_context_window_limiter import (
    CompactionContext,
    compact_after_overflow,
    compact_if_necessary,
)
from holmes.core.truncation.pairing import repair_pairing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.core.messages import Message
    from holmes.core.model import ChatModel, EmitEvent, ModelReply
    from holmes.core.results import ResultStore
    from holmes.core.steps import StepRunner
    from holmes.core.tools_utils.tool_executor import ToolExecutor
    from holmes.core.truncation.input_context_window_limiter import CompactionOutcome, ContextLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPrompts:
    """Texts that the loop itself says, rendered from `prompts/`."""

    compaction: str
    last_step: str
    empty_reply: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopParts:
    """What the loop is made of. `models` is the chain: the first answers until it fails for good."""

    models: tuple[ChatModel, ...]
    executor: ToolExecutor
    store: ResultStore | None
    limits: ContextLimits
    prompts: LoopPrompts
    steps: StepRunner


class Investigation:
    """One run. Not shared, not reused."""

    def __init__(self, history: History, parts: LoopParts, emit: EmitEvent) -> None:
        self.history = history
        self.stats = RequestStats()
        self.emit = emit
        self.empty_replies = 0
        self._parts = parts
        self._model_index = 0

    @classmethod
    async def begin(cls, messages: Sequence[Message], parts: LoopParts, emit: EmitEvent) -> Investigation:
        """Repair what an aborted run left behind and spill user messages that are too large (T16)."""
        limits = parts.models[0].limits
        counter = TokenCounter(limits.encoding)
        cap_tokens = parts.limits.tool_result_cap_tokens(limits.context_window_tokens)
        admitted = [
            await spill_oversized_user_message(
                message,
                cap_tokens=cap_tokens,
                char_limit=parts.limits.user_message_char_limit,
                counter=counter,
                store=parts.store,
            )
            if isinstance(message, UserMessage)
            else message
            for message in repair_pairing(messages)
        ]
        return cls(History(admitted, counter), parts, emit)

    @property
    def model(self) -> ChatModel:
        """The model that answers now."""
        return self._parts.models[self._model_index]

    @property
    def counter(self) -> TokenCounter:
        """Counts as the present model does."""
        return self.history.counter

    @property
    def tool_result_cap_tokens(self) -> int:
        """The cap of a single tool result (T2)."""
        return self._parts.limits.tool_result_cap_tokens(self.model.limits.context_window_tokens)

    def join(self, reply: ModelReply) -> None:
        """Append a reply and what it cost."""
        self.history.append(reply.message)
        self.stats += reply.stats

    async def compact_if_necessary(self, step: int) -> None:
        """Top of each iteration: bring the history under the trigger, or raise `CompactionInsufficientError`."""
        context = self._compaction_context(f"step-{step}/compaction-{self._model_index}")
        self._adopt(await compact_if_necessary(self.history, context))

    async def complete(self, step: int, *, tool_choice: Literal["auto", "none"]) -> ModelReply:
        """Ask the model; on overflow shrink and ask once more; on failure go on with the next model of the chain."""
        overflows = 0
        while True:
            name = f"step-{step}/complete-{self._model_index}-{overflows}"
            request, model = self._request(tool_choice), self.model
            try:
                return await self._parts.steps.run(name, lambda: model.complete(request, self.emit))  # noqa: B023  run before the next turn
            except ContextOverflow as overflow:
                self._charge(overflow)
                if overflows:
                    raise
                overflows += 1
                await self._shrink(overflow, f"step-{step}/overflow-{self._model_index}")
            except ModelError as error:
                self._charge(error)
                await self._next_model(error)
                overflows = 0
                await self.compact_if_necessary(step)

    def _request(self, tool_choice: Literal["auto", "none"]) -> ModelRequest:
        return ModelRequest(
            messages=self.history.messages(),
            tools=self._parts.executor.tools,
            tool_choice=tool_choice,
            max_output_tokens=self.model.limits.output_reserve_tokens,
        )

    def _charge(self, error: ModelError) -> None:
        if error.stats is not None:
            self.stats += error.stats

    async def _shrink(self, overflow: ContextOverflow, step_name: str) -> None:
        await self.emit(ContextOverflowed(model=self.model.name, reason=str(overflow)))
        context = self._compaction_context(step_name)
        self._adopt(await compact_after_overflow(self.history, context, window_tokens=overflow.window_tokens))

    async def _next_model(self, error: ModelError) -> None:
        """Switch to the next model, or raise `error` when there is none. The other provider's reasoning is dropped."""
        if self._model_index + 1 >= len(self._parts.models):
            raise error
        failed = self.model
        self._model_index += 1
        counter = TokenCounter(self.model.limits.encoding)
        self.history = History([_without_reasoning(message) for message in self.history], counter)
        await self.emit(ModelSwitched(from_model=failed.name, to_model=self.model.name, reason=str(error)))

    def _adopt(self, outcome: CompactionOutcome) -> None:
        self.history = outcome.history
        self.stats += outcome.stats

    def _compaction_context(self, step_name: str) -> CompactionContext:
        return CompactionContext(
            model=self.model,
            tools=self._parts.executor.tools,
            limits=self._parts.limits,
            emit=self.emit,
            steps=self._parts.steps,
            counter=self.counter,
            prompt=self._parts.prompts.compaction,
            step_name=step_name,
        )


def _without_reasoning(message: Message) -> Message:
    if isinstance(message, AssistantMessage) and message.reasoning:
        return replace(message, reasoning=())
    return message
