"""Converts provider errors to `ModelError` or `ContextOverflow`.

The error message is one line with the problem, the cause and the next step. It never contains the API key. This module
does not retry requests.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holmes.llm.overflow import names_another_cause, overflow_window
from holmes.redaction.redactor import without_known_keys
from holmes.values.errors import ContextOverflow, ModelError, masked
from holmes.values.expressions import expression
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.llm.config import LitellmModelConfig

_MAX_REASON_CHARACTERS = 300
_MAX_JUDGED_CHARACTERS = 4_000
_MAX_CAUSES = 10
_MAX_SCANNED_CHARACTERS = 100_000
_TRACEBACK = "Traceback (most recent call last)"  # litellm messages can contain a traceback
_REPETITION = "The model is repeating the same chunk"
_NOISE = expression(r"^(litellm\.)?\w*(Error|Exception|Timeout)( -|:)\s*")
_RETRYABLE_STATUSES = frozenset({408, 409, 425, 429})
_PASSING_TROUBLE = expression(r"overloaded|rate.?limit|429|503|529", re.IGNORECASE)
_NEVER_RETRIED = expression(r"insufficient_quota|billing|exceeded your current quota", re.IGNORECASE)

_SERVER_FAILED = ("failed for {model}", "try again later, or use another model")
_REFUSED = ("rejected the request for {model}", "check the model settings")
_NO_RIGHT = ("denies this key access to {model}", "check the plan and the permissions of the account")
_EXTRA_OF_PACKAGES = {"google": "vertex"}
_STATUS_OF_TYPES = {"authentication_error": 401, "permission_error": 403, "not_found_error": 404}
_MEANINGS = {
    401: ("rejected the API key for {model}", "check the key or pass --api-key"),
    402: _NO_RIGHT,
    403: _NO_RIGHT,
    404: ("cannot find {model}", "check the model name and the base URL"),
    429: ("rate-limits {model}", "wait, or use another model"),
}


class StreamCut(ConnectionError):
    """The stream ended without a finish reason because the connection or the server failed during the reply."""


class UnusableAnswer(Exception):
    """The provider's response is not a model reply. `advice` is the next step for the user.

    `max_attempts` is the total number of attempts. It is 1 if a retry cannot help, and None for the default. `status`
    is the HTTP status that the response body contains, or None.
    """

    def __init__(self, reason: str, advice: str, *, max_attempts: int | None = 1, status: int | None = None) -> None:
        super().__init__(reason)
        self.advice = advice
        self.max_attempts = max_attempts
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderFailure:
    """Details of a failed request. `status` is None if no HTTP error occurred.

    `reason` is the provider's message. `unusable` is set if the response is not a model reply.
    """

    status: int | None
    reason: str
    timed_out: bool
    retry_after_seconds: float | None
    unusable: UnusableAnswer | None = None

    @property
    def max_attempts(self) -> int | None:
        """The maximum number of attempts, or None for the default."""
        return None if self.unusable is None else self.unusable.max_attempts


def describe_failure(error: BaseException) -> ProviderFailure:
    """Extract the details from a litellm error, an HTTP client error or a timeout."""
    unusable = unusable_answer(error)
    if unusable is not None:
        return ProviderFailure(
            status=unusable.status,
            reason=_reason(unusable),
            timed_out=False,
            retry_after_seconds=None,
            unusable=unusable,
        )
    error = _deciding(error)
    name = type(error).__name__
    timed_out = isinstance(error, TimeoutError) or "Timeout" in name or "Timeout on reading" in str(error)
    status = _as_status(getattr(error, "status_code", None))
    headers = _headers(error)
    transport = None if headers else _transport_error(error)
    no_answer = timed_out or transport is not None or name == "APIConnectionError"
    return ProviderFailure(
        status=None if no_answer else status,
        reason=_reason(error if transport is None else transport),
        timed_out=timed_out,
        retry_after_seconds=retry_after_seconds(headers),
    )


def unusable_answer(error: BaseException) -> UnusableAnswer | None:
    """Convert `error` to an `UnusableAnswer`, or return None if `error` is another failure, such as a timeout.

    Converts failed checks of Holmes, missing packages, endless repetition that litellm detects, errors inside a stream,
    rejected redirects, and responses that are not valid HTTP.
    """
    for below in causes(error):
        kind = (type(below).__module__.partition(".")[0], type(below).__name__)
        if isinstance(below, UnusableAnswer | ModuleNotFoundError):
            return below if isinstance(below, UnusableAnswer) else _missing_package(below)
        if _REPETITION in str(below)[:_MAX_REASON_CHARACTERS]:
            return UnusableAnswer(
                "the model repeats the same text endlessly", "rephrase the question, or use another model"
            )
        if kind == ("openai", "APIError"):
            return _told_in_the_stream(below)
        if kind[1] in {"RedirectRefused", "TooManyRedirects"}:
            return _redirected(below)
        if kind == ("httpx", "DecodingError") or (kind[1] == "RemoteProtocolError" and "illegal" in str(below)):
            reason = f"the response is not valid HTTP ({_reason(below)})"
            return UnusableAnswer(reason, "check the base URL", max_attempts=2)
    return None


def causes(error: BaseException) -> list[BaseException]:
    """Return `error` and its causes, from the outermost to the innermost."""
    found: list[BaseException] = []
    below: BaseException | None = error
    while below is not None and len(found) < _MAX_CAUSES and below not in found:
        found.append(below)
        below = below.__cause__ or below.__context__
    return found


def provider_text(text: str) -> str | None:
    """Extract the error message from the JSON in `text`, or return None if the text has no JSON with a message."""
    written = _from_brace(text)
    return _message_in_json(written) if written else None


def named_status(body: object) -> int | None:
    """Return the HTTP status that an error's JSON contains, or None.

    Some providers send errors with HTTP status 200.
    """
    value = _decoded(_from_brace(body)) if isinstance(body, str) else body
    while isinstance(value, dict):
        named = (_as_status(value.get(name)) for name in ("code", "status", "status_code", "http_code"))
        status = next(filter(None, named), None) or _STATUS_OF_TYPES.get(str(value.get("type")))
        if status is not None:
            return status
        value = value.get("error")
    return None


def model_error(error: BaseException, config: LitellmModelConfig, provider: str) -> ModelError:
    failure = describe_failure(error)
    reason = _without_secrets(failure.reason, config)
    words = failure.reason if failure.unusable is not None else _told(_deciding(error))[:_MAX_JUDGED_CHARACTERS]
    told = f"{_asides(error)} {words}".strip()
    overflow = overflow_window(told, failure.status)
    if overflow is not None and not failure.timed_out:
        return _overflow(config, provider, reason, overflow.window_tokens)
    if type(error).__name__ == "ContextWindowExceededError" and not names_another_cause(told, failure.status):
        return _overflow(config, provider, reason, None)
    message, retryable = _line(failure, reason, config, provider)
    return ModelError(message, provider=provider, model=config.name, retryable=retryable)


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the number of seconds that the provider asks clients to wait, or None if it specifies no wait.

    The header is `retry-after-ms`, or `retry-after` with seconds or a date.
    """
    milliseconds, value = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        if milliseconds is not None:
            return max(0.0, float(milliseconds) / 1000)
        return None if value is None else max(0.0, float(value))
    except ValueError:
        import email.utils  # dates are rare in this header, and this import is slow

        parsed = email.utils.parsedate_tz(value) if value else None
        return None if parsed is None else max(0.0, email.utils.mktime_tz(parsed) - time.time())


