"""Decides whether each alert is a duplicate, which incident it belongs to, and whether it starts an investigation.

The plan performs no I/O. Each firing alert gets exactly one investigation, unless its route disables investigation or
the investigation fails. Late and repeated messages do not change an incident.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from holmes.investigations.alerts.clusters import AlertClusters, incident_key_of
from holmes.investigations.alerts.intake_state import IntakeChanges, IntakeCounts, IntakeRules, IntakeState
from holmes.investigations.alerts.wording import (
    NO_OTHER_FACTS,
    alert_question,
    alerts_title,
    facts_of,
    namespace_of_all,
    title_of,
    worst_severity,
)
from holmes.investigations.records.values import (
    Incident,
    IncidentId,
    InvestigationId,
    KnownAlert,
    NewInvestigation,
    time_id,
)
from holmes.triage.alert_subjects import HEARTBEAT, subject_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.investigations.alerts.intake_state import IncidentEvent
    from holmes.investigations.alerts.routes import Route, Routes
    from holmes.investigations.records.values import Alert, AlertGroup

_MOST_TRIES: Final = 3
"""Maximum number of investigations for one firing alert, including retries of failed investigations."""
_TRY_AGAIN_AFTER: Final = timedelta(minutes=10)
"""Minimum time between a failed investigation and its retry."""
_BEGUN: Final = frozenset({"running", "answered"})
_UNHEARD: Final = timedelta(minutes=5)
"""Maximum time between the last message about a firing alert and a later start time of the same alert.

