"""Counts tokens exactly, or computes an upper bound without a tokenizer.

The tokenizer's files are part of the litellm package, which is not imported. The first exact count loads the tokenizer.
The tokens of an image are computed from its width and height. This module uses neither environment variables nor the
network.
"""

from __future__ import annotations

import base64
import functools
import importlib.util
import json
import re
import threading
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING

from holmes.tokens.images import image_tokens
from holmes.values.errors import HolmesError
from holmes.values.messages import AssistantMessage, Image, SystemMessage, Text

if TYPE_CHECKING:
    from collections.abc import Iterator

    import tiktoken

    from holmes.values.messages import Message
    from holmes.values.model import ImageFormula
    from holmes.values.tools import Tool

_CHUNK_CHARACTERS = 65_536
_BOUNDARY_SEARCH_CHARACTERS = 4_096
# In every encoding, a token ends at these boundaries, so the parts before and after a boundary can be counted
# separately.
_SAFE_BOUNDARY = re.compile(r"(?<=\n)(?=[A-Za-z0-9])|(?<=[A-Za-z0-9])(?= [A-Za-z])")
# The name of a tiktoken cache file is a hash of its download URL.
_FILE_NAMES = {
    "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
}
_CONTRACTION = "'(?i:[sdmt]|ll|ve|re)"
_UPPER, _LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_PATTERNS = {
    "cl100k_base": (
        rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?+\p{{L}}++|\p{{N}}{{1,3}}+| ?[^\s\p{{L}}\p{{N}}]++[\r\n]*+"
        r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
    ),
    "o200k_base": (
        rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+(?:{_CONTRACTION})?"
        rf"|[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*(?:{_CONTRACTION})?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
}
MESSAGE_OVERHEAD_TOKENS = 4
CALL_OVERHEAD_TOKENS = 12
TOOL_OVERHEAD_TOKENS = 8
_SAMPLE_WINDOWS = 8
_SAMPLE_CHARACTERS = 2_048
_MEMO_CHARACTERS = 4_000_000
_MEMO_TEXT_CHARACTERS = 1_000_000
_MEMO_ENTRY_CHARACTERS = 100


def chunks(text: str) -> Iterator[str]:
    """Split `text` into parts of at most 65,536 characters, at the start of a token if possible."""
    start = 0
    while len(text) - start > _CHUNK_CHARACTERS:
        end = start + _CHUNK_CHARACTERS
        boundary = end
        for match in _SAFE_BOUNDARY.finditer(text, end - _BOUNDARY_SEARCH_CHARACTERS, end):
            boundary = match.start()
        yield text[start:boundary]
        start = boundary
    yield text[start:] if start else text


def utf8_bytes(text: str) -> int:
    """Return the length of `text` in UTF-8. Large texts are measured in parts, which avoids a full copy."""
    if text.isascii():
        return len(text)
    pieces = (text[start : start + _CHUNK_CHARACTERS] for start in range(0, len(text), _CHUNK_CHARACTERS))
    return sum(len(piece.encode("utf-8", "surrogatepass")) for piece in pieces)


def message_texts(message: Message) -> Iterator[str]:
    """Yield every text of `message` that is sent to the provider."""
    if isinstance(message, SystemMessage):
        yield message.text
    elif isinstance(message, AssistantMessage):
        yield message.text
        for call in message.tool_calls:
            yield call.name
            yield call.arguments
        for block in message.reasoning:
            yield block.payload
    else:
        for part in message.parts:
            if isinstance(part, Text):
                yield part.text


def tool_schema_text(tool: Tool) -> str:
    """Return the schema of `tool` as JSON, in the form that requests use."""
    schema = {"name": tool.name, "description": tool.description, "parameters": tool.parameters_json_schema()}
    return json.dumps(schema, ensure_ascii=False)


@functools.lru_cache(maxsize=4)
def encoding_file(name: str) -> Path | None:
    """Return the file of the encoding, or None if the encoding is unknown or its file is not installed."""
    package = importlib.util.find_spec("litellm")
    folders = list(package.submodule_search_locations or ()) if package else []
    file_name = _FILE_NAMES.get(name, "")
    candidates = [Path(folder, "litellm_core_utils", "tokenizers", file_name) for folder in folders]
    return next((candidate for candidate in candidates if candidate.is_file()), None)


@functools.lru_cache(maxsize=2)
def load_encoding(name: str) -> tiktoken.Encoding:
    """Load the encoding from the files of the litellm package. Raises `HolmesError` if its file is missing."""
    path = encoding_file(name)
    if path is None:
        known = ", ".join(_PATTERNS)
        raise HolmesError(f"token encoding {name!r} is not available; reinstall litellm or use one of: {known}")
    import tiktoken  # imported here, because it is large and only exact counts need it

    ranks = {}
    with path.open("rb") as lines:
        for line in lines:
            token, _, rank = line.partition(b" ")
            ranks[base64.b64decode(token)] = int(rank)
    encoding = tiktoken.Encoding(name=name, pat_str=_PATTERNS[name], mergeable_ranks=ranks, special_tokens={})
    # The tokenizer keeps its own copy of the ranks. This attribute is needed only for pickling and takes 25 MB.
    encoding._mergeable_ranks = {}  # noqa: SLF001
    return encoding


class TokenCounter:
    """Counts tokens exactly in one encoding. Thread-safe.

    `image_formula` is the provider's formula for images. Recent counts are cached, so that each text is tokenized only
    once. `bytes_tokenized` is the number of bytes that were tokenized.
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
        """An exact counter, for decisions that require more than an estimate."""
        return self

    def known_tokens(self, text: str) -> int | None:
        """Return the cached count of a text, or None if the count is not cached."""
        with self._lock:
            known = self._memo.get(text)
            if known is not None:
                self._memo.move_to_end(text)
            return known

    def fits(self, text: str, limit_tokens: int) -> bool:
        """Return whether `text` has at most `limit_tokens`.

        A text is not tokenized if it has at most `limit_tokens` bytes.
        """
        return utf8_bytes(text) <= limit_tokens or self.count_text(text) <= limit_tokens

    def count_text(self, text: str) -> int:
        """Count the tokens of `text`. Long texts are counted in parts. A cut inside a word can add a token."""
        known = self.known_tokens(text)
        if known is not None:
            return known
        total = sum(self._encode(chunk) for chunk in chunks(text))
        self._remember(text, total)
        return total

    def count_text_up_to(self, text: str, limit_tokens: int) -> tuple[int, int]:
        """Return the counted tokens and characters.

        If `text` has more than `limit_tokens`, only its beginning is counted.
        """
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
        """Estimate the tokens from 8 samples of 2,048 characters. Shorter texts are counted exactly."""
        if len(text) <= _SAMPLE_WINDOWS * _SAMPLE_CHARACTERS:
            return self.count_text(text)
        step = (len(text) - _SAMPLE_CHARACTERS) / (_SAMPLE_WINDOWS - 1)
        starts = [int(index * step) for index in range(_SAMPLE_WINDOWS)]
        sampled = sum(self._encode(text[start : start + _SAMPLE_CHARACTERS]) for start in starts)
        return round(sampled * len(text) / (_SAMPLE_WINDOWS * _SAMPLE_CHARACTERS))

    def count_message(self, message: Message) -> int:
        """Count the tokens of a message: texts, tool calls, reasoning, images and format overhead."""
        overhead = message_overhead_tokens(message, self._image_formula)
        return overhead + sum(self.count_text(text) for text in message_texts(message))

    def image_tokens(self, image: Image) -> int:
        """Return the token count of one image, by the formula of the provider."""
        return image_tokens(image, self._image_formula)

    def count_tools(self, tools: tuple[Tool, ...]) -> int:
        """Count the tokens of the tool schemas. The schemas of the most recently counted tools are cached."""
        texts = self._texts_of(tools)
        return TOOL_OVERHEAD_TOKENS * len(texts) + sum(self.count_text(text) for text in texts)

    def upper_bound_tools(self, tools: tuple[Tool, ...]) -> int:
        """Return an upper bound of `count_tools(tools)`, without a tokenizer."""
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
    """Return an upper bound of the token count of `message` for any provider, without a tokenizer.

    A token has at least one byte in UTF-8.
    """
    return message_overhead_tokens(message) + sum(utf8_bytes(text) for text in message_texts(message))


def message_overhead_tokens(message: Message, image_formula: ImageFormula = "largest") -> int:
    """Return the token count of a message without its texts: role, separators, call ids and images."""
    if isinstance(message, SystemMessage):
        return MESSAGE_OVERHEAD_TOKENS
    if isinstance(message, AssistantMessage):
        return MESSAGE_OVERHEAD_TOKENS + CALL_OVERHEAD_TOKENS * len(message.tool_calls)
    separators = max(0, len(message.parts) - 1)
    pictures = sum(image_tokens(part, image_formula) for part in message.parts if isinstance(part, Image))
    return MESSAGE_OVERHEAD_TOKENS + separators + pictures
