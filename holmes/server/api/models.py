"""`GET /api/model`: which models can be asked, as the compatible interface says it."""

import json

from fastapi import APIRouter

from holmes.app.serving import Service
from holmes.server.chat.chat_documents import ModelDocument
from holmes.server.errors import documented


def router(service: Service) -> APIRouter:
    """The route."""
    routes = APIRouter(prefix="/api", tags=["chat"])

    @routes.get("/model", summary="The models that can be asked", responses=documented(401, 403))
    async def model() -> ModelDocument:
        return ModelDocument(model_name=json.dumps(list(service.investigators.model_names())))

    return routes
