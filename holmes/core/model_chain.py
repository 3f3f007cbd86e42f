"""The model chain of a run: selects the model that answers, and the next model after a failure.

`ModelChain` makes the decisions and the run carries them out. The chain performs no I/O and uses no tokenizer.
`Calibration` records the token factor of one model and the real size of its context window. All runs that use the same
model at the same endpoint share one `Calibration`.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from holmes.core.truncation.context import HistoryBudget
from holmes.tokens import make_counter
from holmes.values.errors import CompactionInsufficientError, ModelError
from holmes.values.events import ModelSwitched, PromptShortened
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Callable

    from holmes.core.policy import ContextPolicy
    from holmes.tokens import TokenCounter
    from holmes.values.errors import ContextOverflow
    from holmes.values.model import ChatModel, ModelLimits, ModelReply

MIN_FACTOR = 0.8
MAX_FACTOR = 3.0
_SUSPICIOUS_RATIO = 0.7
MIN_WINDOW_TOKENS = 1_000
_MAX_WINDOW_TOKENS = 100_000_000
# Providers add a few hundred tokens to each request with tools. In a short request, these tokens would distort the
# token factor.
_MIN_LEARNED_TOKENS = 500
_LEARNED_WINDOW_SECONDS = 3_600.0
_MAX_EMPTY_REPLIES = 2
_MAX_USELESS_REPLIES = 5

_SCALE = 1_000
_FALL_SHARE = 10
_SMALLEST_RESULT_CAP_TOKENS = 500
_LONGEST_PROBLEM_CHARACTERS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A comparison of token counts.

    `ratio` is the reported count divided by the local count, or None if a count is missing. `suspicious` is true if the
    reported count is so low that the provider may have dropped a part of the request.
    """

    ratio: float | None
    factor: float
    suspicious: bool = False


