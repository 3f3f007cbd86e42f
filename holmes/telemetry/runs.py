"""Stores the facts about a run that its events do not contain: source, models, incoming trace, replayed steps.

Provider names follow the GenAI semantic conventions.
"""

from __future__ import annotations

import re
from collections import defaultdict
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeVar

from holmes.core.tools_utils.tool_context_window_limiter import ToolOutcome
from holmes.values.events import (
    AssistantReplied,
    CompactionFailed,
    HistoryCompacted,
    ToolCallFinished,
    ToolResultSpilled,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from holmes.values.events import AgentEvent
    from holmes.values.messages import ToolCallId
    from holmes.values.steps import StepRunner


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAttributes:
    """Trace attributes of a run. `source` is for example `alertmanager`, `api` or `cli`.

    `model` is the first model of the chain.
    """

    source: str
    conversation_id: str | None = None
    model: str | None = None


BUILTIN_PROVIDER: Final = "holmes"

_BY_PREFIX: Final = {
    "ai21": "ai21",
    "anthropic": "anthropic",
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "builtin": BUILTIN_PROVIDER,
    "cohere": "cohere",
    "deepseek": "deepseek",
    "gemini": "gcp.gemini",
    "groq": "groq",
    "mistral": "mistral_ai",
    "openai": "openai",
    "perplexity": "perplexity",
    "scripted": BUILTIN_PROVIDER,
    "vertex_ai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
_BY_NAME: Final = (
    ("claude", "anthropic"),
    ("command", "cohere"),
    ("deepseek", "deepseek"),
    ("gemini", "gcp.gemini"),
    ("grok", "x_ai"),
    ("mistral", "mistral_ai"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelIdentity:
    """The provider and the name of a model.

    `provider` is a name from the GenAI conventions, or the litellm name if the conventions do not define the provider.
    """

    provider: str
    model: str

    @property
    def is_remote(self) -> bool:
        """Whether the model runs outside this process."""
        return self.provider != BUILTIN_PROVIDER


def identity_of(wire_name: str) -> ModelIdentity:
    """Determine the provider and name from a litellm id, which is `provider/model` or implies the provider."""
    if wire_name.startswith("scripted:"):
        return ModelIdentity(provider=BUILTIN_PROVIDER, model="scripted")  # the rest is a local path
    prefix, slash, rest = wire_name.partition("/")
    if slash:
        own = wire_name if prefix == "builtin" else rest
        return ModelIdentity(provider=_BY_PREFIX.get(prefix, prefix), model=own)
    provider = next((provider for start, provider in _BY_NAME if wire_name.startswith(start)), "openai")
    return ModelIdentity(provider=provider, model=wire_name)


_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})

incoming_trace: ContextVar[Mapping[str, str]] = ContextVar("holmes_incoming_trace", default=_NOTHING)
"""The W3C headers `traceparent` and `tracestate` of the HTTP request, which tasks of the request inherit."""


T = TypeVar("T")

_NAME: Final = re.compile(r"step-(\d+)/(complete-)?")


class ReplayNotes:
    """Wraps a `StepRunner` and records which steps an earlier attempt finished.

    Finished steps are neither counted nor traced again. The function of a replayed step is not called, because the
    journal contains the step's result.
    """

    def __init__(self, inner: StepRunner) -> None:
        self._inner = inner
        self._replies: dict[int, bool] = {}
        self._others: defaultdict[int, list[bool]] = defaultdict(list)
        self._calls: set[ToolCallId] = set()

    async def run(self, name: str, step: Callable[[], Awaitable[T]]) -> T:
        ran = False

        async def noted() -> T:
            nonlocal ran
            ran = True
            return await step()

        result = await self._inner.run(name, noted)
        self._note(name, result, replayed=not ran)
        return result

    def now_seconds(self) -> float:
        return self._inner.now_seconds()

    def new_id(self) -> str:
        return self._inner.new_id()

    def is_replayed(self, event: AgentEvent, step: int) -> bool:
        """Return whether an earlier attempt already caused `event`, which belongs to turn `step`."""
        match event:
            case AssistantReplied():
                return self._replies.get(step, False)
            case ToolCallFinished() | ToolResultSpilled():
                return event.call.id in self._calls
            case HistoryCompacted() | CompactionFailed():
                return self.had_compaction(step)
            case _:
                return False

    def had_compaction(self, step: int) -> bool:
        """Return whether an earlier attempt wrote the summary of this turn."""
        return bool(self._others[step]) and all(self._others[step])

    def _note(self, name: str, result: object, *, replayed: bool) -> None:
        if isinstance(result, ToolOutcome):
            if replayed:
                self._calls.add(result.spill.message.call_id)
            return
        found = _NAME.match(name)
        if found is None:
            return
        if found[2]:
            self._replies[int(found[1])] = replayed
        else:
            self._others[int(found[1])].append(replayed)
