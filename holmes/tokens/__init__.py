"""Counts tokens, or computes an estimate or an upper bound of their number.

`TokenCounter` counts with a tokenizer. Its subclass `EstimatingCounter` estimates the number without a tokenizer.
"""

from holmes.tokens.counter import (
    CALL_OVERHEAD_TOKENS,
    MESSAGE_OVERHEAD_TOKENS,
    TOOL_OVERHEAD_TOKENS,
    TokenCounter,
    chunks,
    load_encoding,
    message_overhead_tokens,
    message_texts,
    tool_schema_text,
    upper_bound_tokens,
    utf8_bytes,
)
from holmes.tokens.estimator import CERTAINLY_OVER, Counting, EstimatingCounter, make_counter
from holmes.tokens.images import image_tokens

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
