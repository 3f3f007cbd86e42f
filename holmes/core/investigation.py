"""The state of one run of the loop: the history, what it cost, which model of the chain answers.

Used by `ToolCallingLLM` only. Everything that changes during a run is here; everything that does not is in `LoopParts`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from holmes.core.errors import CompactionInsufficientError, ContextOverflow, ModelError
from holmes.core.events import ContextOverflowed, ModelSwitched
from holmes.core.history import History
from holmes.core.messages import AssistantMessage, UserMessage
from holmes.core.model import ModelRequest
from holmes.core.stats import RequestStats
from holmes.core.tokens import TokenCounter
from holmes.core.tools_utils.tool_context_window_limiter import spill_oversized_user_message
from holmes.core.truncation.context import CompactionContext
from holmes.core.truncation.input_context_window_limiter import compact_after_overflow, compact_if_necessary
from holmes.core.truncation.pairing import repair_pairing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.core.messages import Message
    from holmes.core.model import ChatModel, EmitEvent, ModelReply
    from holmes.core.results import ResultStore
    from holmes.core.steps import StepRunner
    from holmes.core.tools_utils.tool_executor import ToolExecutor
    from holmes.core.truncation.context import CompactionOutcome, ContextLimits


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
                overflows += 1
                if overflows > 1 or not await self._shrink(overflow, f"step-{step}/overflow-{self._model_index}"):
                    await self._switch_model(overflow, step, larger_window=True)
                    overflows = 0
            except ModelError as error:
                self._charge(error)
                await self._switch_model(error, step)
                overflows = 0

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

    async def _shrink(self, overflow: ContextOverflow, step_name: str) -> bool:
        """Cut the history without the model (S3); false when nothing is left to cut."""
        await self.emit(ContextOverflowed(model=self.model.name, reason=str(overflow)))
        context = self._compaction_context(step_name)
        try:
            outcome = await compact_after_overflow(self.history, context, window_tokens=overflow.window_tokens)
        except CompactionInsufficientError:
            return False
        self._adopt(outcome)
        return True

    async def _switch_model(self, error: ModelError, step: int, *, larger_window: bool = False) -> None:
        """Go on with the next model of the chain, or raise `error` when there is none that could do better.

        The history is fitted to the new window, and the other provider's reasoning is dropped.
        """
        failed = self.model
        needed = failed.limits.context_window_tokens if larger_window else 0
        rest = range(self._model_index + 1, len(self._parts.models))
        index = next((i for i in rest if self._parts.models[i].limits.context_window_tokens > needed), None)
        if index is None:
            raise error
        self._model_index = index
        counter = TokenCounter(self.model.limits.encoding)
        self.history = History([_without_reasoning(message) for message in self.history], counter)
        await self.emit(ModelSwitched(from_model=failed.name, to_model=self.model.name, reason=str(error)))
        await self.compact_if_necessary(step)

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
