"""Is this provider's error "the request is too long"? Called by `holmes.llm.errors`; pure.

Providers say it in many words and under many codes; the table of known texts is `tests/llm/data/provider_errors.tsv`.
A rate limit is never an overflow, except when it says that this one request is larger than a minute's allowance: then
waiting never helps and the allowance is the real window.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NUMBER = r"(?P<window>\d[\d,_]*)"
_FLAGS = re.IGNORECASE | re.DOTALL


@dataclass(frozen=True, slots=True, kw_only=True)
class Overflow:
    """The request was too long. `window_tokens` is the limit when the message states it."""

    window_tokens: int | None


_RATE_LIMIT = re.compile(
    r"rate.?limit|tokens per (min|day)|requests per (min|day)|\bTPM\b|quota|throttl|please wait|try again in ", _FLAGS
)
_LARGER_THAN_ALLOWANCE = re.compile(rf"limit[: ]+{_NUMBER}\D+?requested[: ]+(?P<requested>\d[\d,_]*)", _FLAGS)
_ABOUT_THE_REPLY = re.compile(
    r"max_tokens is too large: \d+\. this model supports at most|greater than thinking\.budget_tokens", _FLAGS
)

# With the window, most telling first.
_WITH_WINDOW = tuple(
    re.compile(pattern, _FLAGS)
    for pattern in (
        rf"too long: \d[\d,_]* tokens ?> ?{_NUMBER} maximum",
        rf"exceed context limit: \d[\d,_]* ?\+ ?\d[\d,_]* ?> ?{_NUMBER}",
        rf"(context|prompt|sequence|model) (length|window|size|len)( of| is|:)?( only)?( \w+)?:? \(?{_NUMBER}",
        rf"maximum context (length|window|limit)\D{{0,20}}{_NUMBER}",
        rf"{_NUMBER} (tokens? )?maximum context length",
        rf"(longer|larger|greater) than the (\w+|model's)? ?(model|context) (length|window|size)\D{{0,12}}{_NUMBER}",
        rf"available context size \({_NUMBER} tokens\)",
        rf"exceeds? the (configured )?limit of {_NUMBER}",
        rf"maximum (number of tokens allowed|allowed (token|input)\w* \w+)\D{{0,4}}{_NUMBER}",
        rf"current length is \d[\d,_]* while limit is {_NUMBER}",
        rf"`inputs` tokens \+ `max_new_tokens` must be <= {_NUMBER}",
        rf"`inputs` must have less than {_NUMBER}",
        rf"tokens in the prompt cannot exceed {_NUMBER}",
        rf"exceeded model token limit:? {_NUMBER}",
        rf"loaded with context length of( only)? {_NUMBER}",
    )
)
_WITHOUT_WINDOW = re.compile(
    r"context_length_exceeded|model_context_window_exceeded|context length exceeded|prompt is too long"
    r"|input is too long|request was too long|request too large|request_too_large|exceeds the maximum size"
    r"|exceeds the context window|context window exceeds limit|exceeds the available context size"
    r"|exceeds the (model's )?(maximum )?context (length|window|size)|maximum context (length|window)"
    r"|maximum prompt length|input token count .{0,40}exceeds|input tokens exceed"
    r"|reduce the length of the (messages|prompt|input)|exceed(s|ed)? context (limit|length|window)"
    r"|when context the overflows|greater than the context length|too many tokens: total number"
    r"|too large for model with|^\s*400 status code \(no body\)|error code: 400\s*$",
    _FLAGS,
)


def overflow_window(message: str, status: int | None) -> Overflow | None:
    """What `message` says about the length of the request, or None when the error is about something else.

    `status` is the HTTP status when there was one.
    """
    if status == 429 or _RATE_LIMIT.search(message):
        return _larger_than_allowance(message)
    if _ABOUT_THE_REPLY.search(message):
        return None
    for pattern in _WITH_WINDOW:
        found = pattern.search(message)
        if found is not None:
            return Overflow(window_tokens=_number(found["window"]))
    if status == 413 or _WITHOUT_WINDOW.search(message):
        return Overflow(window_tokens=None)
    return None


def _larger_than_allowance(message: str) -> Overflow | None:
    """A per-minute limit that is smaller than this single request."""
    found = _LARGER_THAN_ALLOWANCE.search(message)
    if found is None or _number(found["requested"]) <= _number(found["window"]):
        return None
    return Overflow(window_tokens=_number(found["window"]))


def _number(digits: str) -> int:
    return int(digits.replace(",", "").replace("_", ""))
