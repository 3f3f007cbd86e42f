"""The page at `/`: incidents, investigations as they happen, answers, and the evidence behind them.

HTML is made on the server; a little script keeps it fresh and nothing needs it. Behind every route but the login form
and the page's own files stands `signed_in`.
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
    """The routes of the page."""
    whole = APIRouter(include_in_schema=False, route_class=PageRoute)
    whole.include_router(open_routes(service))
    whole.include_router(inside_routes(service))
    compile_templates()
    return whole


def open_routes(service: Service) -> APIRouter:
    """What everybody gets: the login, and the page's own files."""
    routes = APIRouter(route_class=PageRoute)
    login_routes(routes, service.settings.server)

    @routes.get("/static/{name}")
    async def static(name: str) -> Response:
        return static_file(name) or problem(404, "There is no such file", "The page has been updated; reload it.")

    return routes


def inside_routes(service: Service) -> APIRouter:
    """What only those get who are logged in."""
    routes = APIRouter(route_class=PageRoute, dependencies=[Depends(signed_in)])
    for add in (list_routes, incident_routes, investigation_routes, result_routes):
        add(routes, service)
    return routes
