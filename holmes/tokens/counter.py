"""Counts tokens exactly, or as an upper bound without a tokenizer. Called by history, spill and compaction.

The tokenizer is loaded when something must be counted exactly for the first time. Pictures are counted from width and
height. Reads no environment and no network.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from holmes.tokens.encodings import load_encoding
from holmes.tokens.images import image_tokens
from holmes.tokens.texts import chunks, message_texts, tool_schema_text, utf8_bytes
from holmes.values.messages import AssistantMessage, Image, SystemMessage

if TYPE_CHECKING:
    from holmes.values.messages import Message
    from holmes.values.model import ImageFormula
    from holmes.values.tools import Tool

MESSAGE_OVERHEAD_TOKENS = 4
CALL_OVERHEAD_TOKENS = 12
TOOL_OVERHEAD_TOKENS = 8

_SAMPLE_WINDOWS = 8
_SAMPLE_CHARACTERS = 2_048
_MEMO_CHARACTERS = 4_000_000
_MEMO_TEXT_CHARACTERS = 1_000_000
_MEMO_ENTRY_CHARACTERS = 100


class TokenCounter:
    """Exact counts of one encoding, and the base of the estimating counter. Safe to use from several threads.

    `image_formula` is the provider's way to count pictures. A text that was counted lately is remembered, so a message
    that is counted by the spill and again by the history is tokenized once. `bytes_tokenized` tells how many bytes went
    through the tokenizer (invariant 14).
    """

    def __init__(self, encoding: str = "o200k_base", *, image_formula: ImageFormula = "largest") -> None:
        self._encoding_name = encoding
        self._image_formula = image_formula
        self._memo: OrderedDict[str, int] = OrderedDict()
        self._memo_characters = 0
        self._lock = threading.Lock()
        self._tools: tuple[tuple[Tool, ...], tuple[str, ...]] | None = None
        self.bytes_tokenized = 0

    @property
    def exact(self) -> TokenCounter:
        """What counts exactly, for a decision that an estimate could get wrong."""
        return self

    def known_tokens(self, text: str) -> int | None:
        """Tokens of a text that was counted lately, else None."""
        with self._lock:
            known = self._memo.get(text)
            if known is not None:
                self._memo.move_to_end(text)
            return known

    def fits(self, text: str, limit_tokens: int) -> bool:
        """Whether `text` is at most `limit_tokens`. Few bytes are not tokenized."""
        return utf8_bytes(text) <= limit_tokens or self.count_text(text) <= limit_tokens

    def count_text(self, text: str) -> int:
        """Tokens of `text`. Texts above 64 KB are counted in pieces; a piece cut inside a word may add a token."""
        known = self.known_tokens(text)
        if known is not None:
            return known
        total = sum(self._encode(chunk) for chunk in chunks(text))
        self._remember(text, total)
        return total

    def count_text_up_to(self, text: str, limit_tokens: int) -> tuple[int, int]:
        """Tokens and characters counted: all of `text`, or as much as it took to get above `limit_tokens`."""
        tokens = characters = 0
        for chunk in chunks(text):
            tokens += self._encode(chunk)
            characters += len(chunk)
            if tokens > limit_tokens:
                break
        if characters == len(text):
            self._remember(text, tokens)
        return tokens, characters

    def estimate_text(self, text: str) -> int:
        """Tokens extrapolated from 8 windows of 2 KB; exact for a text that is not longer than those."""
        if len(text) <= _SAMPLE_WINDOWS * _SAMPLE_CHARACTERS:
            return self.count_text(text)
        step = (len(text) - _SAMPLE_CHARACTERS) / (_SAMPLE_WINDOWS - 1)
        starts = [int(index * step) for index in range(_SAMPLE_WINDOWS)]
        sampled = sum(self._encode(text[start : start + _SAMPLE_CHARACTERS]) for start in starts)
        return round(sampled * len(text) / (_SAMPLE_WINDOWS * _SAMPLE_CHARACTERS))

    def count_message(self, message: Message) -> int:
        """Tokens of a message: its texts, calls, reasoning and pictures, plus what the wire format adds."""
        overhead = message_overhead_tokens(message, self._image_formula)
        return overhead + sum(self.count_text(text) for text in message_texts(message))

    def image_tokens(self, image: Image) -> int:
        """Tokens of one picture, by the formula of the provider."""
        return image_tokens(image, self._image_formula)

    def count_tools(self, tools: tuple[Tool, ...]) -> int:
        """Tokens of the tool schemas, counted once as long as the tools stay the same."""
        texts = self._texts_of(tools)
        return TOOL_OVERHEAD_TOKENS * len(texts) + sum(self.count_text(text) for text in texts)

    def upper_bound_tools(self, tools: tuple[Tool, ...]) -> int:
        """At least `count_tools(tools)`, without a tokenizer."""
        return sum(TOOL_OVERHEAD_TOKENS + utf8_bytes(text) for text in self._texts_of(tools))

    def _texts_of(self, tools: tuple[Tool, ...]) -> tuple[str, ...]:
        if self._tools is None or self._tools[0] != tools:
            self._tools = (tools, tuple(tool_schema_text(tool) for tool in tools))
        return self._tools[1]

    def _encode(self, text: str) -> int:
        if not text:
            return 0
        tokens = len(load_encoding(self._encoding_name).encode_ordinary(text))
        with self._lock:
            self.bytes_tokenized += utf8_bytes(text)
        return tokens

    def _remember(self, text: str, tokens: int) -> None:
        if len(text) > _MEMO_TEXT_CHARACTERS:
            return
        with self._lock:
            if text not in self._memo:
                self._memo[text] = tokens
                self._memo_characters += len(text) + _MEMO_ENTRY_CHARACTERS
            while self._memo_characters > _MEMO_CHARACTERS:
                oldest, _ = self._memo.popitem(last=False)
                self._memo_characters -= len(oldest) + _MEMO_ENTRY_CHARACTERS


def upper_bound_tokens(message: Message) -> int:
    """At least what `message` counts for any provider, without a tokenizer: a token is at least a byte of UTF-8."""
    return message_overhead_tokens(message) + sum(utf8_bytes(text) for text in message_texts(message))


def message_overhead_tokens(message: Message, image_formula: ImageFormula = "largest") -> int:
    """What `message` takes besides its texts: roles and separators, call ids, pictures."""
    if isinstance(message, SystemMessage):
        return MESSAGE_OVERHEAD_TOKENS
    if isinstance(message, AssistantMessage):
        return MESSAGE_OVERHEAD_TOKENS + CALL_OVERHEAD_TOKENS * len(message.tool_calls)
    separators = max(0, len(message.parts) - 1)
    pictures = sum(image_tokens(part, image_formula) for part in message.parts if isinstance(part, Image))
    return MESSAGE_OVERHEAD_TOKENS + separators + pictures
