"""`/api/incidents`: alerts that belong together, with the investigations that look at them and who was told."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from holmes.app.serving import Service
from holmes.investigations.records.incident_lists import CURSOR_PATTERN, IncidentQuery, position_of
from holmes.investigations.records.records import InvestigationQuery
from holmes.investigations.records.values import IncidentId, IncidentState
from holmes.server.api.record_documents import (
    AlertDocument,
    DeliveryDocument,
    IncidentDetail,
    IncidentDocument,
    IncidentList,
    InvestigationDocument,
)
from holmes.server.errors import ApiError, documented

_MOST_INVESTIGATIONS = 200
_Identity = Annotated[str, Path(pattern=r"^[0-9a-f]{1,40}$")]


def router(service: Service) -> APIRouter:
    """The routes."""
    routes = APIRouter(prefix="/api/incidents", tags=["incidents"])

    @routes.get("", summary="List incidents", responses=documented(401, 403, 422, 503))
    async def listed(
        *,
        state: IncidentState | None = None,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        before: Annotated[str | None, Query(pattern=CURSOR_PATTERN, description="`next` of the page before.")] = None,
    ) -> IncidentList:
        query = IncidentQuery(state=state, after=position_of(before) if before else None, limit=limit)
        found = await service.incidents.list(query)
        return IncidentList(incidents=[IncidentDocument.of(each) for each in found.incidents], next=found.cursor)

    @routes.get("/{identity}", summary="One incident", responses=documented(401, 403, 404, 422, 503))
    async def shown(identity: _Identity) -> IncidentDetail:
        incident = await service.incidents.get(IncidentId(identity))
        if incident is None:
            raise ApiError(404, f"there is no incident {identity!r}")
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
        """Its alerts count as over until they begin to fire anew. Nobody is told."""
        if await service.incidents.close(IncidentId(identity)):
            return
        if await service.incidents.get(IncidentId(identity)) is None:
            raise ApiError(404, f"there is no incident {identity!r}")
        raise ApiError(409, "the incident is not open")

    return routes
