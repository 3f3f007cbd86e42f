"""Moves large tool results of any conversation into a store, and summarises what is old, in one library call (K15).

Does what the document of FlowLLM's ContextOffloadOp says: `compact` leaves a preview of each large result (P2),
`compress` puts a summary in the place of everything but system and recent messages (K10), `auto` compacts first and
compresses when more than 0.75 of the tokens are left (C5). Calls and results stay together (K9). What moves is stored
first; what cannot be stored stays, and a summary that fails changes nothing: nothing is ever cut off here.
"""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

from holmes.core.policies.flowllm import POLICY
from holmes.core.truncation.context import SMALLEST_SUMMARY_TOKENS, CompactionContext, HistoryBudget, measured
from holmes.core.truncation.masks import apply_masks, plan_masks, stored_or_reason
from holmes.core.truncation.pairing import repair_pairing
from holmes.core.truncation.plan import split_rounds
from holmes.core.truncation.removed import store_removed
from holmes.core.truncation.summary import request_summary, split_groups
from holmes.core.truncation.summary_request import Summary, SummaryJob
from holmes.tokens import TokenCounter
from holmes.tokens.history import History
from holmes.values.errors import ConfigError
from holmes.values.messages import StoredResult, SystemMessage, ToolMessage, user_text
from holmes.values.stats import RequestStats
from holmes.values.steps import DirectStepRunner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.core.policy import ContextPolicy, Mode
    from holmes.values.events import AgentEvent
    from holmes.values.messages import Message
    from holmes.values.model import ChatModel
    from holmes.values.tools import ResultStore

OFFLOAD_PROMPT = (
    "Write down where this conversation stands, for somebody who goes on from what you write and knows nothing else: "
    "what was asked, what was done with which arguments and what came of it, facts and names word for word, decisions, "
    "what is open. Write only what the conversation shows."
)
_HEADING = "Summary of the earlier part of this conversation. Its messages were removed to save space."
_KEEP_WHEN_COMPACTING, _KEEP_WHEN_COMPRESSING = 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadOptions:
    """How much is moved; the defaults are the documented ones. All sizes in tokens.

    Nothing happens while the conversation has at most `max_total_tokens`; for `compress`, system and recent messages
    are left out of that total. `max_tool_message_tokens` is the largest result that stays whole.
    `group_token_threshold` splits what is compressed; None and 0 mean one group. `keep_recent_count` messages at the
    end stay as they are; None means 1 for compaction and 2 for compression. `chat_id` names the stored groups; None
    means a new UUID.
    """

    mode: Mode = "auto"
    max_total_tokens: int = 20_000
    max_tool_message_tokens: int = 2_000
    group_token_threshold: int | None = None
    keep_recent_count: int | None = None
    chat_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedResult:
    """A tool result that left the conversation. `position` is that of its message in what was given, from 0."""

    position: int
    tool_name: str
    stored: tuple[StoredResult, ...]
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadMetadata:
    """What happened. `groups` are the parts that summaries took the place of, each with where it lies in full.

    `failure` says what was wanted and could not be done; None when everything was. `stats` is what summaries cost.
    """

    mode: Mode
    chat_id: str
    tokens_before: int
    tokens_after: int
    messages_before: int
    messages_after: int
    moved: tuple[MovedResult, ...] = ()
    groups: tuple[WrittenGroup, ...] = ()
    failure: str | None = None
    stats: RequestStats = field(default_factory=RequestStats)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadOutcome:
    """`messages` to go on with; those that did not change are the same objects."""

    messages: tuple[Message, ...]
    metadata: OffloadMetadata


async def offload_context(
    messages: Sequence[Message],
    options: OffloadOptions | None = None,
    *,
    store: ResultStore,
    model: ChatModel | None = None,
    prompt: str = OFFLOAD_PROMPT,
) -> OffloadOutcome:
    """`messages` with large results, and then old messages, moved into `store`.

    Raises `ConfigError` for options that make no sense, and for mode `compress` without a model. `prompt` is what a
    summary is asked for with.
    """
    options = options or OffloadOptions()
    _check(options, model)
    history = History(messages, TokenCounter())
    outcome = await _untouched(history, options)
    if options.mode != "compress":
        outcome = await _compact(outcome, history, options, store)
        history = history.replaced(outcome.messages)
    if options.mode == "compact" or (options.mode == "auto" and not _is_still_large(outcome.metadata)):
        return outcome
    old = _old_messages(history, options)
    weights = await asyncio.to_thread(history.token_counts)
    if sum(weights[position] for position in old) <= options.max_total_tokens:
        return outcome
    if model is None:
        return _failed(outcome, "no summary was written: no model was given")
    writer = GroupWriter(model=model, prompt=prompt, store=store, chat_id=outcome.metadata.chat_id)
    written = await summarise_groups(history, old, options.group_token_threshold, writer)
    return await asyncio.to_thread(_with_summaries, outcome, history, old, written)


async def _untouched(history: History, options: OffloadOptions) -> OffloadOutcome:
    """What comes back when there is nothing to do."""
    tokens = await asyncio.to_thread(history.tokens)
    metadata = OffloadMetadata(
        mode=options.mode,
        chat_id=options.chat_id or str(uuid.uuid4()),
        tokens_before=tokens,
        tokens_after=tokens,
        messages_before=len(history),
        messages_after=len(history),
    )
    return OffloadOutcome(messages=history.messages(), metadata=metadata)


