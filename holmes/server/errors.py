"""How a failure looks to a client: a status, and `{"error": {"code", "message"}}` in one line.

What a person can understand (`HolmesError`) is told; anything else is a bug: it is logged with its trace under an id,
and the client is told the id only.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from typing import TYPE_CHECKING, Final

from fastapi import HTTPException
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException as StarletteHttpException

from holmes.investigations.records.database import DatabaseUnavailable
from holmes.values.errors import ClusterUnreachable, ConfigError, HolmesError, ModelError, masked
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastapi import FastAPI, Request
    from fastapi.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

RETRY_SECONDS: Final = 5
_LONGEST_MESSAGE: Final = 2_000
_NO_DATABASE: Final = "the database does not answer; try again later"
_CODES: Final = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    406: "not_acceptable",
    408: "timeout",
    409: "conflict",
    413: "too_large",
    421: "misdirected",
    422: "invalid",
    429: "too_many_requests",
    500: "internal",
    502: "model_failed",
    503: "unavailable",
}

_log = logging.getLogger(__name__)


class ErrorBody(BaseModel):
    """What went wrong, in one line."""

    code: str = Field(description="A word that programs can compare.")
    message: str = Field(description="One line for people.")


class ErrorDocument(BaseModel):
    """Every answer that is no success."""

    error: ErrorBody


class ApiError(HTTPException):
    """An answer that is no success. `code` is a word for programs; unset, the general one of the status."""

    def __init__(
        self, status: int, message: str, *, code: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, message, dict(headers or {}))
        self.code = code or _CODES.get(status, "error")


def error_response(error: ApiError) -> JSONResponse:
    """The answer for `error`."""
    return _document(error.status_code, error.code, str(error.detail), error.headers)


def ending() -> ApiError:
    """What is told to whom the server has no time for any more."""
    return ApiError(503, "the server is ending; ask again", code="draining", headers={"Retry-After": "1"})


def api_error(error: HolmesError) -> ApiError:
    """What a client is told of an error that a person can understand."""
    message = one_line(str(error))
    match error:
        case ConfigError():
            return ApiError(400, message, code="bad_request")
        case DatabaseUnavailable():
            # The message names the address of the database, which is nobody's business.
            text = "the disk of the database is full: nothing can be kept" if error.is_full else _NO_DATABASE
            return ApiError(503, text, code="database_unavailable", headers={"Retry-After": str(RETRY_SECONDS)})
        case ClusterUnreachable():
            return ApiError(503, message, code="cluster_unreachable", headers={"Retry-After": str(RETRY_SECONDS)})
        case ModelError():
            return ApiError(502, message, code="model_failed")
        case _:
            return ApiError(500, message, code="failed")


def one_line(text: str) -> str:
    """`text` without line breaks, and not longer than a person reads."""
    return shortened(" ".join(text.split()), _LONGEST_MESSAGE)


def documented(*statuses: int) -> dict[int | str, dict[str, object]]:
    """The answers of a route that are no success, for the OpenAPI document."""
    return {status: {"model": ErrorDocument, "description": _CODES[status].replace("_", " ")} for status in statuses}


def add_error_handlers(application: FastAPI) -> None:
    """Make `application` answer every failure as this module says."""
    application.add_exception_handler(HolmesError, _on_holmes_error)
    application.add_exception_handler(RequestValidationError, _on_invalid_request)
    application.add_exception_handler(StarletteHttpException, _on_http_error)


async def _on_holmes_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HolmesError)  # noqa: S101  registered for it
    if isinstance(error, DatabaseUnavailable):
        _log.warning("%s", one_line(str(error)))
    return error_response(api_error(error))


async def _on_invalid_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101  registered for it
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return error_response(ApiError(400, f"the body is not JSON: {first['ctx']['error']}"))
    if first["loc"] == ("body",) and "json" not in request.headers.get("content-type", ""):
        return error_response(ApiError(422, "the body must be JSON, sent with content-type: application/json"))
    place = ".".join(str(part) for part in first["loc"][1:]) or str(first["loc"][0])
    return error_response(ApiError(422, one_line(f"{place}: {first['msg']}")))


async def _on_http_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, StarletteHttpException)  # noqa: S101  registered for it
    code = error.code if isinstance(error, ApiError) else _CODES.get(error.status_code, "error")
    return _document(error.status_code, code, str(error.detail), error.headers)


class BugReporter:
    """ASGI: answers what must not happen with an id, and logs it once. Stands where its answers get their headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except asyncio.CancelledError:
            if not begun:  # only the end of the server cancels a request
                await error_response(ending())(scope, receive, send)
            raise
        except Exception as error:  # the outermost edge of this face: nothing gets past it unlogged
            identity = uuid.uuid4().hex[:12]
            _log.error("bug %s in %s %s", identity, scope.get("method"), scope.get("path"), exc_info=error)
            if begun:
                raise  # the connection is closed, so that nobody takes a part for the whole
            message = f"this is a bug in Holmes; the server's log tells more under {identity}"
            await error_response(ApiError(500, message))(scope, receive, send)


def _document(status: int, code: str, message: str, headers: Mapping[str, str] | None) -> JSONResponse:
    document = ErrorDocument(error=ErrorBody(code=code, message=one_line(masked(message))))
    return JSONResponse(document.model_dump(), status_code=status, headers=dict(headers or {}))
