"""Opens an investigator: checks model, cluster and toolsets at once, then puts the loop together. Called by the faces.

Everything that can be wrong is found before the first model call. Files are read first, so a typo in one is never
hidden behind a missing cluster. Then the cluster is asked while the model's library is imported, and the first failure
ends both: a missing cluster is known at once, a missing key or an unknown model only after the seconds of that import.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from holmes.app.models import build_models, check_models
from holmes.app.toolsets import open_toolsets, require_cluster
from holmes.core.investigation import LoopParts, LoopPrompts
from holmes.core.messages import SystemMessage, user_text
from holmes.core.steps import DirectStepRunner
from holmes.core.tool_calling_llm import ToolCallingLLM
from holmes.core.tools_utils.tool_executor import ToolExecutor
from holmes.core.truncation.context import ContextLimits
from holmes.llm.litellm_loader import preload
from holmes.llm.scripted import ScriptedModel
from holmes.prompts import render_prompt
from holmes.stores.result_store import FileResultStore

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from holmes.app.requests import AskRequest
    from holmes.app.toolsets import OpenToolsets
    from holmes.core.approvals import Approver
    from holmes.core.events import AgentEvent
    from holmes.core.messages import Message
    from holmes.core.tools import Toolset
    from holmes.llm.registry import ConfiguredModel
    from holmes.settings.settings import Settings


class Investigator:
    """Answers any number of questions with one configuration. Made by `open_investigator`."""

    def __init__(self, loop: ToolCallingLLM, system: SystemMessage, model_name: str, warnings: tuple[str, ...]) -> None:
        self._loop = loop
        self._system = system
        self.model_name = model_name
        self.warnings = warnings

    def ask(self, request: AskRequest) -> AsyncGenerator[AgentEvent, None]:
        """Investigate. The last event is `AnswerFinished` or `RunFailed`; closing the generator cancels everything."""
        return self._loop.call_stream(self._messages(request))

    def _messages(self, request: AskRequest) -> tuple[Message, ...]:
        """The conversation so far under today's system prompt, then what goes along, then the question."""
        earlier = tuple(message for message in request.conversation if not isinstance(message, SystemMessage))
        attached = tuple(
            user_text(render_prompt("attachment", {"name": attachment.name, "text": attachment.text}), "attachment")
            for attachment in request.attachments
        )
        return (self._system, *earlier, *attached, user_text(request.question))


@asynccontextmanager
async def open_investigator(
    settings: Settings, *, approver: Approver | None = None, refresh_toolsets: bool = False
) -> AsyncIterator[Investigator]:
    """An investigator for these settings; leaving the context closes its connections.

    Raises `ConfigError` and `ClusterUnreachable`, both before anything is paid. `approver` answers for calls that need
    a person; without one they do not run.
    """
    models = build_models(settings)
    if not isinstance(models[0], ScriptedModel):
        preload()  # the import takes seconds: start it before the checks, which wait for other programs
    try:
        opened = await _checked(settings, models, refresh_toolsets=refresh_toolsets)
        yield _assemble(settings, models, opened, approver)
    finally:
        for model in models:
            await model.aclose()


async def _checked(settings: Settings, models: tuple[ConfiguredModel, ...], *, refresh_toolsets: bool) -> OpenToolsets:
    """All checks at once; the first that fails ends the others and is the one line that the user reads.

    The toolsets come first, because their task reads all toolset files before it lets another one run.
    """
    opening = asyncio.create_task(open_toolsets(settings, refresh=refresh_toolsets))
    tasks = (
        opening,
        asyncio.create_task(check_models(settings, models)),
        asyncio.create_task(require_cluster(settings)),
    )
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in tasks:
            if task in done:
                task.result()
        return opening.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _assemble(
    settings: Settings, models: tuple[ConfiguredModel, ...], opened: OpenToolsets, approver: Approver | None
) -> Investigator:
    limits = _context_limits(settings)
    store = FileResultStore(settings.storage.results_path) if settings.storage.results_enabled else None
    toolsets = opened.create([model.limits for model in models], limits, store, approver)
    parts = LoopParts(
        models=models,
        executor=ToolExecutor(toolsets),
        store=store,
        limits=limits,
        prompts=LoopPrompts(
            compaction=render_prompt("compaction"),
            last_step=render_prompt("last_step"),
            empty_reply=render_prompt("empty_reply"),
        ),
        steps=DirectStepRunner(),
    )
    return Investigator(
        ToolCallingLLM(parts, max_steps=settings.investigation.max_steps),
        SystemMessage(text=_system_prompt(settings, toolsets, opened.unavailable)),
        models[0].name,
        (*opened.warnings, *opened.broken),
    )


def _context_limits(settings: Settings) -> ContextLimits:
    context = settings.context
    return ContextLimits(
        compaction_enabled=context.compaction_enabled,
        compaction_threshold_pct=context.compaction_threshold_pct,
        tool_result_max_pct=context.tool_result_cap_pct,
        tool_result_max_tokens=context.tool_result_cap_tokens,
        user_message_char_limit=context.user_message_cap_characters,
    )


def _system_prompt(settings: Settings, toolsets: tuple[Toolset, ...], unavailable: tuple[str, ...]) -> str:
    investigation = settings.investigation
    return render_prompt(
        "system",
        {
            "cluster_name": investigation.cluster_name,
            "context_name": investigation.kube_context,
            "namespace": investigation.namespace,
            "toolsets": [toolset for toolset in toolsets if toolset.instructions],
            "unavailable": unavailable,
            "additions": investigation.system_prompt_additions,
        },
    )
