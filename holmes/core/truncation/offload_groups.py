"""Stores and summarises what `offload_context` removes, group by group (K10).

Each group is stored in full before a model is asked for it, so a full disk costs nothing. Refuses half a job: the first
group that fails ends it, and no summary is used.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from holmes.core.policies.flowllm import POLICY
from holmes.core.truncation.context import SMALLEST_SUMMARY_TOKENS, CompactionContext, budget_of
from holmes.core.truncation.pairing import repair_pairing
from holmes.core.truncation.removed import store_removed
from holmes.core.truncation.summary import request_summary, split_groups
from holmes.core.truncation.summary_request import Summary, SummaryJob
from holmes.values.stats import RequestStats
from holmes.values.steps import DirectStepRunner

if TYPE_CHECKING:
    from holmes.core.history import History
    from holmes.values.events import AgentEvent
    from holmes.values.messages import Message, StoredResult
    from holmes.values.model import ChatModel
    from holmes.values.tools import ResultStore

_LARGEST_SHARE_OF_GROUP = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupWriter:
    """Who writes the summaries, what it is asked with, and where the messages go, under names with `chat_id`."""

    model: ChatModel
    prompt: str
    store: ResultStore
    chat_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenGroup:
    """Messages that a summary took the place of: how many, their tokens and those of the summary, where they lie."""

    messages: int
    tokens_before: int
    tokens_after: int
    stored: StoredResult


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummaries:
    """One text for each group, or why there is none. `stats` is what it cost either way."""

    texts: tuple[str, ...] = ()
    groups: tuple[WrittenGroup, ...] = ()
    failure: str | None = None
    stats: RequestStats = field(default_factory=RequestStats)


async def summarise_groups(
    history: History, old: tuple[int, ...], threshold_tokens: int | None, writer: GroupWriter
) -> GroupSummaries:
    """Summaries of the messages at the positions `old` of `history`; None and 0 as a threshold mean one group."""
    messages, weights = history.messages(), history.token_counts()
    groups = split_groups([messages[p] for p in old], [weights[p] for p in old], threshold_tokens, len(old))
    stored: list[StoredResult] = []
    context = await _context(history, writer)
    for number, group in enumerate(groups, start=1):
        lies = await store_removed(group, replace(context, step_name=f"{writer.chat_id}-{number}"))
        if lies is None:
            return GroupSummaries(failure="what it would stand for could not be stored")
        stored.append(lies)
    written = GroupSummaries()
    for number, (group, lies) in enumerate(zip(groups, stored, strict=True), start=1):
        answer = await _summarise(history, group, replace(context, step_name=f"{writer.chat_id}-{number}"))
        written = replace(written, stats=written.stats + answer.stats)
        if answer.text is None:
            part = f"part {number} of {len(groups)}: " if len(groups) > 1 else ""
            return replace(written, failure=f"{part}{answer.failure}")
        text = f"Part {number} of {len(groups)} (in full: result {lies.id}):\n{answer.text}"
        entry = WrittenGroup(
            messages=len(group),
            tokens_before=history.replaced(group).tokens(),
            tokens_after=context.counter.count_text(text),
            stored=lies,
        )
        written = replace(written, texts=(*written.texts, text), groups=(*written.groups, entry))
    return written


async def _summarise(history: History, group: tuple[Message, ...], context: CompactionContext) -> Summary:
    """A summary of `group`, which is all that the model sees."""
    alone = history.replaced(repair_pairing(group))
    budget = await asyncio.to_thread(budget_of, alone, context)
    cap_tokens = min(budget.summary_tokens, int(alone.tokens() * _LARGEST_SHARE_OF_GROUP))
    job = SummaryJob(
        history=alone,
        removed=alone.messages(),
        context=context,
        budget=budget,
        cap_tokens=max(SMALLEST_SUMMARY_TOKENS, cap_tokens),
    )
    return await request_summary(job)


async def _context(history: History, writer: GroupWriter) -> CompactionContext:
    """The same model twice: a summary model is sent plain text, which needs neither tools nor the whole history."""
    limits = await asyncio.to_thread(lambda: writer.model.limits)

    async def nobody_listens(_: AgentEvent) -> None:
        """There is no stream of events here; what it costs is in the stats."""

    return CompactionContext(
        model=writer.model,
        summary_model=writer.model,
        window_tokens=limits.context_window_tokens,
        reserve_tokens=limits.output_reserve_tokens,
        policy=POLICY,
        tools=(),
        store=writer.store,
        emit=nobody_listens,
        steps=DirectStepRunner(),
        counter=history.counter,
        prompt=writer.prompt,
        step_name="",
    )
