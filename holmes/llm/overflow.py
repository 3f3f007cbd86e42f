"""Detects whether a provider error means "the request is too long".

Providers use many messages and codes. `tests/llm/data/provider_errors.tsv` lists the known messages. A rate limit is an
overflow only if a single request exceeds the limit per minute. In that case, waiting does not help, and the limit per
minute is the effective context window.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from holmes.values.expressions import expression

_NUMBER = r"(?P<window>\d[\d,_]*)"
_FLAGS = re.IGNORECASE | re.DOTALL


@dataclass(frozen=True, slots=True, kw_only=True)
class Overflow:
    """A request was rejected as too long. `window_tokens` is the model's limit, or None if the message omits it."""

    window_tokens: int | None


_RATE_LIMIT = expression(
    r"rate.?limit|tokens per (min|day)|requests per (min|day)|\bTPM\b|quota|throttl|please wait|try again in \d", _FLAGS
)
_LARGER_THAN_ALLOWANCE = expression(rf"limit[: ]+{_NUMBER}\D+?requested[: ]+(?P<requested>\d[\d,_]*)", _FLAGS)
_ABOUT_THE_REPLY = expression(
    r"max_tokens is too large: \d+\. this model supports at most|greater than `?thinking\.budget_tokens"
    r"|maximum allowed number of output tokens|maximum tokens you requested exceeds",
    _FLAGS,
)
_ABOUT_A_FIELD = expression(r"(string|array) too long\. expected (a|an) (string|array) with maximum length", _FLAGS)
_ABOUT_THE_MESSAGES = expression(r"invalid '(messages|input)\b[^']*(content|text|input)[^']*': string too long", _FLAGS)
_ABOUT_AN_ATTACHMENT = expression(
    r"\b(image|file|pdf|audio|video)s?\b.{0,60}(too large|too big|exceed|larger than|maximum)", _FLAGS
)
# Validators quote their input, which may be a log about another model's context window.
_QUOTED_INPUT = expression(r"(['\"]input['\"]: |\binput_value=).*", _FLAGS)

# Patterns for messages that contain the context window. The first match applies, so specific patterns come first.
_WITH_WINDOW = tuple(
    expression(pattern, _FLAGS)
    for pattern in (
        rf"too long: \d[\d,_]* tokens ?> ?{_NUMBER} maximum",
        rf"exceed context limit: \d[\d,_]* ?\+ ?\d[\d,_]* ?> ?{_NUMBER}",
        rf"n_keep \(\d+\) >= n_ctx \({_NUMBER}\)",
        rf"maximum context (length|window|limit)\D{{0,20}}{_NUMBER}",
        rf"{_NUMBER} (tokens? )?maximum context length",
        rf"(longer|larger|greater) than the (\w+|model's)? ?(model|context) (length|window|size)\D{{0,12}}{_NUMBER}",
        rf"available context size \({_NUMBER} tokens\)",
        rf"input token count is \d[\d,_]* but model only supports up to {_NUMBER}",
        rf"maximum (number of tokens allowed|allowed (token|input)\w* \w+)\D{{0,4}}{_NUMBER}",
        rf"current length is \d[\d,_]* while limit is {_NUMBER}",
        rf"`inputs` tokens \+ `max_new_tokens` must be <= {_NUMBER}",
        rf"`inputs` must have less than {_NUMBER}",
        rf"too many tokens: .{{0,400}}?(cannot exceed|limit for this model is) {_NUMBER}",
        rf"max input tokens: {_NUMBER}",
        rf"max size: {_NUMBER} tokens",
        rf"prompt tokens limit exceeded: \d[\d,_]* > {_NUMBER}",
        rf"exceeded model token limit:? {_NUMBER}",
        rf"loaded with context length of( only)? {_NUMBER}",
        rf"range of input length should be \[\d+, {_NUMBER}\]",
    )
)
# Messages about other limits also match these patterns. A match is an overflow only if the number is large enough.
_GENERIC_WITH_WINDOW = tuple(
    expression(pattern, _FLAGS)
    for pattern in (
        rf"(context|prompt|sequence|model) (length|window|size|len)( of| is|:)?( only)?( (?!by\b)\w+)?:? \(?{_NUMBER}",
        rf"tokens? (count )?(of \d[\d,_]* )?exceeds? the (configured )?limit of {_NUMBER}",
    )
)
_WITHOUT_WINDOW = expression(
    r"context_length_exceeded|model_context_window_exceeded|context length exceeded|prompt (is )?too long"
    r"|input is too long|request was too long|request too large|request_too_large|exceeds the maximum size"
    r"|exceeds the context window|context window exceeds limit|exceeds the available context size"
    r"|exceeds the (model's )?(maximum )?context (length|window|size)|maximum context (length|window)"
    r"|maximum prompt length|input token count .{0,40}exceeds|input tokens exceed"
    r"|reduce the length of the (messages|prompt|input)|exceed(s|ed)? (max )?context (limit|length|window)"
    r"|when context the overflows|greater than the context length|too many tokens: (total number|size limit)"
    r"|context size has been exceeded|exceed_context_size_error|prompt exceeds max length|payload size exceeds"
    r"|expected maxLength: \d+, actual: \d+"
    r"|too large for model with|^\s*400 status code \(no body\)|error code: 400\s*$",
    _FLAGS,
)
# These statuses mean a wrong key, permission or model. A shorter conversation does not help.
_ABOUT_THE_CALLER = frozenset({401, 403, 404, 407})
_STATED_ASIDE = expression(rf"\bn_ctx={_NUMBER}")
_MIN_WINDOW_TOKENS = 1_000


