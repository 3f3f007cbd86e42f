"""Serves `/api/investigations` and `/api/results`.

Clients start, list, watch, cancel and repeat investigations, and read stored results.
"""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Annotated, Final, Literal, cast

from fastapi import APIRouter, Header, Path, Query, Request
from fastapi.responses import Response

from holmes.app.serving import Service
from holmes.evidence import NumberedText
from holmes.investigations.records.records import InvestigationQuery
from holmes.investigations.records.values import (
    FINAL_STATES,
    IncidentId,
    InvestigationId,
    InvestigationRecord,
    InvestigationState,
    NewInvestigation,
)
from holmes.redaction.redactor import redact_off_loop
from holmes.server.api.record_documents import (
    Clean,
    EventDocument,
    EventList,
    InvestigationDocument,
    InvestigationList,
    InvestigationReceipt,
    InvestigationRequest,
)
from holmes.server.errors import ApiError, documented
from holmes.server.limits import Draining, InvestigationSlots, cancel_investigation, client_of, spent_budget
from holmes.server.pages.page_results import lines_range
from holmes.server.pages.step_views import PICTURE_TYPES
from holmes.server.sse import MEDIA_TYPE, EventStreamResponse, frame
from holmes.values.errors import ResultStoreError
from holmes.values.messages import ResultId
from holmes.values.texts import shortened

_TITLE_CHARACTERS = 120


class NewInvestigations:
    """Queues new and repeated investigations, unless a limit is exceeded."""

    def __init__(self, service: Service, draining: Draining) -> None:
        self._service = service
        self._draining = draining
        self._slots = InvestigationSlots(service)

    async def ask(self, body: InvestigationRequest, client: str) -> InvestigationId:
        """Queue a question from `client`.

        Raises `ConfigError` for an unknown model or cluster, and any exception from `_add`.
        """
        self._service.investigators.require_model(body.model)
        cluster = self._service.investigators.clusters.name_of(body.cluster)
        question = await self._masked(body.question)
        title = await self._masked(body.title or shortened(" ".join(question.split()), _TITLE_CHARACTERS, mark=""))
        if body.namespace:
            question = f"{question}\n\nThe question is about the namespace {body.namespace!r}."
        new = NewInvestigation(
            question=question,
            title=title,
            source="api",
            namespace=body.namespace,
            model=body.model,
            max_cost=body.max_cost,
            cluster=cluster,
        )
        return await self._add(new, client)

    async def again(self, record: InvestigationRecord, client: str) -> InvestigationId:
        """Queue a copy of an investigation.

        Raises `ConfigError` for an unknown model or cluster, and any exception from `_add`.
        """
        self._service.investigators.require_model(record.model)
        cluster = self._service.investigators.clusters.name_of(record.cluster)
        new = NewInvestigation(
            question=record.question,
            title=record.title,
            source=record.source,
            incident_id=record.incident_id,
            route=record.route,
            namespace=record.namespace,
            model=record.model,
            max_cost=record.max_cost,
            cluster=cluster,
        )
        return await self._add(new, client)

    async def _add(self, new: NewInvestigation, client: str) -> InvestigationId:
        """Store a new investigation. If the daily budget is exhausted, `builtin/triage` answers.

        Raises `ApiError` 429 if a limit is exceeded, `ApiError` 503 while the server stops, and `DatabaseUnavailable`.
        """
        self._draining.refuse_when_begun()
        async with self._slots.place(client):
            new = replace(new, without_llm=await spent_budget(self._service))
            identity = await self._service.investigations.add(new)
            self._slots.took(client, identity)
        self._service.worker.wake()
        return identity

    async def _masked(self, text: str) -> str:
        redactor = self._service.redactor
        return text if redactor is None else await redact_off_loop(redactor, text)


_POLL_SECONDS: Final = 0.5
_EVENTS_AT_ONCE: Final = 500
_RETRIED: Final = ("failed", "cancelled")
_ID_PATTERN: Final = r"^[0-9a-f]{1,40}$"
Identity = Annotated[str, Path(pattern=_ID_PATTERN)]
LastEventId = Annotated[
    str | None,
    Header(
        pattern=r"^[0-9]{1,15}$",
        description="The id of the last event that the client received. The response starts after this event.",
    ),
]
AfterEvent = Annotated[
    int,
    Query(ge=0, lt=10**15, description="Same as `Last-Event-ID`, which browsers cannot send with their first request."),
]


