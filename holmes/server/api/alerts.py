"""Serves the webhook `POST /api/alerts/alertmanager`, which responds with 202 after the alerts are stored.

Alertmanager repeats a request after a 5xx response, so the webhook responds to an invalid payload with 400.
`holmes.investigations.alerts` decides which alerts are investigated.
"""

import asyncio
import logging
from typing import Final

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, Field

from holmes.app.redaction import text_mask
from holmes.app.serving import Service
from holmes.investigations.alerts.payload import AlertPayloadError, parse_alertmanager
from holmes.investigations.records.values import AlertGroup
from holmes.server.errors import ApiError, documented
from holmes.server.security import require_webhook_key

_SOURCE: Final = "alertmanager"
_EXAMPLE: Final = {
    "version": "4",
    "groupKey": '{}:{alertname="KubePodCrashLooping"}',
    "status": "firing",
    "receiver": "holmes",
    "alerts": [
        {
            "status": "firing",
            "labels": {"alertname": "KubePodCrashLooping", "namespace": "shop", "severity": "warning"},
            "annotations": {"summary": "A pod crashes repeatedly."},
            "startsAt": "2026-01-31T12:00:00Z",
            "endsAt": "0001-01-01T00:00:00Z",
            "fingerprint": "6845b7fd2900f932",
        }
    ],
}
_BODY: Final = {
    "requestBody": {
        "required": True,
        "description": "Alertmanager's payload, version 4. All fields are optional; unknown fields are ignored.",
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["alerts"],
                    "properties": {"alerts": {"type": "array", "maxItems": 10_000, "items": {"type": "object"}}},
                },
                "example": _EXAMPLE,
            }
        },
    }
}
_log = logging.getLogger(__name__)


class AlertReceipt(BaseModel):
    """The outcome of storing the received alerts."""

    incidents: list[str] = Field(description="Ids of the incidents that contain the alerts.")
    investigations: list[str] = Field(description="Ids of the investigations for the firing alerts.")
    accepted: int = Field(description="Number of alerts that started to fire.")
    duplicates: int = Field(description="Number of alerts that repeat the stored state or are older than it.")
    resolved: int = Field(description="Number of alerts that stopped firing.")
    ignored: int = Field(description="Number of resolved alerts that were never stored.")
    queued: int = Field(description="Number of new investigations.")


def router(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/api/alerts", tags=["alerts"], dependencies=[Depends(require_webhook_key)])

    @routes.post("/alertmanager/", status_code=202, include_in_schema=False)
    @routes.post(
        "/alertmanager",
        status_code=202,
        summary="Receive alerts from Alertmanager",
        responses=documented(400, 401, 413, 503),
        openapi_extra=_BODY,
    )
    async def alertmanager(request: Request) -> AlertReceipt:
        # Runs in a thread, because parsing and masking thousands of alerts is slow.
        group = await asyncio.to_thread(_read, await request.body(), service)
        if group.truncated:
            _log.warning("Alertmanager omitted %d alerts; increase max_alerts in its webhook_config", group.truncated)
        receipt = await service.intake.take(group, _SOURCE)
        counts = receipt.counts
        service.metrics.alerts_received(
            firing=sum(alert.status == "firing" for alert in group.alerts),
            resolved=counts.resolved,
            duplicates=counts.duplicates,
        )
        return AlertReceipt(
            incidents=list(receipt.incidents),
            investigations=list(receipt.investigations),
            accepted=counts.accepted,
            duplicates=counts.duplicates,
            resolved=counts.resolved,
            ignored=counts.ignored,
            queued=receipt.queued,
        )

    return routes


def _read(body: bytes, service: Service) -> AlertGroup:
    try:
        return parse_alertmanager(body, mask=text_mask(service.redactor))
    except AlertPayloadError as error:
        raise ApiError(400, str(error)) from None
