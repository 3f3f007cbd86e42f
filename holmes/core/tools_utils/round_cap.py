"""Keeps all results of one round together within a cap: the join stage between the single results and the history.

`cap_round` is called by the loop once all calls of a reply have returned. The largest whole results become pointers
with smaller previews, small ones stay whole, the order stays that of the calls. No byte is lost while the store works:
a result is stored before it is replaced, and what the tools over stored results answered can be read again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holmes.core.tools_utils.pointers import (
    Pointer,
    PointerLimits,
    cut_text,
    measure_message,
    round_limit_text,
)
from holmes.core.tools_utils.tool_context_window_limiter import store_tool_message
from holmes.values.errors import ResultStoreError
from holmes.values.messages import Text
from holmes.values.tools import RESULT_TOOLS, label_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.core.policy import SpillPolicy
    from holmes.tokens import TokenCounter
    from holmes.values.messages import StoredResult, ToolMessage
    from holmes.values.tools import ResultStore

SMALLEST_RESULT_TOKENS = 60
_READ_AGAIN = (
    "[Cut: the results of this step are too large together. Ask again for this part alone, or for less of it.]"
)
_LOST = (
    "[Cut: the results of this step are too large together, and the middle of this one could not be kept: {reason}. "
    "Call again with a narrower query.]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Share:
    """What one result of a round may take, and how its pointer explains that."""

    tokens: int
    limits: PointerLimits


async def cap_round(
    messages: Sequence[ToolMessage],
    cap_tokens: int,
    counter: TokenCounter,
    policy: SpillPolicy,
    store: ResultStore | None,
) -> tuple[ToolMessage, ...]:
    """`messages` with the largest replaced until all together are at most `cap_tokens`; the same objects when they are.

    No result is pressed below 60 tokens, so a round of very many results can stay above the cap. Without a store the
    middle of a large result is lost, and its text says so.
    """
    counter = counter.exact
    weights = await asyncio.to_thread(lambda: [counter.count_message(message) for message in messages])
    total = sum(weights)
    share = _share(cap_tokens, len(messages), policy)
    capped = list(messages)
    for index in sorted(range(len(messages)), key=weights.__getitem__, reverse=True):
        if total <= cap_tokens or weights[index] <= share.tokens:
            break
        capped[index] = await _within(messages[index], share, counter, store)
        total += await asyncio.to_thread(counter.count_message, capped[index]) - weights[index]
    return tuple(capped)


def _share(cap_tokens: int, results: int, policy: SpillPolicy) -> _Share:
    """An equal part of the cap: if every result above it came down to it, the round would fit."""
    tokens = max(SMALLEST_RESULT_TOKENS, cap_tokens // max(1, results))
    limits = PointerLimits.of_result(tokens, policy, round_limit_text(results, cap_tokens))
    return _Share(tokens=tokens, limits=limits)


async def _within(message: ToolMessage, share: _Share, counter: TokenCounter, store: ResultStore | None) -> ToolMessage:
    """`message` in at most its share: a shorter pointer, a pointer, or cut."""
    if message.spilled or message.masked:
        if not message.stored:
            text = await asyncio.to_thread(cut_text, message, share.tokens, "[cut]", counter)
        else:
            text = await asyncio.to_thread(Pointer.shorten, message, share.tokens, counter)
        return replace(message, parts=(Text(text=text),))
    if message.tool_name in RESULT_TOOLS and not message.stored:
        text = await asyncio.to_thread(cut_text, message, share.tokens, _READ_AGAIN, counter)
        return replace(message, parts=(Text(text=text),))
    stored = await store_tool_message(message, store)
    if isinstance(stored, ResultStoreError):
        note = _LOST.format(reason=stored)
        text = await asyncio.to_thread(cut_text, message, share.tokens, note, counter)
        return replace(message, parts=(Text(text=text),))
    return await asyncio.to_thread(_pointer, message, stored, share, counter)


def _pointer(
    message: ToolMessage, stored: tuple[StoredResult, ...], share: _Share, counter: TokenCounter
) -> ToolMessage:
    output = message if label_of(message) is None else replace(message, parts=message.parts[:-1])
    measure = measure_message(output, share.tokens, counter)
    text = Pointer.of_result(output, measure, stored, share.limits, counter).render(share.limits, counter)
    return replace(message, parts=(Text(text=text),), stored=stored, spilled=True)