class InvestigationRoutes:
    def __init__(self, service: Service, draining: Draining) -> None:
        self._service = service
        self._draining = draining
        self._new = NewInvestigations(service, draining)

    async def begin(self, body: InvestigationRequest, request: Request, response: Response) -> InvestigationReceipt:
        """Queue an investigation. It is stored before the response is sent."""
        return _receipt(await self._new.ask(body, client_of(request)), request, response)

    async def retry(self, identity: Identity, request: Request, response: Response) -> InvestigationReceipt:
        """Queue a copy of an investigation that failed or was cancelled."""
        record = await self._record(identity)
        if record.state not in _RETRIED:
            message = f"investigation {identity!r} is {record.state}; only failed or cancelled ones can be repeated"
            raise ApiError(409, message)
        return _receipt(await self._new.again(record, client_of(request)), request, response)

    async def listed(
        self,
        *,
        state: InvestigationState | None = None,
        source: Annotated[Clean | None, Query(max_length=64)] = None,
        incident: Annotated[str | None, Query(pattern=_ID_PATTERN)] = None,
        text: Annotated[
            Clean | None, Query(max_length=200, description="Find this text in titles, questions and answers.")
        ] = None,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        before: Annotated[
            str | None, Query(pattern=_ID_PATTERN, description="The value of `next` from the previous page.")
        ] = None,
    ) -> InvestigationList:
        """List investigations, newest first."""
        query = InvestigationQuery(
            state=state,
            source=source,
            incident_id=IncidentId(incident) if incident else None,
            text=text,
            before=InvestigationId(before) if before else None,
            limit=limit,
        )
        records = await self._service.investigations.list(query)
        more = records[-1].id if len(records) == limit else None
        return InvestigationList(investigations=[InvestigationDocument.of(each) for each in records], next=more)

    async def shown(self, identity: Identity) -> InvestigationDocument:
        """Read one investigation."""
        return InvestigationDocument.of(await self._record(identity))

    async def cancel(self, identity: Identity) -> Response:
        """Cancel an unfinished investigation."""
        record = await self._record(identity)
        if not await cancel_investigation(self._service, record.id):
            raise ApiError(409, f"investigation {identity!r} is already finished")
        return Response(status_code=204)

    async def events(
        self, identity: Identity, request: Request, last_event_id: LastEventId = None, after: AfterEvent = 0
    ) -> Response:
        """Stream past and future events until the investigation ends. A JSON response contains only past events."""
        record = await self._record(identity)
        after, accept = max(after, int(last_event_id or 0)), request.headers.get("accept", "")
        if "json" in accept and MEDIA_TYPE not in accept:
            found = await self._service.investigations.events(record.id, after=after, limit=_EVENTS_AT_ONCE)
            more = str(found[-1].id) if len(found) == _EVENTS_AT_ONCE else None
            listed = EventList(events=[EventDocument.of(each) for each in found], next=more)
            return Response(listed.model_dump_json(), media_type="application/json")
        heartbeat = self._service.settings.server.heartbeat_seconds
        return EventStreamResponse(self._tail(record.id, after), heartbeat_seconds=heartbeat)

    async def _tail(self, identity: InvestigationId, after: int) -> AsyncGenerator[bytes, None]:
        """Stream past and future events.

        When the server stops, the stream ends and clients reconnect to another replica.
        """
        while not self._draining.begun:
            record = await self._service.investigations.get(
                identity
            )  # read before the events, so that the last event is not missed
            found = await self._service.investigations.events(identity, after=after, limit=_EVENTS_AT_ONCE)
            for event in found:
                after = event.id
                yield frame(str(event.id), event.name, event.data)
            if found:
                continue
            if record is None or record.state in FINAL_STATES:
                yield b"event: end\ndata: {}\n\n"
                return
            try:
                async with asyncio.timeout(_POLL_SECONDS):
                    await self._draining.wait()
            except TimeoutError:
                continue

    async def _record(self, identity: str) -> InvestigationRecord:
        record = await self._service.investigations.get(InvestigationId(identity))
        if record is None:
            raise ApiError(404, f"investigation {identity!r} not found")
        return record


