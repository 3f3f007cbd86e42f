"""`/api/deliveries`: news for destinations, what became of it, and another try for what failed."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from holmes.app.serving import Service
from holmes.investigations.deliveries.records import DeliveryState
from holmes.investigations.records.values import IncidentId
from holmes.server.api.record_documents import DeliveryDocument, DeliveryList
from holmes.server.errors import ApiError, documented

_LARGEST_ID = 2**63 - 1


def router(service: Service) -> APIRouter:
    """The routes."""
    routes = APIRouter(prefix="/api/deliveries", tags=["incidents"])

    @routes.get("", summary="List deliveries", responses=documented(401, 403, 422, 503))
    async def listed(
        *,
        state: DeliveryState | None = None,
        incident: Annotated[str | None, Query(pattern=r"^[0-9a-f]{1,40}$")] = None,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        before: Annotated[int | None, Query(ge=0, le=_LARGEST_ID, description="`next` of the page before.")] = None,
    ) -> DeliveryList:
        incident_id = IncidentId(incident) if incident else None
        found = await service.deliveries.list(incident_id=incident_id, state=state, before=before, limit=limit)
        more = found[-1].id if len(found) == limit else None
        return DeliveryList(deliveries=[DeliveryDocument.of(each) for each in found], next=more)

    @routes.post(
        "/{identity}/retry",
        status_code=202,
        summary="Try a failed delivery again",
        responses=documented(401, 403, 404, 409, 422, 503),
    )
    async def retry(identity: Annotated[int, Path(ge=0, le=_LARGEST_ID)]) -> DeliveryDocument:
        retried = await service.deliveries.retry(identity)
        delivery = await service.deliveries.get(identity)
        if delivery is None:
            raise ApiError(404, f"there is no delivery {identity}")
        if not retried:
            raise ApiError(409, f"the delivery {identity} has not failed: it is {delivery.state}")
        service.worker.wake()
        return DeliveryDocument.of(delivery)

    return routes