If more time has passed, the alert is treated as resolved and firing again.
"""


class IntakePlan:
    """Computes the new state of alerts, incidents and investigations from any number of alert groups."""

    def __init__(self, state: IntakeState, rules: IntakeRules, now: datetime) -> None:
        self._before = state
        self._rules = rules
        self._now = now
        self._alerts = dict(state.alerts)
        self._incidents = dict(state.incidents)
        self._open = {
            (each.route, each.group_key): each.id for each in state.incidents.values() if each.state == "open"
        }
        self._queued = {each.incident_id: each.id for each in state.investigations.values() if each.state == "queued"}
        self._looked_at: dict[tuple[IncidentId, str], dict[str, InvestigationId]] | None = None
        self._new: dict[InvestigationId, NewInvestigation] = {}
        self._asked_anew: dict[InvestigationId, IncidentId] = {}
        self._touched: dict[IncidentId, None] = {}
        self._concerned: dict[IncidentId, None] = {}
        self._linked: dict[InvestigationId, None] = {}
        self._routes: dict[IncidentId, Route] = {}
        self._news: dict[IncidentId, IncidentEvent] = {}
        self._counts: Counter[str] = Counter()

    def take(self, group: AlertGroup) -> None:
        """Process the alerts of `group`, resolved alerts first, so that an alert that fires again is treated as new."""
        for alert in group.alerts:
            if alert.status == "resolved":
                self._resolve(alert)
        self._looked_at = None
        for alert in group.alerts:
            if alert.status == "firing":
                self._fire(alert, incident_key_of(group.key, alert))

    def changes(self) -> IntakeChanges:
        """Compute all changes to the stored state."""
        firing = self._firing_by_incident()
        for identity in self._touched:
            self._settle(identity, tuple(firing.get(identity, ())))
        questions = self._questions()
        before = self._before
        return IntakeChanges(
            new_alerts=tuple(each for key, each in self._alerts.items() if key not in before.alerts),
            changed_alerts=tuple(
                each for key, each in self._alerts.items() if before.alerts.get(key, each) is not each
            ),
            new_incidents=tuple(each for key, each in self._incidents.items() if key not in before.incidents),
            changed_incidents=tuple(
                each for key, each in self._incidents.items() if before.incidents.get(key, each) is not each
            ),
            new_investigations={key: questions[key] for key in self._new},
            rewritten={key: each for key, each in questions.items() if key not in self._new},
            news=tuple(
                (self._incidents[identity], event, self._route_of(identity))
                for identity, event in self._news.items()
                if self._route_of(identity).investigate is not False
            ),
            concerned=tuple(self._concerned),
            linked=tuple(self._linked),
            counts=IntakeCounts(**self._counts),
        )

    def _resolve(self, alert: Alert) -> None:
        known = self._alerts.get(alert.fingerprint)
        if known is None:
            self._counts["ignored"] += 1
            return
        heard = replace(known, received=known.received + 1, last_seen=self._now)
        self._concerned[known.incident_id] = None
        if known.alert.status == "resolved" or _is_of_earlier_firing(alert, known.alert):
            self._counts["duplicates"] += 1
            self._alerts[alert.fingerprint] = heard
            return
        self._counts["resolved"] += 1
        ended = replace(
            alert, starts_at=_later(alert.starts_at, known.alert.starts_at), ends_at=alert.ends_at or self._now
        )
        self._alerts[alert.fingerprint] = replace(heard, alert=ended)
        self._touched[known.incident_id] = None

    def _fire(self, alert: Alert, group_key: str) -> None:
        known = self._alerts.get(alert.fingerprint)
        route = self._rules.routes.of(alert.labels)
        if known is not None and not self._is_news(alert, known):
            self._repeat(alert, known, route)
            return
        self._counts["accepted"] += 1
        incident = self._incident_for(known, route, group_key, alert.cluster)
        if known is not None and known.incident_id != incident:
            self._touched[known.incident_id] = None  # the previous incident may be resolved now
        self._touched[incident] = None
        self._concerned[incident] = None
        investigation = self._investigation_for(alert, incident, route)
        self._alerts[alert.fingerprint] = KnownAlert(
            alert=alert,
            incident_id=incident,
            investigation_id=investigation,
            tries=1 if investigation is not None else 0,
            received=known.received + 1 if known else 1,
            first_seen=known.first_seen if known else self._now,
            last_seen=self._now,
        )

    def _is_news(self, alert: Alert, known: KnownAlert) -> bool:
        """Return whether a known alert is firing again. Returns false if it never stopped or the message is old."""
        if known.alert.status == "resolved":
            return _is_newer(alert, known.alert)
        incident = self._incidents.get(known.incident_id)
        if incident is None or incident.state != "open":
            return True
        return alert.starts_at is not None and alert.starts_at > known.last_seen + _UNHEARD

    def _repeat(self, alert: Alert, known: KnownAlert, route: Route) -> None:
        """Count the message and link the alert to its investigation.

        The alert gets its first investigation if its route did not allow investigations before. It gets another
        investigation if the previous investigation failed.
        """
        self._counts["duplicates"] += 1
        self._concerned[known.incident_id] = None
        still = known.alert
        investigation, tries = known.investigation_id, known.tries
        if known.alert.status == "firing":
            still = replace(alert, starts_at=_later(alert.starts_at, known.alert.starts_at))
            if investigation is None or self._may_try_again(known):
                investigation = self._investigation_for(alert, known.incident_id, route) or investigation
            if investigation != known.investigation_id:
                tries += 1
            if investigation is not None:
                self._linked[investigation] = None
        self._alerts[alert.fingerprint] = replace(
            known,
            alert=still,
            investigation_id=investigation,
            tries=tries,
            received=known.received + 1,
            last_seen=self._now,
        )

    def _may_try_again(self, known: KnownAlert) -> bool:
        """Return whether the alert's failed investigation may be retried, given its age and the number of tries."""
        failed = self._before.investigations.get(known.investigation_id) if known.investigation_id else None
        if failed is None or failed.state != "failed" or failed.finished_at is None or known.tries >= _MOST_TRIES:
            return False
        return self._now - failed.finished_at >= _TRY_AGAIN_AFTER

    def _incident_for(self, known: KnownAlert | None, route: Route, group_key: str, cluster: str | None) -> IncidentId:
        """Choose the incident of an alert.

        The first of these applies: the open incident of the alert, the open incident of the group, the reopened
        incident of the alert, or a new incident.
        """
        own = self._incidents.get(known.incident_id) if known is not None else None
        if own is not None and own.route != route.name:
            own = None
        if own is not None and own.state == "open":
            return own.id
        open_one = self._open.get((route.name, group_key))
        if open_one is not None:
            return open_one
        identity = own.id if own is not None and self._may_reopen(own) else IncidentId(time_id(self._now.timestamp()))
        if own is not None and identity == own.id:
            incident = replace(own, state="open", closed_at=None, closed_by=None, reopened=own.reopened + 1)
            self._news[identity] = "reopened"
        else:
            incident = replace(self._new_incident(identity, route, group_key), cluster=cluster)
            self._news[identity] = "opened"
        self._incidents[identity] = incident
        self._routes[identity] = route
        self._open[(route.name, group_key)] = identity
        return identity

    def _may_reopen(self, incident: Incident) -> bool:
        closed_at = incident.closed_at
        return closed_at is not None and self._now - closed_at <= timedelta(hours=self._rules.reopen_hours)

    def _new_incident(self, identity: IncidentId, route: Route, group_key: str) -> Incident:
        return Incident(
            id=identity,
            title="",
            state="open",
            severity=None,
            route=route.name,
            group_key=group_key,
            labels={},
            opened_at=self._now,
            updated_at=self._now,
        )

    def _investigation_for(self, alert: Alert, incident: IncidentId, route: Route) -> InvestigationId | None:
        """Choose the investigation of an alert.

        The first of these applies: the queued investigation of the incident, a started investigation of the same
        subject, or a new investigation. The question of a queued investigation is extended to include the alert.
        """
        why_not = self._why_not(alert, route)
        if why_not is not None:
            if why_not and self._incidents[incident].verdict is None:
                noted = replace(self._incidents[incident], verdict="not_investigated", summary=why_not)
                self._incidents[incident] = noted
            return None
        queued = self._queued.get(incident)
        if queued is None:
            same = self._looking_at_the_same(alert, incident)
            if same is not None:
                self._linked[same] = None
                return same
            queued = self._new_investigation(incident, route)
        self._asked_anew[queued] = incident
        self._linked[queued] = None
        return queued

    def _why_not(self, alert: Alert, route: Route) -> str | None:
        """Return why the alert is not investigated, or None if it is. The text is empty if the route says so."""
        if route.investigate is False:
            return ""
        return self._rules.clusters.refusal(alert.cluster) or (None if route.investigates(alert.labels) else HEARTBEAT)

    def _new_investigation(self, incident: IncidentId, route: Route) -> InvestigationId:
        identity = InvestigationId(time_id(self._now.timestamp()))
        self._queued[incident] = identity
        without_llm = self._rules.why_without_llm(route)
        self._new[identity] = NewInvestigation(
            question="",
            title="",
            source=self._rules.source,
            incident_id=incident,
            route=route.name,
            model=route.model,
            max_cost=route.max_cost,
            without_llm=without_llm,
            counted=without_llm is None and self._rules.asks_llm(route.model),
            cluster=self._incidents[incident].cluster,
        )
        return identity

    def _looking_at_the_same(self, alert: Alert, incident: IncidentId) -> InvestigationId | None:
        """Return a started investigation of another firing alert with the same subject, or None if none exists."""
        if self._looked_at is None:
            known = self._before.investigations
            self._looked_at = defaultdict(dict)
            for each in self._alerts.values():
                begun = known.get(each.investigation_id) if each.investigation_id else None
                if begun is not None and begun.state in _BEGUN and each.alert.status == "firing":
                    about = (each.incident_id, subject_key(each.alert.labels))
                    self._looked_at[about][each.alert.fingerprint] = begun.id
        subject = subject_key(alert.labels)
        siblings = self._looked_at.get((incident, subject), {})
        sibling = next((begun for fingerprint, begun in siblings.items() if fingerprint != alert.fingerprint), None)
        if sibling is None and incident in self._before.incidents:
            return self._before.others.looking_at(incident, subject)
        return sibling

    def _firing_by_incident(self) -> dict[IncidentId, list[Alert]]:
        firing: dict[IncidentId, list[Alert]] = defaultdict(list)
        for each in self._alerts.values():
            if each.alert.status == "firing" and each.incident_id in self._touched:
                firing[each.incident_id].append(each.alert)
        return firing

    def _settle(self, identity: IncidentId, firing: tuple[Alert, ...]) -> None:
        """Close an incident if none of its alerts is firing; otherwise, update its title, severity and labels.

        The labels of alerts outside the group are unknown. While these alerts are firing, common labels can be removed
        but not added.
        """
        incident = self._incidents.get(identity)
        if incident is None:
            return
        facts = tuple(map(facts_of, firing))
        is_known = identity in self._before.incidents
        places = {each.place for each in facts if each.place}
        others = self._before.others.facts(identity, places) if is_known else NO_OTHER_FACTS
        if facts or others.count:
            self._incidents[identity] = replace(
                incident,
                title=title_of(facts, others),
                severity=worst_severity((*facts, *others.kinds)),
                labels=_common_labels(*([incident.labels] if others.count else []), *(each.labels for each in firing)),
                updated_at=self._now,
            )
        elif incident.state == "open":
            self._incidents[identity] = replace(incident, state="closed", closed_at=self._now, updated_at=self._now)
            self._news[identity] = "resolved"

    def _questions(self) -> dict[InvestigationId, NewInvestigation]:
        """Write the questions of new and changed investigations. Each question covers all firing alerts."""
        alerts: dict[InvestigationId, list[Alert]] = defaultdict(list)
        for each in self._alerts.values():
            if each.investigation_id in self._asked_anew and each.alert.status == "firing":
                alerts[each.investigation_id].append(each.alert)
        asked: dict[InvestigationId, NewInvestigation] = {}
        for identity, incident in self._asked_anew.items():
            others, more = self._before.others.asked(identity) if identity not in self._new else ((), 0)
            about = sorted(
                (*others, *alerts[identity]), key=lambda alert: (alert.starts_at or self._now, alert.fingerprint)
            )
            blank = self._new.get(identity) or NewInvestigation(
                question="", title="", source=self._rules.source, incident_id=incident
            )
            asked[identity] = replace(
                blank,
                question=alert_question(about, more),
                title=alerts_title(about, more),
                namespace=namespace_of_all(about),
            )
        return asked

    def _route_of(self, identity: IncidentId) -> Route:
        return self._routes.get(identity) or self._rules.routes.named(self._incidents[identity].route)