def _receipt(identity: InvestigationId, request: Request, response: Response) -> InvestigationReceipt:
    response.headers["Location"] = f"{request.scope.get('root_path', '')}/api/investigations/{identity}"
    return InvestigationReceipt(id=identity)


def router(service: Service, draining: Draining) -> APIRouter:
    routes = APIRouter(prefix="/api/investigations", tags=["investigations"])
    handlers = InvestigationRoutes(service, draining)
    general: tuple[Literal[401, 403, 422, 503], ...] = (401, 403, 422, 503)
    routes.add_api_route(
        "",
        handlers.begin,
        methods=["POST"],
        status_code=202,
        summary="Start an investigation",
        responses=documented(400, 408, 413, 429, *general),
    )
    routes.add_api_route(
        "/{identity}/retry",
        handlers.retry,
        methods=["POST"],
        status_code=202,
        summary="Repeat a failed or cancelled investigation",
        responses=documented(400, 404, 409, 429, *general),
    )
    routes.add_api_route(
        "", handlers.listed, methods=["GET"], summary="List investigations", responses=documented(*general)
    )
    routes.add_api_route(
        "/{identity}",
        handlers.shown,
        methods=["GET"],
        summary="Read an investigation",
        responses=documented(404, *general),
    )
    routes.add_api_route(
        "/{identity}",
        handlers.cancel,
        methods=["DELETE"],
        status_code=204,
        summary="Cancel an investigation",
        responses=documented(404, 409, *general),
    )
    streamed = {"description": "Events", "model": EventList, "content": {MEDIA_TYPE: {}}}
    found = cast("dict[int | str, dict[str, object]]", {200: streamed})
    routes.add_api_route(
        "/{identity}/events",
        handlers.events,
        methods=["GET"],
        summary="Watch an investigation",
        response_class=Response,
        responses={**documented(404, *general), **found},
    )
    return routes


_MOST_LINES: Final = 100_000
_AS_SENT: Final = frozenset({"application/json", *PICTURE_TYPES})


def results_router(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/api/results", tags=["investigations"])
    content = {"text/plain": {"schema": {"type": "string"}}, "application/octet-stream": {}}

    @routes.get(
        "/{identity}",
        summary="Read a stored result",
        response_class=Response,
        responses={
            **documented(400, 401, 403, 404, 422, 503),
            200: {"description": "The stored result, or the requested lines", "content": content},
        },
    )
    async def result(
        identity: Annotated[str, Path(pattern=r"^[0-9a-f]{8,64}$")],
        lines: Annotated[
            str | None,
            Query(
                pattern=r"^[0-9]{1,9}(-[0-9]{1,9})?$",
                description="Lines to return, for example `12-18`, counted from 1 as in citations.",
            ),
        ] = None,
    ) -> Response:
        if service.results is None:
            raise ApiError(404, "result storage is disabled")
        try:
            found, stored = await service.results.read(ResultId(identity))
        except ResultStoreError:
            raise ApiError(404, f"stored result {identity!r} not found; it may have expired") from None
        kind = stored.media_type if stored.media_type in _AS_SENT else "text/plain"
        if lines is not None:
            if kind in PICTURE_TYPES:
                raise ApiError(400, "the stored result is an image, which has no lines")
            text = await asyncio.to_thread(_lines, found, lines_range(lines))
            return Response(text, media_type="text/plain; charset=utf-8")
        kind = f"{kind}; charset=utf-8" if kind == "text/plain" else kind
        return Response(found, media_type=kind, headers={"Content-Disposition": f'inline; filename="{identity}"'})

    return routes


def _lines(content: bytes, wanted: tuple[int, int] | None) -> str:
    start, end = wanted or (1, _MOST_LINES + 1)
    if end - start >= _MOST_LINES:
        raise ApiError(400, f"`lines` is not a valid range; expected at most {_MOST_LINES:,} lines, counted from 1")
    numbered = NumberedText(content)
    if start > numbered.total_lines:
        raise ApiError(404, f"the result has only {numbered.total_lines:,} lines")
    return "\n".join(numbered.lines(start, end)) + "\n"
