"""Serves `/api/incidents` (incidents with alerts and investigations) and `/api/deliveries` (notifications)."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from holmes.app.serving import Service
from holmes.investigations.deliveries.records import DeliveryState
from holmes.investigations.records.records import CURSOR_PATTERN, IncidentQuery, InvestigationQuery, position_of
from holmes.investigations.records.values import IncidentId, IncidentState
from holmes.server.api.record_documents import (
    AlertDocument,
    DeliveryDocument,
    DeliveryList,
    IncidentDetail,
    IncidentDocument,
    IncidentList,
    InvestigationDocument,
)
from holmes.server.errors import ApiError, documented

_MOST_INVESTIGATIONS = 200
_Identity = Annotated[str, Path(pattern=r"^[0-9a-f]{1,40}$")]


def router(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/api/incidents", tags=["incidents"])

    @routes.get("", summary="List incidents", responses=documented(401, 403, 422, 503))
    async def listed(
        *,
        state: IncidentState | None = None,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        before: Annotated[
            str | None, Query(pattern=CURSOR_PATTERN, description="The value of `next` from the previous page.")
        ] = None,
    ) -> IncidentList:
        query = IncidentQuery(state=state, after=position_of(before) if before else None, limit=limit)
        found = await service.incidents.list(query)
        return IncidentList(incidents=[IncidentDocument.of(each) for each in found.incidents], next=found.cursor)

    @routes.get("/{identity}", summary="Read an incident", responses=documented(401, 403, 404, 422, 503))
    async def shown(identity: _Identity) -> IncidentDetail:
        incident = await service.incidents.get(IncidentId(identity))
        if incident is None:
            raise ApiError(404, f"incident {identity!r} not found")
        alerts = await service.incidents.alerts(incident.id)
        query = InvestigationQuery(incident_id=incident.id, limit=_MOST_INVESTIGATIONS)
        records = await service.investigations.list(query)
        told = await service.deliveries.list(incident_id=incident.id)
        return IncidentDetail(
            **IncidentDocument.of(incident).model_dump(),
            alerts=[AlertDocument.of(each) for each in alerts],
            alert_count=await service.incidents.count_alerts(incident.id),
            investigations=[InvestigationDocument.of(each) for each in records],
            deliveries=[DeliveryDocument.of(each) for each in told],
        )

    @routes.post(
        "/{identity}/close",
        summary="Close an incident",
        status_code=204,
        responses=documented(401, 403, 404, 409, 422, 503),
    )
    async def close(identity: _Identity) -> None:
        """Close an open incident. Its alerts count as resolved until they fire again. No notification is sent."""
        if await service.incidents.close(IncidentId(identity)):
            return
        if await service.incidents.get(IncidentId(identity)) is None:
            raise ApiError(404, f"incident {identity!r} not found")
        raise ApiError(409, "the incident is not open")

    return routes


_LARGEST_ID = 2**63 - 1


def deliveries_router(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/api/deliveries", tags=["incidents"])

    @routes.get("", summary="List deliveries", responses=documented(401, 403, 422, 503))
    async def listed(
        *,
        state: DeliveryState | None = None,
        incident: Annotated[str | None, Query(pattern=r"^[0-9a-f]{1,40}$")] = None,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        before: Annotated[
            int | None, Query(ge=0, le=_LARGEST_ID, description="The value of `next` from the previous page.")
        ] = None,
    ) -> DeliveryList:
        incident_id = IncidentId(incident) if incident else None
        found = await service.deliveries.list(incident_id=incident_id, state=state, before=before, limit=limit)
        more = found[-1].id if len(found) == limit else None
        return DeliveryList(deliveries=[DeliveryDocument.of(each) for each in found], next=more)

    @routes.post(
        "/{identity}/retry",
        status_code=202,
        summary="Retry a failed delivery",
        responses=documented(401, 403, 404, 409, 422, 503),
    )
    async def retry(identity: Annotated[int, Path(ge=0, le=_LARGEST_ID)]) -> DeliveryDocument:
        retried = await service.deliveries.retry(identity)
        delivery = await service.deliveries.get(identity)
        if delivery is None:
            raise ApiError(404, f"delivery {identity} not found")
        if not retried:
            raise ApiError(409, f"delivery {identity} has not failed; its state is {delivery.state}")
        service.worker.wake()
        return DeliveryDocument.of(delivery)

    return routes