def overflow_window(message: str, status: int | None) -> Overflow | None:
    """Return the overflow that `message` describes, or None if the error has another cause.

    `status` is the HTTP status, or None.
    """
    message = _QUOTED_INPUT.sub("", message)
    if status in _ABOUT_THE_CALLER or _ABOUT_THE_REPLY.search(message):
        return None
    if status == 429 or _RATE_LIMIT.search(message):
        return _larger_than_allowance(message)
    stated = _stated_window(message)
    if stated is not None:
        return _overflow(stated)
    if names_another_cause(message, status):
        return None
    if status == 413 or _WITHOUT_WINDOW.search(message) or _ABOUT_THE_MESSAGES.search(message):
        aside = _STATED_ASIDE.search(message)
        return Overflow(window_tokens=None) if aside is None else _overflow(aside["window"])
    return None


def _stated_window(message: str) -> str | None:
    """Return the context window that `message` contains, or None. The most specific pattern has priority."""
    found = next((match for pattern in _WITH_WINDOW if (match := pattern.search(message))), None)
    if found is not None:
        return found["window"]
    generic = (match["window"] for pattern in _GENERIC_WITH_WINDOW if (match := pattern.search(message)))
    return next((digits for digits in generic if _number(digits) >= _MIN_WINDOW_TOKENS), None)


def names_another_cause(message: str, status: int | None) -> bool:
    """Return whether a shorter conversation would not remove the cause of `message`.

    litellm classifies some of these errors as an overflow.
    """
    if status == 429 or status in _ABOUT_THE_CALLER:
        return True
    if _RATE_LIMIT.search(message) or _ABOUT_THE_REPLY.search(message):
        return True
    if _ABOUT_A_FIELD.search(message) and not _ABOUT_THE_MESSAGES.search(message):
        return True
    return _ABOUT_AN_ATTACHMENT.search(message) is not None


def _larger_than_allowance(message: str) -> Overflow | None:
    """Return an overflow if the request alone exceeds the token limit per minute, else None."""
    found = _LARGER_THAN_ALLOWANCE.search(message)
    if found is None or _number(found["requested"]) <= _number(found["window"]):
        return None
    return _overflow(found["window"])


def _overflow(digits: str) -> Overflow:
    """Create an overflow. Ignores a number that cannot be a context window, such as an error code."""
    window = _number(digits)
    return Overflow(window_tokens=window if window >= _MIN_WINDOW_TOKENS else None)


def _number(digits: str) -> int:
    return int(digits.replace(",", "").replace("_", ""))
