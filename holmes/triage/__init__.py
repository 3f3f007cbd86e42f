"""The built-in model `builtin/triage`, which answers questions about a cluster with rules and without an LLM.

It runs in the same loop as every other model. It reads the question, calls tools and writes the answer from their
results. It keeps no state between requests, needs no API key and costs nothing. It never guesses.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from holmes.values.events import TextDelta
from holmes.values.messages import AssistantMessage
from holmes.values.model import ModelLimits, ModelReply
from holmes.values.stats import RequestStats

if TYPE_CHECKING:
    from holmes.triage.steps import Step
    from holmes.values.model import EmitEvent, ModelRequest

TRIAGE_MODEL: Final = "builtin/triage"
# Token estimates are sufficient, because these rules call no provider that charges for tokens or rejects requests.
_LIMITS: Final = ModelLimits(context_window_tokens=1_000_000, max_output_tokens=8_192, encoding=None)
"""The context window is large because the smallest context window in a model chain limits every tool result."""

_DELTA_CHARACTERS: Final = 400


class TriageModel:
    """Answers questions with the built-in rules. One instance can serve any number of conversations.

    `details` adds everything that short answers omit.
    """

    def __init__(self, *, name: str = TRIAGE_MODEL, limits: ModelLimits = _LIMITS, details: bool = False) -> None:
        self._name = name
        self._details = details
        self._limits = limits

    @property
    def name(self) -> str:
        return self._name

    @property
    def limits(self) -> ModelLimits:
        return self._limits

    async def check(self) -> None:
        """Do nothing, because the built-in rules need no connection."""

    async def aclose(self) -> None:
        """Do nothing, because no connection is open."""

    async def complete(self, request: ModelRequest, emit: EmitEvent) -> ModelReply:
        """Return the call of the first look, the answer, or a summary if the loop requests one.

        Raises `ClusterUnreachable` if the first look could not read anything.
        """
        step = await asyncio.to_thread(_next_step, request, details=self._details)
        for start in range(0, len(step.text), _DELTA_CHARACTERS):
            await emit(TextDelta(text=step.text[start : start + _DELTA_CHARACTERS]))
        return ModelReply(
            message=AssistantMessage(text=step.text, tool_calls=step.calls),
            finish_reason="tool_calls" if step.calls else "stop",
            stats=RequestStats(calls=1),
            model=self._name,
        )


def _next_step(request: ModelRequest, *, details: bool) -> Step:
    from holmes.triage.steps import next_step  # imported late because most runs use another model

    return next_step(request, details=details)