def _is_newer(alert: Alert, known: Alert) -> bool:
    """Return whether `alert` started after `known`. Returns true if a start time is unknown."""
    return alert.starts_at is None or known.starts_at is None or alert.starts_at > known.starts_at


def _is_of_earlier_firing(resolved: Alert, known: Alert) -> bool:
    """Return whether a late resolved message refers to an earlier firing of the alert."""
    if known.starts_at is None:
        return False
    if resolved.ends_at is not None:
        return resolved.ends_at <= known.starts_at
    return resolved.starts_at is not None and resolved.starts_at < known.starts_at


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    """Return the later of two times. A time that is None is ignored. Returns None if both are None."""
    return max(filter(None, (one, other)), default=None)


def _common_labels(first: Mapping[str, str], *others: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in first.items() if all(each.get(name) == value for each in others)}


_ONE_CLUSTER: Final = AlertClusters()


def investigations_of(
    group: AlertGroup, routes: Routes, clusters: AlertClusters = _ONE_CLUSTER
) -> tuple[NewInvestigation, ...]:
    """Return the investigations that a server without stored alerts would start for `group`, in alert order."""
    rules = IntakeRules(source="alertmanager", routes=routes, clusters=clusters)
    plan = IntakePlan(IntakeState(), rules, datetime.now(UTC))
    plan.take(clusters.assigned(group))
    return tuple(plan.changes().new_investigations.values())
