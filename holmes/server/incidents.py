"""`/api/incidents`: alerts that belong together, with the investigations that look at them and who was told."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from holmes.app.serving import Service
from holmes.investigations.records import InvestigationQuery
from holmes.investigations.values import IncidentId, IncidentState
from holmes.server.errors import ApiError, documented
from holmes.server.record_documents import (
    AlertDocument,
    DeliveryDocument,
    IncidentDetail,
    IncidentDocument,
    IncidentList,
    InvestigationDocument,
)

_MOST_INVESTIGATIONS = 200


def router(service: Service) -> APIRouter:
    """The routes."""
    routes = APIRouter(prefix="/api/incidents", tags=["incidents"])

    @routes.get("", summary="List incidents", responses=documented(401, 403, 422, 503))
    async def listed(
        *,
        state: IncidentState | None = None,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        before: Annotated[float | None, Query(ge=0, le=1e12, description="`next` of the page before.")] = None,
    ) -> IncidentList:
        found = await service.incidents.list(state=state, before=before, limit=limit)
        more = found[-1].updated_at.timestamp() if len(found) == limit else None
        return IncidentList(incidents=[IncidentDocument.of(each) for each in found], next=more)

    @routes.get("/{identity}", summary="One incident", responses=documented(401, 403, 404, 422, 503))
    async def shown(identity: Annotated[str, Path(pattern=r"^[0-9a-f]{1,40}$")]) -> IncidentDetail:
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
            investigations=[InvestigationDocument.of(each) for each in records],
            deliveries=[DeliveryDocument.of(each) for each in told],
        )

    return routes
