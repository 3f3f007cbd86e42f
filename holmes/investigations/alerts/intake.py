"""Stores alerts durably before `AlertIntake.take` returns.

Only one replica at a time stores alerts. If two replicas receive the same alert at the same time, the alert is stored
once. `intake_plan` decides how each alert changes incidents and investigations.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from sqlalchemy import func, select

from holmes.investigations.alerts.clusters import AlertClusters
from holmes.investigations.alerts.intake_plan import IntakePlan
from holmes.investigations.alerts.intake_rows import read_state, write_changes
from holmes.investigations.alerts.intake_state import IntakeRules, every_model
from holmes.investigations.records.database import lock_intake
from holmes.investigations.records.records import SECONDS_PER_HOUR, spent_today
from holmes.investigations.records.schema import INVESTIGATIONS
from holmes.investigations.records.values import moment

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

    from holmes.investigations.alerts.intake_state import IncidentEvent, IntakeChanges, IntakeCounts
    from holmes.investigations.alerts.routes import Route, Routes
    from holmes.investigations.records.database import Database
    from holmes.investigations.records.values import AlertGroup, Incident, IncidentId, InvestigationId


class OnNews(Protocol):
    """Callback that runs within the transaction that changes an incident. It may write to the database."""

    def __call__(self, connection: Connection, incident: Incident, event: IncidentEvent, route: Route) -> None:
        """Handle an incident of `route` that was opened, reopened or resolved. `incident` contains the new state."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakePolicy:
    """Limits and rules for all alerts. A limit of None means no limit.

    `max_cost_per_day` is in US dollars. `max_per_hour` limits the investigations of all routes that may use an LLM.
    See `IntakeRules` for the other fields.
    """

    reopen_hours: float = 24
    max_cost_per_day: float | None = None
    max_per_hour: int | None = None
    asks_llm: Callable[[str | None], bool] = every_model
    clusters: AlertClusters = field(default_factory=AlertClusters)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeReceipt:
    """The incidents of an alert group, and the investigations of its firing alerts.

    `queued` is the number of new investigations.
    """

    incidents: tuple[IncidentId, ...]
    investigations: tuple[InvestigationId, ...]
    queued: int
    counts: IntakeCounts


class AlertIntake:
    """Receives alert groups and stores the resulting changes.

    `on_queued` is called after new investigations or news are stored. `on_news` is called within the transaction that
    changes an incident, unless the incident's route disables investigation.
    """

    def __init__(
        self,
        database: Database,
        routes: Routes,
        policy: IntakePolicy,
        on_queued: Callable[[], None],
        on_news: OnNews | None = None,
    ) -> None:
        self._database = database
        self._routes = routes
        self._policy = policy
        self._on_queued = on_queued
        self._on_news = on_news

    async def take(self, group: AlertGroup, source: str) -> IntakeReceipt:
        """Store `group` and queue its investigations. `source` names the sender, for example `alertmanager`.

        Raises `DatabaseUnavailable` if the alerts were not stored. The sender must then retry.
        """
        group = self._policy.clusters.assigned(group)
        changes = await self._database.transaction(lambda connection: self._take(connection, group, source))
        if changes.new_investigations or changes.news:
            self._on_queued()
        return IntakeReceipt(
            incidents=changes.concerned,
            investigations=changes.linked,
            queued=len(changes.new_investigations),
            counts=changes.counts,
        )

    def _take(self, connection: Connection, group: AlertGroup, source: str) -> IntakeChanges:
        lock_intake(connection)
        now = time.time()
        limits = _Limits(connection, self._policy, now)
        rules = IntakeRules(
            source=source,
            routes=self._routes,
            reopen_hours=self._policy.reopen_hours,
            why_without_llm=limits.why_without_llm,
            asks_llm=self._policy.asks_llm,
            clusters=self._policy.clusters,
        )
        plan = IntakePlan(read_state(connection, group, source), rules, moment(now))
        plan.take(group)
        changes = plan.changes()
        write_changes(connection, changes, now)
        if self._on_news is not None:
            for incident, event, route in changes.news:
                self._on_news(connection, incident, event, route)
        return changes


class _Limits:
    """Decides whether another investigation may use an LLM. Counts the investigations that this transaction adds."""

    def __init__(self, connection: Connection, policy: IntakePolicy, now: float) -> None:
        self._connection = connection
        self._policy = policy
        self._now = now
        self._begun: dict[str | None, int] = {}
        self._spent: float | None = None

    def why_without_llm(self, route: Route) -> str | None:
        """Return why the next investigation of `route` must not use an LLM, or None if it may use an LLM."""
        if not self._policy.asks_llm(route.model):
            return None
        limits = ((None, self._policy.max_per_hour), (route.name, route.max_per_hour))
        reason = self._spent_budget() or next(filter(None, (self._full_hour(*each) for each in limits)), None)
        if reason is None:
            self._begun = {name: begun + (name in {None, route.name}) for name, begun in self._begun.items()}
        return reason

    def _spent_budget(self) -> str | None:
        most = self._policy.max_cost_per_day
        if most is None:
            return None
        if self._spent is None:
            self._spent = spent_today(self._connection)
        return f"today's budget is exhausted: ${self._spent:.2f} of ${most:.2f}" if self._spent >= most else None

    def _full_hour(self, route: str | None, most: int | None) -> str | None:
        """Describe the exceeded hourly limit of `route`, or of all routes together if `route` is None.

        Returns None if the limit is not exceeded.
        """
        if most is None:
            return None
        if route not in self._begun:
            self._begun[route] = self._count(route)
        begun = self._begun[route]
        if begun < most:
            return None
        if route is not None:
            return f"the route {route!r} has reached its hourly limit (max_per_hour: {most})"
        return f"investigations with an LLM have reached their hourly limit (alerts.max_per_hour: {most})"

    def _count(self, route: str | None) -> int:
        columns = INVESTIGATIONS.c
        query = select(func.count()).where(columns.created_at > self._now - SECONDS_PER_HOUR, columns.counted == 1)
        if route is not None:
            query = query.where(columns.route == route)
        return int(self._connection.execute(query).scalar() or 0)
