"""A webhook: each news as JSON to one address, signed.

The body (`version` 1, see `webhook_body`) comes by POST with `Idempotency-Key`, which is the same when news is sent
again, `X-Holmes-Timestamp` (seconds since the epoch) and, with a secret, `X-Holmes-Signature: sha256=<hex>`: the
HMAC-SHA256 of `<timestamp>.<body>` with the secret. A receiver verifies it over the bytes as they came, before it
parses them, and refuses old timestamps:

    expected = hmac.new(secret, timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    ok = hmac.compare_digest(f"sha256={expected}", signature) and abs(time.time() - int(timestamp)) < 300

2xx is delivered; 408, 425, 429 and 5xx are tried again; other answers are refusals, redirects too.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
from typing import TYPE_CHECKING, Final

import httpx

from holmes.destinations.destination import DeliveryFailed
from holmes.destinations.http import failed_connection, place
from holmes.llm.errors import retry_after_seconds

if TYPE_CHECKING:
    from datetime import datetime

    from holmes.destinations.message import AlertNews, IncidentNews, InvestigationNews
    from holmes.values.json_types import JsonObject

BODY_VERSION: Final = "1"
_TIMEOUT_SECONDS: Final = 20.0
_TRIED_AGAIN: Final = frozenset({408, 425, 429})


class WebhookDestination:
    """An address that gets JSON."""

    def __init__(self, client: httpx.AsyncClient, *, name: str, url: str, secret: str | None) -> None:
        self._client = client
        self._name = name
        self._url = httpx.URL(url)
        self._secret = secret.encode() if secret else None

    @property
    def name(self) -> str:
        """What routes call it."""
        return self._name

    async def send(self, news: IncidentNews, reference: str | None) -> str | None:  # noqa: ARG002  nothing is updated
        """Post `news`, see `Destination.send`."""
        body = json.dumps(webhook_body(news)).encode()
        request = self._client.build_request("POST", self._url, content=body, headers=self._headers(news, body))
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                response = await self._client.send(request, stream=True, follow_redirects=False)
                await response.aclose()  # the status is all that counts, so the body is not read
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            raise DeliveryFailed(f"{self._name}: {failed_connection(error, self._url)}", retryable=True) from None
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
        answered = f"{self._name}: {place(self._url)} answered with HTTP {status}"
        if status >= 500 or status in _TRIED_AGAIN:
            wait = retry_after_seconds(response.headers)
            raise DeliveryFailed(f"{answered}; it is tried again", retryable=True, retry_after_seconds=wait)
        if 300 <= status < 400:
            raise DeliveryFailed(f"{answered}: redirects are not followed, set the final `url`", retryable=False)
        raise DeliveryFailed(f"{answered}: check `url` and `secret`, and what the receiver logs", retryable=False)


def webhook_body(news: IncidentNews) -> JsonObject:
    """The JSON of version 1. Fields are only ever added; times are ISO 8601 in UTC, None for what is not known."""
    return {
        "version": BODY_VERSION,
        "event": news.kind,
        "idempotency_key": news.key,
        "cluster": news.cluster,
        "incident": {
            "id": news.incident_id,
            "title": news.title,
            "state": news.state,
            "severity": news.severity,
            "labels": dict(news.labels),
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
