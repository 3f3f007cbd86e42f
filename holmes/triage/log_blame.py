"""Finds the incident that explains what a log reports, so that the messenger is not blamed."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.triage.blame import from_logs, with_cause
from holmes.triage.connections import connections
from holmes.triage.harm import leaves_serving
from holmes.triage.log_evidence import CREDENTIALS
from holmes.triage.names import names_of
from holmes.triage.past import was_there
from holmes.triage.vocabulary import symptoms_of_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.triage.asked import Asked
    from holmes.triage.log_evidence import LogCause
    from holmes.triage.subjects import Named
    from holmes.values.findings import Incident
    from holmes.values.first_look import FirstLook

OUTDATED: Final = "W13"
"""The rule that finds pods which are older than their configuration."""
_SERVERS: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet", "Service"})
_REGISTRY: Final = re.compile(r"(?<![\w./-])((?:[a-z0-9-]+\.)+[a-z]{2,})(?::\d+)?/")
_REJECTIONS: Final = frozenset({"auth failed"})


def _behind_logs(asked: Asked, logged: LogCause, *, of_scope: bool) -> Incident | None:
    """Return the incident that explains the trouble in a log, or None. Logs of a scope can be those of a proxy."""
    found = [each for each in asked.report.incidents if was_there(asked, each)]
    critical = [each for each in found if each.severity == "critical"]
    maker = next(_of_makers(asked, logged, critical), None)
    if maker is not None:
        return maker
    if len(logged.path) > 1:  # the object to which the logs lead says why it does not answer
        owned = (each for each in critical if logged.culprit in (each.culprit, *each.affected))
        owned = (each for each in owned if not leaves_serving(asked.state, each, [logged.culprit]))
        return next(owned, None) or next(_of_clients(asked, logged, found), None)
    named = (each for each in critical if of_scope and _names(logged.troubles[0].group.record, each))
    return next(named, None) or next(_of_clients(asked, logged, found), None)


def _of_makers(asked: Asked, logged: LogCause, incidents: list[Incident]) -> Iterator[Incident]:
    """Yield the incidents of what makes the workload's Secrets, if the lines tell of rejected credentials."""
    last = logged.troubles[-1]
    if logged.reason is None and last.group.kind in CREDENTIALS:
        made = connections(asked.state, (last.workload,))
        yield from (each for each in incidents if each.culprit in made and each.culprit.group)


def blamed(asked: Asked, logged: LogCause, named: Named | None) -> FirstLook:
    """Return the look that names what explains the trouble in a log: an incident, or the lines themselves."""
    behind = _behind_logs(asked, logged, of_scope=named is None)
    if behind is None:
        return from_logs(asked, named, logged)
    look = with_cause(asked, behind, named, logged.path)
    severity = "warning" if look.severity == "info" else look.severity
    return replace(look, severity=severity, evidence=(*logged.evidence[:1], *look.evidence))


def origin_of(asked: Asked, incident: Incident) -> Incident:
    """Return the fault of the registry behind an image that cannot be pulled, if the cluster itself runs it."""
    if "image" not in symptoms_of_text(incident.title):
        return incident
    hosts = _REGISTRY.findall(incident.cause)
    served = [each for host in hosts for each in names_of(asked.state).at_address(host)]
    found = connections(asked.state, served)
    faults = (each for each in asked.report.incidents if each.severity == "critical" and each.culprit in found)
    return next((each for each in faults if was_there(asked, each)), incident)


def _names(record: str, incident: Incident) -> bool:
    """Return whether a line names the Service with the incident, as proxies do: `shop-web-80`, `web.shop.svc`."""
    services = (each for each in (incident.culprit, *incident.affected) if each.kind == "Service")
    return any(
        re.search(rf"(?<![\w-])(?:{each.namespace}[-/]{each.name}|{each.name}\.{each.namespace})(?![a-z])", record)
        for each in services
    )


def _of_clients(asked: Asked, logged: LogCause, incidents: list[Incident]) -> Iterator[Incident]:
    """Yield the incidents of clients with an old password, if a server reports that it rejects passwords."""
    if logged.troubles[0].group.kind not in _REJECTIONS or logged.culprit.kind not in _SERVERS:
        return
    for incident in incidents:
        client = asked.state.find(incident.culprit)
        outdated = any(each.rule_id == OUTDATED for each in incident.findings)
        served = client is not None and client.ref != logged.culprit
        if client is not None and served and outdated and logged.culprit in connections(asked.state, (client,)):
            yield incident
