"""Opens an investigator: checks the models, the cluster and the toolsets in parallel, then builds the loop.

All checks finish before the first model call. Files are read first, so that an unreachable cluster does not hide an
error in a file. The cluster is checked while litellm is imported. The first failure cancels the other checks. An
unreachable cluster is reported immediately, and a missing key or an unknown model is reported after the import.

"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from holmes.app.cluster import require_cluster
from holmes.app.models import build_models, check_models
from holmes.app.outfits import OutfitParts, Outfits
from holmes.app.redaction import mask_process, text_mask
from holmes.app.toolsets import open_toolsets
from holmes.core.context_usage import compact_conversation, context_usage
from holmes.core.loop_run import LoopParts, LoopPrompts
from holmes.core.single_calls import SingleCalls
from holmes.core.tool_calling_llm import ToolCallingLLM
from holmes.core.tools_utils.tool_executor import ToolExecutor
from holmes.prompts import render_prompt
from holmes.settings.model import BUILTIN_MODEL
from holmes.stores.conversation_store import ConversationStore
from holmes.stores.result_store import FileResultStore
from holmes.toolsets.mcp.session import open_sessions
from holmes.triage.review import RulesReviewer
from holmes.values.first_look import FIRST_LOOK_TOOL
from holmes.values.messages import SystemMessage, Text, UserMessage, user_text
from holmes.values.steps import DirectStepRunner

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine

    from holmes.app.models import BuiltModels, ConfiguredModel
    from holmes.app.outfits import Outfit
    from holmes.app.requests import AskRequest, RunParts
    from holmes.app.toolsets import OpenToolsets
    from holmes.core.context_usage import ContextUsage
    from holmes.core.tools_utils.tool_executor import Approver
    from holmes.redaction.redactor import Redactor
    from holmes.settings.settings import Settings
    from holmes.values.events import AgentEvent
    from holmes.values.messages import Message
    from holmes.values.tools import ResultStore, Toolset

_SECONDS_PER_DAY = 86_400
_BYTES_PER_MEGABYTE = 1_000_000


class Investigator:
    """Answers any number of questions with one configuration."""

    def __init__(self, parts: LoopParts, max_steps: int, outfits: Outfits, warnings: tuple[str, ...]) -> None:
        self._parts = parts
        self._max_steps = max_steps
        self._outfits = outfits
        self.warnings = warnings

    def ask(self, request: AskRequest, parts: RunParts | None = None) -> AsyncGenerator[AgentEvent, None]:
        """Investigate a question. The last event is `AnswerFinished` or `RunFailed`.

        Closing the generator cancels the run. `parts` applies only to this run.
        """
        outfit = self._outfits.of(_first_question(request.conversation) or request.question)
        own = self._offering(outfit)
        loop = ToolCallingLLM(own if parts is None else _parts_of(own, parts), max_steps=self._max_steps)
        return loop.call_stream(_messages(request, outfit.system))

    def single_calls(self) -> SingleCalls:
        """Return a runner of tool calls for one client. It offers the tools that no person must approve."""
        return SingleCalls(self._parts)

    def compact(self, conversation: tuple[Message, ...]) -> AsyncGenerator[AgentEvent, None]:
        """Compact the conversation now. The last event is `HistoryReplaced` or `RunFailed`."""
        outfit = self._outfits.of(_first_question(conversation))
        return compact_conversation(self._offering(outfit), (outfit.system, *_without_system(conversation)))

    async def context_usage(self, conversation: tuple[Message, ...]) -> ContextUsage:
        """Measure how much of the context window the conversation uses, with the current system prompt and tools."""
        outfit = self._outfits.of(_first_question(conversation))
        return await context_usage(self._offering(outfit), (outfit.system, *_without_system(conversation)))

    def _offering(self, outfit: Outfit) -> LoopParts:
        if outfit.tools is None:
            return self._parts
        return replace(self._parts, executor=self._parts.executor.offering(outfit.tools))


def _parts_of(own: LoopParts, parts: RunParts) -> LoopParts:
    wrap = parts.wrap_model
    models = own.models
    if wrap is not None:
        models = tuple(
            replace(
                each,
                model=wrap(each.model),
                summary_model=wrap(each.summary_model) if each.summary_model else None,
            )
            for each in models
        )
    return replace(own, models=models, steps=parts.steps or own.steps)


def _messages(request: AskRequest, system: SystemMessage) -> tuple[Message, ...]:
    """Return the current system prompt, the conversation, the attachments and the question as messages."""
    if request.instructions:
        system = SystemMessage(text=f"{system.text}\n\n{request.instructions}")
    earlier = _without_system(request.conversation)
    attached = tuple(
        user_text(render_prompt("attachment", {"name": attachment.name, "text": attachment.text}), "attachment")
        for attachment in request.attachments
    )
    question = UserMessage(parts=(Text(text=request.question), *request.images))
    return (system, *earlier, *attached, question)


def _first_question(conversation: tuple[Message, ...]) -> str:
    """Return the first question, which decides on the tools of the whole conversation."""
    requests = (each for each in conversation if isinstance(each, UserMessage) and each.kind == "request")
    return next((each.text for each in requests), "")


def _without_system(conversation: tuple[Message, ...]) -> tuple[Message, ...]:
    return tuple(message for message in conversation if not isinstance(message, SystemMessage))


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """The redactor, the approver and the result store for all tool calls.

    `redactor` is the redactor that `make_redactor` created for the process. It also masks stored questions. `approver`
    decides on tool calls that require approval. Without an approver, these calls are rejected. `store` stores the tool
    results, by default in files.
    """

    approver: Approver | None
    redactor: Redactor | None
    store: ResultStore | None


@asynccontextmanager
async def open_investigator(
    settings: Settings,
    *,
    redactor: Redactor | None,
    approver: Approver | None = None,
    refresh_toolsets: bool = False,
    store: ResultStore | None = None,
    asks_llm: bool | None = None,
) -> AsyncIterator[Investigator]:
    """Open an investigator. Leaving the context closes its connections. See `open_assembly`.

    If `asks_llm` is false, toolsets that only an LLM calls are not opened. Default: whether the model is one.
    """
    guards = Guards(approver=approver, redactor=redactor, store=store)
    asks_llm = settings.asks_llm(None) if asks_llm is None else asks_llm
    async with open_sessions(settings.storage.mcp_tokens_path) as sessions:
        toolsets = partial(
            open_toolsets, settings, sessions, redactor=redactor, refresh=refresh_toolsets, asks_llm=asks_llm
        )
        async with open_assembly(settings, guards, toolsets) as assembly:
            yield assembly.investigator


@asynccontextmanager
async def open_assembly(
    settings: Settings, guards: Guards, toolsets: Callable[[], Coroutine[None, None, OpenToolsets]]
) -> AsyncIterator[Assembly]:
    """Check the settings and build an assembly. Leaving the context closes its connections.

    Raises `ConfigError` and `ClusterUnreachable` before the first paid model call.
    """
    mask_process(guards.redactor)
    chain = build_models(settings)
    chain.preload()  # runs during the checks, which wait for I/O
    try:
        opened = await _checked(settings, chain.configured, toolsets())
        if guards.store is None and settings.storage.results_enabled:
            guards = replace(guards, store=result_store(settings))
        yield Assembly(settings, chain, guards, opened)
    finally:
        for model in chain.configured:
            await model.aclose()


async def _checked(
    settings: Settings, models: tuple[ConfiguredModel, ...], toolsets: Coroutine[None, None, OpenToolsets]
) -> OpenToolsets:
    """Run all checks in parallel. The first failure cancels the other checks and is raised.

    The toolset task starts first, so that it reads all toolset files before another task starts.
    """
    opening = asyncio.create_task(toolsets)
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


class Assembly:
    """The opened models, with the guards for all tool calls.

    `investigator` uses the toolsets of the last `with_toolsets` call.
    """

    def __init__(self, settings: Settings, chain: BuiltModels, guards: Guards, opened: OpenToolsets) -> None:
        self._settings = settings
        self._chain = chain
        self._guards = guards
        self._opened = opened
        self.investigator = _assemble(settings, chain, opened, guards)

    def with_toolsets(self, opened: OpenToolsets) -> Investigator:
        """Return the current investigator, or a new investigator if the toolsets changed."""
        if opened is not self._opened:
            self._opened = opened
            self.investigator = _assemble(self._settings, self._chain, opened, self._guards)
        return self.investigator


def _assemble(settings: Settings, chain: BuiltModels, opened: OpenToolsets, guards: Guards) -> Investigator:
    store, redactor = guards.store, guards.redactor
    first = chain.models[0]

    def create(now: OpenToolsets) -> tuple[Toolset, ...]:
        return now.create(chain.models, store, guards.approver, redactor)

    async def renewed() -> tuple[Toolset, ...]:
        return create(await opened.renewed())

    toolsets = create(opened)
    names = {tool.name for toolset in toolsets for tool in toolset.tools}
    reviewer = RulesReviewer(
        has_tool=FIRST_LOOK_TOOL in names,
        first_look=settings.investigation.first_look and first.model.name != BUILTIN_MODEL,
        reviews=settings.investigation.answer_review,
        details=settings.investigation.details,
    )
    parts = LoopParts(
        models=chain.models,
        executor=ToolExecutor(toolsets, mask=text_mask(redactor), renew=renewed if opened.has_servers else None),
        store=store,
        prompts=LoopPrompts(
            compaction=render_prompt("compaction"),
            last_step=render_prompt("last_step"),
            empty_reply=render_prompt("empty_reply"),
        ),
        steps=DirectStepRunner(),
        redactor=redactor,
        reviewer=reviewer,
    )
    return Investigator(
        parts,
        settings.investigation.max_steps,
        Outfits(
            OutfitParts(
                settings=settings,
                model=first,
                toolsets=toolsets,
                on_demand=opened.on_demand,
                changing=opened.has_servers,
                unavailable=opened.unavailable,
                first_look=reviewer.takes_first_look,
            )
        ),
        (*opened.warnings, *opened.broken),
    )


def result_store(settings: Settings) -> FileResultStore:
    """Open the store for tool results. Results that a stored conversation refers to are never deleted."""
    storage = settings.storage
    return FileResultStore(
        storage.results_path,
        retention_seconds=storage.results_retention_days * _SECONDS_PER_DAY,
        quota_bytes=storage.results_quota_megabytes * _BYTES_PER_MEGABYTE,
        protected=conversation_store(settings).result_ids,
    )


def conversation_store(settings: Settings) -> ConversationStore:
    """Open the store of this user's conversations."""
    storage = settings.storage
    return ConversationStore(
        storage.conversations_path,
        retention_days=storage.conversation_retention_days,
        limit=storage.conversation_limit,
        cluster=settings.cluster or None,
    )
