"""Token counts: exact, estimated, or bounded. Used by history, spill, previews and compaction; this is the door.

`TokenCounter` counts with a tokenizer, `EstimatingCounter` without; both are taken wherever a `TokenCounter` is.
"""

from holmes.tokens.counter import (
    CALL_OVERHEAD_TOKENS,
    MESSAGE_OVERHEAD_TOKENS,
    TOOL_OVERHEAD_TOKENS,
    TokenCounter,
    message_overhead_tokens,
    upper_bound_tokens,
)
from holmes.tokens.encodings import load_encoding
from holmes.tokens.estimator import CERTAINLY_OVER, Counting, EstimatingCounter, make_counter
from holmes.tokens.images import image_tokens
from holmes.tokens.texts import chunks, message_texts, tool_schema_text, utf8_bytes

__all__ = [
    "CALL_OVERHEAD_TOKENS",
    "CERTAINLY_OVER",
    "MESSAGE_OVERHEAD_TOKENS",
    "TOOL_OVERHEAD_TOKENS",
    "Counting",
    "EstimatingCounter",
    "TokenCounter",
    "chunks",
    "image_tokens",
    "load_encoding",
    "make_counter",
    "message_overhead_tokens",
    "message_texts",
    "tool_schema_text",
    "upper_bound_tokens",
    "utf8_bytes",
]
