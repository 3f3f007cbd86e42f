"""Queues what clients want investigated, within the limits. Used by the routes of investigations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holmes.investigations.records.values import NewInvestigation
from holmes.redaction.redactor import redact_off_loop
from holmes.server.limits import InvestigationSlots, spent_budget
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from holmes.app.serving import Service
    from holmes.investigations.records.values import InvestigationId, InvestigationRecord
    from holmes.server.api.record_documents import InvestigationRequest
    from holmes.server.draining import Draining

_TITLE_CHARACTERS = 120


class NewInvestigations:
    """Both ways to begin one: a question, and the same again."""

    def __init__(self, service: Service, draining: Draining) -> None:
        self._service = service
        self._draining = draining
        self._slots = InvestigationSlots(service)

    async def ask(self, body: InvestigationRequest, client: str) -> InvestigationId:
        """Queue a question of `client`. Raises `ConfigError` for an unknown model, and what `_add` raises."""
        self._service.investigators.require_model(body.model)
        question = await self._masked(body.question)
        title = await self._masked(body.title or shortened(" ".join(question.split()), _TITLE_CHARACTERS, mark=""))
        if body.namespace:
            question = f"{question}\n\nIt is about the namespace {body.namespace!r}."
        new = NewInvestigation(
            question=question,
            title=title,
            source="api",
            namespace=body.namespace,
            model=body.model,
            max_cost=body.max_cost,
        )
        return await self._add(new, client)

    async def again(self, record: InvestigationRecord, client: str) -> InvestigationId:
        """Queue what failed once more. Raises `ConfigError` when its model is gone, and what `_add` raises."""
        self._service.investigators.require_model(record.model)
        new = NewInvestigation(
            question=record.question,
            title=record.title,
            source=record.source,
            incident_id=record.incident_id,
            route=record.route,
            namespace=record.namespace,
            model=record.model,
            max_cost=record.max_cost,
        )
        return await self._add(new, client)

    async def _add(self, new: NewInvestigation, client: str) -> InvestigationId:
        """Raises `ApiError` 429 beyond the limits, 503 while the server ends, and `DatabaseUnavailable`.

        A spent budget is no reason to refuse: `builtin/triage` answers, as it does for alerts.
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
