"""A model for context tests: it counts tokens on its own and refuses a request above its window, as a provider does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from holmes.tokens import TokenCounter
from holmes.values.errors import ContextOverflow, ModelError
from holmes.values.messages import AssistantMessage, ToolCall, ToolCallId, ToolMessage, UserMessage
from holmes.values.model import ModelLimits, ModelReply, ModelRequest
from holmes.values.stats import RequestStats

if TYPE_CHECKING:
    from holmes.values.events import AgentEvent
    from holmes.values.messages import Message
    from holmes.values.model import EmitEvent

Answer: TypeAlias = "Callable[[ModelRequest], AssistantMessage | ModelReply | ModelError]"


class CountingModel:
    """Answers with what `answer` returns, keeps every request, checks window and pairing like a strict provider.

    It counts `factor` tokens where `counter`, our exact one by default, counts one. `charged` is what it billed, one
    entry for each request that was billed: replies, and errors that cost something; a refusal costs `refusal_stats`.
    """

    def __init__(
        self,
        answer: Answer,
        *,
        window_tokens: int = 32_000,
        max_output_tokens: int = 8_000,
        thinking_tokens: int = 0,
        factor: float = 1.0,
        counter: TokenCounter | None = None,
        refusal_stats: RequestStats | None = None,
    ) -> None:
        self._answer = answer
        self._factor = factor
        self._refusal_stats = refusal_stats
        self.charged: list[tuple[ModelRequest, RequestStats]] = []
        self.replies: list[AssistantMessage] = []
        self.refused = 0
        self._limits = ModelLimits(
            context_window_tokens=window_tokens, max_output_tokens=max_output_tokens, thinking_tokens=thinking_tokens
        )
        self._counter = counter or TokenCounter()
        self.requests: list[tuple[Message, ...]] = []
        self.raw_requests: list[ModelRequest] = []

    @property
    def name(self) -> str:
        return "counting"

    @property
    def limits(self) -> ModelLimits:
        return self._limits

    def request_tokens(self, request: ModelRequest) -> int:
        """Prompt of `request` as this provider counts it."""
        ours = sum(map(self._counter.count_message, request.messages)) + self._counter.count_tools(request.tools)
        return round(ours * self._factor)

    async def complete(self, request: ModelRequest, emit: EmitEvent) -> ModelReply:  # noqa: ARG002  the protocol's
        self.requests.append(tuple(request.messages))
        self.raw_requests.append(replace(request, messages=tuple(request.messages)))
        assert pairing_errors(request.messages) == []
        prompt = self.request_tokens(request)
        if prompt + request.max_output_tokens > self._limits.context_window_tokens:
            self.refused += 1
            self._charge(request, self._refusal_stats)
            text = f"{prompt} + {request.max_output_tokens} tokens exceed {self._limits.context_window_tokens}"
            raise ContextOverflow(text, provider="test", model=self.name, stats=self._refusal_stats)
        answer = self._answer(request)
        if isinstance(answer, ModelError):
            self._charge(request, answer.stats)
            raise answer
        reply = answer if isinstance(answer, ModelReply) else model_reply(answer, prompt_tokens=prompt, counted=True)
        self._charge(request, reply.stats)
        self.replies.append(reply.message)
        return reply

    def _charge(self, request: ModelRequest, stats: RequestStats | None) -> None:
        if stats is not None:
            self.charged.append((request, stats))


def model_reply(message: AssistantMessage, *, prompt_tokens: int = 100, counted: bool = False) -> ModelReply:
    """A finished reply that cost one cent. `counted`: the provider reports its prompt tokens."""
    return ModelReply(
        message=message,
        finish_reason="tool_calls" if message.tool_calls else "stop",
        stats=RequestStats(prompt_tokens=prompt_tokens, completion_tokens=10, cost=0.01, calls=1),
        model="counting",
        context_tokens=prompt_tokens,
        reported_prompt_tokens=prompt_tokens if counted else None,
    )


class EventLog:
    """Collects what is emitted."""

    def __init__(self) -> None:
        self.events: list[AgentEvent] = []

    async def __call__(self, event: AgentEvent) -> None:
        self.events.append(event)

    @property
    def kinds(self) -> list[str]:
        """The kinds in order."""
        return [event.kind for event in self.events]


def pairing_errors(messages: Sequence[Message]) -> list[str]:
    """What breaks invariant 1 in `messages`."""
    errors: list[str] = []
    pending: list[ToolCallId] = []
    seen: set[ToolCallId] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            if not pending or message.call_id != pending.pop(0):
                errors.append(f"result {message.call_id} answers no waiting call")
            continue
        errors.extend(f"call {call_id} has no result" for call_id in pending)
        pending = []
        if isinstance(message, AssistantMessage):
            pending = [call.id for call in message.tool_calls]
            errors.extend(f"id {call_id} is used twice" for call_id in pending if call_id in seen)
            seen.update(pending)
    return [*errors, *(f"call {call_id} has no result" for call_id in pending)]


def is_summary_request(request: ModelRequest) -> bool:
    """Whether the last message asks for a summary, in place or as plain text."""
    last = request.messages[-1]
    return isinstance(last, UserMessage) and request.tool_choice == "none"


def tool_call(call_id: str, name: str = "kubectl_get", arguments: str = "{}") -> ToolCall:
    """A call."""
    return ToolCall(id=ToolCallId(call_id), name=name, arguments=arguments)
