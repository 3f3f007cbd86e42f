"""Protects the web pages with a login form, a session cookie and a check before every other route.

Browsers cannot send a key header when they open a page or an event stream, so the login sets a cookie. Forms from other
sites, redirects to other sites, and clients with too many wrong keys are rejected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import quote, urlsplit

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import RedirectResponse, Response
from fastapi.routing import APIRoute

from holmes.server.errors import api_error
from holmes.server.limits import Guesses, client_of
from holmes.server.pages.page_rendering import PAGE_HEADERS, render
from holmes.server.security import SESSION_COOKIE, bearer_of, is_same_origin, keys_of
from holmes.values.errors import HolmesError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from holmes.settings.server import ServerSettings

_SEE_OTHER: Final = 303
_ADDRESS_CHARACTERS = 1_000


class LoginNeeded(Exception):
    """Raised if a request requires a login."""


class ForeignForm(Exception):
    """Raised if a form was sent from another site."""


class PageRoute(APIRoute):
    """A route that responds to errors with an error page."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[None, None, Response]]:
        """Return the handler, wrapped in a function that converts errors to responses."""
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handle(request)
            except LoginNeeded:
                return _to_login(request)
            except ForeignForm:
                return problem(403, "This form was sent from another site", "Go back, reload the page and try again.")
            except HolmesError as error:
                refusal = api_error(error)
                response = problem(refusal.status_code, "The page is currently unavailable", str(refusal.detail))
                response.headers.update(refusal.headers or {})
                return response

        return answer


def signed_in(request: Request) -> None:
    """Require a login. Every route that shows data depends on this function. Raises `LoginNeeded`."""
    keys = keys_of(request)
    if keys.valid_session(request.cookies.get(SESSION_COOKIE)):
        return
    if not (keys.matches(request.headers.get("x-api-key")) or keys.matches(bearer_of(request.headers))):
        raise LoginNeeded


def own_form(request: Request) -> None:
    """Require a form from this server. Raises `ForeignForm`. Every route with a form depends on this function.

    Forms from `public_url` are accepted too, because a proxy may change the host.
    """
    settings: ServerSettings = request.app.state.service.settings.server
    origin = request.headers.get("origin")
    if not is_same_origin(request.headers) and (origin is None or not _is_at(settings.public_url, origin)):
        raise ForeignForm


def local_address(wanted: str) -> str:
    """Return `wanted` if it is a path on this server, else the path of the start page."""
    if not wanted.startswith("/") or wanted.startswith("//") or "\\" in wanted or len(wanted) > _ADDRESS_CHARACTERS:
        return "/"
    if not wanted.isprintable() or not wanted.isascii():
        return "/"
    return wanted


def problem(status: int, title: str, text: str) -> Response:
    """Render an error page."""
    response = render("problem.html.jinja2", title=title, text=text, signed_in=False)
    response.status_code = status
    return response


def login_routes(routes: APIRouter, settings: ServerSettings) -> None:
    """Add the routes for login and logout to `routes`."""
    guesses = Guesses()

    @routes.get("/login")
    async def form(request: Request, next: str = "/") -> Response:  # noqa: A002  the query parameter
        keys, target = keys_of(request), local_address(next)
        if not keys.required or keys.valid_session(request.cookies.get(SESSION_COOKIE)):
            return _redirect(target)
        return _form(200, target)

    @routes.post("/login", dependencies=[Depends(own_form)])
    async def login(
        request: Request,
        key: Annotated[str, Form()] = "",
        next: Annotated[str, Form()] = "/",  # noqa: A002
    ) -> Response:
        keys, target, client = keys_of(request), local_address(next), client_of(request)
        wait = guesses.wait_seconds(client)
        if wait > 0:
            response = _form(429, target, "Too many wrong keys. Try again later.")
            response.headers["Retry-After"] = str(int(wait) + 1)
            return response
        if not keys.matches(key.strip()):
            guesses.wrong(client)
            return _form(401, target, "Wrong key.")
        response = _redirect(target)
        if keys.required:
            seconds, secure = int(settings.session_hours * 3_600), _is_https(request)
            token = keys.new_session()
            response.set_cookie(SESSION_COOKIE, token, seconds, httponly=True, samesite="strict", secure=secure)
        return response

    @routes.post("/logout", dependencies=[Depends(own_form)])
    async def logout(request: Request) -> Response:
        response = _redirect("/login")
        response.delete_cookie(SESSION_COOKIE, httponly=True, samesite="strict", secure=_is_https(request))
        return response


def _to_login(request: Request) -> Response:
    """Redirect to the login form, which leads back to the requested page.

    Requests from scripts receive 401, because scripts cannot log in.
    """
    if request.headers.get("sec-fetch-mode", "navigate") != "navigate" or request.method != "GET":
        return problem(401, "You are not logged in", "Your session has expired. Reload the page to log in.")
    path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return _redirect(f"/login?next={quote(path, safe='/')}")


def _form(status: int, target: str, message: str = "") -> Response:
    response = render("login.html.jinja2", target=target, message=message)
    response.status_code = status
    return response


def _redirect(target: str) -> Response:
    return RedirectResponse(target, _SEE_OTHER, headers=PAGE_HEADERS)


def _is_at(public_url: str | None, origin: str) -> bool:
    try:
        return bool(public_url) and urlsplit(public_url)[:2] == urlsplit(origin)[:2]
    except ValueError:
        return False


def _is_https(request: Request) -> bool:
    """Return whether the browser uses HTTPS, directly or through a proxy.

    A client that forges `X-Forwarded-Proto` restricts only its own cookie.
    """
    return request.url.scheme == "https" or request.headers.get("x-forwarded-proto", "").lower() == "https"
