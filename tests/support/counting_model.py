"""A model for context tests: it counts tokens on its own and refuses a request above its window, as a provider does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from holmes.core.errors import ContextOverflow, ModelError
from holmes.core.messages import AssistantMessage, ToolCall, ToolCallId, ToolMessage, UserMessage
from holmes.core.model import ModelLimits, ModelReply, ModelRequest
from holmes.core.stats import RequestStats
from holmes.core.tokens import TokenCounter

if TYPE_CHECKING:
    from holmes.core.events import AgentEvent
    from holmes.core.messages import Message
    from holmes.core.model import EmitEvent

Answer: TypeAlias = "Callable[[ModelRequest], AssistantMessage | ModelReply | ModelError]"


class CountingModel:
    """Answers with what `answer` returns, keeps every request, checks window and pairing like a strict provider."""

    def __init__(self, answer: Answer, *, window_tokens: int = 32_000, max_output_tokens: int = 8_000) -> None:
        self._answer = answer
        self._limits = ModelLimits(context_window_tokens=window_tokens, max_output_tokens=max_output_tokens)
        self._counter = TokenCounter()
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
        return sum(map(self._counter.count_message, request.messages)) + self._counter.count_tools(request.tools)

    async def complete(self, request: ModelRequest, emit: EmitEvent) -> ModelReply:  # noqa: ARG002  the protocol's
        self.requests.append(tuple(request.messages))
        self.raw_requests.append(replace(request, messages=tuple(request.messages)))
        assert pairing_errors(request.messages) == []
        prompt = self.request_tokens(request)
        if prompt + request.max_output_tokens > self._limits.context_window_tokens:
            text = f"{prompt} + {request.max_output_tokens} tokens exceed {self._limits.context_window_tokens}"
            raise ContextOverflow(text, provider="test", model=self.name)
        answer = self._answer(request)
        if isinstance(answer, ModelError):
            raise answer
        if isinstance(answer, ModelReply):
            return answer
        return model_reply(answer, prompt_tokens=prompt)


def model_reply(message: AssistantMessage, *, prompt_tokens: int = 100) -> ModelReply:
    """A finished reply that cost one cent."""
    return ModelReply(
        message=message,
        finish_reason="tool_calls" if message.tool_calls else "stop",
        stats=RequestStats(prompt_tokens=prompt_tokens, completion_tokens=10, cost=0.01, calls=1),
        model="counting",
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
