"""Carries out a plan: stores what is not stored yet, then puts the masks in place, in one batch.

A result that cannot be stored is left whole: nothing is ever lost by masking. Emits nothing and asks no model. On small
windows `shrink_to_pointers` shrinks the results of kept rounds when the tail needs the room; only what is stored
already shrinks, calls and results stay together, and every result keeps its place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from holmes.core.tools_utils.result_storage import store_tool_message
from holmes.core.truncation.masking.facts import calls_of_results
from holmes.core.truncation.masking.replacement import fingerprinted, masked_message
from holmes.values.errors import ResultStoreError
from holmes.values.messages import StoredResult, ToolMessage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.core.history import History
    from holmes.core.truncation.context import CompactionContext
    from holmes.core.truncation.masking.plan import MaskPlan, PlannedMask
    from holmes.tokens import TokenCounter
    from holmes.values.messages import Message
    from holmes.values.tools import ResultStore

StoreResult: TypeAlias = Callable[[ToolMessage], Awaitable[tuple[StoredResult, ...] | str]]
"""Stores a result and tells where it lies, or why that failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskOutcome:
    """`history` is the same object when nothing changed. Tokens are of all messages, without tool schemas.

    `failure` says why results were left whole that could not be stored; None when all could.
    """

    history: History
    masked_count: int
    tokens_before: int
    tokens_after: int
    failure: str | None = None


async def mask_old_results(history: History, plan: MaskPlan, context: CompactionContext) -> MaskOutcome:
    """`history` with the masks of `plan`, which was made of it. Storing one result is one durable step."""

    async def store(message: ToolMessage) -> tuple[StoredResult, ...] | str:
        step_name = f"{context.step_name}/store/{message.call_id}"
        return await context.steps.run(step_name, lambda: stored_or_reason(message, context.store))

    return await apply_masks(history, plan, store)


async def stored_or_reason(message: ToolMessage, store: ResultStore | None) -> tuple[StoredResult, ...] | str:
    """Where the result lies now, or why it could not be stored."""
    stored = await store_tool_message(message, store)
    return str(stored) if isinstance(stored, ResultStoreError) else stored


async def apply_masks(history: History, plan: MaskPlan, store: StoreResult) -> MaskOutcome:
    """The same with any way to store."""
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
    """The mask, why there is none, or None when it turned out not to be smaller."""
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
    """`messages` with stored results as fingerprints, oldest first, until all together are at most `cap_tokens`.

    Ends above the cap when everything that may shrink has shrunk. Messages that stay are the same objects.
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
