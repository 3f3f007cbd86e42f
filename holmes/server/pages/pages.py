"""Combines the routes of the web pages.

The server renders all HTML, and a small script only refreshes it. `signed_in` protects all routes except the login form
and static files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Depends
from fastapi.responses import Response  # noqa: TC002  FastAPI reads the annotations

from holmes.server.pages.page_investigation import incident_routes, investigation_routes
from holmes.server.pages.page_lists import list_routes
from holmes.server.pages.page_login import PageRoute, login_routes, problem, signed_in
from holmes.server.pages.page_rendering import compile_templates, static_file
from holmes.server.pages.page_results import result_routes

if TYPE_CHECKING:
    from holmes.app.serving import Service


def router(service: Service) -> APIRouter:
    whole = APIRouter(include_in_schema=False, route_class=PageRoute)
    whole.include_router(_open_routes(service))
    whole.include_router(inside_routes(service))
    compile_templates()
    return whole


def _open_routes(service: Service) -> APIRouter:
    """Create the routes that require no login: the login form and static files."""
    routes = APIRouter(route_class=PageRoute)
    login_routes(routes, service.settings.server)

    @routes.get("/static/{name}")
    async def static(name: str) -> Response:
        return static_file(name) or problem(404, "File not found", "The page was updated. Reload it.")

    return routes


def inside_routes(service: Service) -> APIRouter:
    """Create the routes that require a login."""
    routes = APIRouter(route_class=PageRoute, dependencies=[Depends(signed_in)])
    for add in (list_routes, incident_routes, investigation_routes, result_routes):
        add(routes, service)
    return routes
