"""Masks old tool results: selects the results to replace, and replaces them in one batch.

A mask is a fingerprint, a preview or a path (`mask_texts`). Masked results and results of protected tools stay
unchanged, and so do results that a mask would not shorten. A result that cannot be stored stays whole, so masking loses
no data. In small context windows, `shrink_to_pointers` replaces the stored results of kept turns. Texts from the user
and the model never change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, assert_never

from holmes.core.tools_utils.tool_context_window_limiter import store_tool_message
from holmes.core.truncation.mask_texts import calls_of_results, fingerprinted, masked_message
from holmes.values.errors import ResultStoreError
from holmes.values.messages import AssistantMessage, Image, ResultId, StoredResult, SystemMessage, ToolMessage
from holmes.values.tools import output_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holmes.core.policy import ContextPolicy, MaskingPolicy, MaskKind
    from holmes.core.truncation.context import CompactionContext, HistoryBudget
    from holmes.tokens import TokenCounter
    from holmes.tokens.history import History
    from holmes.values.messages import Message, ToolCall
    from holmes.values.tools import ResultStore

# Placeholder for the id of a result that is not stored yet. The placeholder is needed to count the tokens of the mask.
_UNKNOWN = StoredResult(id=ResultId("0f1e2d3c4b5a"), path=None, size_bytes=0, media_type="text/plain")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedMask:
    """A mask that can replace the result at `position`. If `is_stored` is false, the result must be stored first."""

    position: int
    call: ToolCall | None
    masked: ToolMessage
    is_stored: bool
    freed_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskPlan:
    """All masks of one batch, in order. A plan is valid only for the history for which it was made.

    A mask contains the id of the stored result. The ids of results that are not stored yet are unknown, so
    `freed_tokens` is an estimate.
    """

    policy: ContextPolicy
    masks: tuple[PlannedMask, ...] = ()

    @property
    def kind(self) -> MaskKind:
        return self.policy.masking.kind

    @property
    def freed_tokens(self) -> int:
        """Number of tokens by which the plan shortens the history."""
        return sum(mask.freed_tokens for mask in self.masks)


def plan_masks(history: History, budget: HistoryBudget, *, can_store: bool = True) -> MaskPlan:
    """Plan the masks for `history` that the policy of `budget` requires.

    If `can_store` is false, results that are not stored yet stay whole. Call this function outside the event loop,
    because it tokenizes new messages and the masks.
    """
    policy = budget.policy
    if not policy.masking.enabled or policy.mode == "compress":
        return MaskPlan(policy=policy)
    messages, weights = history.messages(), history.token_counts()
    calls = calls_of_results(messages)
    masks = []
    for position in _old_results(messages, weights, budget):
        mask = _plan_one(position, messages[position], calls.get(position), weights[position], policy, history.counter)
        if mask is not None and (mask.is_stored or can_store):
            masks.append(mask)
    plan = MaskPlan(policy=policy, masks=tuple(masks))
    return plan if plan.freed_tokens >= _least_freed_tokens(budget) else MaskPlan(policy=policy)


def _plan_one(
    position: int, message: Message, call: ToolCall | None, weight: int, policy: ContextPolicy, counter: TokenCounter
) -> PlannedMask | None:
    """Return the mask for a result of `weight` tokens, or None if the mask would not be smaller."""
    if not isinstance(message, ToolMessage):
        return None
    masked = masked_message(message, call, message.stored or (_UNKNOWN,), policy, counter)
    freed_tokens = weight - counter.count_message(masked)
    if freed_tokens <= 0:
        return None
    is_stored = bool(message.stored)
    return PlannedMask(position=position, call=call, masked=masked, is_stored=is_stored, freed_tokens=freed_tokens)


def _old_results(messages: Sequence[Message], weights: Sequence[int], budget: HistoryBudget) -> Iterable[int]:
    """Return the positions of the results that the policy masks, in order."""
    policy = budget.policy.masking
    candidates = [
        position
        for position, message in enumerate(messages)
        if isinstance(message, ToolMessage) and _may_be_masked(message, policy)
    ]
    match policy.kind:
        case "fingerprint":
            return _beyond_newest_tokens(candidates, messages, weights, budget)
        case "preview":
            return _large_in_a_large_history(candidates, messages, weights, policy)
        case "path":
            end = len(messages) - policy.older_than_messages
            return [p for p in candidates if p < end and _characters(messages[p]) > policy.larger_than_characters]
        case _:
            assert_never(policy.kind)


def _may_be_masked(message: ToolMessage, policy: MaskingPolicy) -> bool:
    if message.status == "approval_required":  # the call did not run, so it has no result
        return False
    # A pointer without a stored result reports a loss. A pointer with a stored result already has a preview and a file.
    if message.spilled and (not message.stored or policy.kind == "preview"):
        return False
    return not message.masked and message.tool_name not in policy.protected_tools


def _beyond_newest_tokens(
    candidates: Sequence[int], messages: Sequence[Message], weights: Sequence[int], budget: HistoryBudget
) -> list[int]:
    """Return the positions of the results that precede the protected turns and the newest protected tokens."""
    policy = budget.policy.masking
    protected_tokens = min(policy.protect_tokens, int(budget.usable_tokens * policy.protect_share))
    counted = budget.policy.keep.messages or 0  # messages that the policy keeps stay unchanged
    end = min(_start_of_newest_rounds(messages, policy.protect_rounds), len(messages) - counted)
    newer_tokens = 0
    old: list[int] = []
    for position in reversed(candidates):
        if position < end and newer_tokens >= protected_tokens:
            old.append(position)
        newer_tokens += weights[position]
    return old[::-1]


def _start_of_newest_rounds(messages: Sequence[Message], rounds: int) -> int:
    """Return the position at which the newest `rounds` turns start."""
    replies = [position for position, message in enumerate(messages) if isinstance(message, AssistantMessage)]
    if rounds <= 0:
        return len(messages)
    return replies[-rounds] if len(replies) >= rounds else 0


def _large_in_a_large_history(
    candidates: Sequence[int], messages: Sequence[Message], weights: Sequence[int], policy: MaskingPolicy
) -> list[int]:
    """Return the positions of the large results in a large history.

    System messages are not treated as recent messages.
    """
    if sum(weights) <= policy.max_total_tokens:
        return []
    others = [position for position, message in enumerate(messages) if not isinstance(message, SystemMessage)]
    recent = set(others[max(0, len(others) - policy.keep_recent_messages) :])
    return [p for p in candidates if p not in recent and weights[p] > policy.max_tool_message_tokens]


def _least_freed_tokens(budget: HistoryBudget) -> int:
    """Return the minimum number of tokens that a batch must free."""
    policy = budget.policy.masking
    if policy.kind != "fingerprint":
        return 1
    return max(1, min(policy.minimum_tokens, int(budget.usable_tokens * policy.minimum_share)))


def _characters(message: Message) -> int:
    """Return the size of a result: the number of characters of its text plus the number of bytes of its images."""
    if not isinstance(message, ToolMessage):
        return 0
    return len(output_text(message)) + sum(len(part.data) for part in message.parts if isinstance(part, Image))


StoreResult: TypeAlias = Callable[[ToolMessage], Awaitable[tuple[StoredResult, ...] | str]]
"""A function that stores a result. It returns the stored result, or an error message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskOutcome:
    """The history after masking. An unchanged history is the same object.

    Token counts include all messages but not the tool schemas. If results could not be stored and stayed whole,
    `failure` states why.
    """

    history: History
    masked_count: int
    tokens_before: int
    tokens_after: int
    failure: str | None = None


