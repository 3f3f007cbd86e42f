"""Shortens any conversation with one library call: moves large tool results into a store, and summarises old messages.

Follows the documentation of FlowLLM's ContextOffloadOp. `compact` leaves a preview of each large result. `compress`
replaces all messages except system and recent messages with a summary. `auto` compacts first, and compresses if more
than 75% of the tokens are left. Calls and results stay together. Results and messages are stored before they are
replaced. No data is lost: results that cannot be stored stay, and after a failed summary the conversation is unchanged.
"""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

from holmes.core.policies.flowllm import POLICY
from holmes.core.truncation.context import SMALLEST_SUMMARY_TOKENS, CompactionContext, HistoryBudget, measured
from holmes.core.truncation.masks import apply_masks, plan_masks, stored_or_reason
from holmes.core.truncation.plan import repair_pairing, split_rounds
from holmes.core.truncation.summary import request_summary, split_groups
from holmes.core.truncation.summary_message import store_removed
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

_OFFLOAD_PROMPT = (
    "Summarise this conversation for a reader who continues from your text and knows nothing else. Include the "
    "question, every action with its arguments and its result, facts and names word for word, decisions, and open "
    "points. Write only what the conversation shows."
)
_HEADING = "Summary of the earlier part of this conversation. Its messages were removed to save space."
_KEEP_WHEN_COMPACTING, _KEEP_WHEN_COMPRESSING = 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadOptions:
    """The options of an offload, with the documented defaults. All sizes are in tokens.

    A conversation of at most `max_total_tokens` stays unchanged. For `compress`, this size does not include system and
    recent messages. `max_tool_message_tokens` is the maximum size of a result that stays whole. Messages are summarised
    in groups of at most `group_token_threshold`, or in one group if the value is None or 0. `keep_recent_count`
    messages at the end stay. The default is 1 for compaction and 2 for compression. `chat_id` is part of the names of
    the stored groups. The default is a new UUID.
    """

    mode: Mode = "auto"
    max_total_tokens: int = 20_000
    max_tool_message_tokens: int = 2_000
    group_token_threshold: int | None = None
    keep_recent_count: int | None = None
    chat_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedResult:
    """A tool result that was moved to the store. `position` is the index of its original message, starting at 0."""

    position: int
    tool_name: str
    stored: tuple[StoredResult, ...]
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadMetadata:
    """The report of an offload.

    `moved` lists the results that were replaced by previews. `groups` lists the groups that were summarised. `failure`
    is None if the offload succeeded. `stats` is the cost of the summaries.
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
    """The conversation after an offload. Unchanged messages are the same objects."""

    messages: tuple[Message, ...]
    metadata: OffloadMetadata


async def offload_context(
    messages: Sequence[Message],
    options: OffloadOptions | None = None,
    *,
    store: ResultStore,
    model: ChatModel | None = None,
    prompt: str = _OFFLOAD_PROMPT,
) -> OffloadOutcome:
    """Move large results, and then old messages, into `store`.

    `prompt` is the system prompt of the summary requests. Raises `ConfigError` for invalid options, and for mode
    `compress` without a model.
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
        return _failed(outcome, "no summary was written: a model is required")
    writer = GroupWriter(model=model, prompt=prompt, store=store, chat_id=outcome.metadata.chat_id)
    written = await _summarise_groups(history, old, options.group_token_threshold, writer)
    return await asyncio.to_thread(_with_summaries, outcome, history, old, written)


async def _untouched(history: History, options: OffloadOptions) -> OffloadOutcome:
    """Return the outcome for an unchanged conversation."""
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
    """Replace large results with previews. Uses the functions that mask the results of a run."""
    plan = await asyncio.to_thread(plan_masks, history, _budget(_policy(options)))
    masked = await apply_masks(history, plan, lambda message: stored_or_reason(message, store))
    metadata = replace(outcome.metadata, tokens_after=masked.tokens_after, moved=_moved(history, masked.history))
    compacted = OffloadOutcome(messages=masked.history.messages(), metadata=metadata)
    if not masked.failure:
        return compacted
    return _failed(compacted, f"some results could not be stored and stay whole: {masked.failure}")


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
    """Return a budget with only a policy, because previews do not depend on a context window."""
    return HistoryBudget(window_tokens=0, reserve_tokens=0, max_output_tokens=0, policy=policy)


def _moved(before: History, after: History) -> tuple[MovedResult, ...]:
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
    """Return the positions of the messages that compression may remove.

    System messages and turns with recent messages are excluded.
    """
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
    """Replace the `old` messages with the summaries, if this shortens the conversation."""
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
    """Add a failure to `outcome`. The messages stay unchanged."""
    earlier = outcome.metadata.failure
    failure = f"{earlier}; {reason}" if earlier else reason
    return replace(outcome, metadata=replace(outcome.metadata, failure=failure))


def _check(options: OffloadOptions, model: ChatModel | None) -> None:
    """Raise `ConfigError` for invalid options."""
    if options.mode == "compress" and model is None:
        raise ConfigError("mode 'compress' requires a model for its summaries; specify a model, or use mode 'compact'")
    for option in fields(options):
        value = getattr(options, option.name)
        if isinstance(value, int) and value < 0:
            raise ConfigError(f"{option.name} must be at least 0, not {value}")


_LARGEST_SHARE_OF_GROUP = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupWriter:
    """The model and the store for the summaries of groups. `chat_id` is part of the names of the stored groups."""

    model: ChatModel
    prompt: str
    store: ResultStore
    chat_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenGroup:
    """A summarised group: the number and size of its messages, the size of its summary, and its stored text."""

    messages: int
    tokens_before: int
    tokens_after: int
    stored: StoredResult


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummaries:
    """The summaries of all groups. If one summary fails, `failure` states why. `stats` is the cost in both cases."""

    texts: tuple[str, ...] = ()
    groups: tuple[WrittenGroup, ...] = ()
    failure: str | None = None
    stats: RequestStats = field(default_factory=RequestStats)


async def _summarise_groups(
    history: History, old: tuple[int, ...], threshold_tokens: int | None, writer: GroupWriter
) -> GroupSummaries:
    """Summarise the messages at the positions `old` of `history` in groups.

    If `threshold_tokens` is None or 0, all messages are one group. All groups are stored before the first request to
    the model, so a full disk causes no cost. The first failure stops the function, and no summary is used.
    """
    messages, weights = history.messages(), history.token_counts()
    groups = split_groups([messages[p] for p in old], [weights[p] for p in old], threshold_tokens, len(old))
    stored: list[StoredResult] = []
    context = await _context(history, writer)
    for number, group in enumerate(groups, start=1):
        lies = await store_removed(group, replace(context, step_name=f"{writer.chat_id}-{number}"))
        if lies is None:
            return GroupSummaries(failure="the removed messages could not be stored")
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
    """Request a summary of `group`. The model sees no other messages."""
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
    """Return a context in which `model` is also the summary model, so that the requests contain only plain text."""
    limits = await asyncio.to_thread(lambda: writer.model.limits)

    async def nobody_listens(_: AgentEvent) -> None:
        """Discard the events, because the stats contain the costs."""

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
