"""`/api/results`: what tools gave out, every byte of it. Never shown by a browser as anything but text or a picture."""

import asyncio
from typing import Annotated, Final

from fastapi import APIRouter, Path, Query
from fastapi.responses import Response

from holmes.app.serving import Service
from holmes.evidence import NumberedText
from holmes.server.errors import ApiError, documented
from holmes.server.pages.result_views import PICTURE_TYPES, lines_range
from holmes.values.errors import ResultStoreError
from holmes.values.messages import ResultId

_MOST_LINES: Final = 100_000
_AS_SENT: Final = frozenset({"application/json", *PICTURE_TYPES})


def router(service: Service) -> APIRouter:
    """The route."""
    routes = APIRouter(prefix="/api/results", tags=["investigations"])
    content = {"text/plain": {"schema": {"type": "string"}}, "application/octet-stream": {}}

    @routes.get(
        "/{identity}",
        summary="The stored output of a tool",
        response_class=Response,
        responses={
            **documented(400, 401, 403, 404, 422, 503),
            200: {"description": "The output, or lines of it", "content": content},
        },
    )
    async def result(
        identity: Annotated[str, Path(pattern=r"^[0-9a-f]{8,64}$")],
        lines: Annotated[
            str | None,
            Query(pattern=r"^[0-9]{1,9}(-[0-9]{1,9})?$", description="`12-18`, as citations count them from 1."),
        ] = None,
    ) -> Response:
        if service.results is None:
            raise ApiError(404, "the storage of outputs is switched off")
        try:
            found, stored = await service.results.read(ResultId(identity))
        except ResultStoreError:
            raise ApiError(404, f"there is no stored output {identity!r}, or its time is over") from None
        kind = stored.media_type if stored.media_type in _AS_SENT else "text/plain"
        if lines is not None:
            if kind in PICTURE_TYPES:
                raise ApiError(400, "a picture has no lines")
            text = await asyncio.to_thread(_lines, found, lines_range(lines))
            return Response(text, media_type="text/plain; charset=utf-8")
        kind = f"{kind}; charset=utf-8" if kind == "text/plain" else kind
        return Response(found, media_type=kind, headers={"Content-Disposition": f'inline; filename="{identity}"'})

    return routes


def _lines(content: bytes, wanted: tuple[int, int] | None) -> str:
    start, end = wanted or (1, _MOST_LINES + 1)
    if end - start >= _MOST_LINES:
        raise ApiError(400, f"`lines` is no range of at most {_MOST_LINES:,} lines from 1 on")
    numbered = NumberedText(content)
    if start > numbered.total_lines:
        raise ApiError(404, f"the output has only {numbered.total_lines:,} lines")
    return "\n".join(numbered.lines(start, end)) + "\n"
