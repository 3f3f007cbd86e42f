"""Messages as plain text in pieces of a given size, for a summary request that the history itself is too large for.

Called by `summary`. Cuts long messages in the middle rather than leaving out whole ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.values.messages import AssistantMessage, Image, SystemMessage, ToolMessage
from holmes.values.texts import after_placeholder, before_placeholder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.values.messages import Message

MAX_PIECES = 4
_MESSAGE_LIMITS_TOKENS = (8_000, 4_000, 2_000, 1_000, 500, 250, 100, 50)
_HEADING_TOKENS = 24


def whole_transcript(messages: Sequence[Message]) -> str:
    """All of `messages`, nothing cut."""
    return "\n\n".join(map(_whole_entry, messages))


def transcript_pieces(
    messages: Sequence[Message], weights: Sequence[int], piece_tokens: int, most_pieces: int = MAX_PIECES
) -> tuple[str, ...]:
    """At most `most_pieces` texts of about `piece_tokens` each, in order.

    `weights` are the tokens of the messages without their pictures. Every message is cut to the same limit, the largest
    at which all fit. When even 50 tokens for each are too many, the oldest are left out.
    """
    for limit in _MESSAGE_LIMITS_TOKENS:
        sizes = [min(weight, limit) + _HEADING_TOKENS for weight in weights]
        if max(sizes, default=0) > piece_tokens:
            continue
        pieces = _pack([_entry(m, w, limit) for m, w in zip(messages, weights, strict=True)], sizes, piece_tokens)
        if len(pieces) <= most_pieces:
            return pieces
    smallest = _MESSAGE_LIMITS_TOKENS[-1]
    fitting = max(0, most_pieces * (piece_tokens // (smallest + _HEADING_TOKENS)))
    if not fitting:
        return ()
    newest = list(zip(messages, weights, strict=True))[-fitting:]
    entries = [_entry(message, weight, smallest) for message, weight in newest]
    return _pack(entries, [smallest + _HEADING_TOKENS] * len(entries), piece_tokens)


def _pack(entries: list[str], sizes: list[int], piece_tokens: int) -> tuple[str, ...]:
    pieces: list[list[str]] = []
    left = 0
    for entry, size in zip(entries, sizes, strict=True):
        if not pieces or size > left:
            pieces.append([])
            left = piece_tokens
        pieces[-1].append(entry)
        left -= size
    return tuple("\n\n".join(piece) for piece in pieces)


def _whole_entry(message: Message) -> str:
    heading, text = _heading_and_text(message)
    return f"## {heading}\n{text}"


def _entry(message: Message, weight: int, limit_tokens: int) -> str:
    heading, text = _heading_and_text(message)
    if weight > limit_tokens:
        keep = len(text) * limit_tokens // weight // 2
        head, tail = text[: before_placeholder(text, keep)], text[after_placeholder(text, len(text) - keep) :]
        left_out = len(text) - len(head) - len(tail)
        text = f"{head}\n[... {left_out:,} characters left out ...]\n{tail}"
    return f"## {heading}\n{text}"


def _heading_and_text(message: Message) -> tuple[str, str]:
    """Pictures are only counted: a transcript is text (K14). The id of a stored result is named, so it can be kept."""
    if isinstance(message, SystemMessage):
        return "instructions", message.text
    if isinstance(message, AssistantMessage):
        calls = (f"calls {call.name} with {call.arguments}" for call in message.tool_calls)
        return "assistant", "\n".join(part for part in (message.text, *calls) if part)
    pictures = sum(isinstance(part, Image) for part in message.parts)
    shown = f", {pictures} {'picture' if pictures == 1 else 'pictures'} left out" if pictures else ""
    if isinstance(message, ToolMessage):
        ids = "".join(f", result {stored.id}" for stored in message.stored if stored.id not in message.text)
        return f"result of {message.tool_name} ({message.status}{ids}{shown})", message.text
    return f"user ({message.kind}{shown})", message.text