async def mask_old_results(history: History, plan: MaskPlan, context: CompactionContext) -> MaskOutcome:
    """Apply `plan` to `history`. Results that are not stored yet are stored in durable steps."""

    async def store(message: ToolMessage) -> tuple[StoredResult, ...] | str:
        step_name = f"{context.step_name}/store/{message.call_id}"
        return await context.steps.run(step_name, lambda: stored_or_reason(message, context.store))

    return await apply_masks(history, plan, store)


async def stored_or_reason(message: ToolMessage, store: ResultStore | None) -> tuple[StoredResult, ...] | str:
    """Store the result. Returns the stored result, or an error message."""
    stored = await store_tool_message(message, store)
    return str(stored) if isinstance(stored, ResultStoreError) else stored


async def apply_masks(history: History, plan: MaskPlan, store: StoreResult) -> MaskOutcome:
    """Apply `plan` to `history`. Calls `store` for results that are not stored yet."""
    messages = list(history.messages())
    count = 0
    failure: str | None = None
    for mask in plan.masks:
        masked = await _ready_mask(messages[mask.position], mask, plan, history.counter, store)
        if isinstance(masked, str):
            failure = masked
        elif masked is not None:
            messages[mask.position] = masked
            count += 1
    before = await asyncio.to_thread(history.tokens)
    result = history.replaced(messages) if count else history
    after = await asyncio.to_thread(result.tokens)
    return MaskOutcome(history=result, masked_count=count, tokens_before=before, tokens_after=after, failure=failure)


async def _ready_mask(
    message: Message, mask: PlannedMask, plan: MaskPlan, counter: TokenCounter, store: StoreResult
) -> ToolMessage | str | None:
    """Store the result if necessary, and return its mask.

    Returns an error message if the result cannot be stored, and None if the mask is not smaller.
    """
    if mask.is_stored or not isinstance(message, ToolMessage):
        return mask.masked
    stored = message.stored or await store(message)
    if isinstance(stored, str):
        return stored
    if not stored:
        return None
    masked = await asyncio.to_thread(masked_message, message, mask.call, stored, plan.policy, counter)
    smaller = await asyncio.to_thread(lambda: counter.count_message(masked) < counter.count_message(message))
    return masked if smaller else None


def shrink_to_pointers(
    messages: Sequence[Message], cap_tokens: int, counter: TokenCounter, *, protected_tools: Sequence[str] = ()
) -> tuple[Message, ...]:
    """Replace stored results with fingerprints, oldest first, until all messages take at most `cap_tokens`.

    The messages can stay above the cap. Unchanged messages are the same objects.
    """
    weights = [counter.count_message(message) for message in messages]
    excess = sum(weights) - cap_tokens
    shrunk = list(messages)
    if excess <= 0:
        return tuple(shrunk)
    calls = calls_of_results(messages)
    for position, message in enumerate(messages):
        if excess <= 0:
            break
        if not isinstance(message, ToolMessage) or message.masked or not message.stored:
            continue
        if message.tool_name in protected_tools:
            continue
        pointer = fingerprinted(message, calls.get(position))
        freed_tokens = weights[position] - counter.count_message(pointer)
        if freed_tokens > 0:
            shrunk[position] = pointer
            excess -= freed_tokens
    return tuple(shrunk)
