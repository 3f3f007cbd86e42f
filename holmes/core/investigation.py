"""The state of one run of the loop: the history, what it cost, which model of the chain answers.

Everything that changes during a run is here; everything that does not is in `LoopParts`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from holmes.core.calibration import Calibration
from holmes.core.handed_over import HandedOverSoFar
from holmes.core.history import History
from holmes.core.reply_use import ReplyUse
from holmes.core.tools_utils.pointers import round_limit_text
from holmes.core.tools_utils.repeated_calls import RepeatedCalls
from holmes.core.tools_utils.round_cap import cap_round
from holmes.core.tools_utils.tool_context_window_limiter import spill_oversized_user_message
from holmes.core.truncation.context import CompactionContext, CompactionGuard
from holmes.core.truncation.input_context_window_limiter import compact_after_overflow, compact_if_necessary
from holmes.core.truncation.pairing import repair_pairing
from holmes.evidence.verification import CitationFilter, CitationVerifier, verify_citations
from holmes.redaction.redactor import redacted_requests
from holmes.tokens import make_counter
from holmes.values.errors import CompactionInsufficientError, ContextOverflow, ModelError
from holmes.values.events import ContextOverflowed, ModelSwitched, PromptShortened, RunFailed, ToolResultSpilled
from holmes.values.messages import AssistantMessage, UserMessage
from holmes.values.model import ModelRequest
from holmes.values.stats import RequestStats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.core.policy import ContextPolicy
    from holmes.core.tools_utils.tool_executor import ToolExecutor
    from holmes.core.truncation.context import CompactionOutcome
    from holmes.redaction.redactor import Redactor
    from holmes.tokens import TokenCounter
    from holmes.values.errors import HolmesError
    from holmes.values.events import Citation
    from holmes.values.messages import HandedOver, Message, ToolCall, ToolMessage
    from holmes.values.model import ChatModel, EmitEvent, ModelReply
    from holmes.values.steps import StepRunner
    from holmes.values.tools import ResultStore

_SMALLEST_RESULT_CAP_TOKENS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPrompts:
    """Texts that the loop itself says, rendered from `prompts/`."""

    compaction: str
    last_step: str
    empty_reply: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopModel:
    """One model of the chain, and how its window is managed (C9).

    `summary_model` writes summaries in its place (K12). `calibration` is what the model taught about its counting,
    shared by all that ask the same model at the same endpoint.
    """

    model: ChatModel
    policy: ContextPolicy
    summary_model: ChatModel | None = None
    calibration: Calibration = field(default_factory=Calibration)

    @property
    def window_tokens(self) -> int:
        """The window in our tokens."""
        return self.calibration.our_tokens(self._provider_window_tokens)

    @property
    def output_tokens(self) -> int:
        """What is kept free for the reply and sent as max_tokens, in the provider's tokens."""
        return self.model.limits.reserve_tokens(self.policy.trigger.output_reserved, self._provider_window_tokens)

    @property
    def reserve_tokens(self) -> int:
        """The same in our tokens."""
        return self.calibration.our_tokens(self.output_tokens)

    @property
    def _provider_window_tokens(self) -> int:
        return self.calibration.effective_window(self.model.limits.context_window_tokens)

    def make_counter(self) -> TokenCounter:
        """What counts this model's tokens."""
        limits = self.model.limits
        return make_counter(limits.encoding, self.policy.counting, image_formula=limits.image_formula)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopParts:
    """What the loop is made of. `models` is the chain: the first answers until it fails for good.

    `redactor` masks secrets in what users say; results are masked by the toolsets. None when that is switched off.
    """

    models: tuple[LoopModel, ...]
    executor: ToolExecutor
    store: ResultStore | None
    prompts: LoopPrompts
    steps: StepRunner
    redactor: Redactor | None = None