class Calibration:
    """Learns the token factor and the context window of one model. Thread-safe.

    The arithmetic uses integers, so that rounding errors do not accumulate. The factor rises immediately and falls
    slowly, because a local count that is too low can cause an overflow. A reported count far below the local count does
    not change the factor. The cause can be a gateway that does not count cached tokens, or a provider that cuts
    prompts. The context window is learned only from error messages. The learned value never grows, and expires one hour
    after the last error that states a size. `clock` returns monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._thousandths = _SCALE
        self._window_tokens: int | None = None
        self._learned_at = 0.0

    @property
    def factor(self) -> float:
        """Number of provider tokens per locally counted token, from 0.8 to 3."""
        return self._thousandths / _SCALE

    @property
    def learned_window_tokens(self) -> int | None:
        """The learned context window, in provider tokens, or None if it is unknown or has expired."""
        if self._window_tokens is None:  # fast path, because each step reads this value several times
            return None
        with self._lock:
            return self._remembered_window()

    def observe(self, estimated_tokens: int, reported_prompt_tokens: int) -> Observation:
        """Compare the uncalibrated local count of a request with the provider's count."""
        if estimated_tokens <= 0 or reported_prompt_tokens <= 0:
            return Observation(ratio=None, factor=self.factor)
        ratio = reported_prompt_tokens / estimated_tokens
        if ratio < _SUSPICIOUS_RATIO:
            return Observation(ratio=ratio, factor=self.factor, suspicious=True)
        with self._lock:
            if estimated_tokens >= _MIN_LEARNED_TOKENS:
                self._thousandths = _moved(self._thousandths, estimated_tokens, reported_prompt_tokens)
            return Observation(ratio=ratio, factor=self.factor)

    def learn_window(self, tokens: int) -> None:
        """Record the context window that an overflow error states, in provider tokens.

        Numbers below 1,000 are ignored, because they are error codes or message counts.
        """
        if not MIN_WINDOW_TOKENS <= tokens <= _MAX_WINDOW_TOKENS:
            return
        with self._lock:
            known = self._remembered_window()
            self._window_tokens = tokens if known is None else min(known, tokens)
            self._learned_at = self._clock()

    def effective_window(self, window_tokens: int) -> int:
        """Return the context window to use, in provider tokens. `window_tokens` is the documented context window."""
        learned = self.learned_window_tokens
        return window_tokens if learned is None else min(window_tokens, learned)

    def provider_tokens(self, our_tokens: int) -> int:
        """Convert locally counted tokens to provider tokens, rounded up."""
        return -(-our_tokens * self._thousandths // _SCALE)

    def our_tokens(self, provider_tokens: int) -> int:
        """Return the largest local count that corresponds to at most `provider_tokens`."""
        return provider_tokens * _SCALE // self._thousandths

    def _remembered_window(self) -> int | None:
        return self._window_tokens if self._clock() - self._learned_at < _LEARNED_WINDOW_SECONDS else None


def _moved(thousandths: int, estimated_tokens: int, reported_tokens: int) -> int:
    """Return the new factor, in thousandths. The factor rises immediately, and falls by a tenth of the difference."""
    seen = -(-reported_tokens * _SCALE // estimated_tokens)
    moved = seen if seen >= thousandths else thousandths - (thousandths - seen) // _FALL_SHARE
    return max(int(MIN_FACTOR * _SCALE), min(int(MAX_FACTOR * _SCALE), moved))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopModel:
    """One model of a chain and the policy for its context window.

    If `summary_model` is set, it writes the summaries.
    """

    model: ChatModel
    policy: ContextPolicy
    summary_model: ChatModel | None = None
    calibration: Calibration = field(default_factory=Calibration)

    @property
    def window_tokens(self) -> int:
        """The size of the context window, in locally counted tokens."""
        return self.calibration.our_tokens(self._provider_window_tokens)

    @property
    def output_tokens(self) -> int:
        """The maximum length of a reply, in provider tokens. Requests send it as `max_tokens`."""
        return self.model.limits.reserve_tokens(self.policy.trigger.output_reserved, self._provider_window_tokens)

    @property
    def _provider_window_tokens(self) -> int:
        return self.calibration.effective_window(self.model.limits.context_window_tokens)

    def make_counter(self) -> TokenCounter:
        limits = self.model.limits
        return make_counter(limits.encoding, self.policy.counting, image_formula=limits.image_formula)

    def budget(self) -> HistoryBudget:
        """Return the budget of the context window. The sizes of the tool schemas and the system prompt are still 0."""
        return HistoryBudget(
            window_tokens=self.window_tokens,
            reserve_tokens=self.calibration.our_tokens(self.output_tokens),
            max_output_tokens=self.model.limits.max_output_tokens,
            policy=self.policy,
            count_factor=self.calibration.factor,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    """All limits derived from the current model's context window. The limits are valid while `basis` is unchanged."""

    basis: tuple[int, ModelLimits, float, int | None]
    budget: HistoryBudget
    loop_budget: HistoryBudget
    output_tokens: int
    result_cap_tokens: int


class ModelChain:
    """The models of one run. The first model answers until it fails permanently. Then the next one takes over."""

    def __init__(self, models: tuple[LoopModel, ...]) -> None:
        self._models = models
        self._index = 0
        self._overflows = self._useless = self._empty = 0
        self._warned_of: set[str] = set()
        self._window = self._measured(self._basis())

    @property
    def current(self) -> LoopModel:
        return self._models[self._index]

    @property
    def index(self) -> int:
        """The position of the current model in the chain. The names of durable steps contain this number."""
        return self._index

    @property
    def overflows(self) -> int:
        """The number of consecutive overflows. The names of durable steps contain this number."""
        return self._overflows

    @property
    def budget(self) -> HistoryBudget:
        """The budget of the current model's context window, in locally counted tokens."""
        return self._present().budget

    @property
    def loop_budget(self) -> HistoryBudget:
        """`budget` without the triggers that an automatic hook replaces."""
        return self._present().loop_budget

    @property
    def output_tokens(self) -> int:
        """The maximum length of the current model's reply, in provider tokens."""
        return self._present().output_tokens

    def result_cap_tokens(self, history_tokens: int) -> int:
        """Return the cap of a single tool result. Some policies limit it to a share of the free context window."""
        window, share = self._present(), self.current.policy.spill.available_share
        if share is None:
            return window.result_cap_tokens
        free_tokens = window.budget.window_tokens - window.budget.reserve_tokens - history_tokens
        return min(window.result_cap_tokens, max(_SMALLEST_RESULT_CAP_TOKENS, int(free_tokens * share)))

    def round_cap_tokens(self) -> int | None:
        """Return the cap on the total size of the results of one turn, or None if the policy has no cap."""
        factor = self.current.policy.spill.round_factor
        return None if factor is None else int(self._present().result_cap_tokens * factor)

    def replied(self, reply: ModelReply, sent_tokens: int | None) -> PromptShortened | None:
        """Update the token factor with the count that the provider reports.

        Returns a warning, once for each model, if the reported count is far below `sent_tokens`. Otherwise, returns
        None.
        """
        self._overflows = 0
        if sent_tokens is None or reply.reported_prompt_tokens is None:
            return None
        name = self.current.model.name
        seen = self.current.calibration.observe(sent_tokens, reply.reported_prompt_tokens)
        if not seen.suspicious or name in self._warned_of:
            return None
        self._warned_of.add(name)
        return PromptShortened(model=name, estimated_tokens=sent_tokens, reported_tokens=reply.reported_prompt_tokens)

    def overflowed(self, overflow: ContextOverflow) -> CompactionInsufficientError | None:
        """Record the context window that `overflow` states.

        Returns an error if the history was already cut, because another cut would not help. Otherwise, returns None.
        """
        if overflow.window_tokens is not None:
            self.current.calibration.learn_window(overflow.window_tokens)
        self._overflows += 1
        if self._overflows > 1:
            return CompactionInsufficientError(
                f"{self.current.model.name!r} rejected the shortened conversation as too long: {overflow} "
                "Start a new conversation, or use a model with a larger context window."
            )
        return None

    def useful(self) -> None:
        """Record that the reply contained a call that can run.

        A call that fails is also useful, because the model can read the error and correct the call.
        """
        self._useless = self._empty = 0

    def useless(self, reply: ModelReply, problem: str | None) -> None:
        """Count a reply that contains neither an answer nor a call that can run. `problem` is None for an empty reply.

        Raises `ModelError` at the third empty reply or the fifth useless reply since the last useful reply.
        """
        self._useless += 1
        self._empty += problem is None
        if self._empty > _MAX_EMPTY_REPLIES:
            raise _given_up(
                reply,
                f"sent {self._empty} empty replies (finish reason {reply.finish_reason!r}). "
                "Try again, use another model, or increase OVERRIDE_MAX_OUTPUT_TOKEN.",
            )
        if self._useless >= _MAX_USELESS_REPLIES:
            last = "The last reply was empty." if problem is None else shortened(problem, _LONGEST_PROBLEM_CHARACTERS)
            raise _given_up(
                reply,
                f"replied {self._useless} times in a row with neither an answer nor a call that can run. "
                f"{last} Try again, or use another model.",
            )

    def switch(self, error: ModelError | CompactionInsufficientError, *, larger_window: bool = False) -> ModelSwitched:
        """Switch to the next model and reset the counters. Raises `error` if the chain has no suitable model."""
        failed = self.current
        needed = failed.window_tokens if larger_window else 0  # the size that an error stated, if any
        rest = range(self._index + 1, len(self._models))
        index = next((i for i in rest if self._models[i].window_tokens > needed), None)
        if index is None:
            raise error
        self._index = index
        self._overflows = self._useless = self._empty = 0
        return ModelSwitched(from_model=failed.model.name, to_model=self.current.model.name, reason=str(error))

    def _present(self) -> _Window:
        """Return the current limits. Recomputes them only if the model, its limits or its calibration changed."""
        basis = self._basis()
        if self._window.basis != basis:
            self._window = self._measured(basis)
        return self._window

    def _basis(self) -> tuple[int, ModelLimits, float, int | None]:
        calibration = self.current.calibration
        return self._index, self.current.model.limits, calibration.factor, calibration.learned_window_tokens

    def _measured(self, basis: tuple[int, ModelLimits, float, int | None]) -> _Window:
        current = self.current
        budget = current.budget()
        return _Window(
            basis=basis,
            budget=budget,
            loop_budget=replace(budget, policy=current.policy.without_automatic_triggers()),
            output_tokens=current.output_tokens,
            result_cap_tokens=current.policy.spill.cap_tokens(budget.window_tokens),
        )


def _given_up(reply: ModelReply, what: str) -> ModelError:
    return ModelError(f"The model {reply.model!r} {what}", provider="", model=reply.model, retryable=True)
