"""The state of one run of the loop: its history, cost and models, and the results of earlier calls.

`LoopParts` contains the objects that all runs share.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from holmes.core.model_chain import ModelChain
from holmes.core.tools_utils.pointers import round_limit_text
from holmes.core.tools_utils.repeated_calls import ANSWERED, EarlierResult, answer_repeated
from holmes.core.tools_utils.search_progress import SearchProgress
from holmes.core.tools_utils.tool_context_window_limiter import cap_round, spill_oversized_user_message
from holmes.core.tools_utils.tool_executor import IDENTICAL_CALL, call_key
from holmes.core.truncation.context import CompactionContext, CompactionGuard
from holmes.core.truncation.input_context_window_limiter import compact_after_overflow, compact_if_necessary
from holmes.core.truncation.plan import repair_pairing
from holmes.evidence.handed_over import HandedOverSoFar
from holmes.evidence.verification import CitationFilter, CitationVerifier, VerifiedText, verify_citations
from holmes.redaction.redactor import redacted_requests
from holmes.tokens import upper_bound_tokens
from holmes.tokens.history import History
from holmes.values.errors import CompactionInsufficientError, ContextOverflow, ModelError
from holmes.values.events import COSTLY_EVENTS, ContextOverflowed, RunFailed, RunningCost, ToolResultSpilled
from holmes.values.messages import AssistantMessage, ToolMessage, UserMessage
from holmes.values.model import ModelRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.core.model_chain import LoopModel
    from holmes.core.reviewer import Reviewer
    from holmes.core.tools_utils.tool_executor import ToolExecutor
    from holmes.core.truncation.context import CompactionOutcome
    from holmes.redaction.redactor import Redactor
    from holmes.tokens import TokenCounter
    from holmes.values.errors import HolmesError
    from holmes.values.events import AgentEvent
    from holmes.values.messages import HandedOver, Message, ToolCall
    from holmes.values.model import EmitEvent, ModelReply
    from holmes.values.stats import RequestStats
    from holmes.values.steps import StepRunner
    from holmes.values.tools import ResultStore


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPrompts:
    """The texts that the loop adds to the conversation, rendered from `prompts/`."""

    compaction: str
    last_step: str
    empty_reply: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopParts:
    """The objects that all runs share.

    The first of `models` answers until it fails permanently. Then the next one takes over. `redactor` masks secrets in
    user messages, and is None if redaction is disabled. Toolsets mask secrets in tool results. `reviewer` takes the
    first look and reviews each answer.
    """

    models: tuple[LoopModel, ...]
    executor: ToolExecutor
    store: ResultStore | None
    prompts: LoopPrompts
    steps: StepRunner
    redactor: Redactor | None = None
    reviewer: Reviewer | None = None


class RepeatedCalls:
    """Keeps the last result of each call in a conversation. Steps are numbered from 1."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._earlier: dict[tuple[str, str], EarlierResult] = {}
        self.rounds = 0

    @classmethod
    def of(cls, messages: Sequence[Message], counter: TokenCounter) -> RepeatedCalls:
        """Collect the results in `messages`, and set `rounds` to the number of turns."""
        calls = cls(counter)
        waiting: dict[str, ToolCall] = {}
        for message in messages:
            if isinstance(message, AssistantMessage) and message.tool_calls:
                calls.rounds += 1
                waiting = {call.id: call for call in reversed(message.tool_calls)}
            elif isinstance(message, ToolMessage) and message.call_id in waiting:
                calls.note(message, waiting[message.call_id], calls.rounds)
        return calls

    def note(self, message: ToolMessage, call: ToolCall, step: int) -> None:
        """Record `message`, which was added to the history in turn `step` as the result of `call`."""
        self.rounds = max(self.rounds, step)
        key = call_key(call)
        if message.masked:
            self._earlier.pop(key, None)
        elif message.status in {"success", "no_data"} and not message.text.startswith(IDENTICAL_CALL):
            earlier = self._earlier.get(key)
            if not ANSWERED.match(message.text):
                self._earlier[key] = EarlierResult(message=message, step=step)
            elif earlier is not None:
                self._earlier[key] = replace(earlier, latest=message, latest_step=step)

    async def answer(self, call: ToolCall, message: ToolMessage, history: Sequence[Message]) -> ToolMessage:
        """Return `message`, or a shorter text if `history` still shows an earlier result of `call`."""
        earlier = self._earlier.get(call_key(call))
        return message if earlier is None else await answer_repeated(earlier, call, message, history, self._counter)


