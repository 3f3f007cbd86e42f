"""Cancels an investigation for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holmes.app.serving import Service
    from holmes.investigations.records.values import InvestigationId


async def cancel_investigation(service: Service, identity: InvestigationId) -> bool:
    """Cancel what is not finished, and count it: whoever runs it only learns that it is lost. False when it was."""
    if not await service.investigations.cancel(identity):
        return False
    record = await service.investigations.get(identity)
    if record is not None:
        service.metrics.investigation_finished(outcome="cancelled", source=record.source, answered_by=None)
    return True
