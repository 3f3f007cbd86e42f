"""Converts exceptions to error responses: a status and `{"error": {"code", "message"}}`, with a one-line message.

The message of a `HolmesError` is for users. All other exceptions are bugs. The client receives only an id, and the log
contains the id with the stack trace.
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

_RETRY_SECONDS: Final = 5
_LONGEST_MESSAGE: Final = 2_000
_NO_DATABASE: Final = "the database is not responding; try again later"
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
    """The code and the message of an error."""

    code: str = Field(description="The error code, for programs.")
    message: str = Field(description="The error message, on one line.")


class ErrorDocument(BaseModel):
    """The body of an error response."""

    error: ErrorBody


class ApiError(HTTPException):
    """An error response. `code` is the error code for programs. The default of `code` depends on the status."""

    def __init__(
        self, status: int, message: str, *, code: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, message, dict(headers or {}))
        self.code = code or _CODES.get(status, "error")


def error_response(error: ApiError) -> JSONResponse:
    return _document(error.status_code, error.code, str(error.detail), error.headers)


def ending() -> ApiError:
    """Create the error that rejects new work while the server is stopping."""
    return ApiError(503, "the server is stopping; try again", code="draining", headers={"Retry-After": "1"})


def api_error(error: HolmesError) -> ApiError:
    """Choose the status, the code and the message for an exception."""
    message = one_line(str(error))
    match error:
        case ConfigError():
            return ApiError(400, message, code="bad_request")
        case DatabaseUnavailable():
            # The message contains the database URL, which clients must not see.
            text = "the database disk is full" if error.is_full else _NO_DATABASE
            return ApiError(503, text, code="database_unavailable", headers={"Retry-After": str(_RETRY_SECONDS)})
        case ClusterUnreachable():
            return ApiError(503, message, code="cluster_unreachable", headers={"Retry-After": str(_RETRY_SECONDS)})
        case ModelError():
            return ApiError(502, message, code="model_failed")
        case _:
            return ApiError(500, message, code="failed")


def one_line(text: str) -> str:
    """Join the lines of `text`, and limit the text to 2,000 characters."""
    return shortened(" ".join(text.split()), _LONGEST_MESSAGE)


def documented(*statuses: int) -> dict[int | str, dict[str, object]]:
    """Describe the error responses of a route for the OpenAPI document."""
    return {status: {"model": ErrorDocument, "description": _CODES[status].replace("_", " ")} for status in statuses}


def add_error_handlers(application: FastAPI) -> None:
    """Add the exception handlers to `application`."""
    application.add_exception_handler(HolmesError, _on_holmes_error)
    application.add_exception_handler(RequestValidationError, _on_invalid_request)
    application.add_exception_handler(StarletteHttpException, _on_http_error)


async def _on_holmes_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HolmesError)  # noqa: S101  registered for this type
    if isinstance(error, DatabaseUnavailable):
        _log.warning("%s", one_line(str(error)))
    return error_response(api_error(error))


async def _on_invalid_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101  registered for this type
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return error_response(ApiError(400, f"the request body is not valid JSON: {first['ctx']['error']}"))
    if first["loc"] == ("body",) and "json" not in request.headers.get("content-type", ""):
        message = "the request body must be JSON with the header content-type: application/json"
        return error_response(ApiError(422, message))
    place = ".".join(str(part) for part in first["loc"][1:]) or str(first["loc"][0])
    return error_response(ApiError(422, one_line(f"{place}: {first['msg']}")))


async def _on_http_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, StarletteHttpException)  # noqa: S101  registered for this type
    code = error.code if isinstance(error, ApiError) else _CODES.get(error.status_code, "error")
    return _document(error.status_code, code, str(error.detail), error.headers)


class BugReporter:
    """ASGI layer that logs an unexpected exception under an id and returns only the id to the client."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except asyncio.CancelledError:
            if not begun:  # only the shutdown cancels requests
                await error_response(ending())(scope, receive, send)
            raise
        except Exception as error:  # the outermost edge: each bug gets a number in the log, and the client only this
            identity = uuid.uuid4().hex[:12]
            _log.error("internal error %s in %s %s", identity, scope.get("method"), scope.get("path"), exc_info=error)
            if begun:
                raise  # closes the connection, so that the client sees an incomplete response
            message = f"internal error; see the server log for id {identity}"
            await error_response(ApiError(500, message))(scope, receive, send)


def _document(status: int, code: str, message: str, headers: Mapping[str, str] | None) -> JSONResponse:
    document = ErrorDocument(error=ErrorBody(code=code, message=one_line(masked(message))))
    return JSONResponse(document.model_dump(), status_code=status, headers=dict(headers or {}))