async def _compact(
    outcome: OffloadOutcome, history: History, options: OffloadOptions, store: ResultStore
) -> OffloadOutcome:
    """P2, by the stages that age the results of an investigation."""
    plan = await asyncio.to_thread(plan_masks, history, _budget(_policy(options)))
    masked = await apply_masks(history, plan, lambda message: stored_or_reason(message, store))
    metadata = replace(outcome.metadata, tokens_after=masked.tokens_after, moved=_moved(history, masked.history))
    compacted = OffloadOutcome(messages=masked.history.messages(), metadata=metadata)
    return _failed(compacted, f"some results stay whole: {masked.failure}") if masked.failure else compacted


def _policy(options: OffloadOptions) -> ContextPolicy:
    keep = _KEEP_WHEN_COMPACTING if options.keep_recent_count is None else options.keep_recent_count
    masking = replace(
        POLICY.masking,
        max_total_tokens=options.max_total_tokens,
        max_tool_message_tokens=options.max_tool_message_tokens,
        keep_recent_messages=keep,
    )
    return replace(POLICY, masking=masking)


def _budget(policy: ContextPolicy) -> HistoryBudget:
    """Previews look at the policy only: there is no window here."""
    return HistoryBudget(window_tokens=0, reserve_tokens=0, max_output_tokens=0, policy=policy)


def _moved(before: History, after: History) -> tuple[MovedResult, ...]:
    """Each result that was masked."""
    pairs = zip(before, after, before.token_counts(), after.token_counts(), strict=True)
    return tuple(
        MovedResult(
            position=position,
            tool_name=new.tool_name,
            stored=new.stored,
            tokens_before=tokens_before,
            tokens_after=tokens_after,
        )
        for position, (old, new, tokens_before, tokens_after) in enumerate(pairs)
        if new is not old and isinstance(new, ToolMessage)
    )


def _is_still_large(metadata: OffloadMetadata) -> bool:
    ratio = POLICY.safety.auto_ratio or 1.0
    return metadata.tokens_after > metadata.tokens_before * ratio


def _old_messages(history: History, options: OffloadOptions) -> tuple[int, ...]:
    """What compression may remove: all but system messages and the rounds that hold the recent messages."""
    keep = _KEEP_WHEN_COMPRESSING if options.keep_recent_count is None else options.keep_recent_count
    others = [position for position, message in enumerate(history) if not isinstance(message, SystemMessage)]
    rounds = split_rounds(history, others)
    kept = 0
    while rounds and kept < keep:
        kept += len(rounds.pop())
    return tuple(position for positions in rounds for position in positions)


def _with_summaries(
    outcome: OffloadOutcome, history: History, old: tuple[int, ...], written: GroupSummaries
) -> OffloadOutcome:
    """`outcome` with the summaries in the place of the `old` messages, if that makes it shorter (K16)."""
    outcome = replace(outcome, metadata=replace(outcome.metadata, stats=written.stats))
    if written.failure is not None:
        return _failed(outcome, f"no summary was written: {written.failure}")
    removed = set(old)
    stand_in = user_text("\n\n".join((_HEADING, *written.texts)), kind="summary")
    messages: list[Message] = []
    for position, message in enumerate(history):
        if position == old[0]:
            messages.append(stand_in)
        if position not in removed:
            messages.append(message)
    shorter = history.replaced(messages)
    if shorter.tokens() >= history.tokens():
        return _failed(outcome, "the summaries do not make the conversation shorter")
    metadata = replace(
        outcome.metadata,
        tokens_after=shorter.tokens(),
        messages_after=len(shorter),
        groups=written.groups,
        stats=replace(written.stats, compactions=1),
    )
    return OffloadOutcome(messages=shorter.messages(), metadata=metadata)


def _failed(outcome: OffloadOutcome, reason: str) -> OffloadOutcome:
    """`outcome` with one more reason; messages stay as they are."""
    earlier = outcome.metadata.failure
    failure = f"{earlier}; {reason}" if earlier else reason
    return replace(outcome, metadata=replace(outcome.metadata, failure=failure))


def _check(options: OffloadOptions, model: ChatModel | None) -> None:
    """Raises `ConfigError`."""
    if options.mode == "compress" and model is None:
        raise ConfigError("mode 'compress' writes summaries and needs a model: name one, or use mode 'compact'")
    for option in fields(options):
        value = getattr(options, option.name)
        if isinstance(value, int) and value < 0:
            raise ConfigError(f"{option.name} is {value} and must be at least 0")


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
    context = await asyncio.to_thread(measured, alone, context)
    cap_tokens = min(context.budget.summary_tokens, int(alone.tokens() * _LARGEST_SHARE_OF_GROUP))
    job = SummaryJob(
        history=alone,
        removed=alone.messages(),
        context=context,
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
        budget=HistoryBudget(
            window_tokens=limits.context_window_tokens,
            reserve_tokens=limits.output_reserve_tokens,
            max_output_tokens=limits.max_output_tokens,
            policy=POLICY,
        ),
        tools=(),
        store=writer.store,
        emit=nobody_listens,
        steps=DirectStepRunner(),
        counter=history.counter,
        prompt=writer.prompt,
        step_name="",
    )