def _deciding(error: BaseException) -> BaseException:
    """Return the error that litellm wrapped, or `error` itself."""
    original = getattr(error, "original_exception", None)
    return original if isinstance(original, BaseException) else error


def _without_secrets(text: str, config: LitellmModelConfig) -> str:
    """Remove the configured API key and header values from `text`, because some providers quote them."""
    return without_known_keys(text, [config.api_key or "", *(value for _, value in config.extra_headers)])


def _overflow(config: LitellmModelConfig, provider: str, reason: str, window: int | None) -> ContextOverflow:
    return ContextOverflow(
        f"The request is too long for model {config.name!r}: {reason}",
        provider=provider,
        model=config.name,
        window_tokens=window,
    )


def _line(failure: ProviderFailure, reason: str, config: LitellmModelConfig, provider: str) -> tuple[str, bool]:
    """Return the error message, and whether the same request may succeed later."""
    model, status = f"model {config.name!r}", failure.status
    where = f" at {config.api_base}" if config.api_base else ""
    if failure.unusable is not None:
        line = f"No usable reply from {provider!r}{where} for {model}: {reason}; {failure.unusable.advice}."
        return line, failure.unusable.max_attempts != 1
    if failure.timed_out:
        wait, timeout_advice = f"{config.request_timeout_seconds:g} s", "increase LLM_REQUEST_TIMEOUT or try again"
        return f"No response from {provider!r} for {model} within {wait}: {timeout_advice}.", True
    if status is None:
        return (
            f"Lost the connection to {provider!r}{where} for {model}: {reason}; check the network and the base URL.",
            True,
        )
    retryable = status in _RETRYABLE_STATUSES or status >= 500
    what, advice = _MEANINGS.get(status, _SERVER_FAILED if retryable else _REFUSED)
    message = f"{provider!r} {what.format(model=model)} (HTTP {status}: {reason}): {advice}."
    return message, retryable and _NEVER_RETRIED.search(reason) is None


