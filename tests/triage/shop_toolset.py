"""The toolset of the first look over the compact shop, for tests of the loop."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holmes.toolsets.kubernetes_diagnosis.toolset import FIRST_LOOK
from holmes.triage import TriageModel
from holmes.triage.looks import LookRequest, take_first_look
from holmes.values.events import AnswerFinished, RunFailed, ToolCallStarted
from holmes.values.first_look import look_to_yaml
from holmes.values.messages import SystemMessage, user_text
from holmes.values.tools import ToolResult
from tests.support.investigations import build_loop, events_of
from tests.support.result_stores import MemoryStore
from tests.triage.shop import shop

if TYPE_CHECKING:
    from holmes.values.json_types import JsonObject
    from holmes.values.messages import Message
    from holmes.values.tools import Tool, ToolInvocation

SYSTEM = SystemMessage(text="You are Holmes.\nDefault namespace: shop.")


@dataclass(slots=True)
class ShopToolset:
    """The tool of the first look over the compact shop. `error` is its error message, if it fails."""

    error: str = ""
    name: str = "kubernetes/diagnosis"
    instructions: str = ""
    tools: tuple[Tool, ...] = (FIRST_LOOK,)
    seen: list[JsonObject] = field(default_factory=list)

    def describe(self, invocation: ToolInvocation) -> str:
        return invocation.tool.name

    async def call(self, invocation: ToolInvocation) -> ToolResult:
        self.seen.append(invocation.arguments)
        if self.error:
            return ToolResult(status="error", error=self.error)
        request = LookRequest.of(invocation.arguments, str(invocation.arguments.get("namespace") or ""))
        return ToolResult(status="success", data=look_to_yaml(take_first_look(request, shop())))


async def ask(
    toolset: ShopToolset, *questions: str, earlier: tuple[Message, ...] = (SYSTEM,)
) -> tuple[AnswerFinished, ...]:
    """Ask the questions in one conversation through the real loop."""
    loop = build_loop([TriageModel()], [toolset] if toolset.tools else [], store=MemoryStore(), max_steps=5)
    messages = earlier
    answers: list[AnswerFinished] = []
    for question in questions:
        events = await events_of(loop, (*messages, user_text(question)))
        assert not [event for event in events if isinstance(event, RunFailed)]
        started = [event.call.id for event in events if isinstance(event, ToolCallStarted)]
        assert len(set(started)) == len(started)
        answers += (event for event in events if isinstance(event, AnswerFinished))
        messages = answers[-1].messages
    return tuple(answers)
