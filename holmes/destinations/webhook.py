"""Posts news to a webhook as signed JSON.

`Idempotency-Key` is the same in each attempt. `X-Holmes-Timestamp` is in seconds since the epoch. If a secret is
configured, `X-Holmes-Signature` is `sha256=<hex>`, the HMAC-SHA256 of `<timestamp>.<body>`. A receiver verifies the raw
body before parsing, and rejects old timestamps:

    expected = hmac.new(secret, timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    ok = hmac.compare_digest(f"sha256={expected}", signature) and abs(time.time() - int(timestamp)) < 300

A response with status 2xx means that the news was delivered. Holmes retries after 408, 425, 429 and 5xx. All other
responses, including redirects, are final failures.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
from typing import TYPE_CHECKING, Final

import httpx

from holmes.destinations.destination import DeliveryFailed, place
from holmes.llm.errors import retry_after_seconds

if TYPE_CHECKING:
    from datetime import datetime

    from holmes.destinations.destination import AlertNews, IncidentNews, InvestigationNews
    from holmes.values.json_types import JsonObject

_BODY_VERSION: Final = "1"
_TIMEOUT_SECONDS: Final = 20.0
_RETRIED: Final = frozenset({408, 425, 429})


class WebhookDestination:
    def __init__(self, client: httpx.AsyncClient, *, name: str, url: str, secret: str | None) -> None:
        self._client = client
        self._name = name
        self._url = httpx.URL(url)
        self._secret = secret.encode() if secret else None

    @property
    def name(self) -> str:
        return self._name

    async def send(self, news: IncidentNews, reference: str | None) -> str | None:  # noqa: ARG002  not used
        """Post `news` to the webhook. See `Destination.send`."""
        body = json.dumps(_webhook_body(news)).encode()
        request = self._client.build_request("POST", self._url, content=body, headers=self._headers(news, body))
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                response = await self._client.send(request, stream=True, follow_redirects=False)
                await response.aclose()  # only the status matters, so the body is not read
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            raise DeliveryFailed(f"{self._name}: {self._connection_failure(error)}", retryable=True) from None
        self._check(response)
        return None

    def _headers(self, news: IncidentNews, body: bytes) -> dict[str, str]:
        timestamp = str(int(time.time()))
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "holmes",
            "Idempotency-Key": news.key,
            "X-Holmes-Timestamp": timestamp,
        }
        if self._secret:
            signed = hmac.new(self._secret, f"{timestamp}.".encode() + body, hashlib.sha256)
            headers["X-Holmes-Signature"] = f"sha256={signed.hexdigest()}"
        return headers

    def _check(self, response: httpx.Response) -> None:
        status = response.status_code
        if 200 <= status < 300:
            return
        answered = f"{self._name}: {place(self._url)} responded with HTTP {status}"
        if status >= 500 or status in _RETRIED:
            wait = retry_after_seconds(response.headers)
            raise DeliveryFailed(f"{answered}; will retry", retryable=True, retry_after_seconds=wait)
        if 300 <= status < 400:
            raise DeliveryFailed(f"{answered}: redirects are not followed; use the final `url`", retryable=False)
        raise DeliveryFailed(f"{answered}: check `url`, `secret` and the receiver's log", retryable=False)

    def _connection_failure(self, error: Exception) -> str:
        if isinstance(error, httpx.TimeoutException | TimeoutError):
            return f"{place(self._url)} did not respond in time"
        if isinstance(error, httpx.UnsupportedProtocol | httpx.InvalidURL | httpx.LocalProtocolError):
            return f"the request to {place(self._url)} is not valid"  # `error` may contain a secret
        cause = str(error).strip() or type(error).__name__
        if isinstance(error, httpx.ConnectError):
            return f"{place(self._url)} cannot be reached: {cause}"
        return f"the connection to {place(self._url)} failed: {cause}"


def _webhook_body(news: IncidentNews) -> JsonObject:
    """Build the request body in format version 1. Later versions of Holmes only add fields to this format.

    Times are in ISO 8601 format in UTC, or null if unknown.
    """
    return {
        "version": _BODY_VERSION,
        "event": news.kind,
        "idempotency_key": news.key,
        "cluster": news.cluster,
        "incident": {
            "id": news.incident_id,
            "title": news.title,
            "state": news.state,
            "severity": news.severity,
            "labels": dict(news.labels),
            "verdict": news.verdict,
            "summary": news.summary,
            "root_cause": news.root_cause,
            "reopened": news.reopened,
            "opened_at": _time(news.opened_at),
            "updated_at": _time(news.updated_at),
            "closed_at": _time(news.closed_at),
            "url": news.link,
        },
        "alerts": [_alert(alert) for alert in news.alerts],
        "alerts_total": news.alerts_total,
        "investigation": _investigation(news.investigation) if news.investigation else None,
    }


def _alert(alert: AlertNews) -> JsonObject:
    return {
        "name": alert.name,
        "status": alert.status,
        "severity": alert.severity,
        "summary": alert.summary,
        "labels": dict(alert.labels),
        "starts_at": _time(alert.starts_at),
        "ends_at": _time(alert.ends_at),
    }


def _investigation(investigation: InvestigationNews) -> JsonObject:
    return {
        "id": investigation.id,
        "state": investigation.state,
        "answer": investigation.answer,
        "verdict": investigation.verdict,
        "verdict_by": investigation.verdict_by,
        "summary": investigation.summary,
        "root_cause": investigation.root_cause,
        "error": investigation.error,
        "model": investigation.model,
        "cost_usd": investigation.cost,
        "without_llm": investigation.without_llm,
        "without_llm_reason": investigation.without_llm_reason,
        "started_at": _time(investigation.started_at),
        "finished_at": _time(investigation.finished_at),
        "url": investigation.link,
    }


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat().replace("+00:00", "Z")