class LoopRun:
    """The state of one run. Runs never share or reuse it."""

    def __init__(self, history: History, parts: LoopParts, emit: EmitEvent) -> None:
        self.history = history
        self.models = ModelChain(parts.models)
        self._emit = emit
        self._cost = RunningCost()
        self.tool_calls = 0
        self._parts = parts
        self._guard = CompactionGuard()
        self._repeated = RepeatedCalls.of(history.messages(), history.counter)
        self._citations = CitationVerifier(parts.store)
        self._citations.note(history)
        self._handed_over = HandedOverSoFar()
        reviews = parts.reviewer is not None and parts.reviewer.reviews
        self._progress = SearchProgress() if reviews else None

    @classmethod
    async def begin(cls, messages: Sequence[Message], parts: LoopParts, emit: EmitEvent) -> LoopRun:
        """Repair the conversation of an aborted run. Pointers replace user messages that are too large.

        A message that an earlier run accepted stays unchanged, even if the context window is now known to be smaller.
        """
        first = parts.models[0]
        counter = first.make_counter()
        repaired = await redacted_requests(parts.redactor, repair_pairing(messages))
        answered = max((i for i, message in enumerate(repaired) if isinstance(message, AssistantMessage)), default=-1)
        cap_tokens = first.policy.spill.cap_tokens(first.model.limits.context_window_tokens)
        cap_of_new = min(cap_tokens, first.policy.spill.cap_tokens(first.window_tokens))
        admitted = [
            await spill_oversized_user_message(
                message,
                cap_tokens=cap_of_new if index > answered else cap_tokens,
                char_limit=first.policy.spill.user_message_char_limit,
                counter=counter,
                store=parts.store,
            )
            if isinstance(message, UserMessage)
            else message
            for index, message in enumerate(repaired)
        ]
        return cls(History(admitted, counter), parts, emit)

    @property
    def stats(self) -> RequestStats:
        return self._cost.stats

    async def emit(self, event: AgentEvent) -> None:
        """Emit `event`. If `event` contains a cost, set its `total` to the total cost of the run."""
        if isinstance(event, COSTLY_EVENTS):
            self._cost.note(event)
            event = replace(event, total=self._cost.stats)
        await self._emit(event)

    async def compact_if_necessary(self, step: int) -> None:
        """Compact the history if a trigger fires.

        Ignores the triggers that an automatic hook replaces, but the hard limit still applies. If the history cannot
        fit, the run switches to a model with a larger context window. Raises `CompactionInsufficientError` if the chain
        has no such model.
        """
        context = self.compaction_context(f"step-{step}/compaction-{self.models.index}", loop=True)
        try:
            self.adopt(await compact_if_necessary(self.history, context))
        except CompactionInsufficientError as insufficient:
            await self.switch_model(insufficient, step, larger_window=True)

    async def complete(self, step: int, *, tool_choice: Literal["auto", "none"]) -> ModelReply:
        """Request a reply from the model.

        After an overflow, cuts the history and repeats the request. After a failure, switches to the next model.
        """
        while True:
            name = f"step-{step}/complete-{self.models.index}-{self.models.overflows}"
            request, sent_tokens = self._request(tool_choice), self._counted_tokens()
            try:
                reply = await self._parts.steps.run(name, partial(self._ask, request))
            except ContextOverflow as overflow:
                await self._cut_after(overflow, step)
            except ModelError as error:
                self._charge(error)
                await self.switch_model(error, step)
            else:
                shortened = self.models.replied(reply, sent_tokens)
                if shortened is not None:
                    await self.emit(shortened)
                return reply

    def join(self, reply: ModelReply) -> None:
        self.history.append(reply.message)
        self._guard.step_succeeded()

    @property
    def tool_result_cap_tokens(self) -> int:
        return self.models.result_cap_tokens(self.history.known_tokens())

    @property
    def handed_over(self) -> HandedOver:
        """Return the stored results that tools may read for this conversation."""
        return self._handed_over.by(self.history)

    @property
    def is_stuck(self) -> bool:
        """Whether the last turns brought nothing new."""
        return self._progress is not None and self._progress.is_stuck

    def refused(self, call: ToolCall) -> ToolMessage | None:
        """Return the result of a call that failed before and does not run again, or None for any other call."""
        reviewer = self._parts.reviewer
        if reviewer is None or self._progress is None:
            return None
        return self._progress.refused(call, lambda: reviewer.alternative(self.history.messages()))

    async def answer_repeated(self, call: ToolCall, message: ToolMessage) -> ToolMessage:
        """Return `message`, or a shorter text with the changes since the last result of the same call."""
        if not self.models.current.policy.evidence.unchanged_answers:
            return message
        return await self._repeated.answer(call, message, self.history)

    async def join_results(self, calls: tuple[ToolCall, ...], messages: tuple[ToolMessage, ...]) -> None:
        """Append the results of one turn to the history. Shortens them if they exceed the cap for a whole turn."""
        self.tool_calls += len(calls)
        if self._progress is not None:
            self._progress.note_turn(calls, messages)
        cap_tokens = self.models.round_cap_tokens()
        if cap_tokens is not None and sum(map(upper_bound_tokens, messages)) > cap_tokens:
            messages = await self._capped(calls, messages, cap_tokens)
        step = self._repeated.rounds + 1
        for call, message in zip(calls, messages, strict=True):
            self.history.append(message)
            self._repeated.note(message, call, step)
        self._citations.note_calls(calls)
        self._citations.note(messages)

    async def _capped(
        self, calls: tuple[ToolCall, ...], messages: tuple[ToolMessage, ...], cap_tokens: int
    ) -> tuple[ToolMessage, ...]:
        counter, policy = self.history.counter, self.models.current.policy.spill
        capped = await cap_round(messages, cap_tokens, counter, policy, self._parts.store)
        for call, before, after in zip(calls, messages, capped, strict=True):
            if after is not before:
                await self.emit(
                    ToolResultSpilled(
                        call=call,
                        tokens=counter.count_message(before),
                        cap_tokens=cap_tokens,
                        stored=bool(after.stored),
                        limit=round_limit_text(len(messages), cap_tokens),
                    )
                )
        return capped

    def note_citable(self, notes: tuple[Message, ...]) -> None:
        """Allow citations of the results in `notes`."""
        self._citations.note(notes)

    async def verified(self, text: str) -> VerifiedText:
        """Check all citations in `text`, and write the outcomes into it."""
        if not self.models.current.policy.evidence.citations:
            return VerifiedText(text=text)
        return await verify_citations(text, self._citations)

    async def switch_model(
        self, error: ModelError | CompactionInsufficientError, step: int, *, larger_window: bool = False
    ) -> None:
        """Continue with the next model of the chain. Raises `error` if the chain has no suitable model.

        Removes the reasoning of the failed model from the history, counts its tokens again, and fits it into the new
        context window.
        """
        failed = self.models.current.model.name
        switched = self.models.switch(error, larger_window=larger_window)
        self._guard = CompactionGuard()
        counter = self.models.current.make_counter()
        self.history = History([_without_reasoning(message) for message in self.history], counter)
        await self.emit(switched)
        try:
            await self.compact_if_necessary(step)
        except CompactionInsufficientError as insufficient:
            message = f"{failed!r} failed: {error} No other model can continue: {insufficient}"
            raise CompactionInsufficientError(message, stats=insufficient.stats) from insufficient

    async def _cut_after(self, overflow: ContextOverflow, step: int) -> None:
        """Cut the history without a model.

        If the history was already cut or cannot be cut, switches to a model with a larger context window.
        """
        self._charge(overflow)
        name = f"step-{step}/overflow-{self.models.index}"
        stuck = self.models.overflowed(overflow)
        model = self.models.current.model.name
        await self.emit(ContextOverflowed(model=model, reason=str(overflow), window_tokens=overflow.window_tokens))
        if stuck is None:
            try:
                self.adopt(await compact_after_overflow(self.history, self.compaction_context(name)))
            except CompactionInsufficientError as insufficient:
                stuck = CompactionInsufficientError(f"{overflow}; {insufficient}", stats=insufficient.stats)
            else:
                return
        await self.switch_model(stuck, step, larger_window=True)

    async def _ask(self, request: ModelRequest) -> ModelReply:
        """Request one reply. If citations are enabled, check every citation before it is shown."""
        model = self.models.current.model
        if not self.models.current.policy.evidence.citations:
            return await model.complete(request, self.emit)
        checking = CitationFilter(self.emit, self._citations)
        reply = await model.complete(request, checking)
        verified = await checking.finish(reply.message.text)
        return replace(reply, message=replace(reply.message, text=verified.text))

    def adopt(self, outcome: CompactionOutcome) -> None:
        """Continue with the result of a compaction. The events of the compaction have already added its cost."""
        self.history = outcome.history

    def failed(self, error: HolmesError) -> RunFailed:
        """Return the event for a run that `error` stopped, with all messages and costs so far."""
        return RunFailed(
            error=str(error), exit_code=error.exit_code, messages=self.history.messages(), stats=self.stats
        )

    def compaction_context(self, step_name: str, *, loop: bool = False) -> CompactionContext:
        """Return the inputs of a compaction for the current model.

        If `loop` is true, the budget ignores the triggers that an automatic hook replaces.
        """
        current = self.models.current
        return CompactionContext(
            model=current.model,
            budget=self.models.loop_budget if loop else self.models.budget,
            tools=self._parts.executor.tools,
            store=self._parts.store,
            emit=self.emit,
            steps=self._parts.steps,
            counter=self.history.counter,
            prompt=self._parts.prompts.compaction,
            step_name=step_name,
            summary_model=current.summary_model,
            guard=self._guard,
            verifier=self._citations,
        )

    def _request(self, tool_choice: Literal["auto", "none"]) -> ModelRequest:
        return ModelRequest(
            messages=self.history.messages(),
            tools=self._parts.executor.tools,
            tool_choice=tool_choice,
            max_output_tokens=self.models.output_tokens,
        )

    def _counted_tokens(self) -> int | None:
        """Return the local token count of the request, or None if the history has not been counted."""
        if not self.history.is_counted:
            return None
        return self.history.tokens() + self.history.counter.count_tools(self._parts.executor.tools)

    def _charge(self, error: ModelError) -> None:
        """Add the cost of a failed request to the cost of the run. A second call with the same error has no effect."""
        if error.stats is not None:
            self._cost.charge(error.stats)
            error.stats = None


def _without_reasoning(message: Message) -> Message:
    if isinstance(message, AssistantMessage) and message.reasoning:
        return replace(message, reasoning=())
    return message
