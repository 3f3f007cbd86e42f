"""The provider's errors as `ModelError` or `ContextOverflow`: one line that says what, why and what to do.

Called by `LitellmModel` with whatever litellm raised. It never shows the API key, and retries nothing itself.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holmes.core.errors import ContextOverflow, ModelError
from holmes.llm.overflow import overflow_window

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.llm.config import LitellmModelConfig

_MAX_REASON_CHARACTERS = 300
_MAX_CAUSES = 10
_NOISE = re.compile(r"^(litellm\.)?\w*(Error|Exception|Timeout)( -|:)\s*")
_RETRYABLE_STATUSES = frozenset({408, 409, 425, 429})
_NEVER_RETRIED = re.compile(r"insufficient_quota|billing|exceeded your current quota", re.IGNORECASE)

_SERVER_FAILED = ("failed for {model}", "try again later, or use another model")
_REFUSED = ("refused the request for {model}", "check the model's settings")
_NO_RIGHT = ("does not let this key use {model}", "check the account's plan and rights")
_MEANINGS = {
    401: ("rejected the API key for {model}", "check the key or pass --api-key"),
    402: _NO_RIGHT,
    403: _NO_RIGHT,
    404: ("does not know {model}", "check the model's name and the API base address"),
    429: ("limits the rate of {model}", "wait, or use another model"),
}


class StreamCut(ConnectionError):
    """The stream ended without a finish reason: the connection or the server died in the middle of the reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderFailure:
    """What went wrong. `status` is None when there was no HTTP answer; `reason` is the provider's own text."""

    status: int | None
    reason: str
    timed_out: bool
    retry_after_seconds: float | None


def describe_failure(error: BaseException) -> ProviderFailure:
    """The facts in an error of litellm, of the HTTP client, or of the clock."""
    original = getattr(error, "original_exception", None)
    if isinstance(original, BaseException):
        error = original
    name = type(error).__name__
    timed_out = isinstance(error, TimeoutError) or "Timeout" in name or "Timeout on reading" in str(error)
    status = getattr(error, "status_code", None)
    headers = _headers(error)
    transport = None if headers else _transport_error(error)
    no_answer = timed_out or transport is not None or name == "APIConnectionError"
    return ProviderFailure(
        status=status if isinstance(status, int) and not no_answer else None,
        reason=_reason(error if transport is None else transport),
        timed_out=timed_out,
        retry_after_seconds=retry_after_seconds(headers),
    )


def model_error(error: BaseException, config: LitellmModelConfig, provider: str) -> ModelError:
    """The error that the loop understands."""
    failure = describe_failure(error)
    reason = failure.reason.replace(config.api_key, "***") if config.api_key else failure.reason
    overflow = overflow_window(f"{_body(error)} {failure.reason}".strip(), failure.status)
    if overflow is None and type(error).__name__ == "ContextWindowExceededError":
        return _overflow(config, provider, reason, None)
    if overflow is not None and not failure.timed_out:
        return _overflow(config, provider, reason, overflow.window_tokens)
    message, retryable = _line(failure, reason, config, provider)
    return ModelError(message, provider=provider, model=config.name, retryable=retryable)


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """How long the provider asks to wait: `retry-after-ms`, seconds, or a date; None when it does not say."""
    milliseconds, value = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        if milliseconds is not None:
            return max(0.0, float(milliseconds) / 1000)
        return None if value is None else max(0.0, float(value))
    except ValueError:
        import email.utils  # a date here is rare, and the module is slow to load

        parsed = email.utils.parsedate_tz(value) if value else None
        return None if parsed is None else max(0.0, email.utils.mktime_tz(parsed) - time.time())


def _overflow(config: LitellmModelConfig, provider: str, reason: str, window: int | None) -> ContextOverflow:
    return ContextOverflow(
        f"The request is too long for model {config.name!r}: {reason}",
        provider=provider,
        model=config.name,
        window_tokens=window,
    )


def _line(failure: ProviderFailure, reason: str, config: LitellmModelConfig, provider: str) -> tuple[str, bool]:
    """The message and whether the same request may succeed later."""
    model, status = f"model {config.name!r}", failure.status
    if failure.timed_out:
        wait = f"{config.request_timeout_seconds:g} s"
        return f"No answer from {provider!r} for {model} within {wait}: raise LLM_REQUEST_TIMEOUT or try again.", True
    if status is None:
        where = f" at {config.api_base}" if config.api_base else ""
        return f"Lost the connection to {provider!r}{where} for {model}: {reason}; check network and address.", True
    retryable = status in _RETRYABLE_STATUSES or status >= 500
    what, advice = _MEANINGS.get(status, _SERVER_FAILED if retryable else _REFUSED)
    message = f"{provider!r} {what.format(model=model)} (HTTP {status}: {reason}): {advice}."
    return message, retryable and _NEVER_RETRIED.search(reason) is None


def _reason(error: BaseException) -> str:
    """The provider's own words on one line, without the names of litellm's classes."""
    text = str(getattr(error, "message", None) or error)
    while (shorter := _NOISE.sub("", text, count=1)) != text:
        text = shorter
    brace = text.find("{")
    if brace >= 0:
        text = _message_in_json(text[brace:]) or text
    text = " ".join(text.split())
    return text if len(text) <= _MAX_REASON_CHARACTERS else f"{text[:_MAX_REASON_CHARACTERS]}…"


def _message_in_json(text: str) -> str | None:
    try:
        value, _ = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return None
    while isinstance(value, dict):
        value = value.get("error") or value.get("message")
    return value if isinstance(value, str) and value else None


def _transport_error(error: BaseException) -> BaseException | None:
    """The failure of the connection below `error`; litellm calls it an answer of status 500."""
    below: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if below is None:
            return None
        if isinstance(below, OSError) or type(below).__module__.partition(".")[0] == "httpx":
            return below
        below = below.__cause__ or below.__context__
    return None


def _body(error: BaseException) -> str:
    """The code in the error's body, which says `context_length_exceeded` when the text does not."""
    body: Any = getattr(error, "body", None)
    code = body.get("code") if isinstance(body, dict) else None
    return code if isinstance(code, str) else ""


def _headers(error: BaseException) -> Mapping[str, str]:
    headers: Any = getattr(error, "litellm_response_headers", None) or getattr(
        getattr(error, "response", None), "headers", None
    )
    return {str(name).lower(): str(value) for name, value in headers.items()} if headers else {}
