"""The pages of stored results, which mark the cited lines.

Lines are numbered as in citations (`NumberedText`). Results are found by id, never by path. The size of a page is
limited, and at most two results are rendered at the same time.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fastapi.responses import Response

from holmes.evidence import NumberedText
from holmes.server.pages.page_login import problem
from holmes.server.pages.page_rendering import count, render, visible
from holmes.server.pages.step_views import PICTURE_TYPES
from holmes.values.errors import ResultStoreError
from holmes.values.messages import ResultId
from holmes.values.texts import before_placeholder

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from fastapi import APIRouter

    from holmes.app.serving import Service
    from holmes.values.messages import StoredResult

    T = TypeVar("T")
    from collections.abc import Iterator

_ID: Final = re.compile(r"[0-9a-f]{12,64}")
_AT_ONCE = 2


class StoredOutputs:
    """Reads stored results for the pages, at most two at a time."""

    def __init__(self, service: Service) -> None:
        self._store = service.results
        self._free = asyncio.Semaphore(_AT_ONCE)

    async def show(self, identity: str, work: Callable[[bytes, StoredResult], T]) -> T:
        """Run `work` on the content in a thread, and return its result. Raises `ResultStoreError` for an unknown id."""
        if self._store is None:
            raise ResultStoreError("result storage is disabled")
        if not _ID.fullmatch(identity):
            raise ResultStoreError("the result id is not valid")
        async with self._free:
            content, stored = await self._store.read(ResultId(identity))
            return await asyncio.to_thread(work, content, stored)


class ResultPages:
    def __init__(self, service: Service) -> None:
        self._outputs = StoredOutputs(service)
        self._can_log_out = service.settings.server.api_key is not None

    async def result(self, identity: str, lines: str = "", start: str = "") -> Response:
        """Render a stored result from line `start`, by default from shortly before the cited lines."""
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
        """Render only the cited lines, as part of another page."""
        cited = cited_range(lines) or (1, 1)
        try:
            shown = await self._outputs.show(identity, lambda content, _stored: _cited_window(content, cited))
        except ResultStoreError as error:
            return render("lines_part.html.jinja2", lines=(), reason=_reason(error))
        return render("lines_part.html.jinja2", lines=shown, reason="The result does not have these lines.")

    async def raw(self, identity: str) -> Response:
        """Return an image, or text as a file to download."""
        try:
            content, stored = await self._outputs.show(identity, lambda content, stored: (content, stored))
        except ResultStoreError as error:
            return _gone(error)
        if stored.media_type in PICTURE_TYPES:
            return Response(content, media_type=stored.media_type)
        # Sent as a download, so that a browser never shows the content as a page of this server.
        headers = {"Content-Disposition": f'attachment; filename="{stored.id}.txt"'}
        return Response(content, headers=headers, media_type="application/octet-stream")


def result_routes(routes: APIRouter, service: Service) -> None:
    """Add the routes of stored results to `routes`."""
    pages = ResultPages(service)
    routes.add_api_route("/results/{identity}", pages.result, methods=["GET"])
    routes.add_api_route("/results/{identity}/lines", pages.cited_part, methods=["GET"])
    routes.add_api_route("/results/{identity}/raw", pages.raw, methods=["GET"])


def _gone(error: ResultStoreError) -> Response:
    return problem(404, "This result cannot be opened", _reason(error))


def _reason(error: ResultStoreError) -> str:
    """Return the message for the error page, without the ids of other results, which only a model needs."""
    return str(error).partition(";")[0]


_WINDOW_LINES: Final = 400
_LINES_BEFORE = 30
_LINE_CHARACTERS = 2_000
_CITED_LINE_CHARACTERS = 20_000
_WINDOW_CHARACTERS = 400_000
_MAX_CITED_LINES = 2_000
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class LineView:
    """One line of a result. `cut` describes how many characters are omitted. It is empty if the line is complete."""

    number: int
    text: str
    cited: bool = False
    cut: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineWindow:
    """The lines on one page. `earlier` and `later` are the first line numbers of the neighbouring pages."""

    lines: tuple[LineView, ...]
    total_lines: int
    first: int
    last: int
    earlier: int | None
    later: int | None


def lines_range(text: str | None) -> tuple[int, int] | None:
    """Parse the line range of a URL, for example `12` or `12-18`. Returns None if it is invalid."""
    match = _RANGE.fullmatch(text or "")
    if match is None:
        return None
    first, last = int(match[1]), int(match[2] or match[1])
    return (first, last) if 1 <= first <= last else None


def cited_range(text: str | None) -> tuple[int, int] | None:
    """Parse a line range as `lines_range` does, and limit it to the number of lines that a page can mark."""
    found = lines_range(text)
    return (found[0], min(found[1], found[0] + _MAX_CITED_LINES)) if found else None


def window_of(content: bytes, cited: tuple[int, int] | None, first: int | None = None) -> LineWindow:
    """Read the lines from `first`, by default from shortly before the cited lines. The function is CPU-bound."""
    text = NumberedText(content)
    begin = first if first is not None else (cited[0] - _LINES_BEFORE if cited else 1)
    begin = min(max(1, begin), max(1, text.total_lines))
    lines = tuple(_bounded(text, begin, cited))
    end = lines[-1].number if lines else 0
    return LineWindow(
        lines=lines,
        total_lines=text.total_lines,
        first=begin,
        last=end,
        earlier=max(1, begin - _WINDOW_LINES) if begin > 1 else None,
        later=end + 1 if lines and end < text.total_lines else None,
    )


def _cited_window(content: bytes, cited: tuple[int, int]) -> tuple[LineView, ...]:
    """Read only the cited lines, for the evidence below an answer. The function is CPU-bound."""
    return tuple(_bounded(NumberedText(content), cited[0], cited, stop=cited[1]))


def _bounded(
    text: NumberedText, begin: int, cited: tuple[int, int] | None, stop: int | None = None
) -> Iterator[LineView]:
    """Yield lines from `begin` until the page is full. The first line is always included."""
    shown = 0
    first, last = cited or (0, -1)
    for offset, line in enumerate(text.lines(begin, min(stop or begin + _WINDOW_LINES - 1, begin + _WINDOW_LINES - 1))):
        number = begin + offset
        is_cited = first <= number <= last
        limit = _CITED_LINE_CHARACTERS if is_cited else _LINE_CHARACTERS
        end = before_placeholder(line, limit)
        left = len(line) - end
        cut = f"{count(left)} more character{'' if left == 1 else 's'}" if left > 0 else ""
        yield LineView(number=number, text=visible(line[:end]), cited=is_cited, cut=cut)
        shown += min(len(line), limit)
        if shown > _WINDOW_CHARACTERS:
            return
