"""The pages of a single incident and of a single investigation, which may be running or finished.

The script on the page fetches the changed HTML from `/investigations/<id>/updates` when an event arrives.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse, Response

from holmes.investigations.records.records import InvestigationQuery
from holmes.investigations.records.values import FINAL_STATES, IncidentId, InvestigationId
from holmes.server.limits import cancel_investigation
from holmes.server.pages.markdown_html import RenderedAnswer, render_answer, result_address
from holmes.server.pages.page_lists import model_of
from holmes.server.pages.page_login import own_form, problem
from holmes.server.pages.page_rendering import PAGE_HEADERS, money, render, visible
from holmes.server.pages.page_results import window_of
from holmes.server.pages.step_views import Timeline, json_map, pictures_of, result_of, stored_ids, text_in, timeline_of

if TYPE_CHECKING:
    from holmes.app.serving import Service
    from holmes.evidence import Marker
    from holmes.investigations.records.values import InvestigationRecord, StoredEvent
    from holmes.server.pages.step_views import Gauges

_EVENTS_AT_ONCE: Final = 500
_MAX_EVENTS: Final = 5_000
_MAX_INVESTIGATIONS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceView:
    """One citation in the list below the answer.

    `number` is the citation's number in the answer. `outcome` is the outcome of its check.
    """

    number: int
    outcome: str
    claim: str
    source: str
    lines: str
    address: str
    preview: str


def incident_routes(routes: APIRouter, service: Service) -> None:
    """Add the routes of the incident page to `routes`."""

    @routes.get("/incidents/{identity}")
    async def incident(identity: str) -> Response:
        found = await service.incidents.get(IncidentId(_known(identity)))
        if found is None:
            return problem(404, "Incident not found", "It may have expired.")
        query = InvestigationQuery(incident_id=found.id, limit=_MAX_INVESTIGATIONS)
        investigations = await service.investigations.list(query)
        answered = next((each for each in investigations if each.answer), None)
        answer = await asyncio.to_thread(render_answer, answered.answer) if answered and answered.answer else None
        return render(
            "incident.html.jinja2",
            incident=found,
            alerts=await service.incidents.alerts(found.id),
            alert_count=await service.incidents.count_alerts(found.id),
            investigations=investigations,
            answered=answered,
            answer=answer,
            deliveries=await service.deliveries.list(incident_id=found.id),
            cost=sum(each.stats.cost for each in investigations),
            now=datetime.now(UTC),
            model_of=model_of,
            default_model=service.settings.model.model,
            cluster_name=service.settings.investigation.cluster_name,
            signed_in=_can_log_out(service),
        )

    @routes.post("/incidents/{identity}/close", dependencies=[Depends(own_form)])
    async def close(identity: str) -> Response:
        await service.incidents.close(IncidentId(_known(identity)))
        return RedirectResponse(f"/incidents/{_known(identity)}", 303, headers=PAGE_HEADERS)


def investigation_routes(routes: APIRouter, service: Service) -> None:
    """Add the routes of the investigation page to `routes`."""

    @routes.get("/investigations/{identity}")
    async def investigation(identity: str) -> Response:
        record = await service.investigations.get(InvestigationId(_known(identity)))
        return _unknown() if record is None else await _show(service, "investigation.html.jinja2", record, 0)

    @routes.get("/investigations/{identity}/updates")
    async def updates(identity: str, after: str = "0") -> Response:
        record = await service.investigations.get(InvestigationId(_known(identity)))
        position = int(after) if after.isdecimal() and len(after) < 16 else 0
        return _unknown() if record is None else await _show(service, "updates.html.jinja2", record, position)

    @routes.post("/investigations/{identity}/cancel", dependencies=[Depends(own_form)])
    async def cancel(identity: str) -> Response:
        await cancel_investigation(service, InvestigationId(_known(identity)))
        return RedirectResponse(f"/investigations/{_known(identity)}", 303, headers=PAGE_HEADERS)

    @routes.get("/investigations/{identity}/outputs/{event_id}")
    async def output(request: Request, identity: str, event_id: str) -> Response:
        wanted = int(event_id) if event_id.isdecimal() and len(event_id) < 16 else 0
        events = await service.investigations.events(
            InvestigationId(_known(identity)), after=max(0, wanted - 1), limit=1
        )
        if not events or events[0].id != wanted or events[0].name != "tool_calling_result":
            return problem(404, "Result not found", "The investigation does not have this step.")
        values = await asyncio.to_thread(_output, events[0])
        part = "output_part.html.jinja2" if "part" in request.query_params else "output.html.jinja2"
        return render(part, identity=identity, signed_in=_can_log_out(service), **values)


async def _show(service: Service, template: str, record: InvestigationRecord, after: int) -> Response:
    """Render the page, or its changes after the event `after`.

    For a finished investigation, all events are read, because the evidence list shows the tool calls.
    """
    is_final = record.state in FINAL_STATES
    timeline = await _timeline(service, record, 0 if is_final else after)
    answer = await asyncio.to_thread(render_answer, record.answer) if record.answer else None
    return render(
        template,
        record=record,
        steps=[step for step in timeline.steps.values() if step.event_id > after],
        timeline=timeline,
        answer=answer,
        evidence=_evidence(answer, timeline),
        gauges=timeline.gauges,
        cost_share=_cost_share(record, timeline.gauges, record.max_cost or service.settings.server.max_cost),
        last_event_id=max(after, timeline.last_event_id),
        is_final=is_final,
        is_whole=after == 0,
        now=datetime.now(UTC),
        model=model_of(record, service.settings.model.model),
        incident=await service.incidents.get(record.incident_id) if record.incident_id else None,
        cluster_name=service.settings.investigation.cluster_name,
        signed_in=_can_log_out(service),
    )


async def _timeline(service: Service, record: InvestigationRecord, after: int) -> Timeline:
    events: list[StoredEvent] = []
    position = after
    while len(events) < _MAX_EVENTS:
        more = await service.investigations.events(record.id, after=position, limit=_EVENTS_AT_ONCE)
        events += more
        if len(more) < _EVENTS_AT_ONCE:
            break
        position = more[-1].id
    return await asyncio.to_thread(timeline_of, events, record.started_at or record.created_at)


def _evidence(answer: RenderedAnswer | None, timeline: Timeline) -> tuple[EvidenceView, ...]:
    """Return the evidence list: the citations of the answer, in the order of their numbers."""
    citations = answer.citations if answer else ()
    return tuple(_evidence_view(number, marker, timeline) for number, marker in enumerate(citations, 1))


def _evidence_view(number: int, marker: Marker, timeline: Timeline) -> EvidenceView:
    first, last = marker.first_line, marker.last_line
    return EvidenceView(
        number=number,
        outcome=marker.words or "checked",
        claim=timeline.claims.get(marker, ""),
        source=timeline.sources.get(marker.result_id, f"stored result {marker.result_id}"),
        lines=f"line {first:,}" if first == last else f"lines {first:,}–{last:,}",  # noqa: RUF001  a range
        address=result_address(marker),
        preview=f"/results/{marker.result_id}/lines?lines={first}-{last}",
    )


def _cost_share(record: InvestigationRecord, gauges: Gauges | None, limit: float | None) -> tuple[float, str] | None:
    """Return how much of the budget is used, as a number and as text, or None if the budget is unlimited."""
    if not limit:
        return None
    spent = record.stats.cost or (gauges.cost if gauges and gauges.cost else 0.0)
    return min(1.0, spent / limit), f"{money(spent)} of {money(limit)}"


def _output(event: StoredEvent) -> dict[str, object]:
    """Return the template values for a tool result as the model received it.

    Call this function in a thread, because it is CPU-bound.
    """
    data = json_map(event.data)
    result = result_of(data)
    text = text_in(result, "data", "content") or text_in(result, "error")
    title = text_in(data, "description") or text_in(data, "name") or "Output"
    invocation = text_in(result, "invocation")
    return {
        "event_id": event.id,
        "title": title,
        "invocation": "" if invocation == title else visible(invocation),
        "error": visible(text_in(result, "error")) if text_in(result, "data", "content") else "",
        "window": window_of(text.encode("utf-8", "replace"), None) if text else None,
        "stored": stored_ids(data),
        "pictures": pictures_of(data, title),
    }


def _known(identity: str) -> str:
    """Return `identity` if it is valid, or else an empty id, which no record has."""
    return identity if identity.isascii() and identity.isprintable() and len(identity) <= 40 else ""


def _unknown() -> Response:
    return problem(404, "Investigation not found", "It may have expired.")


def _can_log_out(service: Service) -> bool:
    return service.settings.server.api_key is not None
