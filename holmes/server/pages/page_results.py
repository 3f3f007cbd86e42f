"""Stored outputs of tools with the cited lines in them. Routes of the page, added by `holmes.server.pages.pages`.

Only ids of results lead here, never paths, and every answer is bounded: two large outputs are laid out at a time.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final

from fastapi.responses import Response

from holmes.server.pages.page_login import problem
from holmes.server.pages.page_rendering import render
from holmes.server.pages.result_views import PICTURE_TYPES, cited_range, cited_window, window_of
from holmes.values.errors import ResultStoreError
from holmes.values.messages import ResultId

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from fastapi import APIRouter

    from holmes.app.serving import Service
    from holmes.values.messages import StoredResult

    T = TypeVar("T")

_ID: Final = re.compile(r"[0-9a-f]{12,64}")
_AT_ONCE = 2


class StoredOutputs:
    """Reads the store for the page, a few outputs at a time."""

    def __init__(self, service: Service) -> None:
        self._store = service.results
        self._free = asyncio.Semaphore(_AT_ONCE)

    async def show(self, identity: str, work: Callable[[bytes, StoredResult], T]) -> T:
        """What `work` makes of the content, in a thread. Raises `ResultStoreError` for an id that leads nowhere."""
        if self._store is None:
            raise ResultStoreError("the storage of outputs is switched off, so there is nothing to be opened")
        if not _ID.fullmatch(identity):
            raise ResultStoreError("this is no id of a stored output")
        async with self._free:
            content, stored = await self._store.read(ResultId(identity))
            return await asyncio.to_thread(work, content, stored)


class ResultPages:
    """The handlers."""

    def __init__(self, service: Service) -> None:
        self._outputs = StoredOutputs(service)
        self._can_log_out = service.settings.server.api_key is not None

    async def result(self, identity: str, lines: str = "", start: str = "") -> Response:
        """An output, from the cited lines or a line on."""
        cited = cited_range(lines)
        first = int(start) if start.isdecimal() and len(start) < 10 else None

        def work(content: bytes, stored: StoredResult) -> dict[str, object]:
            is_picture = stored.media_type in PICTURE_TYPES
            return {"stored": stored, "window": None if is_picture else window_of(content, cited, first)}

        try:
            values = await self._outputs.show(identity, work)
        except ResultStoreError as error:
            return _gone(error)
        citing = f"lines={cited[0]}-{cited[1]}&" if cited else ""
        return render("result.html.jinja2", cited=cited, citing=citing, signed_in=self._can_log_out, **values)

    async def cited_part(self, identity: str, lines: str = "") -> Response:
        """Only the cited lines."""
        cited = cited_range(lines) or (1, 1)
        try:
            shown = await self._outputs.show(identity, lambda content, _stored: cited_window(content, cited))
        except ResultStoreError as error:
            return render("lines_part.html.jinja2", lines=(), reason=_reason(error))
        return render("lines_part.html.jinja2", lines=shown, reason="The output has no such lines.")

    async def raw(self, identity: str) -> Response:
        """A picture, or a file."""
        try:
            content, stored = await self._outputs.show(identity, lambda content, stored: (content, stored))
        except ResultStoreError as error:
            return _gone(error)
        if stored.media_type in PICTURE_TYPES:
            return Response(content, media_type=stored.media_type)
        # As a file, whatever it holds: a browser must not take it for a page of this server.
        headers = {"Content-Disposition": f'attachment; filename="{stored.id}.txt"'}
        return Response(content, headers=headers, media_type="application/octet-stream")


def result_routes(routes: APIRouter, service: Service) -> None:
    """Add the pages of stored outputs to `routes`."""
    pages = ResultPages(service)
    routes.add_api_route("/results/{identity}", pages.result, methods=["GET"])
    routes.add_api_route("/results/{identity}/lines", pages.cited_part, methods=["GET"])
    routes.add_api_route("/results/{identity}/raw", pages.raw, methods=["GET"])


def _gone(error: ResultStoreError) -> Response:
    return problem(404, "This output cannot be opened", _reason(error))


def _reason(error: ResultStoreError) -> str:
    """Why an output cannot be opened. The message of the store lists other ids, which helps only a model."""
    return str(error).partition(";")[0]
