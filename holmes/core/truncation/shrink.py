"""Cuts the results of one round so that the round fits a number of tokens. Called by `plan` and nothing else.

Only results and their pictures are cut, never what the model or the user said. What is in the store keeps its pointer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holmes.previews import first_that_fits, head_and_tail
from holmes.previews.excerpts import DEFAULT_CHARACTERS_PER_TOKEN
from holmes.tokens import MESSAGE_OVERHEAD_TOKENS, message_overhead_tokens
from holmes.values.messages import Image, Text, ToolMessage

if TYPE_CHECKING:
    from holmes.tokens import TokenCounter
    from holmes.values.messages import Message

_SMALLEST_RESULT_TOKENS = 16
_GAP_TOKENS = 32
_A_LITTLE_LESS = 0.95


def shrink_round(messages: tuple[Message, ...], cap_tokens: int, counter: TokenCounter) -> tuple[Message, ...]:
    """`messages` with its largest results cut until all together are at most `cap_tokens`.

    Small results stay whole: what they do not use is shared by the large ones. A round whose reply alone is above the
    cap stays above it; the caller decides what that means.
    """
    counter = counter.exact
    weights = [counter.count_message(message) for message in messages]
    if sum(weights) <= cap_tokens:
        return messages
    results = [index for index, message in enumerate(messages) if isinstance(message, ToolMessage)]
    left = cap_tokens - (sum(weights) - sum(weights[index] for index in results))
    shortened = list(messages)
    for done, index in enumerate(sorted(results, key=weights.__getitem__)):
        message = messages[index]
        share = max(_SMALLEST_RESULT_TOKENS, left // (len(results) - done))
        if weights[index] > share and isinstance(message, ToolMessage):
            shortened[index] = cut_tool_message(message, share, counter)
            left -= counter.count_message(shortened[index])
        else:
            left -= weights[index]
    return tuple(shortened)


def cut_tool_message(message: ToolMessage, cap_tokens: int, counter: TokenCounter) -> ToolMessage:
    """`message` with both ends of its text, at most `cap_tokens`, and how to get the rest."""
    counter = counter.exact
    weight = counter.count_message(message)
    if weight <= cap_tokens:
        return message
    room = cap_tokens - MESSAGE_OVERHEAD_TOKENS
    pictures = sum(isinstance(part, Image) for part in message.parts)
    dropped = f" {pictures} pictures were removed." if pictures else ""
    if message.stored:
        ids = ", ".join(result.id for result in message.stored)
        note = f"[Cut to fit the context window.{dropped} The full output is stored: {ids}]"
    else:
        note = f"[Cut to fit the context window.{dropped} For the rest, call again with a narrower query.]"
    preview_room = max(0, room - _GAP_TOKENS - counter.count_text(note))
    text_tokens = max(1, weight - message_overhead_tokens(message))
    per_token = min(DEFAULT_CHARACTERS_PER_TOKEN, _A_LITTLE_LESS * len(message.text) / text_tokens)
    preview = (
        head_and_tail(message.text, preview_room, counter, characters_per_token=per_token)
        if preview_room >= _GAP_TOKENS
        else None
    )
    options = (f"{preview.render()}\n{note}", note, "[cut]") if preview else (note, "[cut]")
    return replace(message, parts=(Text(text=first_that_fits(options, room, counter)),))
