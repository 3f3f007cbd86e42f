"""Builds a loop of real parts around a scripted model."""

from __future__ import annotations

from collections.abc import Sequence

from holmes.core.loop_run import LoopParts, LoopPrompts
from holmes.core.model_chain import LoopModel
from holmes.core.policy import ContextPolicy
from holmes.core.reviewer import Reviewer
from holmes.core.tool_calling_llm import ToolCallingLLM
from holmes.core.tools_utils.tool_executor import ToolExecutor
from holmes.values.events import AgentEvent
from holmes.values.messages import Message, SystemMessage, user_text
from holmes.values.model import ChatModel
from holmes.values.steps import DirectStepRunner
from holmes.values.tools import ResultStore, Toolset

PROMPTS = LoopPrompts(
    compaction="Summarise the investigation.", last_step="Answer now.", empty_reply="Your reply was empty."
)
QUESTION: tuple[Message, ...] = (SystemMessage(text="You are Holmes."), user_text("why is checkout failing?"))


def build_loop(
    models: Sequence[ChatModel],
    toolsets: Sequence[Toolset] = (),
    *,
    store: ResultStore | None = None,
    policy: ContextPolicy | None = None,
    max_steps: int = 100,
    reviewer: Reviewer | None = None,
) -> ToolCallingLLM:
    """A loop over these models and toolsets, with the default policy."""
    parts = LoopParts(
        models=tuple(LoopModel(model=model, policy=policy or ContextPolicy()) for model in models),
        executor=ToolExecutor(toolsets),
        store=store,
        prompts=PROMPTS,
        steps=DirectStepRunner(),
        reviewer=reviewer,
    )
    return ToolCallingLLM(parts, max_steps=max_steps)


async def events_of(loop: ToolCallingLLM, messages: Sequence[Message] = QUESTION) -> list[AgentEvent]:
    """Every event of one run."""
    return [event async for event in loop.call_stream(messages)]