def _missing_package(error: ModuleNotFoundError) -> UnusableAnswer:
    package = (error.name or "").partition(".")[0]
    extra = _EXTRA_OF_PACKAGES.get(package)
    advice = "install it" if extra is None else f"run pip install 'holmes[{extra}]'"
    return UnusableAnswer(f"the Python package {package!r} is missing", advice)


def _redirected(error: BaseException) -> UnusableAnswer:
    if type(error).__name__ == "TooManyRedirects":
        return UnusableAnswer("the server redirects endlessly", "check the base URL")
    return UnusableAnswer(_reason(error), "if this origin is correct, set it as the base URL")


def _told_in_the_stream(error: BaseException) -> UnusableAnswer:
    """Convert an error inside the stream.

    After an overload error, the default number of attempts applies. After any other error, the maximum is two attempts.
    """
    body: Any = getattr(error, "body", None)
    passing = _PASSING_TROUBLE.search(f"{body.get('code')} {body.get('type')}") if isinstance(body, dict) else None
    advice, attempts = "try again later, or use another model", None if passing else 2
    return UnusableAnswer(_reason(error), advice, max_attempts=attempts, status=named_status(body))


def _reason(error: BaseException) -> str:
    """Return the provider's message on one line, masked and shortened, without litellm class names."""
    return shortened(masked(_told(error)), _MAX_REASON_CHARACTERS)


def _told(error: BaseException) -> str:
    """Return the provider's message on one line, neither masked nor shortened."""
    text = str(getattr(error, "message", None) or error)[:_MAX_SCANNED_CHARACTERS].partition(_TRACEBACK)[0]
    while (shorter := _NOISE.sub("", text, count=1)) != text:
        text = shorter
    return " ".join((provider_text(text) or text).split())


def _from_brace(text: str) -> str:
    brace = text.find("{", 0, _MAX_SCANNED_CHARACTERS)
    return text[brace : brace + _MAX_SCANNED_CHARACTERS] if brace >= 0 else ""


def _decoded(text: str) -> Any:  # noqa: ANN401  any JSON
    try:
        value, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return value


def _as_status(value: object) -> int | None:
    """Return `value` if it is an HTTP error status, else None."""
    status = int(value) if isinstance(value, str) and value.isdecimal() and len(value) == 3 else value
    return status if isinstance(status, int) and 400 <= status < 600 else None


def _message_in_json(text: str) -> str | None:
    value = _decoded(text)
    while isinstance(value, dict):
        metadata = value.get("metadata")
        raw = metadata.get("raw") if isinstance(metadata, dict) else None
        if isinstance(raw, str) and raw:  # a router quotes its provider's error
            return _message_in_json(raw) or raw
        value = value.get("error") or value.get("message") or value.get("detail")
    if isinstance(value, list):
        return "; ".join(_complaint(item) for item in value[:_MAX_CAUSES] if isinstance(item, dict)) or None
    return value if isinstance(value, str) and value else None


def _complaint(item: dict[str, Any]) -> str:
    """Format one validation error without the quoted input."""
    place = item.get("loc")
    where = ".".join(map(str, place)) if isinstance(place, list) else ""
    return f"{where}: {item.get('msg')}"


def _transport_error(error: BaseException) -> BaseException | None:
    """Return the connection failure that caused `error`, or None. litellm reports connection failures as status 500."""
    for below in causes(error):
        if any(base.__name__ == "HTTPStatusError" for base in type(below).__mro__):
            return None  # the server responded, so the connection did not fail
        if isinstance(below, OSError) or type(below).__module__.partition(".")[0] == "httpx":
            return below
    return None


def _asides(error: BaseException) -> str:
    """Return the error code and llama.cpp's context window from the error body. The message may omit both."""
    bodies: list[Any] = [getattr(below, "body", None) for below in causes(error)]
    body = next((found for found in bodies if isinstance(found, dict)), None)
    if body is None:
        return ""
    code, window = body.get("code"), body.get("n_ctx")
    return f"{code if isinstance(code, str) else ''} {f'n_ctx={window}' if isinstance(window, int) else ''}".strip()


def _headers(error: BaseException) -> Mapping[str, str]:
    headers: Any = getattr(error, "litellm_response_headers", None) or getattr(
        getattr(error, "response", None), "headers", None
    )
    return {str(name).lower(): str(value) for name, value in headers.items()} if headers else {}