class Investigation:
    """One run. Not shared, not reused."""

    def __init__(self, history: History, parts: LoopParts, emit: EmitEvent) -> None:
        self.history = history
        self.stats = RequestStats()
        self.emit = emit
        self.tool_calls = 0
        self.use = ReplyUse()
        self._parts = parts
        self._model_index = 0
        self._warned_of: set[str] = set()
        self._guard = CompactionGuard()
        self._repeated = RepeatedCalls.of(history.messages(), history.counter)
        self._citations = CitationVerifier(parts.store)
        self._citations.note(history)
        self._handed_over = HandedOverSoFar()

    @classmethod
    async def begin(cls, messages: Sequence[Message], parts: LoopParts, emit: EmitEvent) -> Investigation:
        """Repair what an aborted run left behind and spill user messages that are too large (T16).

        What was admitted once stays as it is, whatever was learned about the window since (invariant 9).
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
    def current(self) -> LoopModel:
        """The model that answers now, and how its window is managed."""
        return self._parts.models[self._model_index]

    @property
    def model(self) -> ChatModel:
        """The model that answers now."""
        return self.current.model

    @property
    def counter(self) -> TokenCounter:
        """Counts as the present model does."""
        return self.history.counter

    @property
    def tool_result_cap_tokens(self) -> int:
        """The cap of a single tool result (T2), also as a share of what is still free where the policy says so."""
        spill, window_tokens = self.current.policy.spill, self.current.window_tokens
        cap_tokens = spill.cap_tokens(window_tokens)
        if spill.available_share is None:
            return cap_tokens
        free_tokens = window_tokens - self.current.reserve_tokens - self.history.known_tokens()
        return min(cap_tokens, max(_SMALLEST_RESULT_CAP_TOKENS, int(free_tokens * spill.available_share)))

    @property
    def handed_over(self) -> HandedOver:
        """The stored results that the tools may read back for this conversation."""
        return self._handed_over.by(self.history)

    async def answer_repeated(self, call: ToolCall, message: ToolMessage) -> ToolMessage:
        """`message`, or what changed since the same call was made before (N4)."""
        if not self.current.policy.evidence.unchanged_answers:
            return message
        return await self._repeated.answer(call, message, self.history)

    async def citations(self, text: str) -> tuple[Citation, ...]:
        """The evidence that `text` cites, each checked."""
        if not self.current.policy.evidence.citations:
            return ()
        return (await verify_citations(text, self._citations)).citations

    def join(self, reply: ModelReply) -> None:
        """Append a reply and what it cost."""
        self.history.append(reply.message)
        self.stats += reply.stats
        self._guard.step_succeeded()

    async def join_results(self, calls: tuple[ToolCall, ...], messages: tuple[ToolMessage, ...]) -> None:
        """Append the results of one round, together at most its cap."""
        self.tool_calls += len(calls)
        spill = self.current.policy.spill
        if spill.round_factor is not None:
            cap_tokens = int(spill.cap_tokens(self.current.window_tokens) * spill.round_factor)
            capped = await cap_round(messages, cap_tokens, self.counter, spill, self._parts.store)
            for call, before, after in zip(calls, messages, capped, strict=True):
                if after is not before:
                    tokens = self.counter.count_message(before)
                    await self.emit(
                        ToolResultSpilled(
                            call=call,
                            tokens=tokens,
                            cap_tokens=cap_tokens,
                            stored=bool(after.stored),
                            limit=round_limit_text(len(messages), cap_tokens),
                        )
                    )
            messages = capped
        step = self._repeated.rounds + 1
        for call, message in zip(calls, messages, strict=True):
            self.history.append(message)
            self._repeated.note(message, call, step)
        self._citations.note_calls(calls)
        self._citations.note(messages)

    async def compact_if_necessary(self, step: int) -> None:
        """Top of each iteration: bring the history under the trigger.

        What the automatic hook stands for is left to it, except the hard limit. What cannot fit goes to a model with a
        larger window; raises `CompactionInsufficientError` when the chain has none.
        """
        context = self.compaction_context(f"step-{step}/compaction-{self._model_index}")
        context = replace(context, policy=context.policy.without_automatic_triggers())
        try:
            self.adopt(await compact_if_necessary(self.history, context))
        except CompactionInsufficientError as insufficient:
            self._charge(insufficient)
            await self.switch_model(insufficient, step, larger_window=True)

    async def complete(self, step: int, *, tool_choice: Literal["auto", "none"]) -> ModelReply:
        """Ask the model; on overflow shrink and ask once more; on failure go on with the next model of the chain."""
        overflows = 0
        while True:
            name = f"step-{step}/complete-{self._model_index}-{overflows}"
            request, model, sent_tokens = self._request(tool_choice), self.model, self._counted_tokens()
            try:
                reply = await self._parts.steps.run(name, lambda: self._ask(model, request))  # noqa: B023  run before the next turn
            except ContextOverflow as overflow:
                self._charge(overflow)
                overflows += 1
                stuck = await self._shrink(overflow, f"step-{step}/overflow-{self._model_index}", overflows)
                if stuck is not None:
                    await self.switch_model(stuck, step, larger_window=True)
                    overflows = 0
            except ModelError as error:
                self._charge(error)
                await self.switch_model(error, step)
                overflows = 0
            else:
                await self._calibrate(reply, sent_tokens)
                return reply

    async def _ask(self, model: ChatModel, request: ModelRequest) -> ModelReply:
        """One reply; with citations on, none passes that was not checked (N6)."""
        if not self.current.policy.evidence.citations:
            return await model.complete(request, self.emit)
        checking = CitationFilter(self.emit, self._citations)
        reply = await model.complete(request, checking)
        verified = await checking.finish(reply.message.text)
        return replace(reply, message=replace(reply.message, text=verified.text))

    def adopt(self, outcome: CompactionOutcome) -> None:
        """Go on with what a compaction left, and count what it cost."""
        self.history = outcome.history
        self.stats += outcome.stats

    def failed(self, error: HolmesError) -> RunFailed:
        """The end of a run that `error` stopped, with everything found and paid until then."""
        return RunFailed(
            error=str(error), exit_code=error.exit_code, messages=self.history.messages(), stats=self.stats
        )

    def compaction_context(self, step_name: str) -> CompactionContext:
        """What a compaction of the present model needs."""
        current = self.current
        return CompactionContext(
            model=current.model,
            window_tokens=current.window_tokens,
            reserve_tokens=current.reserve_tokens,
            policy=current.policy,
            tools=self._parts.executor.tools,
            store=self._parts.store,
            emit=self.emit,
            steps=self._parts.steps,
            counter=self.counter,
            prompt=self._parts.prompts.compaction,
            step_name=step_name,
            summary_model=current.summary_model,
            guard=self._guard,
            count_factor=current.calibration.factor,
            verifier=self._citations,
        )

    def _request(self, tool_choice: Literal["auto", "none"]) -> ModelRequest:
        return ModelRequest(
            messages=self.history.messages(),
            tools=self._parts.executor.tools,
            tool_choice=tool_choice,
            max_output_tokens=self.current.output_tokens,
        )

    def _counted_tokens(self) -> int | None:
        """Our count of the request, None as long as the history is so short that nothing had to be tokenized."""
        if not self.history.is_counted:
            return None
        return self.history.tokens() + self.counter.count_tools(self._parts.executor.tools)

    async def _calibrate(self, reply: ModelReply, sent_tokens: int | None) -> None:
        """Learn how the provider counts, and warn once when it counted far less than was sent (S5)."""
        if sent_tokens is None or reply.reported_prompt_tokens is None:
            return
        seen = self.current.calibration.observe(sent_tokens, reply.reported_prompt_tokens)
        if seen.suspicious and self.model.name not in self._warned_of:
            self._warned_of.add(self.model.name)
            await self.emit(
                PromptShortened(
                    model=self.model.name, estimated_tokens=sent_tokens, reported_tokens=reply.reported_prompt_tokens
                )
            )

    def _charge(self, error: ModelError | CompactionInsufficientError) -> None:
        """Count what a failure cost, once."""
        if error.stats is not None:
            self.stats += error.stats
            error.stats = None

    async def _shrink(
        self, overflow: ContextOverflow, step_name: str, overflows: int
    ) -> CompactionInsufficientError | None:
        """Cut the history without the model (S3); what is wrong when this was done already or nothing can be cut."""
        if overflow.window_tokens is not None:
            self.current.calibration.learn_window(overflow.window_tokens)
        await self.emit(
            ContextOverflowed(model=self.model.name, reason=str(overflow), window_tokens=overflow.window_tokens)
        )
        if overflows > 1:
            return _recurred(self.model, overflow)
        try:
            self.adopt(await compact_after_overflow(self.history, self.compaction_context(step_name)))
        except CompactionInsufficientError as insufficient:
            return CompactionInsufficientError(f"{overflow}; {insufficient}", stats=insufficient.stats)
        return None

    async def switch_model(
        self, error: ModelError | CompactionInsufficientError, step: int, *, larger_window: bool = False
    ) -> None:
        """Go on with the next model of the chain, or raise `error` when there is none that could do better.

        The history is fitted to the new window, and the other provider's reasoning is dropped. What was counted about
        the failed model does not count for the next one.
        """
        failed = self.model
        needed = self.current.window_tokens if larger_window else 0  # as large as it turned out to be
        rest = range(self._model_index + 1, len(self._parts.models))
        index = next((i for i in rest if self._parts.models[i].window_tokens > needed), None)
        if index is None:
            raise error
        self._model_index = index
        self._guard, self.use = CompactionGuard(), ReplyUse()
        self.history = History([_without_reasoning(message) for message in self.history], self.current.make_counter())
        await self.emit(ModelSwitched(from_model=failed.name, to_model=self.model.name, reason=str(error)))
        try:
            await self.compact_if_necessary(step)
        except CompactionInsufficientError as insufficient:
            message = f"{failed.name!r} failed: {error} And no other model can go on: {insufficient}"
            raise CompactionInsufficientError(message, stats=insufficient.stats) from insufficient


def _recurred(model: ChatModel, overflow: ContextOverflow) -> CompactionInsufficientError:
    """What a person reads when cutting the conversation did not help."""
    return CompactionInsufficientError(
        f"{model.name!r} refused the conversation as too long again after it was cut: {overflow} "
        "Start a new conversation, or use a model with a larger window."
    )


def _without_reasoning(message: Message) -> Message:
    if isinstance(message, AssistantMessage) and message.reasoning:
        return replace(message, reasoning=())
    return message
