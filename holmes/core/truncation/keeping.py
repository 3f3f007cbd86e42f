"""Makes sure that every tool result of a history is in the store before a stage cuts or removes it (invariant 6).

Called at the beginning of every stage that loses text. Results are stored when they join, so there is nothing to do
unless the conversation came from elsewhere or the disk was full then. Refuses to fail: what cannot be stored is left as
it is, and the stages go on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holmes.core.tools_utils.result_storage import store_tool_message
from holmes.values.errors import ResultStoreError
from holmes.values.messages import ToolMessage

if TYPE_CHECKING:
    from holmes.core.history import History
    from holmes.values.messages import Message
    from holmes.values.tools import ResultStore


async def store_results(history: History, store: ResultStore | None) -> History:
    """`history` with every result stored that was not, or the same object. Texts and token counts do not change."""
    if store is None:
        return history
    stored: dict[int, Message] = {}
    for index, message in enumerate(history):
        if not isinstance(message, ToolMessage) or message.stored or message.masked:
            continue
        put = await store_tool_message(message, store)
        if isinstance(put, ResultStoreError):
            break  # a full disk stays full: asking once is enough
        if put:
            stored[index] = replace(message, stored=put)
    if not stored:
        return history
    return history.with_replaced(stored)
