"""Shrinks the results of kept rounds to pointers when the tail needs the room, as on small windows.

Called by the compaction on the rounds that stay verbatim. Pure: only what is stored already shrinks, so nothing waits
and nothing is lost. Calls and results stay together, and every result keeps its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.core.truncation.masking.facts import calls_of_results
from holmes.core.truncation.masking.replacement import fingerprinted
from holmes.values.messages import ToolMessage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.tokens import TokenCounter
    from holmes.values.messages import Message


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
